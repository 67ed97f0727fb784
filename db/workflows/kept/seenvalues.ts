import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { record } from '../../change.ts'
import type { Store } from '../../scope.ts'

/** A history of a workflow: the nodes that give the same name share it. */
export type HistoryPlace = { workflowId: string; name: string }

/** A hash of 32 bytes, which is all that is kept of a value, of a history's name and of a call. */
export const hashSeen = (text: string): Buffer => createHash('sha256').update(text).digest()

/**
 * Which of the values, given as hashes, no other call has seen before: those are seen from then on. Of a history the
 * `keep` newest values are kept. An attempt that comes again with the same `callKey` is answered the same. All
 * values of a workflow that was deleted are new, and none is kept.
 */
export async function takeUnseen(
  store: Store,
  { workflowId, name }: HistoryPlace,
  values: Buffer[],
  { callKey, keep }: { callKey: string; keep: number },
): Promise<boolean[]> {
  const [history, call] = [hashSeen(name), hashSeen(callKey)]
  // In one order, so that two calls never wait for each other.
  const sorted = [...new Map(values.map((value) => [value.toString('hex'), value])).entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, value]) => value)
  const others = await record(store, async (tx) => {
    const workflow = await sql`select 1 from workflows where id = ${workflowId} for key share`.execute(tx)
    if (workflow.rows.length === 0) return []
    await sql`insert into seen_values (workflow_id, history, value, call)
      select ${workflowId}, ${history}, value, ${call} from unnest(${sorted}::bytea[]) with ordinality as v (value, at)
      order by at on conflict on constraint seen_values_pkey do nothing`.execute(tx)
    const { rows } = await sql<{ value: Buffer }>`select value from seen_values
      where workflow_id = ${workflowId} and history = ${history} and value = any(${sorted}::bytea[]) and call <> ${call}`.execute(
      tx,
    )
    await sql`delete from seen_values where workflow_id = ${workflowId} and history = ${history} and call <> ${call}
      and id <= (select id from seen_values where workflow_id = ${workflowId} and history = ${history}
        order by id desc offset ${keep} limit 1)`.execute(tx)
    return rows
  })
  const seen = new Set(others.map(({ value }) => value.toString('hex')))
  return values.map((value) => !seen.has(value.toString('hex')))
}
