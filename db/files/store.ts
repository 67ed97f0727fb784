import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { MAX_FILE_BYTES, MAX_RUN_FILES } from '../../workflows/nodes/files.ts'
import { record, write } from '../change.ts'
import type { Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import { lockFor } from '../locks.ts'
import type { TeamPlan } from '../people/teams.ts'
import type { Store } from '../scope.ts'
import { seal } from '../seal.ts'
import { cleanFileName, cleanMediaType } from './names.ts'

/** The bytes that the files of a team may have together, by its team plan. */
export const PLAN_FILE_BYTES = {
  FREE: 1_000_000_000,
  TEAM: 10_000_000_000,
  BUSINESS: 50_000_000_000,
  ENTERPRISE: 100_000_000_000,
} as const satisfies Record<TeamPlan, number>

/** The bytes of a piece. A writer or reader of a file holds a few pieces of it, however large it is. */
export const PIECE_BYTES = 256 * 1024

/** How much room is taken at once for a file whose size is not known before its end. */
const ROOM_BYTES = 4 * 1024 * 1024

export const FILE_PURPOSE = 'file'

/** A file as its row has it. `bytes` is its size. */
export type StoredFile = { id: string; name: string; mimeType: string; bytes: number }

/** A part of a sealed file: it cannot be put in the place of another, nor be taken for the last one. */
export function namePiece(id: string, number: number, isLast: boolean): string {
  return `${id}|${number}|${isLast ? 'last' : ''}`
}

export type NewFile = {
  name: string
  mimeType?: string | undefined
  /** How many bytes will come, if that is known: a file with more or fewer is refused. */
  length?: number | undefined
  /** The most bytes that it may have, if fewer than MAX_FILE_BYTES. */
  most?: number | undefined
}

/** Whose file it is: that of an execution, or of a team whose execution has not been started yet. */
export type FileOwner = { executionId: string } | { teamId: string }

/** Repeats a statement that may be carried out twice, as long as it may succeed. */
type Persist = <T>(work: () => Promise<T>) => Promise<T>

/**
 * Stores a file piece by piece, as its bytes come; no connection is held while they do. If one is not stored to its
 * end, its pieces are removed. A file for a team must be claimed by an execution within an hour. Throws TOO_LARGE over
 * a limit, and INVALID if `length` does not hold; what `bytes` throws; a foreign key violation if the execution or team
 * has been deleted.
 */
export async function storeFile(
  store: Store,
  owner: FileOwner,
  { name, mimeType, length, most = MAX_FILE_BYTES }: NewFile,
  bytes: AsyncIterable<Uint8Array>,
  persist: Persist = (work) => work(),
): Promise<StoredFile> {
  const limit = Math.min(most, MAX_FILE_BYTES)
  if (length !== undefined && length > limit) throw tooLarge(limit)
  const file = { id: uuid(), name: cleanFileName(name), mimeType: cleanMediaType(mimeType) }
  let room = length ?? Math.min(ROOM_BYTES, limit)
  await persist(() => begin(store, owner, file.id, room))
  try {
    let size = 0
    let number = 0
    for await (const { piece, isLast } of cutPieces(bytes)) {
      size += piece.length
      if (size > limit) throw tooLarge(limit)
      if (length !== undefined && (isLast ? size !== length : size > length)) throw wrongLength(length)
      if (size > room) {
        room = Math.min(limit, size + ROOM_BYTES)
        await persist(() => takeRoom(store, file.id, room))
      }
      const sealed = seal(store.keys, FILE_PURPOSE, namePiece(file.id, number, isLast), piece)
      await persist(() => writePiece(store, file.id, number, sealed))
      number++
    }
    const whole = { ...file, bytes: size }
    await persist(() => finish(store, owner, whole, number))
    return whole
  } catch (error) {
    await removeStored(store, [file]).catch(() => {})
    throw error
  }
}

/** The bytes in pieces of PIECE_BYTES, of which the last may be shorter, and is empty if there are none. */
async function* cutPieces(bytes: AsyncIterable<Uint8Array>) {
  let buffer = Buffer.alloc(0)
  let filled = 0
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length; ) {
      if (filled === PIECE_BYTES) {
        yield { piece: buffer, isLast: false }
        filled = 0
      }
      const taken = chunk.subarray(at, at + PIECE_BYTES - filled)
      buffer = makeRoom(buffer, filled + taken.length)
      buffer.set(taken, filled)
      filled += taken.length
      at += taken.length
    }
  }
  yield { piece: buffer.subarray(0, filled), isLast: true }
}

/** A form may bring many small files at once: none of them takes much more memory than it has bytes. */
function makeRoom(buffer: Buffer, bytes: number): Buffer<ArrayBuffer> {
  if (bytes <= buffer.length) return buffer as Buffer<ArrayBuffer>
  const larger = Buffer.allocUnsafe(Math.min(PIECE_BYTES, 4 * bytes))
  larger.set(buffer)
  return larger
}

