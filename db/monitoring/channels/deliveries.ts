import { sql } from 'kysely'
import { write } from '../../change.ts'
import { missing } from '../../fault.ts'
import { countRows, makePage, type Page, type PageRequest } from '../../page.ts'
import { claim, postpone, type Queue, renew, selectByTurns, settle, updateHeld } from '../../queue.ts'
import { demandTeam, type Scope, type Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import type { AlertSeverity, AlertType } from '../notices/notices.ts'

/** PENDING until it is DELIVERED, or FAILED for good. */
export const DELIVERY_STATUSES = ['PENDING', 'DELIVERED', 'FAILED'] as const

/** A delivery of a notice to one place, as the log shows it. */
export type DeliveryView = {
  id: string
  noticeId: string
  /** `email` for the team's ADMINs, the id of a channel, or an entry of the config that names no channel. */
  target: string
  channelId: string | null
  /** The channel's name now; null if it was deleted, and for the team's ADMINs. */
  channelName: string | null
  /** The playbook that sends it; null if the config says so. */
  playbookId: string | null
  kind: 'ALERT' | 'EVALUATION'
  severity: AlertSeverity
  title: string
  status: (typeof DELIVERY_STATUSES)[number]
  attempts: number
  lastError: string | null
  /** The time of the next try; null unless it has failed before, and no process is at it. */
  nextAttemptAt: Date | null
  createdAt: Date
  settledAt: Date | null
}

/** The notice that a delivery tells of. */
export type SentNotice = {
  id: string
  kind: 'ALERT' | 'EVALUATION'
  subjectId: string
  workflowId: string | null
  alertType: AlertType | null
  severity: AlertSeverity
  title: string
  message: string
  createdAt: Date
}

/** A claimed delivery. `attempts` counts this one too; one that is `old` is not tried again. */
export type ClaimedDelivery = {
  id: string
  teamId: string
  noticeId: string
  target: string
  channelId: string | null
  lease: string
  attempts: number
  old: boolean
  told: string[]
}

/** How long a delivery is tried. */
export const DELIVERY_HOURS = 24

/** One page of what was sent of a team's notices, or to one of its channels, newest first (VIEWER). */
export async function listDeliveries(
  scope: Scope,
  teamId: string,
  query: PageRequest & { channelId?: string; status?: string | undefined },
): Promise<Page<DeliveryView>> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { channelId, status } = query
  const { db } = scope.store
  const found = db
    .selectFrom('notificationDeliveries as d')
    .where('d.teamId', '=', teamId)
    .$if(channelId !== undefined, (some) => some.where('d.channelId', '=', channelId!))
    .$if(status !== undefined, (some) => some.where('d.status', '=', status!))
  const total = await countRows(found)
  if (channelId !== undefined && total === 0) await demandChannel(scope, teamId, channelId)
  const rows = await found
    .innerJoin('notices as n', 'n.id', 'd.noticeId')
    .leftJoin('notificationChannels as c', 'c.id', 'd.channelId')
    .select(['d.id', 'd.noticeId', 'd.target', 'd.channelId', 'd.playbookId', 'd.attempts', 'd.lastError'])
    .select(['n.title', 'c.name as channelName', 'd.createdAt', 'd.settledAt'])
    .select(sql<DeliveryView['status']>`d.status`.as('status'))
    .select([sql<DeliveryView['kind']>`n.kind`.as('kind'), sql<AlertSeverity>`n.severity`.as('severity')])
    .select(
      sql<Date | null>`case when d.status = 'PENDING' and d.lease is null and d.attempts > 0 then d.due_at end`.as(
        'nextAttemptAt',
      ),
    )
    .orderBy('d.createdAt', 'desc')
    .orderBy('d.id', 'desc')
    .limit(query.size)
    .offset(query.page * query.size)
    .execute()
  return makePage(rows, total, query)
}

async function demandChannel({ store }: Scope, teamId: string, id: string): Promise<void> {
  const channel = await store.db
    .selectFrom('notificationChannels')
    .select('id')
    .where('teamId', '=', teamId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (!channel) throw missing('channel')
}

/**
 * Claims up to `limit` deliveries that are due, for `leaseMs`. The teams take turns, and none has more than `ofTeam` at a
 * time with those that are `busy` in this process. Without `failing` none that was tried before. If the process dies they
 * are due again when the lease ends, so that each is sent at least once.
 */
export async function claimDeliveries(
  store: Store,
  query: {
    limit: number
    ofTeam: number
    leaseMs: number
    busy: ReadonlyMap<string, number>
    failing: boolean
  },
): Promise<ClaimedDelivery[]> {
  const { limit, ofTeam, leaseMs, busy, failing } = query
  const which = failing ? sql`true` : sql`q.attempts = 0`
  const chosen = selectByTurns(DELIVERIES, { limit, ofTeam, busy, which })
  const returning = sql`id, team_id, notice_id, target, channel_id, lease, attempts, told,
    created_at < now() - ${DELIVERY_HOURS} * interval '1 hour' as old`
  return write(store, (tx) => claim<ClaimedDelivery>(tx, DELIVERIES, { chosen, leaseMs, returning }))
}

const DELIVERIES: Queue = {
  table: 'notification_deliveries',
  id: 'id',
  open: sql`q.status = 'PENDING'`,
  due: 'due_at',
  token: 'lease',
  tries: 'attempts',
}

/** Holds a claimed delivery for longer. Resolves to false if the claim is lost. */
export async function renewDelivery(store: Store, held: HeldDelivery, leaseMs: number): Promise<boolean> {
  return write(store, (tx) => renew(tx, DELIVERIES, held, leaseMs))
}

/** Notes that one of several recipients has got it. */
export async function noteTold(store: Store, held: HeldDelivery, recipient: string): Promise<void> {
  const set = sql`told = array_append(told, ${recipient})`
  await write(store, (tx) => updateHeld(tx, DELIVERIES, held, set))
}

/** Notes that it was delivered, or, with the `error`, that it has failed for good. */
export async function settleDelivery(store: Store, held: HeldDelivery, error: string | null): Promise<void> {
  const set = sql`status = ${error === null ? 'DELIVERED' : 'FAILED'}, settled_at = now(), last_error = ${cut(error)}`
  await write(store, (tx) => settle(tx, DELIVERIES, held, set))
}

/** Gives it back: it is due again after `delayMs`. */
export async function postponeDelivery(
  store: Store,
  held: HeldDelivery,
  { delayMs, error }: { delayMs: number; error: string | null },
): Promise<void> {
  const set = sql`last_error = coalesce(${cut(error)}, last_error)`
  await write(store, (tx) => postpone(tx, DELIVERIES, held, delayMs, set))
}

/** The notice of a claimed delivery, or of a run of a playbook; undefined if it was deleted. */
export async function readSentNotice({ db }: Store, id: string): Promise<SentNotice | undefined> {
  const row = await db
    .selectFrom('notices')
    .select(['id', 'subjectId', 'workflowId', 'title', 'message', 'createdAt'])
    .select(['kind', 'alertType', 'severity'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row as SentNotice | undefined
}

type HeldDelivery = Pick<ClaimedDelivery, 'id' | 'lease'>

const MAX_ERROR = 1_000

function cut(error: string | null): string | null {
  return error === null ? null : cleanText(error, MAX_ERROR)
}
