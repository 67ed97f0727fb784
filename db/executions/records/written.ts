import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip, gzipSync } from 'node:zlib'

const zip = promisify(gzip)

export const MAX_OUTPUT_BYTES = 8_000_000

/** An output as it is stored, but for the seal: the size and the hash of its JSON, and the JSON gzipped. */
export type WrittenOutput = { bytes: number; hash: string; zipped: Uint8Array }

/** Makes an output's JSON ready to be stored. Throws RangeError if it is larger than MAX_OUTPUT_BYTES. */
export function writeOutput(text: string, bytes = Buffer.byteLength(text)): WrittenOutput {
  return { ...measureOutput(text, bytes), zipped: gzipSync(text, { level: 1 }) }
}

/** The same on another thread, which takes a little longer. */
export async function writeOutputAside(text: string): Promise<WrittenOutput> {
  return { ...measureOutput(text, Buffer.byteLength(text)), zipped: await zip(text, { level: 1 }) }
}

function measureOutput(text: string, bytes: number): Pick<WrittenOutput, 'bytes' | 'hash'> {
  if (bytes > MAX_OUTPUT_BYTES) {
    throw new RangeError(`The output has ${bytes} bytes; at most ${MAX_OUTPUT_BYTES} are allowed`)
  }
  return { bytes, hash: createHash('sha256').update(text).digest('hex') }
}
