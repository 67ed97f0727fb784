import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { record } from '../../change.ts'
import { missing } from '../../fault.ts'
import { lockFor } from '../../locks.ts'
import { resealRows } from '../../operation/reseal.ts'
import type { Store } from '../../scope.ts'
import { type Keys, seal, unseal } from '../../seal.ts'
import { type MessagePlace, noteDone, readMessageNote } from '../../send/notes.ts'

/** The most bytes of JSON that a node keeps, and that a workflow keeps for all its nodes. */
export const MAX_STATIC_DATA = 256 * 1024

/** What a workflow keeps for all its nodes, and for one of them, as JSON; '' for nothing. */
export type StaticData = { global: string; node: string }

/** The node of a workflow that reads and keeps data. */
export type StaticPlace = { workflowId: string; nodeId: string }

/** What is kept, and how often it was changed until then; or what the node has output, if that was noted. */
export type ReadStaticData = { data: StaticData; changes: number } | { noted: unknown }

const PURPOSE = 'static data'

type Row = StaticPlace & { id: string; sealed: Buffer; changes: number }

const nameRow = ({ workflowId, nodeId }: StaticPlace) => `${workflowId}|${nodeId}`
const open = (keys: Keys, row: Row) => unseal(keys, PURPOSE, nameRow(row), row.sealed)

/** Reads what is kept; or what an earlier attempt of the node has noted together with what it kept. */
export async function readStaticData(
  store: Store,
  place: StaticPlace,
  message: MessagePlace,
): Promise<ReadStaticData> {
  const note = await readMessageNote(store, message)
  if (note?.state === 'SENT') return { noted: note.output }
  const rows = await readRows(store, place)
  const read = (nodeId: string) => {
    const row = rows.find((one) => one.nodeId === nodeId)
    return row ? open(store.keys, row).toString() : ''
  }
  return { data: { global: read(''), node: read(place.nodeId) }, changes: countChanges(rows) }
}

async function readRows({ db }: Pick<Store, 'db'>, { workflowId, nodeId }: StaticPlace): Promise<Row[]> {
  return db
    .selectFrom('staticData')
    .select(['id', 'workflowId', 'nodeId', 'sealed', sql<number>`changes::float8`.as('changes')])
    .where('workflowId', '=', workflowId)
    .where('nodeId', 'in', ['', nodeId])
    .execute()
}

const countChanges = (rows: Row[]) => rows.reduce((sum, { changes }) => sum + changes, 0)

/**
 * Keeps the data and notes the output of the node that changed it, in one transaction: an attempt that comes again reads the
 * note. Resolves to 'stale' if it was changed since it was read, and to 'draft' for an execution of a draft: neither keeps
 * anything. Throws NOT_FOUND for an execution that was deleted.
 */
export function keepStaticData(
  store: Store,
  place: StaticPlace,
  message: MessagePlace,
  {
    before,
    after,
    changes,
    output,
  }: { before: StaticData; after: StaticData; changes: number; output: unknown },
): Promise<'kept' | 'stale' | 'draft'> {
  const { workflowId, nodeId } = place
  return record(store, async (tx) => {
    const execution = await tx
      .selectFrom('executions')
      .select('draft')
      .where('id', '=', message.executionId)
      .executeTakeFirst()
    if (!execution) throw missing('execution')
    if (execution.draft) return 'draft'
    await lockFor(tx, 'staticData', workflowId)
    if (countChanges(await readRows({ db: tx }, place)) !== changes) return 'stale'
    if ((await readMessageNote({ ...store, db: tx }, message))?.state === 'SENT') return 'stale'
    const rows = [
      { id: '', before: before.global, text: after.global },
      { id: nodeId, before: before.node, text: after.node },
    ]
    for (const { id, text } of rows.filter((one) => one.text !== one.before)) {
      const sealed = seal(store.keys, PURPOSE, nameRow({ workflowId, nodeId: id }), Buffer.from(text))
      await tx
        .insertInto('staticData')
        .values({ id: uuid(), workflowId, nodeId: id, sealed })
        .onConflict((conflict) =>
          conflict.columns(['workflowId', 'nodeId']).doUpdateSet({
            sealed,
            changes: sql`static_data.changes + 1`,
            changedAt: sql`now()`,
          }),
        )
        .execute()
    }
    await noteDone(tx, store, message, output)
    return 'kept'
  })
}

/** Seals all that is kept with the current key anew. Resolves to how many rows were, as resealRows does. */
export function rotateStaticData(store: Store): Promise<number> {
  const { keys } = store
  return resealRows<Row>(store, 'static_data', (row) => seal(keys, PURPOSE, nameRow(row), open(keys, row)))
}
