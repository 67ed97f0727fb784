import { sql } from 'kysely'
import { change, write } from '../../change.ts'
import type { Db } from '../../connection.ts'
import { readSnapshot } from '../../connection.ts'
import { Fault } from '../../fault.ts'
import { demandTeam, type Scope, type Store } from '../../scope.ts'
import { lockHead } from '../chain.ts'
import { ensurePublicKey, readPublicKeys } from '../proofs/publickeys.ts'
import { timeText } from '../times.ts'
import { walkPrefix } from '../verify/prefix.ts'
import type { PrefixChecker } from '../verify/prefixes.ts'
import { checkAnchors, type PurgedBreak, putAnchor } from './anchors.ts'
import { addPolicy, findPolicy } from './policy.ts'

export type Purge = {
  purgedCount: number
  /** The time of the oldest entry that is left; there is always one, because the purge is an entry itself. */
  oldestRemaining: Date
  purgedAt: Date
}

/** What a purge will remove: the entries behind `base` up to `cut`. Times are ISO 8601 with milliseconds. */
type Plan = {
  retentionDays: number
  cutoff: string
  base: number
  cut: { seq: number; hash: Buffer; ts: string } | null
  count: number
  breaks: PurgedBreak[]
  /** The entry that has reopened the chain and still proves what is before it. */
  provenBy: number | null
}

/**
 * Removes the entries of a team that are older than its retention period, by the clock of the database (ADMIN). They
 * are verified before, and an anchor that is signed says where the chain begins from then on; the purge is an entry,
 * even if there was nothing to remove. Entries before one that has reopened the chain wait until that is old enough
 * too. `check` verifies them, if not this thread. Throws CONFLICT if what is to be removed does not verify, FORBIDDEN,
 * NOT_FOUND and AUDIT_CHAIN_BROKEN.
 */
export async function purgeAudit(scope: Scope, teamId: string, check?: PrefixChecker): Promise<Purge> {
  await demandTeam(scope, teamId, 'ADMIN')
  const plan = await readSnapshot(scope.store.db).execute((db) => planPurge(db, scope.store, teamId, check))
  return carryOut(scope, teamId, plan)
}

/** Like `purgeAudit`, but where there is nothing to remove it does nothing, and the answer is null. */
export async function purgeIfDue(scope: Scope, teamId: string, check?: PrefixChecker): Promise<Purge | null> {
  await demandTeam(scope, teamId, 'ADMIN')
  const plan = await readSnapshot(scope.store.db).execute((db) => planPurge(db, scope.store, teamId, check))
  return plan.cut === null ? null : carryOut(scope, teamId, plan)
}

async function planPurge(
  db: Db,
  { keys }: Store,
  teamId: string,
  check: PrefixChecker = walkPrefix,
): Promise<Plan> {
  const { retentionDays } = await findPolicy(db, teamId)
  const { base } = await checkAnchors(db, await readPublicKeys(db, keys), teamId)
  const cutoff = await readCutoff(db, retentionDays)
  const { rows } = await sql<{ seq: number; hash: Buffer; ts: string }>`
    with younger as (
      select seq from audit_entries
      where team_id = ${teamId} and seq > ${base.seq} and ts >= ${cutoff}::timestamptz order by seq limit 1)
    select seq, hash, ${timeText('ts')} as ts from audit_entries
    where team_id = ${teamId} and seq > ${base.seq} and seq < coalesce((select seq from younger), ${NO_SEQ})
    order by seq desc limit 1`.execute(db)
  const { rows: reopened } = await sql<PurgedBreak>`
    select seq, ${timeText('ts')} as at from audit_entries
    where team_id = ${teamId} and action = 'AUDIT_REOPENED' and seq > ${base.seq} order by seq`.execute(db)
  const [cut = null] = rows
  const provenBy = reopened.find(({ seq }) => cut !== null && seq > cut.seq)?.seq ?? null
  const plan = { retentionDays, cutoff, base: base.seq, breaks: [...base.breaks, ...reopened], provenBy }
  if (cut === null || provenBy !== null) return { ...plan, cut: null, count: 0 }
  const { entries, fault } = await check(db, keys, { teamId, base: base.seq, upTo: cut.seq })
  if (fault !== null) throw doesNotVerify(fault)
  return { ...plan, cut, count: entries }
}

