import { type Insertable, sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { record, write } from '../../change.ts'
import { json, type Tx } from '../../connection.ts'
import { purge, selectFree } from '../../queue.ts'
import type { NotificationDeliveries } from '../../schema.ts'
import type { Store } from '../../scope.ts'
import { loadMonitoringConfig } from '../config.ts'
import { awaitsNotice, type PlaybookConditions } from '../playbooks/playbooks.ts'

/** A notice that cannot be worked on rests for this long, so that it holds nothing else up. */
const REST_SECONDS = 60

/** For how many days notices are kept, with all that was made of them. */
const KEPT_DAYS = 30

/** How many notices one statement removes, and how many statements a round makes. */
const PIECE = 500
const PIECES = 200

type Due = {
  id: string
  teamId: string
  kind: string
  workflowId: string | null
  alertType: string | null
  severity: string
}

/**
 * Writes what is to be sent of the next notice that waits, and the runs of playbooks that it begins, in one transaction.
 * Any number of processes may do so. Resolves to false if none waits.
 */
export async function fanOutNotice(store: Store): Promise<boolean> {
  let taken: string | undefined
  try {
    return await record(store, async (tx) => {
      taken = undefined
      const next = selectFree('notices', {
        columns: sql`q.id, q.team_id, q.kind, q.workflow_id, q.alert_type, q.severity`,
        which: sql`q.done_at is null and (q.claimed_until is null or q.claimed_until < now())`,
        order: sql`q.created_at, q.id`,
        limit: 1,
      })
      const { rows } = await sql<Due>`${next}`.execute(tx)
      const notice = rows[0]
      if (!notice) return false
      taken = notice.id
      if (notice.kind === 'ALERT') await writeDeliveries(tx, notice)
      await writeRuns(tx, notice)
      await sql`update notices set done_at = now() where id = ${notice.id}`.execute(tx)
      return true
    })
  } catch (error) {
    if (taken !== undefined)
      await write(store, (tx) =>
        sql`update notices set claimed_until = now() + ${REST_SECONDS} * interval '1 second'
          where id = ${taken} and done_at is null`.execute(tx),
      )
    throw error
  }
}

/** Removes the notices that were worked on long ago, with their deliveries and runs of playbooks. Called hourly. */
export async function purgeNotices(store: Store, signal: AbortSignal): Promise<void> {
  const which = sql`q.done_at < now() - ${KEPT_DAYS} * interval '1 day'`
  await purge(store, 'notices', { which, order: sql`q.done_at`, piece: PIECE, pieces: PIECES, signal })
}

/** What the team's config says: an entry that leads nowhere is in the log as well. */
async function writeDeliveries(tx: Tx, { id: noticeId, teamId }: Due): Promise<void> {
  const { notificationChannels: entries } = await loadMonitoringConfig(tx, teamId)
  // They are held until the commit: a deletion waits.
  const channels = await tx
    .selectFrom('notificationChannels')
    .select(['id', 'type', 'enabled'])
    .where('teamId', '=', teamId)
    .orderBy('id')
    .forKeyShare()
    .execute()
  const rows = new Map<string, Insertable<NotificationDeliveries>>()
  const add = (target: string, more: { channelId?: string; why?: string } = {}) => {
    const { channelId = null, why } = more
    const failed = why === undefined ? {} : { status: 'FAILED', lastError: why, settledAt: sql<Date>`now()` }
    const row = {
      id: uuid(),
      teamId,
      noticeId,
      target,
      channelId,
      ...failed,
    } as Insertable<NotificationDeliveries>
    if (!rows.has(target) || why === undefined) rows.set(target, row)
  }
  for (const entry of entries.map((one) => one.toLowerCase())) {
    if (entry === 'email') {
      add('email')
    } else if (entry === 'slack' || entry === 'webhook') {
      const type = entry.toUpperCase()
      const found = channels.filter((one) => one.type === type && one.enabled)
      for (const { id } of found) add(id, { channelId: id })
      if (found.length === 0) add(entry, { why: `The team has no enabled channel of the type ${type}` })
    } else {
      const channel = channels.find(({ id }) => id === entry)
      if (channel?.enabled) add(entry, { channelId: entry })
      else if (channel) add(entry, { channelId: entry, why: 'The channel is disabled' })
      else add(entry.slice(0, 200), { why: 'The team has no such channel' })
    }
  }
  if (rows.size === 0) return
  await tx
    .insertInto('notificationDeliveries')
    .values([...rows.values()])
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

async function writeRuns(tx: Tx, notice: Due): Promise<void> {
  // A transaction that disables one waits for the commit, and stops the run then.
  const playbooks = await tx
    .selectFrom('playbooks')
    .select(['id', 'conditions', 'steps'])
    .where('teamId', '=', notice.teamId)
    .where('enabled', '=', true)
    .orderBy('id')
    .forShare()
    .execute()
  for (const { id, conditions, steps } of playbooks) {
    if (!awaitsNotice(conditions as PlaybookConditions, notice)) continue
    const { teamId, workflowId, id: noticeId } = notice
    const hour = sql<Date>`date_trunc('hour', now(), 'UTC')`
    const run = { id: uuid(), teamId, playbookId: id, noticeId, workflowId, hour, steps: json(steps) }
    const begun = await tx
      .insertInto('playbookRuns')
      .values(run)
      .onConflict((conflict) => conflict.doNothing())
      .returning('id')
      .executeTakeFirst()
    if (begun) continue
    const about = workflowId === null ? 'the team as a whole' : 'this workflow'
    await tx
      .insertInto('playbookRuns')
      .values({
        ...run,
        status: 'SKIPPED',
        reason: `The playbook has run for ${about} in this hour already`,
        endedAt: sql<Date>`now()`,
      })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  }
}
