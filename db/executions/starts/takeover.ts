import { sql } from 'kysely'
import type { Graph } from '../../../workflows/graph/graph.ts'
import { readPart } from '../../../workflows/graph/part.ts'
import { ITEM_PRESET } from '../../../workflows/graph/single.ts'
import { getOwn } from '../../../workflows/json.ts'
import { type Envelope, INPUT_REF, type Presets } from '../../../workflows/run/plan.ts'
import { chatPrivacyOf, isHiddenFrom, isPrivate } from '../../chat/privacy.ts'
import type { Tx } from '../../connection.ts'
import { Fault, missing } from '../../fault.ts'
import { demand, type Scope, type Store } from '../../scope.ts'
import { readVersion } from '../../workflows/versions.ts'
import { copyOutputs } from '../records/outputs.ts'
import { isEnded } from '../status.ts'
import type { Recovery } from '../triggers.ts'
import type { StartedExecution } from './add.ts'
import { envelopesOf, readStopped } from './agents.ts'
import { findPinProblem, PINNED } from './pins.ts'
import { findReusable } from './reuse.ts'

/** Why an execution is not repeated: its reply belongs to a message that is there already. */
export const IN_CHAT = 'The execution replies in a chat: post the message again instead'

export type PastExecution = Awaited<ReturnType<typeof readEnded>>

/** What is repeated of an ended execution, or reused in another one. */
export async function readEnded(scope: Scope, id: string, how: Recovery | 'REUSE') {
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

/** The execution's pinned outputs. Throws if one cannot be pinned again: its node must not be executed. */
export function keepPins(graph: Graph, { given, pinned, onlyNode: part }: PastExecution): Presets {
  if (given === null && pinned)
    throw new Fault('CONFLICT', 'The pinned outputs of the execution were not kept')
  const pins = Object.entries((given ?? {}) as Presets).filter(([, { from }]) => from === PINNED)
  const { onlyNode } = readPart(part)
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]))
  for (const [id] of pins) {
    const problem = onlyNode === null ? findPinProblem(nodes.get(id)) : undefined
    if (problem)
      throw new Fault('CONFLICT', `The output of node "${id}" cannot be pinned in this version: ${problem}`)
  }
  return Object.fromEntries(pins)
}

/**
 * What a retry takes over: outputs that the execution made, or had itself taken over from an earlier one. The nodes of
 * `anew` are executed again, and so are those after them. Throws CONFLICT if an output was not kept.
 */
export async function findOutputs(
  store: Store,
  run: Pick<PastExecution, 'id' | 'given'>,
  before: Graph,
  after: Graph,
  anew: Iterable<string> = [],
): Promise<Presets> {
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
  for (const id of anew) statuses.set(id, 'AGAIN')
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

/** Copies the stored outputs among the presets from the execution that made them. Throws CONFLICT if one is gone. */
export async function copyTaken(
  tx: Tx,
  store: Store,
  { from, to, given }: { from: string; to: string; given: Presets },
): Promise<void> {
  const refs = Object.values(given).flatMap(({ output, begun }) =>
    [output, ...(begun ? envelopesOf(begun) : [])].flatMap(refOf),
  )
  await copyOutputs(tx, store, from, to, new Set(refs)).catch(rethrowGone)
}

/** The ids of the nodes whose outputs an execution has taken over, in the graph's order, and its version. */
export async function listTakenOver(
  store: Store,
  { executionId, fresh }: Pick<StartedExecution, 'executionId' | 'fresh'>,
  asked: { workflowId: string; workflowVersion: number; given: Presets },
): Promise<{ takenOver: string[]; workflowVersion: number }> {
  // Of a request that was repeated, not what it would take over by now: the workflow may have changed since.
  const { workflowVersion, given } = fresh ? asked : await readAccepted(store, executionId)
  const { nodes } = await readVersion(store, asked.workflowId, workflowVersion)
  const isTaken = (id: string) => {
    const gift = getOwn(given, id)
    return gift !== undefined && gift.from !== PINNED && !gift.begun
  }
  return { workflowVersion, takenOver: nodes.map(({ id }) => id).filter(isTaken) }
}

/** The version and presets of an execution that an earlier request with the same key has started. */
async function readAccepted(store: Store, id: string): Promise<{ workflowVersion: number; given: Presets }> {
  const run = await store.db
    .selectFrom('executions')
    .select(['workflowVersion', 'given'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!run) throw missing('execution')
  return { workflowVersion: run.workflowVersion, given: (run.given ?? {}) as Presets }
}

function rethrowGone(error: unknown): never {
  throw error instanceof Fault && error.code === 'NOT_FOUND' ? notKept() : error
}
