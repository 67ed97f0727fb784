import { openDecoder } from '../reading/charset.ts'

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
  if (encoded !== undefined) {
    const name = decode(readEscapes(encoded, '%'), charset!)
    if (name !== undefined) return name
  }
  const [, quoted, token] =
    /;\s*filename\s*=\s*(?:"((?:[^"\\]|\\.){0,4000})"|([^;\s"]{1,4000}))/i.exec(header) ?? []
  // Servers send raw UTF-8, which the HTTP client reads as Latin-1.
  const raw = quoted?.replace(/\\(.)/g, '$1') ?? token
  return raw === undefined ? undefined : readEncodedWords(readLatin(raw))
}

const WORD = /=\?([\w-]{1,40})(?:\*[\w-]{0,20})?\?([bq])\?([^?\s]{0,4000})\?=/i
const WORDS = new RegExp(`${WORD.source}(?:\\s+${WORD.source.replaceAll(/\((?!\?)/g, '(?:')})*`, 'gi')

/**
 * A name with the encoded words in it decoded (RFC 2047): such are for mails, but servers send them too. A word that
 * cannot be decoded stays as it is.
 */
function readEncodedWords(name: string): string {
  return name.replace(WORDS, (found) => {
    const words = found.split(/\s+/).map((word) => {
      const [, charset = '', encoding = '', text = ''] = WORD.exec(word) ?? []
      return { charset: charset.toLowerCase(), bytes: readWord(encoding, text) }
    })
    let name = ''
    for (let at = 0; at < words.length; ) {
      const { charset } = words[at]!
      const pieces: Uint8Array[] = []
      // A character may begin in one word and end in the next.
      for (; words[at]?.charset === charset; at++) {
        const { bytes } = words[at]!
        if (!bytes) return found
        pieces.push(bytes)
      }
      const text = decode(Buffer.concat(pieces), charset)
      if (text === undefined) return found
      name += text
    }
    return name
  })
}

/** The bytes of an encoded word; undefined if they are not in its encoding. */
function readWord(encoding: string, text: string): Uint8Array | undefined {
  if (encoding.toLowerCase() === 'b')
    return /^[\w+/-]*={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined
  return readEscapes(text.replaceAll('_', ' '), '=')
}

/** The bytes of a text, in which those that `mark` begins are written in hex; undefined if one is not. */
function readEscapes(text: string, mark: '%' | '='): Uint8Array | undefined {
  const bytes: number[] = []
  for (let at = 0; at < text.length; at++) {
    const hex = text[at] === mark ? text.slice(at + 1, at + 3) : undefined
    if (hex !== undefined && !/^[\da-f]{2}$/i.test(hex)) return undefined
    if (hex === undefined) bytes.push(text.charCodeAt(at) & 255)
    else {
      bytes.push(Number.parseInt(hex, 16))
      at += 2
    }
  }
  return Uint8Array.from(bytes)
}

/** Undefined for an unknown charset, and for bytes that are not in it. */
function decode(bytes: Uint8Array | undefined, charset: string): string | undefined {
  try {
    return bytes && openDecoder(charset, { fatal: true })?.decode(bytes)
  } catch {
    return undefined
  }
}

const readLatin = (text: string): string => decode(Buffer.from(text, 'latin1'), 'utf-8') ?? text
