import { createHmac, timingSafeEqual } from 'node:crypto'
import { sql } from 'kysely'
import { stepKey } from '../workflows/walk.ts'
import { Fault } from './fault.ts'
import { type Errand, enqueue } from './outbox.ts'
import { readOwner } from './owners.ts'
import { countRows, makePage, type Page, type PageRequest } from './page.ts'
import { holdRun, type Spot } from './pauses.ts'
import { nodeExecutionId } from './projection.ts'
import { demand, record, type Scope, type Store, type Tx } from './scope.ts'
import { type Keys, purposeKey } from './seal.ts'

/** A node of a run that waits for an approval or an event; an event's `resumeToken` stands for it once. */
export type Wait = {
  id: string
  kind: 'APPROVAL' | 'EVENT'
  nodeId: string
  nodeName: string
  iteration: string | null
  /** Of the event. */
  name: string | null
  deadline: Date | null
  createdAt: Date
  resumeToken: string | null
}

/** What a run waits for at the moment, the oldest first (OPERATOR). Throws NOT_FOUND. */
export async function listWaits(scope: Scope, executionId: string, query: PageRequest): Promise<Page<Wait>> {
  const { store } = scope
  demand(scope, await readOwner(store, 'executions', executionId), 'OPERATOR')
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
    kind: row.kind as Wait['kind'],
    iteration: row.iteration === '' ? null : row.iteration,
    resumeToken: row.kind === 'EVENT' ? makeResumeToken(store.keys, { executionId, ...row }) : null,
  }))
  return makePage(content, total, query)
}

/**
 * Gives an event to all nodes of a run that wait for its name (OPERATOR), and answers what the run must be told: one
 * errand a node. Throws NOT_FOUND, or CONFLICT where the run has ended or none waits for it.
 */
export async function sendEvent(
  scope: Scope,
  executionId: string,
  name: string,
  data: unknown,
): Promise<Errand[]> {
  demand(scope, await readOwner(scope.store, 'executions', executionId), 'OPERATOR')
  return record(scope.store, async (tx) => {
    const ended = await holdRun(tx, executionId)
    if (ended) throw new Fault('CONFLICT', ended)
    const { rows } = await sql<{ nodeId: string; iteration: string }>`
      update pauses set status = 'RECEIVED', settled_at = now(), data = ${JSON.stringify(data)}::json
      where execution_id = ${executionId} and kind = 'EVENT' and name = ${name} and status = 'OPEN'
        and (deadline is null or deadline > clock_timestamp())
      returning node_id, iteration`.execute(tx)
    if (rows.length > 0) return Promise.all(rows.map((row) => tell(tx, executionId, row)))
    throw new Fault('CONFLICT', `The run goes on, but no node of it waits for the event "${name}"`)
  })
}

const PURPOSE = 'resume'

type Place = Omit<Spot, 'nodeName'>

/** The token of a WAIT_FOR_EVENT node's one-time URL: the same whenever it is made, so it can be before the node waits. */
export function makeResumeToken(keys: Keys, { executionId, nodeId, iteration }: Place): string {
  const head = Buffer.from([keys.current, executionId, nodeId, iteration].join('|')).toString('base64url')
  return `${head}.${sign(keys, keys.current, head)}`
}

/**
 * Gives a call of a one-time URL to its node, and answers what the run must be told. `early` is true where the node
 * does not wait yet: it finds the data when it gets there. Throws NOT_FOUND for a token that is none, and CONFLICT
 * for one that was used, is out of time, or whose run has ended.
 */
export async function resumeWait(
  store: Store,
  token: string,
  data: unknown,
): Promise<{ early: boolean; errand: Errand }> {
  const place = readToken(store.keys, token)
  if (!place) throw new Fault('NOT_FOUND', 'There is nothing to resume at this address')
  const { executionId, nodeId, iteration } = place
  return record(store, async (tx) => {
    const ended = await holdRun(tx, executionId)
    if (ended) throw new Fault('CONFLICT', ended)
    const id = nodeExecutionId(executionId, nodeId, iteration)
    const { rows } = await sql<{ early: boolean }>`
      insert into pauses as p (id, execution_id, team_id, workflow_id, kind, node_id, node_name, iteration, status,
        data, settled_at)
      select ${id}, id, team_id, workflow_id, 'EVENT', ${nodeId}, ${nodeId}, ${iteration}, 'RECEIVED',
        ${JSON.stringify(data)}::json, now()
      from executions where id = ${executionId}
      on conflict (id) do update set status = 'RECEIVED', data = excluded.data, settled_at = now()
        where p.status = 'OPEN' and (p.deadline is null or p.deadline > clock_timestamp())
      returning xmax = 0 as early`.execute(tx)
    if (rows[0]) return { early: rows[0].early, errand: await tell(tx, executionId, place) }
    throw new Fault('CONFLICT', 'The node does not wait any more: this address counts once, and in time')
  })
}

async function tell(
  tx: Tx,
  executionId: string,
  { nodeId, iteration }: Omit<Place, 'executionId'>,
): Promise<Errand> {
  const errand = { kind: 'SIGNAL', subjectId: executionId, key: stepKey(nodeId, iteration) } as const
  await enqueue(tx, errand.kind, [executionId], errand.key)
  return errand
}

function readToken(keys: Keys, token: string): Place | undefined {
  const [head = '', mac = ''] = token.split('.')
  const [keyId = '', executionId = '', nodeId = '', iteration = ''] = Buffer.from(head, 'base64url')
    .toString()
    .split('|')
  if (!keys.byId.has(keyId)) return undefined
  const due = Buffer.from(sign(keys, keyId, head))
  const given = Buffer.from(mac)
  const genuine = given.length === due.length && timingSafeEqual(given, due)
  return genuine ? { executionId, nodeId, iteration } : undefined
}

function sign(keys: Keys, keyId: string, head: string): string {
  return createHmac('sha256', purposeKey(keys, PURPOSE, keyId))
    .update(head)
    .digest('base64url')
}
