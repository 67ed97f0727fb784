import { isDeepStrictEqual } from 'node:util'
import { findLeading, findUntilProblem, readPart } from '../../../workflows/graph/part.ts'
import type { Problem } from '../../../workflows/problem.ts'
import type { Presets } from '../../../workflows/run/plan.ts'
import type { Tx } from '../../connection.ts'
import { Fault, invalid, missing } from '../../fault.ts'
import { copyFiles } from '../../files/files.ts'
import type { Scope } from '../../scope.ts'
import { readVersion } from '../../workflows/versions.ts'
import type { StartableWorkflow } from './startable.ts'
import { copyTaken, findOutputs, keepPins, type PastExecution, readEnded } from './takeover.ts'

/** The part of a workflow that is to be executed, and the execution whose outputs are taken over for it. */
export type AskedPart = { until?: string | undefined; reuseFrom?: string | undefined }

/**
 * The execution of the workflow that another one is to take outputs over from. Throws NOT_FOUND, INVALID if it is of
 * another workflow, and CONFLICT if it is open, was of a single node, or its input was not kept.
 */
export async function readReusable(
  scope: Scope,
  workflow: StartableWorkflow,
  id: string,
): Promise<PastExecution> {
  const run = await readEnded(scope, id, 'REUSE')
  if (run.teamId !== workflow.teamId) throw missing('execution')
  if (run.workflowId !== workflow.id)
    throw invalid([{ path: 'reuseFrom', message: 'is not an execution of this workflow' }])
  if (readPart(run.onlyNode).onlyNode !== null)
    throw new Fault('CONFLICT', 'The execution to reuse was of a single node, with outputs given by hand')
  return run
}

/** Throws INVALID with all that speaks against executing this part from the trigger with this input. */
export function checkPart(
  { graph }: StartableWorkflow,
  triggerId: string,
  { until, run, data }: { until?: string | undefined; run?: PastExecution | undefined; data?: unknown },
): void {
  const problems: Problem[] = []
  const problem = until === undefined ? undefined : findUntilProblem(graph, triggerId, until)
  if (problem) problems.push({ path: 'until', message: problem })
  if (run && run.triggerNodeId !== triggerId) {
    const message = `started at "${run.triggerNodeId}", so that nothing of it fits a start at "${triggerId}"`
    problems.push({ path: 'reuseFrom', message })
  }
  if (run && data !== undefined && !isDeepStrictEqual(data, run.inputData)) {
    const message =
      'must be left out: the outputs that are taken over were made of the input of that execution'
    problems.push({ path: 'data', message })
  }
  if (problems.length > 0) throw invalid(problems)
}

/**
 * The outputs that an execution of this part takes over: what a retry would, without the node `until` itself, those
 * that are pinned, and what comes after them. Pinned outputs are pinned again. Throws CONFLICT if they were not kept.
 */
export async function takeOverPart(
  { store }: Scope,
  workflow: StartableWorkflow,
  run: PastExecution,
  { until, pinned }: { until?: string | undefined; pinned: string[] },
): Promise<Presets> {
  const before = await readVersion(store, workflow.id, run.workflowVersion)
  const anew = until === undefined ? pinned : [until, ...pinned]
  const outputs = await findOutputs(store, run, before, workflow.graph, anew)
  const part = until === undefined ? undefined : findLeading(workflow.graph, until)
  const kept = Object.entries({ ...outputs, ...keepPins(workflow.graph, run) }).filter(
    ([id, { begun }]) => id !== until && !begun && (part?.has(id) ?? true),
  )
  return Object.assign(Object.create(null), Object.fromEntries(kept))
}

/** Copies what the presets name, outputs and files, from the execution that made it. */
export function copyReused({ store }: Scope, from: string, given: Presets) {
  return async (tx: Tx, to: string) => {
    await copyTaken(tx, store, { from, to, given })
    await copyFiles(tx, from, to, 'all')
  }
}
