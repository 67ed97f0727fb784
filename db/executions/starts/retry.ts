import { sql } from 'kysely'
import { v7 as uuid, v5 as uuidv5 } from 'uuid'
import type { Graph } from '../../../workflows/graph/graph.ts'
import { ITEM_PRESET } from '../../../workflows/graph/single.ts'
import { getOwn } from '../../../workflows/json.ts'
import { type Envelope, INPUT_REF, type Presets } from '../../../workflows/run/plan.ts'
import { chatPrivacyOf, isHiddenFrom, isPrivate } from '../../chat/privacy.ts'
import { Fault, missing } from '../../fault.ts'
import { copyFiles } from '../../files/files.ts'
import { findFileIds } from '../../files/named.ts'
import { demand, type Scope, type Store } from '../../scope.ts'
import { readVersion } from '../../workflows/versions.ts'
import { copyOutputs } from '../records/outputs.ts'
import { isEnded } from '../status.ts'
import type { Recovery, Trigger } from '../triggers.ts'
import { addExecution, type StartedExecution } from './add.ts'
import { envelopesOf, readStopped } from './agents.ts'
import type { AnyStart, TraceContext } from './origins.ts'
import { findPinProblem, PINNED } from './pins.ts'
import { findReusable } from './reuse.ts'
import { checkSingleNode } from './single.ts'
import { readStartable, type StartableWorkflow } from './startable.ts'

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

/** Why an execution is not repeated: its reply belongs to a message that is there already. */
export const IN_CHAT = 'The execution replies in a chat: post the message again instead'

/**
 * Accepts a new execution with the trigger and the input of an ended one. A retry takes over the outputs of nodes that
 * succeeded, as findReusable chooses them; pinned outputs are pinned again. It needs an OPERATOR, or a BUILDER if
 * outputs were pinned, a single node was executed, or it is a test of a version that is not published. Throws NOT_FOUND, and CONFLICT if the execution is open, has
 * succeeded (RETRY), replies in a chat, the version has no such trigger or node, or what is needed of it was not kept.
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
  const refs = Object.values(given).flatMap(({ output, begun }) =>
    [output, ...(begun ? envelopesOf(begun) : [])].flatMap(refOf),
  )
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
    prepare: (tx) => copyOutputs(tx, store, id, newId, new Set(refs)).catch(rethrowGone),
    // A loop of a retry may take over iterations, with the files that any of them named.
    adopt: (tx, to) => copyFiles(tx, id, to, how === 'RETRY' ? 'all' : findFileIds(run.inputData, given)),
  })
  const kept = started.fresh
    ? { workflowVersion: workflow.version, given }
    : await readAccepted(store, started.executionId)
  const { workflowVersion } = kept
  const { nodes } = await readVersion(store, run.workflowId, workflowVersion)
  const isTaken = (node: string) => {
    const gift = getOwn(kept.given, node)
    return gift !== undefined && gift.from !== PINNED && !gift.begun
  }
  const takenOver = nodes.map((node) => node.id).filter(isTaken)
  return { ...started, retriedFrom: id, recovery: how, workflowVersion, takenOver }
}

/** The version and presets of the execution that an earlier request with the same key has started. */
async function readAccepted(store: Store, id: string): Promise<{ workflowVersion: number; given: Presets }> {
  const run = await store.db
    .selectFrom('executions')
    .select(['workflowVersion', 'given'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!run) throw missing('execution')
  // Not those that this request would have: the workflow may have changed since.
  return { workflowVersion: run.workflowVersion, given: (run.given ?? {}) as Presets }
}

type Ended = Awaited<ReturnType<typeof readEnded>>

async function readEnded(scope: Scope, id: string, how: Recovery) {
  const run = await scope.store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowVersion', 'status', 'trigger', 'triggerNodeId'])
    .select(['inputData', 'inputWarning', 'keepInputs', 'given', 'onlyNode', 'draft', 'parentId'])
    .select(chatPrivacyOf().as('privacy'))
    .select(
      sql<boolean>`exists (select from node_executions n
        where n.execution_id = executions.id and n.given_by = ${PINNED})`.as('pinned'),
    )
    .where('id', '=', id)
    .executeTakeFirst()
  if (!run) throw missing('execution')
  demand(scope, run.teamId, 'OPERATOR')
  if (isHiddenFrom(scope, run.teamId, run.privacy)) throw isPrivate()
  if (run.trigger === 'CHAT') throw new Fault('CONFLICT', IN_CHAT)
  if (!isEnded(run.status)) throw new Fault('CONFLICT', 'The execution is still under way')
  if (how === 'RETRY' && run.status === 'SUCCESS') {
    throw new Fault('CONFLICT', 'The execution succeeded, so it has no failed node; rerun it instead')
  }
  if (!run.keepInputs) throw new Fault('CONFLICT', 'The input of the execution was not kept')
  return run
}

function checkStart({ graph, version }: StartableWorkflow, { triggerNodeId, onlyNode }: Ended): void {
  const first = graph.nodes.find(({ id }) => id === (onlyNode ?? triggerNodeId))
  if (onlyNode !== null && first) checkSingleNode(graph, onlyNode)
  else if (!first || first.disabled) {
    const what =
      onlyNode === null ? `trigger "${triggerNodeId}" to start at` : `node "${onlyNode}" to execute`
    throw new Fault('CONFLICT', `Version ${version} has no ${what}`)
  }
}

/** The execution's pinned outputs. Throws if one cannot be pinned again: its node must not be executed. */
function keepPins(graph: Graph, { given, pinned, onlyNode }: Ended): Presets {
  if (given === null && pinned)
    throw new Fault('CONFLICT', 'The pinned outputs of the execution were not kept')
  const pins = Object.entries((given ?? {}) as Presets).filter(([, { from }]) => from === PINNED)
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]))
  for (const [id] of pins) {
    const problem = onlyNode === null ? findPinProblem(nodes.get(id)) : undefined
    if (problem)
      throw new Fault('CONFLICT', `The output of node "${id}" cannot be pinned in this version: ${problem}`)
  }
  return Object.fromEntries(pins)
}

