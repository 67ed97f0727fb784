import { pipeline, Readable } from 'node:stream'
import zlib from 'node:zlib'
import { getOwn } from '../../workflows/json.ts'
import { bodyTooLarge, HttpError, toHttpError } from './httperror.ts'

/** A request's body that is not held in memory. `open` gives its bytes from the beginning, for each hop anew. */
export type StreamedBody = { bytes: number; open(): AsyncIterable<Uint8Array> }

/** Takes the bytes of a response's body as they come, decompressed. */
export type SaveBody = (body: AsyncIterable<Uint8Array>) => Promise<void>

export function isStreamed(body: unknown): body is StreamedBody {
  return typeof body === 'object' && body !== null && 'open' in body
}

type Step = () => NodeJS.ReadWriteStream
const STEPS: Record<string, Step> = {
  gzip: zlib.createGunzip,
  'x-gzip': zlib.createGunzip,
  deflate: zlib.createInflate,
  br: zlib.createBrotliDecompress,
  zstd: () => zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 } }),
}

/**
 * The bytes of a response's body without its content encodings, as they come. Throws an HttpError: `too-large` as soon
 * as there are more than `max`, before or after decompression, `network` for more than two encodings, unknown ones,
 * invalid data and a connection that breaks off.
 */
export async function* readDecoded(
  body: Readable,
  encoding: string,
  max: number,
  host: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  const named = encoding
    .toLowerCase()
    .split(',')
    .map((step) => step.trim())
    .filter((step) => step !== '' && step !== 'identity')
    .reverse()
  const unknown = named.find((step) => getOwn(STEPS, step) === undefined)
  if (named.length > 2 || unknown !== undefined) {
    body.destroy()
    const what = unknown === undefined ? 'too many content encodings' : 'an unknown content encoding'
    throw new HttpError('network', `${host} responded with ${what}`)
  }
  try {
    const limited = limit(body, max, host)
    if (named.length === 0) yield* limited
    else yield* limit(decode(limited, named), max, host)
  } catch (error) {
    const code = String((error as { code?: string }).code)
    if (!/^(Z_|ERR_.*(BROTLI|ZSTD|ZLIB)|ERR__ERROR)/.test(code)) throw toHttpError(error, host)
    throw new HttpError(
      'network',
      `${host} responded with a body that is not valid ${named.join(', ')}`,
      error,
    )
  } finally {
    body.destroy()
  }
}

function decode(body: AsyncIterable<Uint8Array>, named: string[]): AsyncIterable<Uint8Array> {
  const steps = named.map((step) => STEPS[step]!())
  // The error of a broken step comes out of the last one, too.
  const last: unknown = pipeline([Readable.from(body), ...steps], () => {})
  return last as AsyncIterable<Uint8Array>
}

async function* limit(
  body: AsyncIterable<Uint8Array>,
  max: number,
  host: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > max) throw bodyTooLarge(host, max)
    yield chunk
  }
}
