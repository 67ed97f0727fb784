import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { demandRoom, findOwned, guardName } from '../owned.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { demand, demandTeam, type Scope } from '../scope.ts'

/** What texts are up to that try to take over a model. */
export const EXEMPLAR_CATEGORIES = [
  'extraction',
  'hijack',
  'role_change',
  'authority',
  'exfiltration',
  'social_pressure',
  'data_poisoning',
  'other',
] as const
export type ExemplarCategory = (typeof EXEMPLAR_CATEGORIES)[number]

/** A text of a team whose meaning is looked for in other texts. */
export type Exemplar = {
  id: string
  teamId: string
  name: string
  category: ExemplarCategory
  text: string
  createdAt: Date
  updatedAt: Date
}

/** The embedding of a text's meaning: rows of signed bytes, made by a model. Rows of two models cannot be compared. */
export type Embedding = { model: string; rows: Buffer }

/** What checks need of an exemplar. */
export type KnownExemplar = Pick<Exemplar, 'id' | 'name' | 'category' | 'text'> & { embedding: Embedding }

export type ExemplarInput = { name: string; category: ExemplarCategory; text: string }

/** Makes the embedding of a text for a team; it takes a while, so no transaction is open meanwhile. */
export type Embed = (teamId: string, text: string) => Promise<Embedding>

export const MAX_EXEMPLARS = 200
const COLUMNS = ['id', 'teamId', 'name', 'category', 'text', 'createdAt', 'updatedAt'] as const

/** The exemplars of a team by their names (OPERATOR). */
export async function listExemplars(
  scope: Scope,
  query: PageRequest & { teamId: string },
): Promise<Page<Exemplar>> {
  await demandTeam(scope, query.teamId, 'OPERATOR')
  const found = scope.store.db.selectFrom('guardrailExemplars').where('teamId', '=', query.teamId)
  const total = await countRows(found)
  const content = await found
    .select(COLUMNS)
    .orderBy('name')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(content.map(readCategory), total, query)
}

/** Reads an exemplar (OPERATOR). Throws NOT_FOUND. */
export async function readExemplar(scope: Scope, id: string): Promise<Exemplar> {
  const row = await findOwned(select(scope.store.db, id), 'exemplar')
  demand(scope, row.teamId, 'OPERATOR')
  return readCategory(row)
}

/**
 * Adds an exemplar (BUILDER). Throws CONFLICT if the team has the name already, or 200 exemplars, and what `embed` throws.
 */
export async function createExemplar(
  scope: Scope,
  teamId: string,
  { name, category, text }: ExemplarInput,
  embed: Embed,
): Promise<Exemplar> {
  await demandTeam(scope, teamId, 'BUILDER')
  const embedding = await embed(teamId, text)
  return guardName('guardrail_exemplars', name, () =>
    change(scope, 'GUARDRAIL_EXEMPLAR_CREATED', teamId, async (tx) => {
      await demandRoom(tx, 'guardrail_exemplars', teamId, MAX_EXEMPLARS)
      const row = { id: uuid(), teamId, name, category, text, ...toColumns(embedding) }
      const result = await tx
        .insertInto('guardrailExemplars')
        .values(row)
        .returning(COLUMNS)
        .executeTakeFirstOrThrow()
      return { result: readCategory(result), resourceId: row.id, details: { name, category } }
    }),
  )
}

/** Changes the fields that are given and keeps the others (BUILDER). Throws NOT_FOUND, and as createExemplar. */
export async function updateExemplar(
  scope: Scope,
  id: string,
  patch: { [Field in keyof ExemplarInput]?: ExemplarInput[Field] | undefined },
  embed: Embed,
): Promise<Exemplar> {
  const { teamId } = await readExemplar(scope, id)
  await demandTeam(scope, teamId, 'BUILDER')
  const embedding = patch.text === undefined ? undefined : await embed(teamId, patch.text)
  return guardName('guardrail_exemplars', patch.name ?? '', () =>
    change(scope, 'GUARDRAIL_EXEMPLAR_UPDATED', teamId, async (tx) => {
      const before = await lock(tx, id)
      const { name = before.name, category = before.category, text = before.text } = patch
      const result = await tx
        .updateTable('guardrailExemplars')
        .set({ name, category, text, updatedAt: sql<Date>`now()` })
        .$if(embedding !== undefined, (query) => query.set(toColumns(embedding!)))
        .where('id', '=', id)
        .returning(COLUMNS)
        .executeTakeFirstOrThrow()
      // Readers of the audit may not be allowed to read the text: the entry says only whether it has changed.
      const details = {
        before: { name: before.name, category: before.category },
        after: { name, category },
        textChanged: text !== before.text,
      }
      return { result: readCategory(result), resourceId: id, details }
    }),
  )
}

/** Deletes an exemplar (BUILDER). Throws NOT_FOUND. */
export async function deleteExemplar(scope: Scope, id: string): Promise<void> {
  const { teamId } = await readExemplar(scope, id)
  await change(scope, 'GUARDRAIL_EXEMPLAR_DELETED', teamId, async (tx) => {
    const { name, category } = await lock(tx, id)
    await tx.deleteFrom('guardrailExemplars').where('id', '=', id).execute()
    return { result: undefined, resourceId: id, details: { name, category } }
  })
}

/** All that a check of a team's texts needs of its exemplars, in the order of their names. */
export async function listKnownExemplars(db: Db | Tx, teamId: string): Promise<KnownExemplar[]> {
  const rows = await db
    .selectFrom('guardrailExemplars')
    .select(['id', 'name', 'category', 'text', 'embeddingModel', 'embedding'])
    .where('teamId', '=', teamId)
    .orderBy('name')
    .execute()
  return rows.map(({ id, name, category, text, embeddingModel, embedding }) => ({
    id,
    name,
    category: category as ExemplarCategory,
    text,
    embedding: { model: embeddingModel, rows: embedding },
  }))
}

const select = (db: Db | Tx, id: string) =>
  db.selectFrom('guardrailExemplars').select(COLUMNS).where('id', '=', id)

const toColumns = ({ model, rows }: Embedding) => ({ embeddingModel: model, embedding: rows })

const readCategory = <Row extends { category: string }>(row: Row) => ({
  ...row,
  category: row.category as ExemplarCategory,
})

async function lock(tx: Tx, id: string): Promise<Exemplar> {
  return readCategory(await findOwned(select(tx, id).forUpdate(), 'exemplar'))
}