/** What a retry takes over: outputs that the execution made, or had itself taken over from an earlier one. */
async function findOutputs(store: Store, run: Ended, before: Graph, after: Graph): Promise<Presets> {
  const rows = await store.db
    .selectFrom('nodeExecutions')
    .select(['nodeId', 'status', 'output', 'handle', 'givenBy'])
    .where('executionId', '=', run.id)
    .where('iteration', '=', '')
    .execute()
  const failed = await store.db
    .selectFrom('nodeExecutions')
    .select('nodeId')
    .distinct()
    .where('executionId', '=', run.id)
    .where('iteration', '<>', '')
    .where('step', 'is', null)
    .where('status', '=', 'FAILED')
    .where('output', 'is', null)
    .execute()
  const known = new Map<string, { status: string; output: unknown; handle: string | null; from: string }>()
  for (const [id, { output, handle, from, begun }] of Object.entries((run.given ?? {}) as Presets)) {
    if (from !== PINNED && id !== ITEM_PRESET && !begun)
      known.set(id, { status: 'SUCCESS', output, handle, from })
  }
  for (const { nodeId, status, output, handle, givenBy } of rows) {
    known.set(nodeId, { status, output, handle, from: givenBy ?? run.id })
  }
  const statuses = new Map([...known].map(([id, { status }]) => [id, status]))
  const failedInside = new Set(failed.map(({ nodeId }) => nodeId))
  const taken: Presets = Object.create(null)
  const { outputs, agents } = findReusable(before, after, { statuses, failedInside })
  for (const id of outputs) {
    const { output, handle, from } = known.get(id)!
    if (output === null) throw notKept()
    taken[id] = { output: output as Envelope, handle, from }
  }
  for (const id of agents) {
    const begun = statuses.has(id) ? await readStopped(store, run.id, id) : undefined
    // The execution may never have come to an agent that it was to go on with.
    const again = statuses.has(id) ? undefined : getOwn((run.given ?? {}) as Presets, id)
    if (begun) taken[id] = { output: NO_OUTPUT, handle: null, from: run.id, begun }
    else if (again?.begun) taken[id] = again
  }
  return taken
}

/** The placeholder for the output of an agent that goes on. */
const NO_OUTPUT: Envelope = { v: null, bytes: 4 }

function refOf(output: Envelope): string[] {
  return 'ref' in output && output.ref !== INPUT_REF ? [output.ref] : []
}

function notKept(): Fault {
  return new Fault('CONFLICT', 'The outputs of the execution were not kept; rerun it instead')
}

function rethrowGone(error: unknown): never {
  throw error instanceof Fault && error.code === 'NOT_FOUND' ? notKept() : error
}
