import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { type AuditEntryView, readViews } from '../audit/list.ts'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'
import { cleanText } from '../text.ts'
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
  /** Of a copy that says farewell: up to which entry it sends, and what it signs in with. */
  lastSeq: number | null
  keptCredential: KeptCredential | null
}

/** The entries to be sent next, oldest first, and how many before them were purged. */
export type ForwarderBatch = { entries: AuditEntryView[]; missed: number }

const MAX_ERROR = 1_000

/**
 * Takes a forwarder that is enabled, due and has entries to send, for `leaseMs`, but none of the teams that are `busy`;
 * undefined if there is none. If the process dies, others can take it when the lease ends. A process sends for a team by
 * one forwarder at a time, so that slow receivers of a team hold up only its own. Those that have not failed come first,
 * and without `failing` no others come.
 */
export async function claimForwarder(
  store: Store,
  leaseMs: number,
  busy: string[],
  { failing = true }: { failing?: boolean } = {},
): Promise<ClaimedForwarder | undefined> {
  const lease = randomUUID()
  const { rows } = await write(store, (tx) =>
    sql<ClaimedForwarder>`
    update audit_forwarders set lease = ${lease}, lease_until = ${after(leaseMs)} where id = (
      select f.id from audit_forwarders f join audit_heads h on h.team_id = f.team_id
      where f.enabled and f.due_at <= now() and (f.lease_until is null or f.lease_until < now())
        and least(h.seq, coalesce(f.last_seq, h.seq)) > f.sent_seq and (f.ends_at is null or f.ends_at > now())
        and f.team_id <> all(${busy}::uuid[]) and (${failing} or f.failures = 0)
      order by f.failures > 0, f.due_at, f.id limit 1 for update of f skip locked)
    returning id, team_id, name, type, host, port, ca_certificate, url, credential_id, lease, sent_seq,
      failures, last_seq, kept_credential`.execute(tx),
  )
  return rows[0]
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
 * Notes that the receiver has taken the entries up to `seq`, and renews the lease. Resolves to false, and notes nothing,
 * if the forwarder is not held any more: somebody has changed or deleted it, or another process has taken it.
 */
export async function noteDelivered(
  store: Store,
  { id, lease, sentSeq }: ClaimedForwarder,
  { seq, missed, leaseMs }: { seq: number; missed: number; leaseMs: number },
): Promise<boolean> {
  const { rows } = await write(store, (tx) =>
    sql`update audit_forwarders set sent_seq = ${seq}, missed = missed + ${missed}, last_sent_at = now(),
      last_error = null, last_error_at = null, failures = 0, lease_until = ${after(leaseMs)}
    where id = ${id} and lease = ${lease} and sent_seq = ${sentSeq} returning id`.execute(tx),
  )
  return rows.length > 0
}

/** Gives a forwarder back, which is due again at once. */
export async function releaseForwarder(store: Store, { id, lease }: ClaimedForwarder): Promise<void> {
  await write(store, (tx) =>
    sql`update audit_forwarders set lease = null, lease_until = null, due_at = now()
    where id = ${id} and lease = ${lease}`.execute(tx),
  )
}

/** Gives a forwarder back that has failed: it is due again after `delayMs`. */
export async function postponeForwarder(
  store: Store,
  { id, lease }: ClaimedForwarder,
  { error, delayMs }: { error: string; delayMs: number },
): Promise<void> {
  await write(store, (tx) =>
    sql`update audit_forwarders set failures = failures + 1, last_error = ${cleanText(error, MAX_ERROR)},
      last_error_at = now(), due_at = ${after(delayMs)}, lease = null, lease_until = null
    where id = ${id} and lease = ${lease}`.execute(tx),
  )
}

function after(ms: number) {
  return sql`now() + ${ms} * interval '1 millisecond'`
}
