import { Readable, type Transform } from 'node:stream'
import zlib from 'node:zlib'
import { Fault, invalid } from '../../db/fault.ts'
import { getOwn } from '../../workflows/json.ts'

type Open = (first: number) => Transform & { bytesWritten: number }

/** Each works off the thread that serves all requests. */
const DECODERS: Record<string, Open> = {
  gzip: () => zlib.createGunzip(),
  'x-gzip': () => zlib.createGunzip(),
  // Some senders send raw deflate data without the zlib header, whose first byte has 8 in its low nibble.
  deflate: (first) => ((first & 15) === 8 ? zlib.createInflate() : zlib.createInflateRaw()),
  br: () => zlib.createBrotliDecompress(),
  zstd: () => zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: 23 } }),
}

/** How often a body may have been compressed. */
const MAX_STEPS = 2

/** Above so many bytes, a body may have at most so many times the bytes that were sent. */
const FREE_BYTES = 1_500_000
const MAX_RATIO = 100

/**
 * The content encodings of a body, in the order in which they are to be undone. Throws UNSUPPORTED_TYPE for one that is
 * not known, and for more than two.
 */
export function readEncodings(header: string | undefined): string[] {
  const named = (header ?? '').split(',').map((step) => step.trim().toLowerCase())
  const steps = named.filter((step) => step !== '' && step !== 'identity').reverse()
  const unknown = steps.find((step) => !getOwn(DECODERS, step))
  if (unknown !== undefined || steps.length > MAX_STEPS)
    throw new Fault(
      'UNSUPPORTED_TYPE',
      `The body may be compressed with gzip, br, zstd or deflate, at most twice${unknown === undefined ? '' : `, and not with ${JSON.stringify(unknown.slice(0, 40))}`}`,
    )
  return steps
}

/**
 * Undoes content encodings, as the bytes come. Throws TOO_LARGE as soon as there are more than `most` bytes after any of
 * them, INVALID for bytes that are not whole or not in the encoding, and what `chunks` throws.
 */
export function undoEncodings(
  chunks: AsyncIterable<Uint8Array>,
  steps: string[],
  most: number,
): AsyncIterable<Uint8Array> {
  return steps.reduce<AsyncIterable<Uint8Array>>((body, step) => undo(body, step, most), chunks)
}

/** The same for a whole body, whose bytes it returns. */
export async function decompressWhole(
  bytes: Uint8Array,
  steps: string[],
  most: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = []
  for await (const piece of undoEncodings(piecesOf(bytes), steps, most)) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** Bytes as a stream. */
export async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  if (bytes.length > 0) yield bytes
}

async function* undo(
  chunks: AsyncIterable<Uint8Array>,
  step: string,
  most: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const source = chunks[Symbol.asyncIterator]()
  let next = await source.next()
  while (!next.done && next.value.length === 0) next = await source.next()
  // A body without bytes is empty whatever it is said to be.
  if (next.done) return
  const decoder = DECODERS[step]!(next.value[0]!)
  let given = 0
  let failed: unknown
  async function* feed() {
    try {
      for (; !next.done; next = await source.next()) {
        given += next.value.length
        yield next.value
      }
    } catch (error) {
      failed = error
      throw error
    }
  }
  const input = Readable.from(feed(), { objectMode: false })
  input.on('error', (error) => decoder.destroy(error))
  input.pipe(decoder)
  let bytes = 0
  try {
    for await (const chunk of decoder as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > FREE_BYTES && bytes > MAX_RATIO * given)
        throw new Fault(
          'TOO_LARGE',
          `The body must not be compressed to less than 1/${MAX_RATIO} of its size`,
        )
      if (bytes > most) throw new Fault('TOO_LARGE', `The body must have at most ${most} bytes, decompressed`)
      yield chunk
    }
    // zlib passes over what comes behind the end.
    if (!next.done || decoder.bytesWritten !== given) throw notValid(step)
  } catch (error) {
    if (failed !== undefined) throw failed
    throw error instanceof Fault ? error : notValid(step)
  } finally {
    input.destroy()
    decoder.destroy()
    // Not waited for: its sender may be slow.
    void source.return?.()?.catch(() => {})
  }
}

function notValid(step: string): Fault {
  return invalid([{ path: 'body', message: `must be valid ${step}, whole and with nothing behind it` }])
}
