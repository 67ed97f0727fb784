import { sql } from 'kysely'
import { v5 as uuidv5 } from 'uuid'
import { renderPaths } from '../workflows/paths.ts'
import { Fault, missing } from './fault.ts'
import type { Tx } from './scope.ts'
import { type Concurrency, readSettings } from './settings.ts'
import type { Start } from './start.ts'

/**
 * What a run finds at its gate: free to start, to wait there since now, or turned away with a reason where nobody
 * is there to be told.
 */
export type Place = { gateId: string | null; waits: boolean; refusal: string | null }

export const FREE: Place = { gateId: null, waits: false, refusal: null }

/** More than this the ends of their runs open: who waits at a gate has one before him. */
const MAX_OPENED = 1_000

/** Those whom nobody asked for in person get a row that says why they did not run. */
const UNHEARD = new Set<Start['trigger']>(['SCHEDULE', 'ERROR'])

/**
 * Holds the limit of the workflow as it stands, and its gate for this data, until the transaction ends. Null where
 * there is none. Throws NOT_FOUND.
 */
export async function holdGate(
  tx: Tx,
  workflowId: string,
  data: Record<string, unknown>,
): Promise<{ id: string; taken: number; concurrency: Concurrency } | null> {
  // Settings are changed with the row locked for update: none change before we have found our place.
  const row = await tx
    .selectFrom('workflows')
    .select('settings')
    .where('id', '=', workflowId)
    .forKeyShare()
    .executeTakeFirst()
  if (!row) throw missing('workflow')
  const { concurrency } = readSettings(row.settings)
  if (!concurrency) return null
  const id = uuidv5(renderPaths(concurrency.key ?? '', data), workflowId)
  return { id, taken: await countTaken(tx, id), concurrency }
}

/**
 * Finds the place of a new run at the gate that `tx` holds. Throws CONFLICT where the policy refuses it, or where it
 * would wait for the very run that waits for it.
 */
export async function findPlace(
  tx: Tx,
  gate: NonNullable<Awaited<ReturnType<typeof holdGate>>>,
  start: Pick<Start, 'trigger' | 'parent' | 'retriedFrom'>,
): Promise<Place> {
  const { id, taken, concurrency } = gate
  const { limit, policy } = concurrency
  const place = { ...FREE, gateId: id }
  if (taken < limit) return place
  if (start.parent && !start.parent.detached && (await isWithin(tx, id, start.parent.executionId))) {
    throw new Fault('CONFLICT', 'The run would wait for a place that a run above it holds')
  }
  if (policy === 'reject') {
    const refusal = `The workflow has as many runs under way as its settings allow: ${limit}`
    if (UNHEARD.has(start.trigger) && !start.retriedFrom) return { ...place, refusal }
    throw new Fault('CONFLICT', refusal)
  }
  if (policy === 'queue') return { ...place, waits: true }
  await sql`select clear_gate(${id}, ${limit}, 'A newer run took its place')`.execute(tx)
  return { ...place, waits: (await countTaken(tx, id)) >= limit }
}

/** Lets in, after a change of its settings, whoever now finds a place. The caller holds the workflow's row for update. */
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
