import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { write } from '../../change.ts'
import { json } from '../../connection.ts'
import { countRows, makePage, type Page, type PageRequest } from '../../page.ts'
import { claim, postpone, type Queue, renew, selectByTurns, settle } from '../../queue.ts'
import type { Scope, Store } from '../../scope.ts'
import type { ClaimedDelivery } from '../channels/deliveries.ts'
import { type PlaybookStep, readPlaybook } from './playbooks.ts'

/** SKIPPED: it had run for this workflow in this hour. STOPPED: the playbook was disabled before it was through. */
export const PLAYBOOK_RUN_STATUSES = ['PENDING', 'COMPLETED', 'FAILED', 'SKIPPED', 'STOPPED'] as const

/** The outcome of a step: in words, and the execution that it has started. */
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
  const chosen = selectByTurns(RUNS, { limit, ofTeam: 1 })
  const returning = sql`id, team_id, notice_id, lease, attempts, playbook_id, steps, outcomes, created_at,
    (select name from playbooks p where p.id = q.playbook_id) as playbook_name`
  return write(store, (tx) => claim<ClaimedPlaybookRun>(tx, RUNS, { chosen, leaseMs, returning }))
}

const RUNS: Queue = {
  table: 'playbook_runs',
  id: 'id',
  open: sql`q.status = 'PENDING'`,
  due: 'due_at',
  token: 'lease',
  tries: 'attempts',
}

/**
 * Notes the outcomes of the steps so far, and holds the run for longer. Resolves to false if the claim is lost: the
 * playbook was disabled or deleted, or another process has taken the run.
 */
export async function noteOutcomes(
  store: Store,
  run: Pick<ClaimedPlaybookRun, 'id' | 'lease'>,
  outcomes: StepOutcome[],
  leaseMs: number,
): Promise<boolean> {
  return write(store, (tx) => renew(tx, RUNS, run, leaseMs, { set: sql`outcomes = ${json(outcomes)}` }))
}

/** Ends a run whose steps have all had their turn. */
export async function endRun(
  store: Store,
  run: Pick<ClaimedPlaybookRun, 'id' | 'lease'>,
  status: 'COMPLETED' | 'FAILED',
): Promise<void> {
  await write(store, (tx) => settle(tx, RUNS, run, sql`status = ${status}, ended_at = now()`))
}

/** Gives a run back, which is due again after `delayMs`. */
export async function postponeRun(
  store: Store,
  run: Pick<ClaimedPlaybookRun, 'id' | 'lease'>,
  delayMs: number,
): Promise<void> {
  await write(store, (tx) => postpone(tx, RUNS, run, delayMs))
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
