import { createPacer } from '../../activities/expressions/pace.ts'
import type { Asker } from '../../activities/fairness/teamqueue.ts'
import type { BodyReader } from './away.ts'
import { type FilePart, readMultipart } from './multipart.ts'
import { unescapeName } from './parthead.ts'
import { type BodyReading, essenceOf, type PlainSettings, readPlain } from './plain.ts'

/** A larger body is read on another thread. */
const READ_HERE = 64 * 1024

/** A form in parts is parsed in pieces of so many bytes, so that others have their turn in between. */
const PIECE = 32 * 1024

export type BodySettings = {
  readAway: BodyReader
  /** The owner of the body, for the turns of the other thread. */
  asker: Asker
} & PlainSettings

/**
 * Parses a body by its content type: JSON becomes its value, a form an object of its fields (a file is {filename,
 * contentType, base64}), other text a string, other bytes {base64}, and an empty body null. A large value is a
 * JsonText. Throws INVALID for a body that does not fit its content type.
 */
export async function readBodyValue(
  bytes: Uint8Array<ArrayBuffer>,
  contentType: string,
  { readAway, asker, ...settings }: BodySettings,
): Promise<BodyReading> {
  if (bytes.length === 0) return { value: null }
  if (essenceOf(contentType) === 'multipart/form-data')
    return { value: await readMultipart(cut(bytes), contentType, { takeFile: keepFile }) }
  if (bytes.length <= READ_HERE) return readPlain(bytes, contentType, settings)
  return readAway(asker, { bytes, contentType, settings })
}

async function keepFile({ filename, type }: FilePart, bytes: AsyncIterable<Uint8Array>): Promise<unknown> {
  const pieces: Uint8Array[] = []
  for await (const piece of bytes) pieces.push(piece)
  return {
    filename: unescapeName(filename),
    contentType: type.toLowerCase() || 'text/plain',
    base64: Buffer.concat(pieces).toString('base64'),
  }
}

async function* cut(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  const pace = createPacer()
  for (let at = 0; at < bytes.length; at += PIECE) {
    await pace()
    yield Buffer.from(bytes.buffer, bytes.byteOffset + at, Math.min(PIECE, bytes.length - at))
  }
}
