import { findOwnCharset } from './markup.ts'

/** The charset that a Content-Type declares, as it is written there. */
export function findCharset(contentType: string | undefined): string | undefined {
  const declared = /;\s*charset\s*=\s*(?:"([^"]{0,100})"|([^;\s,]{0,100}))/i.exec(contentType ?? '')
  return (declared?.[1] ?? declared?.[2])?.trim().replace(/^'(.*)'$/, '$1') || undefined
}

/** A text, and the charset that it was said to have, if that is unknown: then it was read as UTF-8. */
export type TextReading = { text: string; unknown?: string }

/**
 * Decodes text that others have sent: by its byte order mark, else by the charset that the Content-Type declares, else
 * by what HTML and XML say of themselves, else as UTF-8. Invalid bytes become U+FFFD.
 */
export function decodeDeclared(body: Uint8Array, contentType: string | undefined): TextReading {
  const charset = findTextCharset(body, contentType)
  const decoder = openDecoder(charset)
  if (decoder) return { text: decoder.decode(body) }
  return { text: new TextDecoder().decode(body), unknown: charset! }
}

/** The charset by which a text is read; undefined if nothing says one. It may be one that is unknown. */
export function findTextCharset(body: Uint8Array, contentType: string | undefined): string | undefined {
  return findByteOrderMark(body) ?? findCharset(contentType) ?? findOwnCharset(body, formatOf(contentType))
}

/** As `decodeDeclared`, for those who have nowhere to say that a charset is unknown. */
export function decodeText(body: Uint8Array, contentType: string | undefined): string {
  return decodeDeclared(body, contentType).text
}

/** A decoder for a charset by one of its names, by default UTF-8; undefined for an unknown one. */
export function openDecoder(
  charset = 'utf-8',
  options?: { fatal?: boolean; ignoreBOM?: boolean },
): InstanceType<typeof TextDecoder> | undefined {
  try {
    return new TextDecoder(charset, options)
  } catch {
    return undefined
  }
}

/** The charset that the first bytes of a text name. No decoder knows UTF-32. */
export function findByteOrderMark(body: Uint8Array): string | undefined {
  const [a, b, c, d] = body
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf-8'
  if (a === 0xfe && b === 0xff) return 'utf-16be'
  if (a === 0 && b === 0 && c === 0xfe && d === 0xff) return 'utf-32be'
  if (a !== 0xff || b !== 0xfe) return undefined
  return body.length >= 4 && c === 0 && d === 0 ? 'utf-32le' : 'utf-16le'
}

function formatOf(contentType: string | undefined): 'html' | 'xml' | undefined {
  const type = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html'
  return /^(application|text|image)\/([\w.-]+\+)?xml$/.test(type) ? 'xml' : undefined
}
