import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { write } from '../../change.ts'
import { later, postpone, type Queue, selectFree, settle } from '../../queue.ts'
import type { Store } from '../../scope.ts'

/** The kinds of samples: the texts of executions, or the words of users in chats. */
export type SamplingKind = 'DRIFT' | 'SENTIMENT'

/** A stretch of time of a team that this process alone samples, until its claim has run out. */
export type SamplingSlot = { teamId: string; kind: SamplingKind; claim: string; from: Date; to: Date }

/** How long a slot is, and how long it is over before it is sampled: what ended in it is written by then. */
const SLOT_MINUTES = 10
const REST_SECONDS = 30
/** Older slots are left out: after a pause there would be more to do than there is time for. */
const LATEST_HOURS = 24
const CLAIM_MS = 5 * 60_000
const LEFT_MS = 60_000

/** The flag of monitoring_configs without which nothing is sampled. */
const FLAGS = { DRIFT: 'drift_alert_enabled', SENTIMENT: 'sentiment_tracking_enabled' } as const

/** To settle and postpone them. The key has the kind too, but a claim is of one row only. */
const CURSORS: Queue = {
  table: 'sampling_cursors',
  id: 'team_id',
  open: sql`true`,
  due: 'claimed_until',
  token: 'claim',
}

/**
 * Claims the next slot that is due, of the team whose turn was longest ago; undefined if no slot is due. Teams without
 * the flag have none. Any number of processes may ask.
 */
export async function claimSamplingSlot(store: Store, kind: SamplingKind): Promise<SamplingSlot | undefined> {
  const flag = sql.ref(FLAGS[kind])
  const claim = randomUUID()
  await write(store, (tx) =>
    sql`insert into sampling_cursors (team_id, kind, sampled_until)
      select team_id, ${kind}, ${startOfSlots()} from monitoring_configs
      where ${flag} and not exists (
        select from sampling_cursors k where k.team_id = monitoring_configs.team_id and k.kind = ${kind})
      on conflict do nothing`.execute(tx),
  )
  const { rows } = await write(store, (tx) =>
    sql<{ teamId: string; from: Date }>`
      update sampling_cursors k set claim = ${claim}, claimed_until = ${later(CLAIM_MS)},
        claimed_at = clock_timestamp(), sampled_until = greatest(sampled_until, ${startOfSlots()})
      where kind = ${kind} and team_id = (
        ${selectFree('sampling_cursors', {
          columns: sql`q.team_id`,
          join: sql`join monitoring_configs m on m.team_id = q.team_id and m.${flag}`,
          which: sql`q.kind = ${kind} and (q.claimed_until is null or q.claimed_until < now())
            and q.sampled_until <= now() - ${REST_SECONDS} * interval '1 second' - ${SLOT_MINUTES} * interval '1 minute'`,
          order: sql`q.claimed_at nulls first, q.team_id`,
          limit: 1,
        })})
      returning team_id, sampled_until as "from"`.execute(tx),
  )
  const row = rows[0]
  if (!row) return undefined
  const to = new Date(row.from.getTime() + SLOT_MINUTES * 60_000)
  return { ...row, kind, claim, to }
}

/** Ends a slot whose samples are written. Nothing if another process has claimed it meanwhile. */
export async function finishSamplingSlot(store: Store, { teamId, claim, to }: SamplingSlot): Promise<void> {
  const set = sql`sampled_until = ${to}, claimed_until = null`
  await write(store, (tx) => settle(tx, CURSORS, { id: teamId, claim }, set))
}

/** Leaves a slot to others, from a minute on: there was no time for it, or a fault. */
export async function leaveSamplingSlot(store: Store, { teamId, claim }: SamplingSlot): Promise<void> {
  await write(store, (tx) => postpone(tx, CURSORS, { id: teamId, claim }, LEFT_MS))
}

/** Where the slots of a team begin that has none yet, or none for long. */
function startOfSlots() {
  return sql`date_bin(${SLOT_MINUTES} * interval '1 minute', now(), 'epoch') - ${LATEST_HOURS} * interval '1 hour'`
}
