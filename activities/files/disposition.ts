/**
 * A Content-Disposition (RFC 6266) for a file of this name: in ASCII for old clients, in UTF-8 for all others. No name
 * can end the header or begin another one.
 */
export function writeDisposition(how: 'attachment' | 'inline', name: string): string {
  const clean = name.toWellFormed()
  const ascii = clean.replace(/["\\%\p{Cc}]/gu, '_').replace(/[^\x20-\x7e]/gu, '_')
  const encoded = encodeURIComponent(clean).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16)}`,
  )
  return `${how}; filename="${ascii}"; filename*=UTF-8''${encoded}`
}

/** The name of a file in a Content-Disposition; undefined if it has none that can be read. */
export function readDispositionName(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const [, charset, encoded] =
    /;\s*filename\*\s*=\s*([\w-]{1,20})'[\w-]{0,20}'([^;\s]{1,4000})/i.exec(header) ?? []
  if (encoded !== undefined && /^(utf-8|iso-8859-1)$/i.test(charset!)) {
    const name = decodePercents(encoded, charset!)
    if (name !== undefined) return name
  }
  const [, quoted, token] =
    /;\s*filename\s*=\s*(?:"((?:[^"\\]|\\.){0,4000})"|([^;\s"]{1,4000}))/i.exec(header) ?? []
  // Servers send raw UTF-8, which the HTTP client reads as Latin-1.
  const raw = quoted?.replace(/\\(.)/g, '$1') ?? token
  return raw === undefined ? undefined : readLatin(raw)
}

function decodePercents(text: string, charset: string): string | undefined {
  const bytes: number[] = []
  for (const [, hex, sign] of text.matchAll(/%([\da-f]{2})|([^%])|%/gi)) {
    if (hex === undefined && sign === undefined) return undefined
    bytes.push(hex === undefined ? sign!.charCodeAt(0) & 255 : Number.parseInt(hex, 16))
  }
  try {
    return new TextDecoder(charset, { fatal: true }).decode(Uint8Array.from(bytes))
  } catch {
    return undefined
  }
}

function readLatin(text: string): string {
  const bytes = Buffer.from(text, 'latin1')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return text
  }
}
