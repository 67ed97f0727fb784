import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { getOwn } from '../../workflows/json.ts'
import { bodyTooLarge, HttpError } from './httperror.ts'

/**
 * The most bytes that a response's body can have, which its headers say only if it is not compressed; `max` if
 * they do not. A body that is announced as larger than `max` is refused when it is read.
 */
export function boundBody(method: string, headers: Record<string, string>, max: number): number {
  if (method === 'HEAD') return 0
  const length = headers['content-length'] ?? ''
  const isPlain = /^\s*(?:identity)?\s*$/i.test(headers['content-encoding'] ?? '')
  if (!isPlain || headers['transfer-encoding'] !== undefined || !/^\d{1,15}$/.test(length)) return max
  return Math.min(Number(length), max)
}

/** The bytes of a response's body. Throws an HttpError (too-large) as soon as there are more than `max`. */
export async function readResponseBytes(
  stream: AsyncIterable<Buffer>,
  max: number,
  host: string,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  // Throwing out of the loop destroys the stream, and with it the connection.
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes > max) throw bodyTooLarge(host, max)
    chunks.push(chunk)
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, bytes)
}

type Codec = (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>
const inflate: Codec = promisify(zlib.inflate)
const inflateRaw: Codec = promisify(zlib.inflateRaw)
const gunzip: Codec = promisify(zlib.gunzip)
const brotli: Codec = promisify(zlib.brotliDecompress)
const zstd = promisify(zlib.zstdDecompress)
const CODECS: Record<string, Codec> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  // Some servers send raw deflate data without the zlib header, whose first byte has 8 in its low nibble.
  deflate: (body, options) => (((body[0] ?? 0) & 15) === 8 ? inflate : inflateRaw)(body, options),
  br: brotli,
  zstd: (body, options) =>
    zstd(body, { ...options, params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 } }) as Promise<Buffer>,
}

/**
 * Undoes a response's content encodings. Throws an HttpError: `too-large` if a step has more than `max`
 * bytes, `network` for more than two encodings, unknown ones, and invalid data. These bounds stop
 * decompression bombs.
 */
export async function decompress(raw: Buffer, encoding: string, max: number, host: string): Promise<Buffer> {
  const steps = encoding
    .toLowerCase()
    .split(',')
    .map((step) => step.trim())
  const named = steps.filter((step) => step !== '' && step !== 'identity').reverse()
  if (raw.length === 0) return raw
  if (named.length > 2) throw new HttpError('network', `${host} responded with too many content encodings`)
  let body = raw
  for (const step of named) {
    const codec = getOwn(CODECS, step)
    if (!codec) throw new HttpError('network', `${host} responded in an unknown content encoding`)
    try {
      body = await codec(body, { maxOutputLength: max })
    } catch (error) {
      if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge(host, max)
      throw new HttpError('network', `${host} responded with a body that is not valid ${step}`, error)
    }
  }
  return body
}
