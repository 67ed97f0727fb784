import { sql } from 'kysely'
import { isEnded } from './executions.ts'
import { nodeExecutionId } from './projection.ts'
import { persist, type Store, type Tx } from './scope.ts'
import { cleanText } from './text.ts'

/** A node of a run that waits for somebody outside; `iteration` is '' outside of loops. */
export type Spot = { executionId: string; nodeId: string; nodeName: string; iteration: string }

/** OPEN until it is settled, once: decided, received, out of time, or its run or iteration has ended. */
const STATUSES = ['OPEN', 'APPROVED', 'REJECTED', 'RECEIVED', 'EXPIRED', 'ABANDONED'] as const
export type PauseStatus = (typeof STATUSES)[number]

export type Person = { id: string | null; name: string; email: string | null }

/** What one approver said. */
export type Decision = {
  decision: 'approved' | 'rejected'
  by: Person
  at: string
  comment: string | null
  form: Record<string, unknown> | null
}

/** What a node asks for when it begins to wait; `timeoutMs` null is for ever. */
export type Asked = { timeoutMs: number | null } & (
  | { kind: 'EVENT'; name: string }
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

/** `leftMs` until the deadline by PostgreSQL's clock; null without one. */
export type Pause = { status: PauseStatus; decisions: Decision[]; data: unknown; leftMs: number | null }

/**
 * Notes that a node of a run under way waits, once however often it is told, and answers how that stands. Undefined
 * where the run has ended.
 */
export async function openPause(store: Store, spot: Spot, asked: Asked): Promise<Pause | undefined> {
  const { executionId, nodeId, iteration } = spot
  const id = nodeExecutionId(executionId, nodeId, iteration)
  const approval = asked.kind === 'APPROVAL' ? asked : undefined
  const name = asked.kind === 'EVENT' ? asked.name : null
  // Locked for share, the run does not end before the row is there to be ended with it.
  await sql`
    with run as (
      select id, team_id, workflow_id from executions
      where id = ${executionId} and status in ('PENDING', 'RUNNING') for share)
    insert into pauses (id, execution_id, team_id, workflow_id, kind, node_id, node_name, iteration, name, message,
      approvers, approver_ids, form, required, self_approval, deadline)
    select ${id}, id, team_id, workflow_id, ${asked.kind}, ${nodeId}, ${cleanText(spot.nodeName)}, ${iteration},
      ${name}, ${approval?.message ?? null}, ${approval?.approvers ?? []}::text[], ${approval?.approverIds ?? []}::uuid[],
      ${approval?.form ? JSON.stringify(approval.form) : null}::json, ${approval?.required ?? 1}::integer,
      ${approval?.selfApproval ?? true}::boolean,
      clock_timestamp() + ${asked.timeoutMs}::float8 * interval '1 millisecond'
    from run on conflict (id) do nothing`.execute(store.db)
  return readPause(store, spot)
}

/** The members of a run's team who have these e-mail addresses. */
export async function findMembers(store: Store, executionId: string, emails: string[]): Promise<string[]> {
  if (emails.length === 0) return []
  const { rows } = await sql<{ id: string }>`
    select u.id from executions e join members m on m.team_id = e.team_id join users u on u.id = m.user_id
    where e.id = ${executionId} and lower(u.email) = any(${emails.map((email) => email.toLowerCase())}::text[])`.execute(
    store.db,
  )
  return rows.map(({ id }) => id)
}

/** How a pause stands. One whose time is up is settled as that by the first who looks. */
export async function readPause(
  store: Store,
  { executionId, nodeId, iteration }: Omit<Spot, 'nodeName'>,
): Promise<Pause | undefined> {
  const id = nodeExecutionId(executionId, nodeId, iteration)
  for (;;) {
    const { rows } = await sql<Pause>`
      select status, decisions, data,
        (extract(epoch from deadline - clock_timestamp()) * 1000)::float8 as left_ms
      from pauses where id = ${id}`.execute(store.db)
    const [pause] = rows
    if (pause?.status !== 'OPEN' || pause.leftMs === null || pause.leftMs > 0) return pause
    await sql`update pauses set status = 'EXPIRED', settled_at = now()
      where id = ${id} and status = 'OPEN' and deadline <= clock_timestamp()`.execute(store.db)
  }
}

/** Holds a run, so that it does not end before the transaction does. Answers why nothing can be told to it any more. */
export async function holdRun(tx: Tx, executionId: string): Promise<string | undefined> {
  const run = await tx
    .selectFrom('executions')
    .select(['status', 'cancelRequestedAt'])
    .where('id', '=', executionId)
    .forShare()
    .executeTakeFirst()
  if (!run) return 'The run is deleted'
  if (isEnded(run.status)) return `The run has ended: ${run.status}`
  return run.cancelRequestedAt === null ? undefined : 'The run is being cancelled'
}

/**
 * Ends what waits in iterations of loops that are over: pauses are abandoned, sub-workflows that are waited for
 * cancelled. `nodeIds` are the nodes that may wait there; `path` is the iteration around the loop ('' is the root),
 * or, where `itself`, the iteration that is over.
 */
export async function endPauses(
  store: Store,
  executionId: string,
  nodeIds: string[],
  path: string,
  itself: boolean,
): Promise<void> {
  const inside = path === '' ? '%' : `${path}.%`
  const own = itself ? path : null
  const end = sql`
    with abandoned as (
      update pauses set status = 'ABANDONED', settled_at = now()
      where execution_id = ${executionId} and status = 'OPEN' and node_id = any(${nodeIds}::text[])
        and (iteration like ${inside} or iteration = ${own}::text))
    select cancel_run(id, 'The run no longer waits for it') from executions
    where parent_id = ${executionId} and not detached and status in ('PENDING', 'RUNNING')
      and split_part(parent_key, '#', 1) = any(${nodeIds}::text[])
      and (split_part(parent_key, '#', 2) like ${inside} or split_part(parent_key, '#', 2) = ${own}::text)`
  // Children that give up their places let others in, whose rows somebody else may hold.
  await persist(() => end.execute(store.db))
}
