import { findTextCharset, openDecoder } from '../../activities/reading/charset.ts'
import { invalid } from '../../db/fault.ts'
import { quoteShort } from '../../workflows/problem.ts'

/** A decoder for a charset that a request names. Throws INVALID if it is unknown. */
export function demandCharset(charset: string | undefined, options?: { fatal?: boolean }) {
  const decoder = openDecoder(charset, options)
  if (decoder) return decoder
  throw invalid([{ path: 'body', message: `is in a charset that is unknown here: ${quoteShort(charset!)}` }])
}

/** Types whose bytes are no text, whatever the first of them are: no byte order mark is looked for. */
const BINARY =
  /^((image|audio|video|font|model)\/(?!svg\+xml$)|application\/(octet-stream|pdf|zip|gzip|x-(?!www-form-urlencoded|ndjson|yaml|javascript)))/

/** The charset of a body that is text, or may be. Throws INVALID if it is unknown; undefined is UTF-8. */
export function findBodyCharset(bytes: Uint8Array, contentType: string, essence: string): string | undefined {
  const isBinary = BINARY.test(essence)
  const charset = findTextCharset(isBinary ? new Uint8Array() : bytes, contentType)
  if (charset !== undefined) demandCharset(charset)
  return charset
}

/** The text of a body, or if its bytes are not in its charset, an object with these in base64. */
export function readBodyText(bytes: Uint8Array, charset: string | undefined): string | { base64: string } {
  try {
    return demandCharset(charset, { fatal: true }).decode(bytes)
  } catch {
    return { base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') }
  }
}
