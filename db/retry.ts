import { sql } from 'kysely'
import { v7 as uuid, v5 as uuidv5 } from 'uuid'
import { ITEM } from '../workflows/alone.ts'
import type { Graph } from '../workflows/graph.ts'
import { type Envelope, type Given, INPUT_REF } from '../workflows/plan.ts'
import { checkAlone } from './alone.ts'
import { copyBlobs } from './blobs.ts'
import { isEnded } from './executions.ts'
import { Fault, missing } from './fault.ts'
import { findProblem, PINNED } from './pins.ts'
import { demand, type Scope, type Store } from './scope.ts'
import {
  addExecution,
  readStartable,
  type Start,
  type Startable,
  type Started,
  type Trigger,
} from './start.ts'
import { findTaken } from './taken.ts'
import { readVersion } from './versions.ts'

/** RETRY goes on from the failed nodes, RERUN begins anew with the same input. */
export type Recovery = 'RETRY' | 'RERUN'

/** Of the graph: the version that the run had, or the workflow's newest. */
export type Choice = 'same' | 'current'

export type Recovered = Started & {
  retriedFrom: string
  recovery: Recovery
  workflowVersion: number
  /** The nodes whose outputs are taken over, in the graph's order. */
  takenOver: string[]
}

export type Recover = { version: Choice; idempotencyKey?: string | undefined } & Pick<
  Start,
  'traceparent' | 'swept'
>

/**
 * Accepts a new run that takes up an ended one (OPERATOR; BUILDER where outputs were given by hand or a node ran
 * alone), with its trigger and input. A retry takes over the outputs of nodes that succeeded, as findTaken chooses
 * them. Outputs given by hand are given again. Throws NOT_FOUND, and CONFLICT where the run is under way, was a
 * success (RETRY), or what it takes was not kept.
 */
export async function recoverExecution(
  scope: Scope,
  id: string,
  how: Recovery,
  { version, idempotencyKey, ...more }: Recover,
): Promise<Recovered> {
  const { store } = scope
  const run = await readEnded(scope, id, how)
  const found = await readStartable(store, run.workflowId, () => true)
  if (!found) throw missing('workflow')
  const before = await readVersion(store, run.workflowId, run.workflowVersion)
  const workflow = version === 'current' ? found : { ...found, version: run.workflowVersion, graph: before }
  checkStart(workflow, run)
  const pinned = keepPins(workflow.graph, run)
  const taken = how === 'RETRY' ? await findOutputs(store, run, before, workflow.graph) : {}
  const given: Given = { ...taken, ...pinned }
  if (Object.keys(pinned).length > 0 || run.onlyNode !== null) demand(scope, run.teamId, 'BUILDER')
  const own = idempotencyKey === undefined ? uuid() : uuidv5(`${how} ${idempotencyKey}`, id)
  const refs = Object.values(given).flatMap(({ output }) => refOf(output))
  const started = await addExecution(store, workflow, {
    ...more,
    ...{ id: own, node: { id: run.triggerNodeId }, trigger: run.trigger as Trigger },
    ...{ data: run.inputData as Record<string, unknown>, by: scope.actor },
    ...{ retriedFrom: id, recovery: how, onlyNode: run.onlyNode ?? undefined },
    given: Object.keys(given).length > 0 ? given : undefined,
    prepare: (tx) => copyBlobs(tx, store, id, own, new Set(refs)).catch(rethrowGone),
  })
  const kept = started.fresh
    ? { workflowVersion: workflow.version, given }
    : await readAccepted(store, started.executionId)
  const { workflowVersion } = kept
  const { nodes } = await readVersion(store, run.workflowId, workflowVersion)
  const isTaken = (node: string) => Object.hasOwn(kept.given, node) && kept.given[node]!.from !== PINNED
  const takenOver = nodes.map((node) => node.id).filter(isTaken)
  return { ...started, retriedFrom: id, recovery: how, workflowVersion, takenOver }
}

