import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { HttpError, tooLarge } from './httperror.ts'

/** The bytes of an answer's body; throws HttpError, too-large, as soon as there are more than `max`. */
export async function readBody(stream: AsyncIterable<Buffer>, max: number, host: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  // Leaving the loop by an error destroys the stream, and with it the connection.
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes > max) throw tooLarge(host, max)
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
  // Some servers send bare deflate: a zlib header says 8 in its low nibble.
  deflate: (body, options) => (((body[0] ?? 0) & 15) === 8 ? inflate : inflateRaw)(body, options),
  br: brotli,
  zstd: (body, options) =>
    zstd(body, { ...options, params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 } }) as Promise<Buffer>,
}

/** Undoes an answer's content encodings. Both the input and each step's output are bounded by `max`, and the steps by two: no bomb gets far. */
export async function decompress(raw: Buffer, encoding: string, max: number, host: string): Promise<Buffer> {
  const steps = encoding
    .toLowerCase()
    .split(',')
    .map((step) => step.trim())
  const named = steps.filter((step) => step !== '' && step !== 'identity').reverse()
  if (raw.length === 0) return raw
  if (named.length > 2) throw new HttpError('network', `${host} answered with too many content encodings`)
  let body = raw
  for (const step of named) {
    const codec = Object.hasOwn(CODECS, step) ? CODECS[step] : undefined
    if (!codec) throw new HttpError('network', `${host} answered in a content encoding that is not known`)
    try {
      body = await codec(body, { maxOutputLength: max })
    } catch (error) {
      if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(host, max)
      throw new HttpError('network', `${host} answered with a body that is no valid ${step}`, error)
    }
  }
  return body
}