async function carryOut(scope: Scope, teamId: string, plan: Plan): Promise<Purge> {
  const { store } = scope
  const { retentionDays, cutoff, base, breaks, provenBy } = plan
  const done = await change(scope, 'AUDIT_PURGED', teamId, async (tx) => {
    await ensurePublicKey(tx, store.keys)
    await addPolicy(tx, teamId)
    const policy = await findPolicy(tx, teamId, { locked: true })
    if (policy.retentionDays !== retentionDays)
      throw new Fault(
        'CONFLICT',
        'The retention period has just been changed: nothing was removed, try again',
      )
    const head = await lockHead(tx, teamId)
    const { rows } = await sql<{ base: number; now: string }>`
      select coalesce(max(base_seq), 0) as base, ${timeText('clock_timestamp()')} as now
      from audit_anchors where team_id = ${teamId}`.execute(tx)
    const { now } = rows[0]!
    const purgedAt = new Date(now)
    await tx
      .updateTable('auditRetention')
      .set({ lastPurgedAt: purgedAt })
      .where('teamId', '=', teamId)
      .execute()
    // Another process may have removed the same entries in the meantime.
    const cut = head && rows[0]!.base === base ? plan.cut : null
    const result = { purgedAt, count: cut ? plan.count : 0 }
    const about = { count: result.count, cutoff, retentionDays, ...(provenBy ? { provenBy } : {}) }
    if (!cut) return { result, resourceId: teamId, details: about }
    const place = { baseSeq: cut.seq, baseHash: cut.hash, baseTs: cut.ts, purgeSeq: head!.seq + 1 }
    const anchor = { teamId, ...place, cutoff, breaks: JSON.stringify(breaks), createdAt: now }
    await putAnchor(tx, store.keys, anchor)
    const range = { fromSeq: base + 1, toSeq: cut.seq, lastHash: cut.hash.toString('hex') }
    return { result, resourceId: teamId, details: { ...range, ...about } }
  })
  await removeEntries(store, teamId)
  const { rows } = await sql<{ ts: Date }>`
    select ts from audit_entries where team_id = ${teamId}
      and seq > coalesce((select max(base_seq) from audit_anchors where team_id = ${teamId}), 0)
    order by seq limit 1`.execute(store.db)
  return { purgedCount: done.count, oldestRemaining: rows[0]!.ts, purgedAt: done.purgedAt }
}

const BATCH = 1_000

/**
 * Removes the entries of a chain that are before an anchor which this installation has signed, in small transactions.
 * Any number of processes may do so at once.
 */
async function removeEntries(store: Store, teamId: string, signal?: AbortSignal): Promise<void> {
  const { base } = await checkAnchors(store.db, await readPublicKeys(store.db, store.keys), teamId)
  while (!signal?.aborted) {
    const { rows } = await write(store, (tx) =>
      sql<{
        removed: number
      }>`select purge_audit_entries(${teamId}, ${base.seq}, ${BATCH}) as removed`.execute(tx),
    )
    if (rows[0]!.removed < BATCH) return
  }
}

/** Called with a team in which something has failed: the others go on. */
export type TellFailure = (teamId: string, error: unknown) => void

/** Goes on with purges whose process has ended before it had removed all entries. */
export async function finishPurges(store: Store, tell: TellFailure, signal?: AbortSignal): Promise<void> {
  const { rows } = await sql<{ teamId: string }>`
    select a.team_id from (select team_id, max(base_seq) as base from audit_anchors group by team_id) a
    where exists (select from audit_entries e where e.team_id = a.team_id and e.seq <= a.base)`.execute(
    store.db,
  )
  for (const { teamId } of rows) {
    try {
      await removeEntries(store, teamId, signal)
    } catch (error) {
      tell(teamId, error)
    }
  }
}

/** Entries of this time and later are kept. Days have 24 hours. */
async function readCutoff(db: Db, days: number): Promise<string> {
  const { rows } = await sql<{ cutoff: string }>`
    select ${timeText('cutoff')} as cutoff
    from (select now() - ${days * 24} * interval '1 hour' as cutoff) as times`.execute(db)
  return rows[0]!.cutoff
}

function doesNotVerify(message: string): Fault {
  return new Fault(
    'CONFLICT',
    `Nothing was removed, because the entries that are old enough do not verify: ${message}. The operator must look into it (npx perdure audit verify)`,
  )
}

/** Greater than the number of any entry. */
const NO_SEQ = '9223372036854775807'
