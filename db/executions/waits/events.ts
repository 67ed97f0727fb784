import { sql } from 'kysely'
import { stepKey } from '../../../workflows/run/walk.ts'
import { change } from '../../change.ts'
import { demandValues } from '../../chat/privacy.ts'
import type { Tx } from '../../connection.ts'
import { Fault } from '../../fault.ts'
import { type Errand, enqueue } from '../../outbox.ts'
import { readOwner } from '../../owners.ts'
import { countRows, makePage, type Page, type PageRequest } from '../../page.ts'
import { accountScope, demand, type Origin, type Scope, type Store } from '../../scope.ts'
import type { Keys } from '../../seal.ts'
import { nodeExecutionId } from '../records/projection.ts'
import { writeData } from './jsontext.ts'
import { holdExecution, type NodeInstance, type PAUSE_KINDS, showPlace } from './pauses.ts'
import { makePlaceToken, readPlaceToken } from './places.ts'

/**
 * An open pause. `resumeToken` is for the one-time URL of an event or a form's page, which works once; null for an
 * approval.
 */
export type EventWait = {
  id: string
  kind: (typeof PAUSE_KINDS)[number]
  nodeId: string
  nodeName: string
  iteration: string | null
  /** The number of the agent's step that waits; null for other nodes. */
  step: number | null
  /** The event's name; null for an approval. */
  name: string | null
  deadline: Date | null
  createdAt: Date
  resumeToken: string | null
}

/** The open pauses of an execution, the oldest first (OPERATOR). Throws NOT_FOUND. */
export async function listEventWaits(
  scope: Scope,
  executionId: string,
  query: PageRequest,
): Promise<Page<EventWait>> {
  const { store } = scope
  demand(scope, await demandValues(scope, executionId), 'OPERATOR')
  const found = store.db
    .selectFrom('pauses')
    .where('executionId', '=', executionId)
    .where('status', '=', 'OPEN')
    .where(sql<boolean>`(deadline is null or deadline > now())`)
  const total = await countRows(found)
  const rows = await found
    .select(['id', 'kind', 'nodeId', 'nodeName', 'iteration', 'name', 'deadline', 'createdAt'])
    .orderBy('createdAt')
    .orderBy('id')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  const content = rows.map((row) => ({
    ...row,
    kind: row.kind as EventWait['kind'],
    ...showPlace(row.iteration),
    resumeToken: makeTokenOf(store.keys, { executionId, ...row }),
  }))
  return makePage(content, total, query)
}

function makeTokenOf(keys: Keys, pause: WaitPlace & { kind: string }): string | null {
  if (pause.kind === 'EVENT') return makeResumeToken(keys, pause)
  return pause.kind === 'FORM' ? makePlaceToken(keys, 'form', pause) : null
}

/**
 * Gives an event to all nodes of an execution that wait for its name (OPERATOR). Returns one errand per node, which
 * makes the run look and is also in the outbox. Throws NOT_FOUND, and CONFLICT if the execution has ended or no node
 * waits for the event, and FORBIDDEN if it is part of another owner's chat.
 */
export async function sendEvent(
  scope: Scope,
  executionId: string,
  name: string,
  data: unknown,
): Promise<Errand[]> {
  const teamId = await demandValues(scope, executionId)
  return change(scope, 'EVENT_SENT', teamId, async (tx) => {
    const ended = await holdExecution(tx, executionId)
    if (ended) throw new Fault('CONFLICT', ended)
    const { rows } = await sql<{ nodeId: string; iteration: string }>`
      update pauses set status = 'RECEIVED', settled_at = now(), data = ${writeData(data)}::json
      where execution_id = ${executionId} and kind = 'EVENT' and name = ${name} and status = 'OPEN'
        and (deadline is null or deadline > clock_timestamp())
      returning node_id, iteration`.execute(tx)
    const result: Awaited<ReturnType<typeof queueNudge>>[] = []
    for (const row of rows) result.push(await queueNudge(tx, executionId, row))
    const nodes = rows.map((row) => row.nodeId)
    if (nodes.length > 0) return { result, resourceId: executionId, details: { name, nodes } }
    throw new Fault('CONFLICT', `The execution is open, but none of its nodes waits for the event "${name}"`)
  })
}

