import { sql } from 'kysely'
import type { Form } from '../../../workflows/graph/form.ts'
import { splitStep } from '../../../workflows/run/walk.ts'
import { write } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { hasConfirmed } from '../../people/proof.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import { nodeExecutionId } from '../records/projection.ts'
import { isEnded } from '../status.ts'

/** A node of an execution, in one iteration, or a step of it (see joinStep); `iteration` is '' outside of loops. */
export type NodeInstance = { executionId: string; nodeId: string; nodeName: string; iteration: string }

/** The iteration of a pause as it is shown, and the step of an agent that waits. */
export function showPlace(path: string): { iteration: string | null; step: number | null } {
  const { iteration, step } = splitStep(path)
  return { iteration: iteration === '' ? null : iteration, step }
}

/** OPEN until it is settled, once: it is decided or received, expires, or its execution or iteration ends. */
export const PAUSE_STATUSES = ['OPEN', 'APPROVED', 'REJECTED', 'RECEIVED', 'EXPIRED', 'ABANDONED'] as const
type PauseStatus = (typeof PAUSE_STATUSES)[number]

export const PAUSE_KINDS = ['APPROVAL', 'EVENT', 'FORM'] as const

export type DecidedBy = { id: string | null; name: string; email: string | null }

export const DECISIONS = ['approved', 'rejected'] as const

/** What one approver decided; `at` is ISO 8601 in UTC. */
export type Decision = {
  decision: (typeof DECISIONS)[number]
  by: DecidedBy
  at: string
  comment: string | null
  form: Record<string, unknown> | null
}

/** A page that asks, as it is shown. */
export type FormPage = {
  form: Form
  title: string | null
  description: string | null
  button: string | null
}

/** What a node waits for; without a limit of time if `timeoutMs` is null. */
export type PauseRequest = { timeoutMs: number | null } & (
  | { kind: 'EVENT'; name: string }
  | { kind: 'FORM'; form: FormPage }
  | {
      kind: 'APPROVAL'
      message: string | null
      approvers: string[]
      approverIds: string[]
      form: unknown
      required: number
      selfApproval: boolean
    }
)

/** `leftMs` is the time until the deadline, by PostgreSQL's clock; null without a deadline. */
export type Pause = { status: PauseStatus; decisions: Decision[]; data: unknown; leftMs: number | null }

/**
 * Opens the pause of a node, unless it has one already, and returns it as it is now. Returns undefined if it
 * has none and the execution has ended, or is deleted.
 */
export async function openPause(
  store: Store,
  spot: NodeInstance,
  request: PauseRequest,
): Promise<Pause | undefined> {
  const { executionId, nodeId, iteration } = spot
  const id = nodeExecutionId(executionId, nodeId, iteration)
  const approval = request.kind === 'APPROVAL' ? request : undefined
  const form = request.kind === 'EVENT' ? undefined : request.form
  const name = request.kind === 'EVENT' ? request.name : null
  // The lock keeps the execution from ending before the row is there to be abandoned with it.
  await write(store, (tx) =>
    sql`
    with run as (
      select id, team_id, workflow_id from executions
      where id = ${executionId} and status in ('PENDING', 'RUNNING') for share)
    insert into pauses (id, execution_id, team_id, workflow_id, kind, node_id, node_name, iteration, name, message,
      approvers, approver_ids, form, required, self_approval, deadline)
    select ${id}, id, team_id, workflow_id, ${request.kind}, ${nodeId}, ${cleanText(spot.nodeName)}, ${iteration},
      ${name}, ${approval?.message ?? null}, ${approval?.approvers ?? []}::text[], ${approval?.approverIds ?? []}::uuid[],
      ${form ? JSON.stringify(form) : null}::json, ${approval?.required ?? 1}::integer,
      ${approval?.selfApproval ?? true}::boolean,
      clock_timestamp() + ${request.timeoutMs}::float8 * interval '1 millisecond'
    from run on conflict (id) do nothing`.execute(tx),
  )
  return readPause(store, spot)
}

/**
 * Those members of an execution's team whom e-mail addresses mean, ignoring case, with their present ones. The `written`
 * addresses, which stand in the graph, mean those who had confirmed them when the version was saved; the
 * `computed` ones those who have now.
 */
