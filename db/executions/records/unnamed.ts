import { sql } from 'kysely'
import type { Envelope } from '../../../workflows/run/plan.ts'
import type { ItemPage } from '../../../workflows/run/records.ts'
import { record } from '../../change.ts'
import { isDatabaseAway } from '../../connection.ts'
import type { Store } from '../../scope.ts'
import { LOST_MESSAGE } from './lost.ts'
import { openEnvelope } from './outputs.ts'

/** How long after the end of an execution its outputs are left alone: an attempt that was cut off may still store one. */
const GRACE_HOURS = 1
const AT_ONCE = 100

type Ended = { id: string; isUnsure: boolean }

/**
 * Removes the stored outputs of ended executions that nothing names: what an attempt had stored before it was cut off,
 * and what a loop needed only until its end. Each output is looked for once. Several processes may do so. Stops early
 * when `signal` is aborted. Returns how many it removed.
 */
export async function removeUnnamed(store: Store, signal?: AbortSignal): Promise<number> {
  let removed = 0
  for (let last = '00000000-0000-0000-0000-000000000000'; !signal?.aborted; ) {
    const ended = await findUnconfirmed(store, last)
    for (const execution of ended) {
      if (signal?.aborted) break
      removed += await confirmOutputs(store, execution)
    }
    if (ended.length < AT_ONCE) break
    last = ended.at(-1)!.id
  }
  return removed
}

/**
 * Ended executions with outputs that were not looked for yet. `isUnsure`: their records may not name all that their
 * histories do, because values could not be stored, or Temporal seemed to have lost the run; a rebuild may need them.
 */
async function findUnconfirmed({ db }: Store, after: string): Promise<Ended[]> {
  const { rows } = await sql<Ended>`
    select e.id, e.error_message is not distinct from ${LOST_MESSAGE} or e.keep_outputs and exists (
        select from node_executions n where n.execution_id = e.id and n.status = 'SUCCESS' and n.output is null
          and n.node_id <> e.trigger_node_id) as is_unsure
    from executions e
    where e.id in (select execution_id from blobs where not confirmed and execution_id > ${after})
      and e.status not in ('PENDING', 'RUNNING') and e.completed_at < now() - ${GRACE_HOURS} * interval '1 hour'
    order by e.id limit ${AT_ONCE}`.execute(db)
  return rows
}

async function confirmOutputs(store: Store, { id, isUnsure }: Ended): Promise<number> {
  const names = isUnsure ? null : await findNames(store, id).catch(keepAll)
  return record(store, async (tx) => {
    const removed =
      names &&
      (await sql`delete from blobs where execution_id = ${id} and not confirmed
          and hash <> all(${names}::text[])`.execute(tx))
    await sql`update blobs set confirmed = true where execution_id = ${id} and not confirmed`.execute(tx)
    return Number(removed?.numAffectedRows ?? 0)
  })
}

/** Outputs that cannot be opened, for example because their key is lost, may name any file: all others stay too. */
function keepAll(error: unknown): null {
  if (isDatabaseAway(error)) throw error
  return null
}

/**
 * The outputs that an execution's records and presets name. Their texts are searched, since PostgreSQL cannot read every
 * value of a user as JSON; what looks like a name but is not only keeps an output that could go.
 */
async function findNames(store: Store, executionId: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    with texts as (
      select output::text as text from node_executions
        where execution_id = ${executionId} and output::text like '%"ref"%'
      union all select loop::text from node_executions where execution_id = ${executionId} and loop is not null
      union all select agent::text from node_executions
        where execution_id = ${executionId} and agent::text like '%"ref"%'
      union all select given::text from executions where id = ${executionId} and given is not null)
    select distinct name[1] as name
    from texts, regexp_matches(text, '"ref": ?"([0-9a-zA-Z_-]+)"', 'g') name`.execute(store.db)
  const names = new Set(rows.map(({ name }) => name))
  for (const name of await findDeepNames(store, executionId)) names.add(name)
  return [...names]
}

/** The pages of items that are named within pages of pages, which are stored outputs themselves. */
async function findDeepNames(store: Store, executionId: string): Promise<string[]> {
  const { rows } = await sql<{ text: string }>`
    select loop::text as text from node_executions
    where execution_id = ${executionId} and loop::text like '%"deep"%'`.execute(store.db)
  const names: string[] = []
  const read = async (pages: ItemPage[]): Promise<void> => {
    for (const { items, deep } of pages) {
      if ('ref' in items) names.push(items.ref)
      if (deep) await read((await openEnvelope(store, executionId, items as Envelope)) as ItemPage[])
    }
  }
  for (const { text } of rows) await read((JSON.parse(text) as { pages: ItemPage[] }).pages)
  return names
}