type WaitPlace = Omit<NodeInstance, 'nodeName'>

/**
 * The token of a WAIT_FOR_EVENT node's one-time URL: always the same, so it can be made before the node
 * waits.
 */
export function makeResumeToken(keys: Keys, { executionId, nodeId, iteration }: WaitPlace): string {
  return makePlaceToken(keys, 'resume', { executionId, nodeId, iteration })
}

/**
 * Whose node a one-time URL resumes, before anything of a request's body is read. Throws NOT_FOUND if the token is not
 * genuine, and CONFLICT if its execution has been deleted, or was resumed there already.
 */
export async function demandResumable(
  store: Store,
  token: string,
): Promise<{ teamId: string; executionId: string }> {
  const { executionId, nodeId, iteration } = demandPlace(store, token)
  const teamId = await readResumable(store, executionId)
  const pause = await store.db
    .selectFrom('pauses')
    .select('status')
    .where('id', '=', nodeExecutionId(executionId, nodeId, iteration))
    .executeTakeFirst()
  if (pause && ['RECEIVED', 'EXPIRED'].includes(pause.status)) throw notWaiting()
  return { teamId, executionId }
}

function demandPlace(store: Store, token: string): WaitPlace {
  const place = readPlaceToken(store.keys, 'resume', token)
  if (!place) throw new Fault('NOT_FOUND', 'There is nothing to resume at this address')
  return place
}

function readResumable(store: Store, executionId: string): Promise<string> {
  return readOwner(store, 'executions', executionId).catch((error) => {
    throw error instanceof Fault ? new Fault('CONFLICT', 'The execution has been deleted') : error
  })
}

const notWaiting = () =>
  new Fault('CONFLICT', 'The node no longer waits: this address was used already, or has expired')

/**
 * Gives the data of a request to a one-time URL to its node, and returns the errand that makes the run look.
 * `early` is true if the node does not wait yet: it finds the data when it begins to. Throws NOT_FOUND if the
 * token is not genuine, and CONFLICT if it was used, has expired, or its execution has ended.
 */
export async function resumeWait(
  store: Store,
  token: string,
  data: unknown,
  origin: Origin,
): Promise<{ early: boolean; errand: Errand }> {
  const place = demandPlace(store, token)
  const { executionId, nodeId, iteration } = place
  const teamId = await readResumable(store, executionId)
  // Everyone who has the address may do this once.
  const caller = { ...accountScope(store, null, origin), roles: new Map([[teamId, 'OPERATOR' as const]]) }
  return change(caller, 'EVENT_SENT', teamId, async (tx) => {
    const ended = await holdExecution(tx, executionId)
    if (ended) throw new Fault('CONFLICT', ended)
    const id = nodeExecutionId(executionId, nodeId, iteration)
    const { rows } = await sql<{ early: boolean }>`
      insert into pauses as p (id, execution_id, team_id, workflow_id, kind, node_id, node_name, iteration, status,
        data, settled_at)
      select ${id}, id, team_id, workflow_id, 'EVENT', ${nodeId}, ${nodeId}, ${iteration}, 'RECEIVED',
        ${writeData(data)}::json, now()
      from executions where id = ${executionId}
      on conflict (id) do update set status = 'RECEIVED', data = excluded.data, settled_at = now()
        where p.status = 'OPEN' and (p.deadline is null or p.deadline > clock_timestamp())
      returning xmax = 0 as early`.execute(tx)
    if (rows[0]) {
      const { early } = rows[0]
      const result = { early, errand: await queueNudge(tx, executionId, place) }
      return { result, resourceId: executionId, details: { nodes: [nodeId], oneTimeUrl: true } }
    }
    throw notWaiting()
  })
}

/** Queues the errand that signals the run to look at the node's pause. */
export async function queueNudge(
  tx: Tx,
  executionId: string,
  { nodeId, iteration }: Omit<WaitPlace, 'executionId'>,
): Promise<Errand> {
  const errand = { kind: 'SIGNAL', subjectId: executionId, key: stepKey(nodeId, iteration) } as const
  await enqueue(tx, errand.kind, [executionId], errand.key)
  return errand
}
