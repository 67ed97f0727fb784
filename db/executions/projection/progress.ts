import { sql } from 'kysely'
import { taskOf } from '../../../workflows/run/agents.ts'
import { listFrames } from '../../../workflows/run/frame.ts'
import type { Carried } from '../../../workflows/run/messages.ts'
import type { Agent, Envelope } from '../../../workflows/run/plan.ts'
import type { LoopItems, NodeNotes } from '../../../workflows/run/records.ts'
import { joinStep, stepKey } from '../../../workflows/run/walk.ts'
import type { Store } from '../../scope.ts'

/** How far the stored rows of an execution have come, so that its projection can go on from there. */
export type Progress = {
  /** The last run and event that they know, and the number of the run in its chain. */
  runId: string
  position: number
  lastEventId: number
  recordCount: number
  /** In milliseconds since 1970. */
  startedAt: number | null
  /** The records that are open, also those that only a live attempt has told of. */
  open: OpenRecord[]
  /** The keys of the settled records outside of loops. */
  settled: string[]
}

type OpenRecord = {
  nodeId: string
  iteration: string
  step: number | null
  tool: string | null
  startedAt: number
  position: number
  retryCount: number
  loop: LoopItems | null
  notes?: NodeNotes | undefined
}

/** The message of a record whose end is unknown. */
export const UNKNOWN_END = 'Temporal has removed the history that tells how this ended'

/** The progress of an execution's rows; null if it is deleted, or was never projected. */
export async function readProgress(store: Store, executionId: string): Promise<Progress | null> {
  const { rows } = await sql<Omit<Progress, 'recordCount'> & { recordCount: number }>`
    select run_id, run_position as position, last_event_id, extract(epoch from started_at)::float8 * 1000 as started_at,
      coalesce(record_count, (select count(*) from node_executions where execution_id = e.id)) as record_count,
      (select coalesce(json_agg(json_build_object('nodeId', node_id, 'iteration', split_part(iteration, '!', 1), 'step', step, 'tool', tool,
          'startedAt', round(extract(epoch from n.started_at) * 1000), 'position', position,
          'retryCount', retry_count, 'loop', loop, 'notes', notes)), '[]')
        from node_executions n where execution_id = e.id and not settled) as open,
      (select coalesce(json_agg(node_id || '#'), '[]')
        from node_executions where execution_id = e.id and settled and iteration = '') as settled
    from executions e where id = ${executionId} and run_id is not null`.execute(store.db)
  const [row] = rows
  return row ? { ...row, startedAt: row.startedAt === null ? null : Math.round(row.startedAt) } : null
}

/** The record that is meant; WHOLE if it is not of a step. */
export type RecordPlace = { nodeId: string; iteration: string; step: number | null; tool: string | null }

export const WHOLE = { step: null, tool: null }

export function keyOf({ nodeId, iteration, step }: RecordPlace): string {
  return stepKey(nodeId, joinStep(iteration, step))
}

type CarriedRecord = RecordPlace & {
  loop: LoopItems | null
  output: Envelope | null
  handle: string | null
  waitingUntil: number | null
}

/** What a run carries over from the run before: the records that are open, and the outcomes at the root. */
export function listCarried({ root }: Carried): {
  open: CarriedRecord[]
  settled: Map<string, { output: Envelope | null; handle: string | null }>
  agents: { nodeId: string; iteration: string; agent: Agent }[]
} {
  const open: CarriedRecord[] = []
  const under: ReturnType<typeof listCarried>['agents'] = []
  const whole = { ...WHOLE, loop: null, waitingUntil: null }
  for (const { iteration, loops, waits, outputs, agents = {} } of listFrames(root)) {
    for (const [nodeId, { count, pages }] of Object.entries(loops))
      open.push({ ...whole, nodeId, iteration, loop: { count, pages }, output: null, handle: null })
    for (const [nodeId, { handle, until }] of Object.entries(waits))
      open.push({
        ...whole,
        ...{ nodeId, iteration, output: outputs[nodeId] ?? null, handle, waitingUntil: until },
      })
    for (const [nodeId, agent] of Object.entries(agents)) {
      under.push({ nodeId, iteration, agent })
      const wait = Object.hasOwn(waits, nodeId) ? waits[nodeId] : undefined
      const waitingUntil = wait?.until ?? null
      const none = { nodeId, iteration, loop: null, output: null, handle: null, waitingUntil }
      if (!wait) open.push({ ...whole, ...none })
      else open.push({ ...none, step: agent.step, tool: taskOf(agent)?.tool ?? null })
    }
  }
  const settled = new Map<string, { output: Envelope | null; handle: string | null }>()
  for (const [nodeId, outcome] of Object.entries(root.outcomes)) {
    if (!('handle' in outcome)) continue
    settled.set(stepKey(nodeId, root.iteration), {
      output: root.outputs[nodeId] ?? null,
      handle: outcome.handle,
    })
  }
  return { open, settled, agents: under }
}