/** What the run came to be that an earlier call with the same key began: the workflow may have changed since. */
async function readAccepted(store: Store, id: string): Promise<{ workflowVersion: number; given: Given }> {
  const run = await store.db
    .selectFrom('executions')
    .select(['workflowVersion', 'given'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!run) throw missing('execution')
  return { workflowVersion: run.workflowVersion, given: (run.given ?? {}) as Given }
}

type Ended = Awaited<ReturnType<typeof readEnded>>

async function readEnded(scope: Scope, id: string, how: Recovery) {
  const run = await scope.store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowVersion', 'status', 'trigger', 'triggerNodeId'])
    .select(['inputData', 'keepInputs', 'given', 'onlyNode'])
    .select(
      sql<boolean>`exists (select from node_executions n
        where n.execution_id = executions.id and n.given_by = ${PINNED})`.as('pinned'),
    )
    .where('id', '=', id)
    .executeTakeFirst()
  if (!run) throw missing('execution')
  demand(scope, run.teamId, 'OPERATOR')
  if (!isEnded(run.status)) throw new Fault('CONFLICT', 'The execution is still under way')
  if (how === 'RETRY' && run.status === 'SUCCESS') {
    throw new Fault('CONFLICT', 'The execution succeeded: it has no failed node; run it again instead')
  }
  if (!run.keepInputs) throw new Fault('CONFLICT', 'What the execution was started with was not kept')
  return run
}

function checkStart({ graph, version }: Startable, { triggerNodeId, onlyNode }: Ended): void {
  const first = graph.nodes.find(({ id }) => id === (onlyNode ?? triggerNodeId))
  if (onlyNode !== null && first) checkAlone(graph, onlyNode)
  else if (!first || first.disabled) {
    const what = onlyNode === null ? `trigger "${triggerNodeId}" to start at` : `node "${onlyNode}" to run`
    throw new Fault('CONFLICT', `Version ${version} has no ${what}`)
  }
}

/** What the run was given by hand: a node that was pinned is never run instead. */
function keepPins(graph: Graph, { given, pinned, onlyNode }: Ended): Given {
  if (given === null && pinned) throw new Fault('CONFLICT', 'The outputs that were pinned were not kept')
  const pins = Object.entries((given ?? {}) as Given).filter(([, { from }]) => from === PINNED)
  for (const [id] of pins) {
    const problem = onlyNode === null ? findProblem(graph, id) : undefined
    if (problem)
      throw new Fault('CONFLICT', `The output of "${id}" was pinned, but in this version it ${problem}`)
  }
  return Object.fromEntries(pins)
}

/** What a retry takes over of what the run did, or was about to take over itself. */
async function findOutputs(store: Store, run: Ended, before: Graph, after: Graph): Promise<Given> {
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
    .where('status', '=', 'FAILED')
    .where('output', 'is', null)
    .execute()
  const known = new Map<string, { status: string; output: unknown; handle: string | null; from: string }>()
  for (const [id, { output, handle, from }] of Object.entries((run.given ?? {}) as Given)) {
    if (from !== PINNED && id !== ITEM) known.set(id, { status: 'SUCCESS', output, handle, from })
  }
  for (const { nodeId, status, output, handle, givenBy } of rows) {
    known.set(nodeId, { status, output, handle, from: givenBy ?? run.id })
  }
  const statuses = new Map([...known].map(([id, { status }]) => [id, status]))
  const failedInside = new Set(failed.map(({ nodeId }) => nodeId))
  const taken: Given = Object.create(null)
  for (const id of findTaken(before, after, { statuses, failedInside })) {
    const { output, handle, from } = known.get(id)!
    if (output === null) throw notKept()
    taken[id] = { output: output as Envelope, handle, from }
  }
  return taken
}

function refOf(output: Envelope): string[] {
  return 'ref' in output && output.ref !== INPUT_REF ? [output.ref] : []
}

function notKept(): Fault {
  return new Fault('CONFLICT', 'The outputs of the execution were not kept: run it again from the start')
}

function rethrowGone(error: unknown): never {
  throw error instanceof Fault && error.code === 'NOT_FOUND' ? notKept() : error
}
