import { sql } from 'kysely'
import { findItem } from '../../../workflows/input.ts'
import type { Envelope, Plan } from '../../../workflows/run/plan.ts'
import type { LoopItems } from '../../../workflows/run/records.ts'
import { loopsAround, nodesIn } from '../../../workflows/run/walk.ts'
import type { Store } from '../../scope.ts'
import { openEnvelope } from './outputs.ts'
import type { StoredNode } from './stored.ts'
import { deriveIterations } from './values.ts'

/** An iteration of a loop that has succeeded: its number, its item and its result. */
export type SucceededIteration = { at: number; item: unknown; result: unknown }

/** How many records, with their outputs of up to 32 KB each, are read at once. */
const BATCH_ROWS = 100

/**
 * The iterations of a FOR_EACH outside of loops that have succeeded in an ended execution: none of their nodes
 * has failed, was cancelled, or is missing. Those that the execution itself had taken over come first. Gives none
 * if its outputs were not kept, or it was deleted.
 */
export async function* readSucceeded(
  store: Store,
  executionId: string,
  plan: Plan,
  loopId: string,
): AsyncGenerator<SucceededIteration, void, void> {
  const [row] = await readNodes(store, executionId, [loopId], [''])
  const loop = row?.loop as LoopItems | null | undefined
  if (!row || !loop) return
  const opened = new Map<string, Promise<unknown>>()
  const open = (envelope: Envelope): Promise<unknown> => {
    if (!('ref' in envelope)) return Promise.resolve(envelope.v)
    const value = opened.get(envelope.ref) ?? openEnvelope(store, executionId, envelope)
    opened.set(envelope.ref, value)
    return value
  }
  for (const chunk of loop.taken?.chunks ?? []) {
    for (const [at, result] of (await openEnvelope(store, executionId, chunk)) as [number, unknown][]) {
      const page = loop.pages.findLast(({ from }) => from <= at)
      if (page) yield { at, item: await findItem(open, page, at - page.from), result }
    }
  }
  const inside = plan.nodes.filter((node) => loopsAround(plan, node)[0]?.id === loopId).map(({ id }) => id)
  const body = nodesIn(plan, loopId).map(({ id }) => id)
  const failed = await findUnsuccessful(store, executionId, inside)
  const batch = Math.max(1, Math.floor(BATCH_ROWS / body.length))
  for (let from = 0; from < loop.count; from += batch) {
    const numbers = Array.from({ length: Math.min(batch, loop.count - from) }, (_, at) => from + at)
    const rows = await readNodes(store, executionId, body, numbers.map(String))
    if (rows.length === 0) continue
    const iterations = deriveIterations(store, executionId, plan, [row, ...rows])
    for (const at of numbers) {
      const read = failed.has(at) ? undefined : await iterations.read(loopId, at)
      if (read) yield { at, ...read }
    }
  }
}

async function readNodes(
  store: Store,
  executionId: string,
  nodeIds: string[],
  paths: string[],
): Promise<StoredNode[]> {
  const { rows } = await sql<StoredNode>`
    select id, node_id, node_name, node_type, iteration, step, status, started_at, completed_at, output, handle,
      error_message, retry_count, loop, given_by, null as child_execution_id, 0 as total
    from node_executions where execution_id = ${executionId} and node_id = any(${nodeIds}::text[])
      and iteration = any(${paths}::text[])`.execute(store.db)
  return rows
}

/** The iterations in which a node has not succeeded, or one of a loop in there. */
async function findUnsuccessful(store: Store, executionId: string, nodeIds: string[]): Promise<Set<number>> {
  const { rows } = await sql<{ at: number }>`
    select distinct split_part(iteration, '.', 1)::integer as at from node_executions
    where execution_id = ${executionId} and node_id = any(${nodeIds}::text[]) and iteration <> ''
      and step is null and status <> 'SUCCESS'`.execute(store.db)
  return new Set(rows.map(({ at }) => at))
}
