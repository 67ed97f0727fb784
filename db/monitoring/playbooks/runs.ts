import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { write } from '../../change.ts'
import { json } from '../../connection.ts'
import { countRows, makePage, type Page, type PageRequest } from '../../page.ts'
import type { Scope, Store } from '../../scope.ts'
import type { ClaimedDelivery } from '../channels/deliveries.ts'
import { type PlaybookStep, readPlaybook } from './playbooks.ts'

/** SKIPPED: it had run for this workflow in this hour. STOPPED: the playbook was disabled before it was through. */
export const PLAYBOOK_RUN_STATUSES = ['PENDING', 'COMPLETED', 'FAILED', 'SKIPPED', 'STOPPED'] as const

/** What came of a step: in words, and which execution it has started. */
export type StepOutcome = {
  status: 'DONE' | 'FAILED'
  message: string
  executionId?: string
  endedAt: string
}

/** A run as the log shows it: each step with what came of it, null if it was not its turn. */
export type PlaybookRun = {
  id: string
  playbookId: string
  noticeId: string
  workflowId: string | null
  title: string
  status: (typeof PLAYBOOK_RUN_STATUSES)[number]
  reason: string | null
  steps: { type: PlaybookStep['type']; outcome: StepOutcome | null }[]
  createdAt: Date
  endedAt: Date | null
}

/** A run that this process holds, with what is done of it. */
export type ClaimedPlaybookRun = Pick<
  ClaimedDelivery,
  'id' | 'teamId' | 'noticeId' | 'lease' | 'attempts'
> & {
  playbookId: string
  playbookName: string
  steps: PlaybookStep[]
  outcomes: StepOutcome[]
  createdAt: Date
}

/** One page of a playbook's runs, newest first (VIEWER). Throws NOT_FOUND. */
export async function listPlaybookRuns(
  scope: Scope,
  teamId: string,
  playbookId: string,
  query: PageRequest,
): Promise<Page<PlaybookRun>> {
  await readPlaybook(scope, teamId, playbookId)
  const found = scope.store.db.selectFrom('playbookRuns as r').where('r.playbookId', '=', playbookId)
  const total = await countRows(found)
  const rows = await found
    .innerJoin('notices as n', 'n.id', 'r.noticeId')
    .select(['r.id', 'r.playbookId', 'r.noticeId', 'r.workflowId', 'r.reason', 'r.createdAt', 'r.endedAt'])
    .select(['n.title', 'r.steps', 'r.outcomes'])
    .select(sql<PlaybookRun['status']>`r.status`.as('status'))
    .orderBy('r.createdAt', 'desc')
    .orderBy('r.id', 'desc')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  const content = rows.map(({ steps, outcomes, ...row }) => ({
    ...row,
    steps: (steps as PlaybookStep[]).map(({ type }, at) => ({
      type,
      outcome: (outcomes as StepOutcome[])[at] ?? null,
    })),
  }))
  return makePage(content, total, query)
}

/**
 * Claims up to `limit` runs that are due, for `leaseMs`, one of each team. If the process dies, others go on with them
 * when the lease ends.
 */
export async function claimRuns(store: Store, limit: number, leaseMs: number): Promise<ClaimedPlaybookRun[]> {
  const { rows } = await write(store, (tx) =>
    sql<ClaimedPlaybookRun>`
    with recursive teams as (
      (select team_id from playbook_runs where status = 'PENDING' order by team_id limit 1)
      union all
      select (select r.team_id from playbook_runs r where r.status = 'PENDING' and r.team_id > t.team_id
        order by r.team_id limit 1)
      from teams t where t.team_id is not null),
    next as materialized (
      select r.id from teams t cross join lateral (
        select id, due_at from playbook_runs where team_id = t.team_id and status = 'PENDING' and due_at <= now()
        order by due_at, id limit 1) r
      order by r.due_at, r.id limit ${limit}),
    chosen as materialized (
      select r.id from next join playbook_runs r using (id)
      where r.status = 'PENDING' and r.due_at <= now() for update of r skip locked)
    update playbook_runs r set attempts = r.attempts + 1, lease = ${uuid()},
      due_at = now() + ${leaseMs} * interval '1 millisecond'
    from chosen, playbooks p where r.id = chosen.id and p.id = r.playbook_id
    returning r.id, r.team_id, r.notice_id, r.lease, r.attempts, r.playbook_id, p.name as playbook_name, r.steps,
      r.outcomes, r.created_at`.execute(tx),
  )
  return rows
}

/**
 * Notes what came of the steps so far, and holds the run for longer. Resolves to false if it is not held any more: the
 * playbook was disabled or deleted, or another process has taken the run.
 */
export async function noteOutcomes(
  store: Store,
  { id, lease }: Pick<ClaimedPlaybookRun, 'id' | 'lease'>,
  outcomes: StepOutcome[],
  leaseMs: number,
): Promise<boolean> {
  const { rows } = await write(store, (tx) =>
    sql`update playbook_runs set outcomes = ${json(outcomes)}, due_at = now() + ${leaseMs} * interval '1 millisecond'
      where id = ${id} and lease = ${lease} returning id`.execute(tx),
  )
  return rows.length > 0
}

/** Ends a run whose steps have all had their turn. */
export async function endRun(
  store: Store,
  { id, lease }: Pick<ClaimedPlaybookRun, 'id' | 'lease'>,
  status: 'COMPLETED' | 'FAILED',
): Promise<void> {
  await write(store, (tx) =>
    sql`update playbook_runs set status = ${status}, ended_at = now(), lease = null
      where id = ${id} and lease = ${lease}`.execute(tx),
  )
}

/** Gives a run back, which is due again after `delayMs`. */
export async function postponeRun(
  store: Store,
  { id, lease }: Pick<ClaimedPlaybookRun, 'id' | 'lease'>,
  delayMs: number,
): Promise<void> {
  await write(store, (tx) =>
    sql`update playbook_runs set lease = null, due_at = now() + ${delayMs} * interval '1 millisecond'
      where id = ${id} and lease = ${lease}`.execute(tx),
  )
}

/** Queues what a step sends; false if this notice goes to that channel already. */
export async function queueDelivery(
  store: Store,
  run: Pick<ClaimedPlaybookRun, 'teamId' | 'noticeId' | 'playbookId'>,
  channelId: string,
): Promise<boolean> {
  const { teamId, noticeId, playbookId } = run
  const { rows } = await write(store, (tx) =>
    sql`insert into notification_deliveries (id, team_id, notice_id, target, channel_id, playbook_id)
      select ${uuid()}, ${teamId}, ${noticeId}, c.id::text, c.id, ${playbookId}
      from (select id from notification_channels where id = ${channelId} for key share) c
      on conflict do nothing returning id`.execute(tx),
  )
  return rows.length > 0
}

/** Whether something was done to a resource under this request id since then: each act says which request it was. */
export async function wasActed(
  { db }: Store,
  query: { teamId: string; requestId: string; resourceId: string; since: Date },
): Promise<boolean> {
  const found = await db
    .selectFrom('auditEntries')
    .select('id')
    .where('teamId', '=', query.teamId)
    .where('ts', '>=', query.since)
    .where('resourceId', '=', query.resourceId)
    .where('requestId', '=', query.requestId)
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}
