import { v7 as uuid, v5 as uuidv5 } from 'uuid'
import { findUntilProblem, readPart } from '../../../workflows/graph/part.ts'
import type { Presets } from '../../../workflows/run/plan.ts'
import { Fault, missing } from '../../fault.ts'
import { copyFiles } from '../../files/files.ts'
import { findFileIds } from '../../files/named.ts'
import { demand, type Scope } from '../../scope.ts'
import { readVersion } from '../../workflows/versions.ts'
import type { Recovery, Trigger } from '../triggers.ts'
import { addExecution, type StartedExecution } from './add.ts'
import type { AnyStart, TraceContext } from './origins.ts'
import { checkSingleNode } from './single.ts'
import { readStartable, type StartableWorkflow } from './startable.ts'
import { copyTaken, findOutputs, keepPins, listTakenOver, type PastExecution, readEnded } from './takeover.ts'

/** Which version of the graph to execute: the one of the earlier execution, or the published one. */
export const VERSION_CHOICES = ['same', 'current'] as const
export type VersionChoice = (typeof VERSION_CHOICES)[number]

export type RecoveredExecution = StartedExecution & {
  retriedFrom: string
  recovery: Recovery
  workflowVersion: number
  /** The ids of the nodes whose outputs are taken over, in the graph's order. */
  takenOver: string[]
}

export type RecoverOptions = {
  version: VersionChoice
  idempotencyKey?: string | undefined
  /** It is one of many, whose audit entry is there already. */
  many?: boolean
} & TraceContext &
  Pick<AnyStart, 'swept'>

/**
 * Accepts a new execution with the trigger and the input of an ended one. A retry takes over the outputs of nodes that
 * succeeded, as findReusable chooses them; pinned outputs are pinned again. It needs an OPERATOR, or a BUILDER if
 * outputs were pinned, a single node was executed, or it is a test of a version that is not published. Throws NOT_FOUND,
 * and CONFLICT if the execution is open, has succeeded (RETRY), replies in a chat, the version has no such trigger or
 * node, or what is needed of it was not kept.
 */
export async function recoverExecution(
  scope: Scope,
  id: string,
  how: Recovery,
  { version, idempotencyKey, many, ...more }: RecoverOptions,
): Promise<RecoveredExecution> {
  const { store } = scope
  const run = await readEnded(scope, id, how)
  const found = await readStartable(store, run.workflowId, () => true)
  if (!found) throw missing('workflow')
  const before = await readVersion(store, run.workflowId, run.workflowVersion)
  const workflow = version === 'current' ? found : { ...found, version: run.workflowVersion, graph: before }
  checkStart(workflow, run)
  const pinned = keepPins(workflow.graph, run)
  const taken = how === 'RETRY' ? await findOutputs(store, run, before, workflow.graph) : {}
  const given: Presets = { ...taken, ...pinned }
  // A test stays one, and needs who may test, unless its version has been published.
  const draft = run.draft && (workflow.version !== found.version || run.parentId !== null)
  const isTest = draft || Object.keys(pinned).length > 0 || run.onlyNode !== null
  const least = isTest ? 'BUILDER' : 'OPERATOR'
  demand(scope, run.teamId, least)
  const newId = idempotencyKey === undefined ? uuid() : uuidv5(`${how} ${idempotencyKey}`, id)
  const started = await addExecution(store, workflow, {
    ...more,
    origin: 'RECOVERY',
    id: newId,
    node: { id: run.triggerNodeId },
    trigger: run.trigger as Trigger,
    data: run.inputData as Record<string, unknown>,
    inputWarning: run.inputWarning ?? undefined,
    by: scope.actor,
    act: many ? undefined : { scope, name: how === 'RETRY' ? 'EXECUTION_RETRIED' : 'EXECUTION_RERUN' },
    right: { scope, least },
    retriedFrom: id,
    recovery: how,
    draft,
    onlyNode: run.onlyNode ?? undefined,
    given: Object.keys(given).length > 0 ? given : undefined,
    prepare: (tx) => copyTaken(tx, store, { from: id, to: newId, given }),
    // A loop of a retry may take over iterations, with the files that any of them named.
    adopt: (tx, to) => copyFiles(tx, id, to, how === 'RETRY' ? 'all' : findFileIds(run.inputData, given)),
  })
  const { workflowId } = run
  const asked = { workflowId, workflowVersion: workflow.version, given }
  return { ...started, retriedFrom: id, recovery: how, ...(await listTakenOver(store, started, asked)) }
}

function checkStart(
  { graph, version }: StartableWorkflow,
  { triggerNodeId, onlyNode: part }: PastExecution,
): void {
  const { onlyNode, until } = readPart(part)
  const first = graph.nodes.find(({ id }) => id === (onlyNode ?? triggerNodeId))
  if (onlyNode !== null && first) checkSingleNode(graph, onlyNode)
  else if (!first || first.disabled) {
    const what =
      onlyNode === null ? `trigger "${triggerNodeId}" to start at` : `node "${onlyNode}" to execute`
    throw new Fault('CONFLICT', `Version ${version} has no ${what}`)
  }
  if (until === null) return
  const problem = findUntilProblem(graph, triggerNodeId, until)
  if (problem)
    throw new Fault('CONFLICT', `Version ${version} cannot be executed until "${until}": ${problem}`)
}
