import { sql } from 'kysely'
import { write } from '../../change.ts'
import { claim, isDue, postpone, type Queue, renew, selectFree } from '../../queue.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'
import { type AuditEntryView, readViews } from '../list.ts'
import type { KeptCredential } from './farewell.ts'
import type { ForwarderTarget } from './forwarders.ts'

/** A forwarder that this process holds: `lease` is the number by which it does. */
export type ClaimedForwarder = ForwarderTarget & {
  id: string
  teamId: string
  name: string
  lease: string
  sentSeq: number
  failures: number
  /** For a copy that says farewell: the last entry that it sends, and the credential that it signs in with. */
  lastSeq: number | null
  keptCredential: KeptCredential | null
}

/** The entries to be sent next, oldest first, and how many before them were purged. */
export type ForwarderBatch = { entries: AuditEntryView[]; missed: number }

const MAX_ERROR = 1_000

/**
 * Takes a forwarder that is enabled, due and has entries to send, for `leaseMs`, but none of the teams that are `busy`;
 * undefined if no forwarder is due. If the process dies, others can take it when the lease ends. A process sends for a
 * team by one forwarder at a time, so that slow receivers of a team hold up only its own. Those that have not failed
 * come first, and without `failing` no others come.
 */
export async function claimForwarder(
  store: Store,
  leaseMs: number,
  busy: string[],
  { failing = true }: { failing?: boolean } = {},
): Promise<ClaimedForwarder | undefined> {
  const chosen = selectFree('audit_forwarders', {
    join: sql`join audit_heads h on h.team_id = q.team_id`,
    which: sql`q.enabled and ${isDue(sql`q.due_at`)} and (q.lease_until is null or q.lease_until < now())
      and least(h.seq, coalesce(q.last_seq, h.seq)) > q.sent_seq and (q.ends_at is null or q.ends_at > now())
      and q.team_id <> all(${busy}::uuid[]) and (${failing} or q.failures = 0)`,
    order: sql`q.failures > 0, q.due_at, q.id`,
    limit: 1,
  })
  const returning = sql`id, team_id, name, type, host, port, ca_certificate, url, credential_id, lease, sent_seq,
    failures, last_seq, kept_credential`
  const rows = await write(store, (tx) =>
    claim<ClaimedForwarder>(tx, FORWARDERS, { chosen, leaseMs, returning }),
  )
  return rows[0]
}

/** A forwarder is never settled. It counts failures instead of claims. */
const FORWARDERS: Queue = {
  table: 'audit_forwarders',
  id: 'id',
  open: sql`true`,
  due: 'due_at',
  until: 'lease_until',
  token: 'lease',
}

/** Reads what a forwarder has to send next: at most `most` entries. */
export async function readBatch(
  store: Store,
  { teamId, sentSeq, lastSeq }: Pick<ClaimedForwarder, 'teamId' | 'sentSeq' | 'lastSeq'>,
  most: number,
): Promise<ForwarderBatch> {
  const { db } = store
  const entries = await readViews(db, teamId, {
    ...{ after: sentSeq, before: lastSeq === null ? undefined : lastSeq + 1 },
    ...{ limit: most, order: 'oldest' as const },
  })
  const { rows } = await sql<{ base: number | null }>`
    select max(base_seq) as base from audit_anchors where team_id = ${teamId}`.execute(db)
  // A purge between the two reads takes none of the entries away that are sent now.
  const lost = Math.min(rows[0]?.base ?? 0, entries[0] ? entries[0].seq - 1 : Number.POSITIVE_INFINITY)
  return { entries, missed: Math.max(0, lost - sentSeq) }
}

/**
 * Notes that the receiver has taken the entries up to `seq`, and renews the lease. Resolves to false, and notes
 * nothing, if the claim is lost: the forwarder was changed or deleted, or another process has taken it.
 */
export async function noteDelivered(
  store: Store,
  held: ClaimedForwarder,
  { seq, missed, leaseMs }: { seq: number; missed: number; leaseMs: number },
): Promise<boolean> {
  const set = sql`sent_seq = ${seq}, missed = missed + ${missed}, last_sent_at = now(), last_error = null,
    last_error_at = null, failures = 0`
  const where = sql`q.sent_seq = ${held.sentSeq}`
  return write(store, (tx) => renew(tx, FORWARDERS, held, leaseMs, { set, where }))
}

/** Gives a forwarder back, which is due again at once. */
export async function releaseForwarder(store: Store, held: ClaimedForwarder): Promise<void> {
  await write(store, (tx) => postpone(tx, FORWARDERS, held, 0))
}

/** Gives a forwarder back that has failed: it is due again after `delayMs`. */
export async function postponeForwarder(
  store: Store,
  held: ClaimedForwarder,
  { error, delayMs }: { error: string; delayMs: number },
): Promise<void> {
  const set = sql`failures = failures + 1, last_error = ${cleanText(error, MAX_ERROR)}, last_error_at = now()`
  await write(store, (tx) => postpone(tx, FORWARDERS, held, delayMs, set))
}
