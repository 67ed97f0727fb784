/** The charset that a Content-Type declares, as it is written there. */
export function findCharset(contentType: string | undefined): string | undefined {
  return /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(contentType ?? '')?.[1]
}

/**
 * Decodes text that others have sent: by its byte order mark, else by the charset that the Content-Type declares, else
 * as UTF-8. An unknown charset is read as UTF-8, and invalid bytes become U+FFFD.
 */
export function decodeText(body: Uint8Array, contentType: string | undefined): string {
  const charset = findByteOrderMark(body) ?? findCharset(contentType)
  return (openDecoder(charset) ?? new TextDecoder()).decode(body)
}

/** A decoder for a charset by one of its names, by default UTF-8; undefined for an unknown one. */
export function openDecoder(
  charset = 'utf-8',
  options?: { fatal?: boolean },
): InstanceType<typeof TextDecoder> | undefined {
  try {
    return new TextDecoder(charset, options)
  } catch {
    return undefined
  }
}

/** The charset that the first bytes of a text name. */
export function findByteOrderMark(body: Uint8Array): string | undefined {
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return 'utf-8'
  if (body[0] === 0xfe && body[1] === 0xff) return 'utf-16be'
  return body[0] === 0xff && body[1] === 0xfe ? 'utf-16le' : undefined
}
