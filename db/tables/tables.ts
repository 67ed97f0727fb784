import { sql } from 'kysely'
import { validate as isUuid, v7 as uuid } from 'uuid'
import { change } from '../change.ts'
import { type Db, json, type Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import { demandRoom, findOwned, guardName, tellUse } from '../owned.ts'
import { rememberOwner } from '../owners.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { describeChange } from '../redaction/difference.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'
import { boundStatements } from './bounds.ts'
import {
  type ColumnInput,
  type DataTable,
  planColumns,
  type StoredColumn,
  type StoredTable,
  showColumn,
} from './columns.ts'
import { demandFit, dropCells } from './fitting.ts'
import { countRowsOf, readQuota } from './quotas.ts'
import { listTableUsers } from './users.ts'

const KEYS = [
  ...['id', 'teamId', 'name', 'columns', 'columnsMade'],
  ...['rowCount', 'bytes', 'createdAt', 'updatedAt'],
] as (
  | 'id'
  | 'teamId'
  | 'name'
  | 'columns'
  | 'columnsMade'
  | 'rowCount'
  | 'bytes'
  | 'createdAt'
  | 'updatedAt'
)[]

/** A team's data tables in the order of their names (VIEWER). */
export async function listTables(
  scope: Scope,
  query: PageRequest & { teamId: string },
): Promise<Page<DataTable>> {
  await demandTeam(scope, query.teamId, 'VIEWER')
  const found = scope.store.db.selectFrom('dataTables').where('teamId', '=', query.teamId)
  const total = await countRows(found)
  const rows = await found
    .select(KEYS)
    .orderBy('name')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(rows.map(show), total, query)
}

/** Reads a data table (VIEWER). Throws NOT_FOUND. */
export async function readTable(scope: Scope, id: string): Promise<DataTable> {
  const { columns, ...table } = await findTable(scope, id)
  return { ...table, columns: columns.map(showColumn) }
}

/** The table as it is stored, for a caller who may read it (VIEWER). Throws NOT_FOUND. */
export async function findTable(scope: Scope, id: string): Promise<StoredTable> {
  const { columnsMade: _, ...row } = await findOwned(
    select(scope.store.db).where('id', '=', id),
    'data table',
  )
  demand(scope, row.teamId, 'VIEWER')
  return row as unknown as StoredTable
}

/**
 * Adds a data table (BUILDER). Throws INVALID with all that is wrong with its columns; CONFLICT if the team has one of
 * this name, or as many as its plan allows.
 */
export async function createTable(
  scope: Scope,
  { teamId, name, columns: given }: { teamId: string; name: string; columns: ColumnInput[] },
): Promise<DataTable> {
  const { columns, made } = planColumns(
    [],
    0,
    given.map(({ id: _, ...column }) => column),
  )
  const created = await guardName('data_tables', name, () =>
    change(scope, 'TABLE_CREATED', teamId, async (tx) => {
      const { tables } = await readQuota(tx, teamId)
      await demandRoom(tx, 'data_tables', teamId, tables)
      const id = uuid()
      await tx
        .insertInto('dataTables')
        .values({ id, teamId, name, columns: json(columns), columnsMade: made })
        .execute()
      const result = show(await findOwned(select(tx).where('id', '=', id), 'data table'))
      return { result, resourceId: id, details: { name, columns: columns.map(showColumn) } }
    }),
  )
  rememberOwner(scope.store, created.id, teamId)
  return created
}

/**
 * Changes the name, or the columns as a whole (BUILDER): one with its id stays, others are new, and the values of those
 * that are missing are deleted. Throws NOT_FOUND; INVALID if rows do not fit the columns; CONFLICT for a name that is taken.
 */
export async function updateTable(
  scope: Scope,
  id: string,
  { name, columns: given }: { name?: string | undefined; columns?: ColumnInput[] | undefined },
): Promise<DataTable> {
  const { teamId } = await findTable(scope, id)
  return guardName('data_tables', name ?? '', () =>
    change(scope, 'TABLE_UPDATED', teamId, async (tx) => {
      await boundStatements(tx)
      const { columnsMade, ...row } = await findOwned(
        select(tx).where('id', '=', id).forNoKeyUpdate(),
        'data table',
      )
      const before = row as unknown as StoredTable
      const planned = given && planColumns(before.columns, columnsMade, given)
      if (planned) {
        await demandFit(tx, before, planned.columns)
        const freed = await dropCells(tx, before, planned.dropped)
        if (freed !== 0) await countRowsOf(tx, before, { rows: 0, bytes: -freed })
      }
      const { columns, made } = planned ?? { columns: before.columns, made: columnsMade }
      await tx
        .updateTable('dataTables')
        .set({ name: name ?? before.name, columns: json(columns), columnsMade: made, updatedAt: sql`now()` })
        .where('id', '=', id)
        .execute()
      const result = show(await findOwned(select(tx).where('id', '=', id), 'data table'))
      const told = describeChange(
        { name: before.name, columns: before.columns.map(showColumn) },
        { name: result.name, columns: result.columns },
      )
      return { result, resourceId: id, details: { name: result.name, ...told } }
    }),
  )
}

/**
 * Deletes a data table with its rows (BUILDER). Throws NOT_FOUND, and CONFLICT if active workflows use it, unless an ADMIN
 * says `force`.
 */
export async function deleteTable(scope: Scope, id: string, force = false): Promise<void> {
  const { teamId } = await findTable(scope, id)
  if (force) demand(scope, teamId, 'ADMIN')
  await change(scope, 'TABLE_DELETED', teamId, async (tx, held) => {
    if (force) demand(held, teamId, 'ADMIN')
    const { name, rowCount, bytes } = await findOwned(
      select(tx).where('id', '=', id).forUpdate(),
      'data table',
    )
    const users = await listTableUsers(tx, { teamId, id, name })
    if (users.length > 0 && !force) throw new Fault('CONFLICT', tellUse(`data table "${name}"`, users))
    await countRowsOf(tx, { id, teamId }, { rows: -rowCount, bytes: -bytes })
    await tx.deleteFrom('dataTables').where('id', '=', id).execute()
    const details = { name, rows: rowCount, ...(users.length > 0 ? { activeWorkflows: users.length } : {}) }
    return { result: undefined, resourceId: id, details }
  })
}

/**
 * The table that nodes of the team name by its id or its name. With `hold`, others who write to it wait until the commit.
 * Throws NOT_FOUND.
 */
export async function findNamed(
  tx: Db,
  teamId: string,
  named: string,
  { hold = false } = {},
): Promise<StoredTable> {
  const own = select(tx).where('teamId', '=', teamId)
  const found = (query: typeof own) => (hold ? query.forNoKeyUpdate() : query).executeTakeFirst()
  const byId = isUuid(named) ? await found(own.where('id', '=', named.toLowerCase())) : undefined
  const row = byId ?? (await found(own.where('name', '=', named)))
  if (!row) throw new Fault('NOT_FOUND', `The team has no data table ${JSON.stringify(named.slice(0, 100))}`)
  const { columnsMade: _, ...table } = row
  return table as unknown as StoredTable
}

/** Holds a table of the team until the commit, so that others who write to it wait. Throws NOT_FOUND. */
export async function holdTable(tx: Tx, id: string): Promise<StoredTable> {
  const { columnsMade: _, ...row } = await findOwned(
    select(tx).where('id', '=', id).forNoKeyUpdate(),
    'data table',
  )
  return row as unknown as StoredTable
}

const select = (db: Db) => db.selectFrom('dataTables').select(KEYS)

type Row = Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirstOrThrow']>>

function show({ columnsMade: _, columns, ...row }: Row): DataTable {
  return { ...row, columns: (columns as StoredColumn[]).map(showColumn) }
}
