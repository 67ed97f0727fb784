import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { setOwn } from '../../workflows/json.ts'
import { change } from '../change.ts'
import { type Db, json, type Tx } from '../connection.ts'
import { invalid } from '../fault.ts'
import { demandRoom, findOwned, guardName } from '../owned.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { type Difference, describeChange, shorten } from '../redaction/difference.ts'
import { demand, demandTeam, type Scope, type Store } from '../scope.ts'

/**
 * A value that a team's expressions read as `$vars.<key>`. It can be any JSON, but it is not secret: all who may read
 * the team's workflows can see it.
 */
export type Variable = {
  id: string
  teamId: string
  key: string
  value: unknown
  description: string | null
  createdAt: Date
  updatedAt: Date
}

const MAX_VALUE_BYTES = 32_768
const MAX_VARIABLES = 1_000
const COLUMNS = ['id', 'teamId', 'key', 'value', 'description', 'createdAt', 'updatedAt'] as const

/** A team's variables in the order of their keys (VIEWER). */
export async function listVariables(
  scope: Scope,
  query: PageRequest & { teamId: string },
): Promise<Page<Variable>> {
  await demandTeam(scope, query.teamId, 'VIEWER')
  const found = scope.store.db.selectFrom('variables').where('teamId', '=', query.teamId)
  const total = await countRows(found)
  const content = await found
    .select(COLUMNS)
    .orderBy('key')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(content, total, query)
}

/**
 * Creates a variable (BUILDER). Throws CONFLICT if the team has the key already, or has 1,000 variables, and
 * INVALID for a value of more than 32 KiB.
 */
export async function createVariable(
  scope: Scope,
  input: { teamId: string; key: string; value: unknown; description?: string | null | undefined },
): Promise<Variable> {
  const { teamId, key, description = null } = input
  demandSmall(input.value)
  return guardName('variables', key, () =>
    change(scope, 'VARIABLE_CREATED', teamId, async (tx) => {
      await demandRoom(tx, 'variables', teamId, MAX_VARIABLES)
      const id = uuid()
      const result = await tx
        .insertInto('variables')
        .values({ id, teamId, key, value: json(input.value), description })
        .returning(COLUMNS)
        .executeTakeFirstOrThrow()
      return { result, resourceId: id, details: { key, after: { value: { [key]: shorten(input.value) } } } }
    }),
  )
}

/** Reads a variable (VIEWER). Throws NOT_FOUND. */
export async function readVariable(scope: Scope, id: string): Promise<Variable> {
  const row = await findOwned(select(scope.store.db, id), 'variable')
  demand(scope, row.teamId, 'VIEWER')
  return row
}

/**
 * Changes the given fields and keeps the others (BUILDER). Throws NOT_FOUND, CONFLICT if the team has the key
 * already, and INVALID for a value of more than 32 KiB.
 */
export async function updateVariable(
  scope: Scope,
  id: string,
  patch: { key?: string | undefined; value?: unknown; description?: string | null | undefined },
): Promise<Variable> {
  const { teamId } = await readVariable(scope, id)
  if (patch.value !== undefined) demandSmall(patch.value)
  return guardName('variables', patch.key ?? '', () =>
    change(scope, 'VARIABLE_UPDATED', teamId, async (tx) => {
      const old = await lockVariable(tx, id)
      const fields = {
        key: patch.key ?? old.key,
        value: patch.value === undefined ? old.value : patch.value,
        description: patch.description === undefined ? old.description : patch.description,
      }
      const { key: oldKey, value: oldValue, description: oldDescription } = old
      const told = describeChange({ key: oldKey, value: oldValue, description: oldDescription }, fields)
      const { changed } = told
      const details = { key: fields.key, ...told, ...tellValues(old, fields, told) }
      const result = await tx
        .updateTable('variables')
        .set({ ...fields, value: json(fields.value) })
        .$if(changed.length > 0, (query) => query.set({ updatedAt: sql<Date>`now()` }))
        .where('id', '=', id)
        .returning(COLUMNS)
        .executeTakeFirstOrThrow()
      return { result, resourceId: id, details }
    }),
  )
}

/** Deletes a variable (BUILDER): from then on expressions find nothing under its key. Throws NOT_FOUND. */
export async function deleteVariable(scope: Scope, id: string): Promise<void> {
  const { teamId } = await readVariable(scope, id)
  await change(scope, 'VARIABLE_DELETED', teamId, async (tx) => {
    const { key, value } = await lockVariable(tx, id)
    await tx.deleteFrom('variables').where('id', '=', id).execute()
    const before = { value: { [key]: shorten(value) } }
    return { result: undefined, resourceId: id, details: { key, before } }
  })
}

/** The variables of a workflow's team, as values by key: those of `keys`, or all if it is undefined. */
export async function findVariables(
  store: Store,
  workflowId: string,
  keys: string[] | undefined,
): Promise<Record<string, unknown>> {
  const rows = await store.db
    .selectFrom('variables as v')
    .innerJoin('workflows as w', 'w.teamId', 'v.teamId')
    .select(['v.key', 'v.value'])
    .where('w.id', '=', workflowId)
    .$if(keys !== undefined, (query) => query.where('v.key', '=', sql<string>`any(${keys}::text[])`))
    .execute()
  const values: Record<string, unknown> = {}
  for (const { key, value } of rows) setOwn(values, key, value)
  return values
}

/** All variables of a team, by key. */
export async function readTeamVariables(store: Store, teamId: string): Promise<Record<string, unknown>> {
  const rows = await store.db
    .selectFrom('variables')
    .select(['key', 'value'])
    .where('teamId', '=', teamId)
    .execute()
  const values: Record<string, unknown> = {}
  for (const { key, value } of rows) setOwn(values, key, value)
  return values
}

/** The values under their keys: how a value is called decides whether it is masked. */
function tellValues(
  old: Pick<Variable, 'key' | 'value'>,
  { key, value }: Pick<Variable, 'key' | 'value'>,
  { changed, before, after }: Difference,
) {
  if (!changed.includes('value')) return {}
  const now = { ...after, value: { [key]: shorten(value) } }
  return { before: { ...before, value: { [old.key]: shorten(old.value) } }, after: now }
}

const select = (db: Db, id: string) => db.selectFrom('variables').select(COLUMNS).where('id', '=', id)

const lockVariable = (tx: Tx, id: string): Promise<Variable> =>
  findOwned(select(tx, id).forUpdate(), 'variable')

function demandSmall(value: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(value))
  if (bytes <= MAX_VALUE_BYTES) return
  throw invalid([
    { path: 'value', message: `has ${bytes} bytes as JSON; at most ${MAX_VALUE_BYTES} are allowed` },
  ])
}
