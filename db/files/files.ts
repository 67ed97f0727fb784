import { type RawBuilder, sql } from 'kysely'
import { type ChatPrivacy, chatPrivacyOf, demandValues, isHiddenFrom } from '../chat/privacy.ts'
import type { Tx } from '../connection.ts'
import { Fault, missing } from '../fault.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import type { Scope, Store } from '../scope.ts'
import { unseal } from '../seal.ts'
import { addFiles, FILE_PURPOSE, namePiece, PIECE_BYTES, type StoredFile } from './store.ts'

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** A file of the execution; undefined if it has none of this id. */
export async function findFile(
  store: Pick<Store, 'db'>,
  executionId: string,
  id: string,
): Promise<StoredFile | undefined> {
  if (!UUID.test(id)) return undefined
  return store.db
    .selectFrom('executionFiles')
    .select(['id', 'name', 'mimeType', 'bytes'])
    .where('executionId', '=', executionId)
    .where('id', '=', id)
    .executeTakeFirst()
}

/** A file of an execution, for a member of its team. Throws NOT_FOUND. */
export async function readFile(scope: Scope, executionId: string, id: string): Promise<StoredFile> {
  const { store } = scope
  await demandValues(scope, executionId)
  const file = await findFile(store, executionId, id)
  if (!file) throw missing('file')
  return file
}

export type FileItem = StoredFile & { createdAt: Date }

/** A page of the files of an execution, in the order in which they came, for a member of its team. Throws NOT_FOUND. */
export async function listFiles(
  scope: Scope,
  executionId: string,
  query: PageRequest,
): Promise<Page<FileItem>> {
  await demandValues(scope, executionId)
  const found = scope.store.db.selectFrom('executionFiles').where('executionId', '=', executionId)
  const content = await found
    .select(['id', 'name', 'mimeType', 'bytes', 'createdAt'])
    .orderBy('createdAt')
    .orderBy('id')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(content, await countRows(found), query)
}

/**
 * The bytes of a file from `from` on, piece by piece; each is read when it is asked for. Throws NOT_FOUND if the file
 * is removed meanwhile.
 */
export async function* readPieces(
  store: Store,
  id: string,
  { from = 0, persist = (work) => work() }: ReadOptions = {},
): AsyncGenerator<Buffer, void, undefined> {
  const file = await persist(() =>
    store.db
      .selectFrom('storedFiles')
      .select(['pieces', 'bytes'])
      .where('id', '=', id)
      .where('removed', '=', false)
      .executeTakeFirst(),
  )
  if (!file || file.pieces === null) throw gone()
  const { pieces } = file
  // All pieces but the last have the same size.
  const first = pieces > 1 ? Math.min(pieces - 1, Math.floor(from / PIECE_BYTES)) : 0
  for (let number = first; number < pieces; number++) {
    const row = await persist(() =>
      store.db
        .selectFrom('filePieces')
        .select('sealed')
        .where('fileId', '=', id)
        .where('number', '=', number)
        .executeTakeFirst(),
    )
    if (!row) throw gone()
    const piece = unseal(store.keys, FILE_PURPOSE, namePiece(id, number, number === pieces - 1), row.sealed)
    yield number === first ? piece.subarray(from - first * PIECE_BYTES) : piece
  }
}

type ReadOptions = { from?: number; persist?: <T>(work: () => Promise<T>) => Promise<T> }

function gone(): Fault {
  return new Fault('NOT_FOUND', 'The file has been deleted')
}

/** Which files to copy: those of these ids, or all. */
type Chosen = Iterable<string> | 'all'

/**
 * Copies files of an execution to another one of its team, whose row need not exist before the transaction ends: they
 * share their bytes. Ids of which the first execution has no file are passed over. Throws TOO_LARGE if the other one
 * would have too many; if it takes over all, they do not count.
 */
export async function copyFiles(tx: Tx, from: string, to: string, which: Chosen): Promise<void> {
  if (which !== 'all') return copy(tx, to, which, sql`f.execution_id = ${from}`)
  const { rows } = await sql<{
    id: string
  }>`select id from execution_files where execution_id = ${from}`.execute(tx)
  const ids = rows.map(({ id }) => id)
  await copy(tx, to, ids, sql`f.execution_id = ${from}`, true)
}

/** Copies files of executions of the team that the caller may read. */
export async function copyTeamFiles(
  tx: Tx,
  scope: Scope,
  { teamId, to, which }: { teamId: string; to: string; which: Iterable<string> },
): Promise<void> {
  const ids = [...which].filter((id) => UUID.test(id))
  const { rows } = await sql<{ id: string; executionId: string; privacy: ChatPrivacy }>`
    select f.id, f.execution_id, ${chatPrivacyOf('e')} as privacy from execution_files f
    join executions e on e.id = f.execution_id
    where f.id = any(${ids}::uuid[]) and f.team_id = ${teamId}`.execute(tx)
  const open = rows.filter(({ privacy }) => !isHiddenFrom(scope, teamId, privacy))
  const from = [...new Set(open.map(({ executionId }) => executionId))]
  const shown = new Set(open.map(({ id }) => id))
  await copy(tx, to, shown, sql`f.team_id = ${teamId} and f.execution_id = any(${from}::uuid[])`)
}

async function copy(
  tx: Tx,
  to: string,
  which: Iterable<string>,
  among: RawBuilder<unknown>,
  takenOver = false,
): Promise<void> {
  const ids = [...which].filter((id) => UUID.test(id))
  if (ids.length === 0) return
  // A transaction that removes the last of the other copies waits for this one, or was before it.
  const { rows } = await sql<StoredFile & { teamId: string }>`
    with held as materialized (
      select id from stored_files where id = any(${ids}::uuid[]) and not removed order by id for no key update)
    select distinct on (f.id) f.id, f.team_id, f.name, f.mime_type, f.bytes
    from held join execution_files f on f.id = held.id where ${among} order by f.id, f.created_at`.execute(tx)
  if (rows[0]) await addFiles(tx, to, rows[0].teamId, rows, takenOver)
}
