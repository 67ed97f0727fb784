import { Busboy, type BusboyEvents, type BusboyInstance } from '@fastify/busboy'
import { Fault, invalid } from '../../db/fault.ts'
import { removeStored, type StoredFile, storeFile } from '../../db/files/store.ts'
import type { Store } from '../../db/scope.ts'
import { collectByName } from '../http/body.ts'

/** The most bytes that the fields of a form may have together, besides its files, and how many parts it may have. */
const MAX_FIELD_BYTES = 1_500_000
const MAX_PARTS = 1_000

export type UploadLimits = { maxBytes: number; maxCount: number }

/** What came: `body` has the files as values, `files` are all of them. They belong to no execution yet. */
export type Received = { body: unknown; files: StoredFile[] }

/**
 * Stores a body that is one file for the team, as its bytes come. Throws TOO_LARGE over a limit, and INVALID if it
 * does not come whole.
 */
export async function receiveFile(
  store: Store,
  teamId: string,
  body: AsyncIterable<Uint8Array>,
  {
    name,
    mimeType,
    length,
    maxBytes: most,
  }: { name: string; mimeType: string; length: number | undefined } & Pick<UploadLimits, 'maxBytes'>,
): Promise<Received> {
  const file = await storeFile(store, { teamId }, { name, mimeType, length, most }, whole(body))
  return { body: { file }, files: [file] }
}

/**
 * Reads a form of the type `multipart/form-data` as its bytes come: an object with one key for each name, and an array
 * where a name comes more than once. Its files are stored for the team; an empty one without a name, which browsers send
 * where nobody has chosen one, is null. Throws TOO_LARGE over a limit, and INVALID if it is no whole form. Then nothing
 * of it is kept.
 */
export async function receiveForm(
  store: Store,
  teamId: string,
  body: AsyncIterable<Uint8Array>,
  { type, maxBytes, maxCount }: { type: string } & UploadLimits,
): Promise<Received> {
  const parser = openParser(type, maxCount)
  const entries: (readonly [string, Promise<unknown>])[] = []
  const files: StoredFile[] = []
  const unnamed: StoredFile[] = []
  const streams = new Set<{ destroy(error: Error): void }>()
  let fieldBytes = 0
  const failed = new AbortController()
  const fail = (error: unknown) => failed.abort(error)
  const refuse = (message: string) => () => fail(new Fault('TOO_LARGE', message))
  const onFile: BusboyEvents['file'] = (name, stream, filename, _encoding, mimeType) => {
    streams.add(stream)
    // Before its file is read, an error of a stream would have no listener.
    stream.on('error', () => {})
    const what = { name: filename || '', mimeType, most: maxBytes }
    const storing = storeFile(store, { teamId }, what, whole(stream)).then((file) => {
      const isNone = file.bytes === 0 && !filename
      ;(isNone ? unnamed : files).push(file)
      return isNone ? null : { file }
    })
    storing.catch(fail)
    entries.push([name, storing])
  }
  const onField: BusboyEvents['field'] = (name, value, _nameCut, isCut) => {
    fieldBytes += Buffer.byteLength(value)
    if (isCut || fieldBytes > MAX_FIELD_BYTES)
      refuse(`The fields of the form must have at most ${MAX_FIELD_BYTES} bytes`)()
    entries.push([name, Promise.resolve(value)])
  }
  parser.on('file', onFile)
  parser.on('field', onField)
  parser.on('filesLimit', refuse(`The form must have at most ${maxCount} files`))
  for (const limit of ['partsLimit', 'fieldsLimit'] as const)
    parser.on(limit, refuse(`The form must have at most ${MAX_PARTS} parts`))
  parser.on('error', () => fail(notWhole()))
  const finished = new Promise<void>((resolve) => void parser.once('finish', resolve))
  const failure = rejectOnAbort(failed.signal)
  try {
    for await (const chunk of whole(body)) {
      failed.signal.throwIfAborted()
      await Promise.race([new Promise((resolve) => void parser.write(chunk, resolve)), failure])
    }
    parser.end()
    await Promise.race([finished, failure])
    const values = await Promise.all(entries.map(async ([name, value]) => [name, await value] as const))
    failed.signal.throwIfAborted()
    await removeStored(store, unnamed)
    return { body: collectByName(values), files }
  } catch (error) {
    fail(error)
    for (const stream of streams) stream.destroy(notWhole())
    await Promise.allSettled(entries.map(([, value]) => value))
    await removeStored(store, [...files, ...unnamed]).catch(() => {})
    throw error
  }
}

function openParser(type: string, files: number): BusboyInstance {
  const limits = {
    fieldSize: MAX_FIELD_BYTES,
    files,
    fields: MAX_PARTS,
    parts: MAX_PARTS,
    headerPairs: 50,
    headerSize: 16 * 1024,
  }
  try {
    return new Busboy({ headers: { 'content-type': type }, limits, preservePath: true })
  } catch {
    throw invalid([{ path: 'body', message: 'must be a form whose Content-Type names its boundary' }])
  }
}

/** What breaks off is the sender's fault: the error says so instead of what the connection says. */
async function* whole(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* stream
  } catch (error) {
    throw error instanceof Fault ? error : notWhole()
  }
}

function notWhole(): Fault {
  return invalid([
    { path: 'body', message: 'must be whole: it ended early, or is not what its Content-Type says' },
  ])
}

/** A promise that only rejects, with the signal's reason. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  const promise = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  promise.catch(() => {})
  return promise
}
