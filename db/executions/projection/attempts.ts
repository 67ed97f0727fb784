import { beginAgent, moveAgent, taskOf } from '../../../workflows/run/agents.ts'
import { readActivityId, stepKey } from '../../../workflows/run/walk.ts'
import type { ProjectedNode } from '../records/projection.ts'
import { endRow, type Folding, failRow, openRow } from './folding.ts'
import { type HistoryEvent, notedIn } from './history.ts'
import { keyOf } from './progress.ts'

type Settled = Extract<HistoryEvent, { kind: 'completed' | 'failed' }>

/** The record of an activity; for a step, the agent's own is opened with the first. */
export function openScheduled(folding: Folding, activityId: string, at: number): ProjectedNode | undefined {
  const { nodeId, iteration, step } = readActivityId(activityId)
  const own = openRow(folding, nodeId, iteration, at)
  if (step === null) return own
  const key = stepKey(nodeId, iteration)
  if (!folding.agents.has(key) && own) takeSteps(folding, own, at)
  const agent = folding.agents.get(key)
  if (!agent) return undefined
  return openRow(folding, nodeId, iteration, at, { step, tool: taskOf(agent)?.tool ?? null })
}

/** Begins an agent; of one that goes on where it stopped, the steps before get their records now. */
function takeSteps(folding: Folding, own: ProjectedNode, at: number): void {
  const { nodeId, iteration } = own
  const { begun } = folding.plan.get(nodeId)!
  for (const [index, { tool, input, output, errorMessage }] of (begun?.steps ?? []).entries()) {
    const row = openRow(folding, nodeId, iteration, at, { step: index + 1, tool })
    if (!row) continue
    row.agent = { input }
    row.givenBy = begun!.from
    const status = errorMessage === null ? 'SUCCESS' : 'FAILED'
    endRow(folding, row, at, { status, output, errorMessage })
  }
  own.agent = beginAgent({ begun })
  folding.agents.set(keyOf(own), own.agent)
}

/** Reads what an event says of an activity that was scheduled earlier in the same run. */
export function readAttempt(folding: Folding, event: Extract<HistoryEvent, { scheduledId: number }>): void {
  const row = folding.scheduled.get(event.scheduledId)
  if (row?.status !== 'RUNNING') return
  if (event.kind === 'attempt') {
    row.retryCount = event.attempt - 1
    folding.changed.add(row)
  } else if (event.kind === 'canceled') {
    endRow(folding, row, event.time, { status: 'CANCELLED' })
  } else settleAttempt(folding, row, event)
}

function settleAttempt(folding: Folding, row: ProjectedNode, event: Settled): void {
  row.retryCount -= event.returned ?? 0
  if (row.step !== null) settleStep(folding, row, event)
  else if (event.kind === 'failed') failRow(folding, row, event.time, event.error, notedIn(event))
  else {
    const { output, handle } = event.result
    endRow(folding, row, event.time, { status: 'SUCCESS', output, handle, ...notedIn(event.result) })
  }
}

/** Settles a step of an agent, unless it waits, and with it the agent's own record if that is over. */
function settleStep(folding: Folding, row: ProjectedNode, event: Settled): void {
  const { rows, running, changed, agents } = folding
  const key = stepKey(row.nodeId, row.iteration)
  // It may be stored already, while events are read again.
  const own = rows.get(key)
  const { time: at } = event
  changed.add(row)
  if (event.kind === 'failed') {
    endRow(folding, row, at, { status: 'FAILED', errorMessage: event.error.message, ...notedIn(event) })
  } else {
    const { record, pause } = event.result.agent!
    row.agent = { input: record.input }
    if (pause) row.waitingUntil = pause.until
    else endRow(folding, row, at, { status: 'SUCCESS', output: record.output, ...notedIn(event.result) })
  }
  const outcome = event.kind === 'failed' ? { error: event.error } : event.result
  const next = moveAgent(agents.get(key)!, outcome)
  if ('agent' in next) agents.set(key, next.agent)
  else agents.delete(key)
  if (!own || !running.has(own)) return
  changed.add(own)
  if ('agent' in next) {
    own.agent = next.agent
    return
  }
  if (next.ended.status === 'SUCCESS') own.agent = null
  if (next.ended.status === 'FAILED') failRow(folding, own, at, next.ended.error, {})
  else endRow(folding, own, at, next.ended)
}
