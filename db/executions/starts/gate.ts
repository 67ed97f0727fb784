import { sql } from 'kysely'
import { v5 as uuidv5 } from 'uuid'
import { renderPaths } from '../../../workflows/expressions/paths.ts'
import type { Tx } from '../../connection.ts'
import { Fault, missing } from '../../fault.ts'
import { type ConcurrencySettings, readSettings } from '../../workflows/settings.ts'
import type { Trigger } from '../triggers.ts'

/**
 * What a new execution finds at its gate: it may start, it waits, or it is turned away. `refusal` is the
 * reason, for a trigger of UNATTENDED; other callers get a Fault.
 */
export type GatePlace = { gateId: string | null; waits: boolean; refusal: string | null }

export const NO_GATE: GatePlace = { gateId: null, waits: false, refusal: null }

/** How many gates a change of settings opens. The ends of executions that hold a place open the others. */
const MAX_OPENED = 1_000

/** Triggers without a caller who could get an error: the execution's row says why it did not start. */
const UNATTENDED = new Set<Trigger>(['SCHEDULE', 'ERROR'])

/**
 * Locks the workflow's current limit and its gate for this data, which is computed only if it matters, until the
 * transaction ends. `taken` is the number of places of the gate that are taken. Null if the workflow has no limit.
 * Tests of drafts have gates of their own: none waits for what is published, or takes its place. Throws NOT_FOUND if it is
 * deleted.
 */
export async function holdGate(
  tx: Tx,
  workflowId: string,
  data: () => Record<string, unknown>,
  draft = false,
): Promise<{ id: string; name: string; taken: number; concurrency: ConcurrencySettings } | null> {
  // A change of the settings locks the row for update, so it waits until we have found our place.
  const row = await tx
    .selectFrom('workflows')
    .select(['name', 'settings'])
    .where('id', '=', workflowId)
    .forKeyShare()
    .executeTakeFirst()
  if (!row) throw missing('workflow')
  const { concurrency } = readSettings(row.settings)
  if (!concurrency) return null
  const key = concurrency.key ? renderPaths(concurrency.key, data()) : ''
  const id = uuidv5(key, draft ? uuidv5('draft', workflowId) : workflowId)
  return { id, name: row.name, taken: await countTaken(tx, id), concurrency }
}

/** What the gate needs to know of a new execution. */
type Arrival = {
  trigger: Trigger
  parent?: { executionId: string; detached?: boolean }
  retriedFrom?: string
}

/**
 * Finds the place of a new execution at the gate that `tx` holds. Throws CONFLICT if the policy refuses it,
 * or if it would wait for a place that an execution waiting for it holds.
 */
export async function findPlace(
  tx: Tx,
  gate: NonNullable<Awaited<ReturnType<typeof holdGate>>>,
  start: Arrival,
): Promise<GatePlace> {
  const { id, taken, concurrency } = gate
  const { limit, policy } = concurrency
  const place = { ...NO_GATE, gateId: id }
  if (taken < limit) return place
  if (start.parent && !start.parent.detached && (await isWithin(tx, id, start.parent.executionId))) {
    throw new Fault(
      'CONFLICT',
      `The workflow "${gate.name}" would wait for itself: its concurrency limit is ${limit}, and an execution that waits ` +
        'for this one holds a place',
    )
  }
  if (policy === 'reject') {
    const refusal = `The workflow has as many executions under way as its settings allow: ${limit}`
    if (UNATTENDED.has(start.trigger) && !start.retriedFrom) return { ...place, refusal }
    throw new Fault('CONFLICT', refusal)
  }
  if (policy === 'queue') return { ...place, waits: true }
  await sql`select clear_gate(${id}, ${limit}, 'A newer execution took its place')`.execute(tx)
  return { ...place, waits: (await countTaken(tx, id)) >= limit }
}

/**
 * Starts the queued executions that find a place after a change of the workflow's settings. The caller must
 * hold the workflow's row for update.
 */
export async function openGates(tx: Tx, workflowId: string): Promise<void> {
  await sql`select open_gate(gate_id, ${workflowId}) from (
    select distinct gate_id from executions
    where workflow_id = ${workflowId} and status = 'PENDING' and queued_at is not null
    order by gate_id limit ${MAX_OPENED}) waiting`.execute(tx)
}

async function countTaken(tx: Tx, gateId: string): Promise<number> {
  const { rows } = await sql<{ taken: number }>`select hold_gate(${gateId}) as taken`.execute(tx)
  return rows[0]!.taken
}

/** Whether the execution, or one that waits for it, belongs to the gate. */
async function isWithin(tx: Tx, gateId: string, executionId: string): Promise<boolean> {
  const { rows } = await sql<{ within: boolean }>`
    with recursive above as (
      select id, parent_id, detached, gate_id from executions where id = ${executionId}
      union all
      select e.id, e.parent_id, e.detached, e.gate_id from above a
      join executions e on e.id = a.parent_id and not a.detached)
    select exists (select from above where gate_id = ${gateId}) as within`.execute(tx)
  return rows[0]!.within
}
