import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'

export const MAX_OUTPUT_BYTES = 8_000_000

/** An output as it is stored, but for the seal: the size and the hash of its JSON, and the JSON gzipped. */
export type WrittenOutput = { bytes: number; hash: string; zipped: Uint8Array }

/** Makes an output's JSON ready to be stored. Throws RangeError if it is larger than MAX_OUTPUT_BYTES. */
export function writeOutput(text: string, bytes = Buffer.byteLength(text)): WrittenOutput {
  if (bytes > MAX_OUTPUT_BYTES) {
    throw new RangeError(`The output has ${bytes} bytes; at most ${MAX_OUTPUT_BYTES} are allowed`)
  }
  const hash = createHash('sha256').update(text).digest('hex')
  return { bytes, hash, zipped: gzipSync(text, { level: 1 }) }
}