function begin(store: Store, owner: FileOwner, id: string, room: number): Promise<void> {
  return record(store, async (tx) => {
    const team =
      'teamId' in owner
        ? sql`${owner.teamId}::uuid`
        : sql`(select team_id from executions where id = ${owner.executionId})`
    const { rows } = await sql<{ teamId: string | null }>`select ${team} as team_id`.execute(tx)
    const teamId = rows[0]?.teamId
    if (!teamId) throw new Fault('NOT_FOUND', 'The execution has been deleted')
    await tx
      .insertInto('storedFiles')
      .values({ id, teamId, bytes: room })
      .onConflict((oc) => oc.doNothing())
      .execute()
    await demandRoom(tx, teamId)
  })
}

function takeRoom(store: Store, id: string, room: number): Promise<void> {
  return record(store, async (tx) => {
    const held = await tx
      .updateTable('storedFiles')
      .set({ bytes: room, touchedAt: sql<Date>`now()` })
      .where('id', '=', id)
      .where('removed', '=', false)
      .returning('teamId')
      .executeTakeFirst()
    if (!held) throw abandoned()
    await demandRoom(tx, held.teamId)
  })
}

/** Throws TOO_LARGE if the team's files have more bytes than its plan allows; the sum is held until the commit. */
async function demandRoom(tx: Tx, teamId: string): Promise<void> {
  const usage = await tx
    .selectFrom('fileUsage as u')
    .innerJoin('teams as t', 't.id', 'u.teamId')
    .select(['u.bytes', 't.plan'])
    .where('u.teamId', '=', teamId)
    .executeTakeFirst()
  if (!usage) return
  const most = PLAN_FILE_BYTES[usage.plan as TeamPlan]
  if (usage.bytes <= most) return
  throw new Fault('TOO_LARGE', `The files of the team would have more than the ${most} bytes of its plan`)
}

async function writePiece(store: Store, fileId: string, number: number, sealed: Buffer): Promise<void> {
  await write(store, (tx) =>
    tx
      .insertInto('filePieces')
      .values({ fileId, number, sealed })
      .onConflict((oc) => oc.doNothing())
      .execute(),
  ).catch((error) => {
    throw (error as { code?: string }).code === '23503' ? abandoned() : error
  })
}

function finish(store: Store, owner: FileOwner, file: StoredFile, pieces: number): Promise<void> {
  return record(store, async (tx) => {
    const held = await tx
      .updateTable('storedFiles')
      .set({ bytes: file.bytes, pieces, touchedAt: sql<Date>`now()` })
      .where('id', '=', file.id)
      .where('removed', '=', false)
      .returning('teamId')
      .executeTakeFirst()
    if (!held) throw abandoned()
    if ('executionId' in owner) await addFiles(tx, owner.executionId, held.teamId, [file])
  })
}

/**
 * Gives files to an execution, whose row need not exist before the transaction ends. Throws TOO_LARGE if it would have
 * too many of them, besides those that are `takenOver`.
 */
export async function addFiles(
  tx: Tx,
  executionId: string,
  teamId: string,
  files: readonly StoredFile[],
  takenOver = false,
): Promise<void> {
  if (files.length === 0) return
  // Two nodes that store files at the same time count one after the other.
  await lockFor(tx, 'files', executionId)
  await sql`set constraints execution_files_execution_id_fkey deferred`.execute(tx)
  const rows = files
    .map(({ id, name, mimeType, bytes }) => ({ id, name, mimeType, bytes, executionId, teamId, takenOver }))
    // In one order, as each row locks what it is a copy of.
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  await tx
    .insertInto('executionFiles')
    .values(rows)
    .onConflict((oc) => oc.doNothing())
    .execute()
  if (takenOver) return
  const { count } = await tx
    .selectFrom('executionFiles')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('executionId', '=', executionId)
    .where('takenOver', '=', false)
    .executeTakeFirstOrThrow()
  if (count <= MAX_RUN_FILES) return
  throw new Fault('TOO_LARGE', `An execution may have at most ${MAX_RUN_FILES} files`)
}

/** Removes files that belong to no execution, such as those whose execution was not started. */
export async function removeStored(store: Store, files: Pick<StoredFile, 'id'>[]): Promise<void> {
  if (files.length === 0) return
  const ids = files.map(({ id }) => id)
  await write(store, (tx) =>
    tx
      .updateTable('storedFiles')
      .set({ removed: true, touchedAt: sql<Date>`now()` })
      .where('id', 'in', ids)
      .where('copies', '=', 0)
      .execute(),
  )
}

function tooLarge(most: number): Fault {
  return new Fault('TOO_LARGE', `A file may have at most ${most} bytes`)
}

function wrongLength(length: number): Fault {
  return new Fault('INVALID', `The file does not have the ${length} bytes that were announced`)
}

function abandoned(): Fault {
  return new Fault('CONFLICT', 'The file was given up, because nothing came for too long')
}

/** Takes files from an execution, such as those of an attempt that has failed. */
export async function removeFiles(store: Store, executionId: string, ids: string[]): Promise<void> {
  if (ids.length === 0) return
  await write(store, (tx) =>
    tx.deleteFrom('executionFiles').where('executionId', '=', executionId).where('id', 'in', ids).execute(),
  )
}