export async function findApprovers(
  store: Store,
  executionId: string,
  addresses: { written: string[]; computed: string[] },
): Promise<{ id: string; address: string; email: string }[]> {
  const written = addresses.written.map((address) => address.toLowerCase())
  const computed = addresses.computed.map((address) => address.toLowerCase())
  if (written.length + computed.length === 0) return []
  // A version that a process of the release before has saved does not say whom it meant.
  const { rows } = await sql<{ id: string; address: string; email: string }>`
    with team as (
      select u.id, u.email, ${hasConfirmed(store)} as confirmed, v.approver_ids from executions e
        join workflow_versions v on v.workflow_id = e.workflow_id and v.version = e.workflow_version
        join members m on m.team_id = e.team_id join users u on u.id = m.user_id
      where e.id = ${executionId})
    select id, key as address, email from team cross join json_each_text(approver_ids)
      where value = id::text and key = any(${written}::text[])
    union
    select id, lower(email), email from team
      where confirmed and (lower(email) = any(${computed}::text[])
        or approver_ids is null and lower(email) = any(${written}::text[]))`.execute(store.db)
  return rows
}

/** A pause as it is now; undefined if the node has none. Settles it as EXPIRED if its deadline has passed. */
export async function readPause(
  store: Store,
  { executionId, nodeId, iteration }: Omit<NodeInstance, 'nodeName'>,
): Promise<Pause | undefined> {
  const id = nodeExecutionId(executionId, nodeId, iteration)
  for (;;) {
    const { rows } = await sql<Pause>`
      select status, decisions, data,
        (extract(epoch from deadline - clock_timestamp()) * 1000)::float8 as left_ms
      from pauses where id = ${id}`.execute(store.db)
    const [pause] = rows
    if (pause?.status !== 'OPEN' || pause.leftMs === null || pause.leftMs > 0) return pause
    await write(store, (tx) =>
      sql`update pauses set status = 'EXPIRED', settled_at = now()
      where id = ${id} and status = 'OPEN' and deadline <= clock_timestamp()`.execute(tx),
    )
  }
}

/**
 * Locks an execution, so that it does not end before the transaction does. Returns why nothing can be sent to it;
 * undefined if something can.
 */
export async function holdExecution(tx: Tx, executionId: string): Promise<string | undefined> {
  const execution = await tx
    .selectFrom('executions')
    .select(['status', 'cancelRequestedAt'])
    .where('id', '=', executionId)
    .forShare()
    .executeTakeFirst()
  if (!execution) return 'The execution has been deleted'
  if (isEnded(execution.status)) return `The execution has ended: ${execution.status}`
  return execution.cancelRequestedAt === null ? undefined : 'The execution is being cancelled'
}

/**
 * Ends what waits in iterations of loops that are over: abandons pauses, and cancels sub-workflows that are
 * waited for. `nodeIds` are the nodes that may wait there. `path` is the iteration around the loop ('' for
 * the root), or, if `itself` is true, the iteration that is over.
 */
export async function abandonLoopPauses(
  store: Store,
  executionId: string,
  nodeIds: string[],
  path: string,
  itself: boolean,
): Promise<void> {
  const inside = path === '' ? '%' : `${path}.%`
  const own = itself ? path : null
  // Cancelled children free places for executions whose rows may be locked: `write` then tries again.
  await write(store, (tx) =>
    sql`
    with abandoned as (
      update pauses set status = 'ABANDONED', settled_at = now()
      where execution_id = ${executionId} and status = 'OPEN' and node_id = any(${nodeIds}::text[])
        and (iteration like ${inside} or split_part(iteration, '!', 1) = ${own}::text))
    select cancel_executions(array(
      select id from executions
      where parent_id = ${executionId} and not detached and status in ('PENDING', 'RUNNING')
        and split_part(parent_key, '#', 1) = any(${nodeIds}::text[])
        and (split_part(parent_key, '#', 2) like ${inside} or split_part(split_part(parent_key, '#', 2), '!', 1) = ${own}::text)),
      'The execution that started it no longer waits for it')`.execute(tx),
  )
}
