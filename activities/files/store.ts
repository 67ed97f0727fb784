import { Fault } from '../../db/fault.ts'
import { findFile, readPieces } from '../../db/files/files.ts'
import { removeFiles, storeFile } from '../../db/files/store.ts'
import type { Store } from '../../db/scope.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { retryOutages } from '../run/outages.ts'
import type { Bytes, Files, OpenFile } from './files.ts'

/**
 * The files of an execution, for one call of one of its nodes. What reads and stores them waits while PostgreSQL is
 * away, until `signal` is aborted. `discard` removes what the call has stored, because it has failed.
 */
export function createFiles(
  store: Store,
  executionId: string,
  signal: AbortSignal,
): Files & { discard(): Promise<void> } {
  const stored: string[] = []
  const persist = <T>(work: () => Promise<T>) => {
    signal.throwIfAborted()
    return retryOutages(signal, work)
  }

  async function open(value: unknown): Promise<OpenFile> {
    const file = await persist(() => demandFile(store, executionId, value))
    const stream = () => readOrFail(readPieces(store, file.id, { persist }))
    return { ...file, stream, read: (most) => readWhole(file, stream(), most) }
  }

  return {
    open,
    async store({ name, mimeType }, bytes) {
      const length = bytes instanceof Uint8Array ? bytes.length : undefined
      try {
        const owner = { executionId }
        const what = { name, mimeType, length }
        const file = await storeFile(store, owner, what, streamOf(bytes), persist)
        stored.push(file.id)
        return { file }
      } catch (error) {
        if (error instanceof Fault && error.code === 'TOO_LARGE')
          throw new NodeFailure(error.message, { type: 'FileTooLarge' })
        throw error
      }
    },
    discard: () => removeFiles(store, executionId, stored.splice(0)),
  }
}

/** The file of the execution that a value names. Throws a NodeFailure (FileMissing) if there is no such file. */
export async function demandFile(
  store: Pick<Store, 'db'>,
  executionId: string,
  value: unknown,
): Promise<NonNullable<Awaited<ReturnType<typeof findFile>>>> {
  const id = Object(Object(value).file).id
  if (typeof id !== 'string')
    throw new NodeFailure('The value is not a file: a file is {file: {id, name, mimeType, bytes}}', {
      type: 'FileMissing',
    })
  const file = await findFile(store, executionId, id)
  if (!file) throw missingFile()
  return file
}

function missingFile(): NodeFailure {
  const message = 'The value names a file that is none of this execution, or has been deleted'
  return new NodeFailure(message, { type: 'FileMissing' })
}

async function* readOrFail(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* pieces
  } catch (error) {
    throw error instanceof Fault && error.code === 'NOT_FOUND' ? missingFile() : error
  }
}

async function readWhole(
  { name, bytes }: { name: string; bytes: number },
  pieces: AsyncIterable<Uint8Array>,
  most: number,
): Promise<Uint8Array> {
  if (bytes > most)
    throw new NodeFailure(`The file ${name} has ${bytes} bytes; at most ${most} can be taken here`, {
      type: 'FileTooLarge',
    })
  const whole = Buffer.alloc(bytes)
  let at = 0
  for await (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

async function* streamOf(bytes: Bytes): AsyncGenerator<Uint8Array, void, undefined> {
  if (bytes instanceof Uint8Array) yield bytes
  else yield* bytes
}
