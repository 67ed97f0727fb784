import { type RawBuilder, sql } from 'kysely'
import type { Tx } from '../connection.ts'
import type { Keys } from '../seal.ts'
import {
  type AuditCore,
  canonicalCore,
  genesisHash,
  hashLink,
  INSTANCE_CHAIN,
  isSigned,
  type Personal,
  quoteKey,
  signEntry,
  signHead,
  signRange,
} from './signing.ts'

/** An entry without its place in the chain. */
export type EntryBody = AuditCore & Personal & { actorName: string; detailsSalt: Buffer }

/** The place of the next entry; `ts` is ISO 8601 with milliseconds. */
export type ChainPlace = { seq: number; prev: Buffer; ts: string }

/** A head row. `ts` is as PostgreSQL writes it; `next` is the time for the next entry, never before `ts`. */
export type Head = { seq: number; hash: Buffer; mac: Buffer; keyId: string; ts: string; next: string }

/**
 * Appends an entry behind the head, if the head is signed and its entry is there; the head stays locked until
 * the commit, so that two writers cannot fork the chain. If it is not, appends nothing and returns what is
 * wrong with the chain; never throws because of it, so that the transaction can go on.
 */
export async function extendChain(tx: Tx, keys: Keys, body: EntryBody): Promise<string | undefined> {
  const { teamId } = body
  const head = await lockHead(tx, teamId)
  const fault = findHeadFault(keys, teamId, head)
  if (fault !== undefined || !head) return fault
  const { seq, hash, ts } = head
  // A statement of its own after the lock, so that it sees what the last holder has appended.
  const last = sql`
    select false as bare where ${seq} = 0 and ${ts}::timestamptz = '-infinity'
    union all
    select mac is null and v = 1 from audit_entries
    where team_id = ${teamId} and seq = ${seq} and hash = ${hash} and ts = ${ts}::timestamptz`
  const appended = await putEntry(tx, keys, body, { seq: seq + 1, prev: hash, ts: head.next }, last)
  if (!appended) return `its last entry is not entry ${seq} that its head names`
  if (appended.bare) await noteUnsigned(tx, keys, teamId, seq, hash)
  return undefined
}

/** The fault of a head row; undefined if it is signed by this installation. */
export function findHeadFault(
  keys: Keys,
  teamId: string,
  head: Pick<Head, 'seq' | 'hash' | 'mac' | 'keyId'> | undefined,
): string | undefined {
  if (!head) return 'its head is missing'
  if (!keys.byId.has(head.keyId))
    return `its head is signed with the key ${quoteKey(head.keyId)}, which is not known here`
  const signed = isSigned(keys, head, (keyId) => signHead(keys, keyId, teamId, head.seq, head.hash))
  return signed ? undefined : 'its head is not signed by this installation'
}

/** Locks a chain's head until the transaction ends. */
export async function lockHead(tx: Tx, teamId: string): Promise<Head | undefined> {
  const { rows } = await sql<Head>`
    with head as (select * from audit_heads where team_id = ${teamId} for update)
    select seq, hash, mac, key_id, ts::text as ts, to_char(
      greatest(date_trunc('milliseconds', clock_timestamp()), case when isfinite(ts) then ts end) at time zone 'UTC',
      'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as next
    from head`.execute(tx)
  return rows[0]
}

/**
 * Writes an entry and moves the head to it, both signed, for each row of `last`: at most one. Resolves to that row, or
 * undefined if `last` is empty or the place is taken.
 */
export async function putEntry(
  tx: Tx,
  keys: Keys,
  body: EntryBody,
  { seq, prev, ts }: ChainPlace,
  last: RawBuilder<unknown>,
): Promise<{ bare: boolean } | undefined> {
  const keyId = keys.current
  const core = canonicalCore(body)
  const { teamId, eventId } = body
  const link = { teamId, seq, prev, ts, core }
  const hash = hashLink(link)
  // The entry's id is the event id, so that the hash covers it.
  const { rows } = await sql<{ bare: boolean }>`
    with last as (${last}),
    added as (
      insert into audit_entries (id, team_id, seq, prev, hash, ts, event_id, actor_kind, actor_id, actor_role,
        actor_name, action, resource_type, resource_id, outcome, request_id, src_ip, details, details_salt,
        details_sha256, core, mac, key_id, v, user_id, user_agent, access_id)
      select ${eventId}::uuid, ${teamId}::uuid, ${seq}, ${prev}, ${hash}, ${ts}::timestamptz, ${eventId}::uuid,
        ${body.actorKind}, ${body.actorId}::uuid, ${body.actorRole}, ${body.actorName}, ${body.action},
        ${body.resourceType}, ${body.resourceId}::uuid, ${body.outcome}, ${body.requestId}, ${body.srcIp},
        ${body.details}::json, ${body.detailsSalt}::bytea, ${body.detailsSha256}::bytea, ${core},
        ${signEntry(keys, keyId, link)}::bytea, ${keyId}, ${body.v}, ${body.userId}::uuid, ${body.userAgent},
        ${body.accessId}::uuid
      from last
      on conflict do nothing returning seq)
    update audit_heads h set seq = ${seq}, hash = ${hash}, ts = ${ts}::timestamptz,
      mac = ${signHead(keys, keyId, teamId, seq, hash)}, key_id = ${keyId}
    from added, last where h.team_id = ${teamId}
    returning last.bare`.execute(tx)
  return rows[0]
}

/** Begins a chain. Does nothing if it has a head. */
export async function openChain(tx: Tx, keys: Keys, teamId: string): Promise<void> {
  const hash = genesisHash(teamId)
  const mac = signHead(keys, keys.current, teamId, 0, hash)
  await sql`insert into audit_heads (team_id, seq, hash, ts, mac, key_id)
    values (${teamId}, 0, ${hash}, '-infinity', ${mac}, ${keys.current}) on conflict (team_id) do nothing`.execute(
    tx,
  )
}

/**
 * Signs the head of the instance's chain, which the migration has left unsigned. Only before this release has appended
 * anything to any chain: an unsigned head that is found later was not put there by the service.
 */
export async function openInstanceChain(tx: Tx, keys: Keys): Promise<void> {
  const head = await lockHead(tx, INSTANCE_CHAIN)
  if (!head || head.mac.length > 0) return
  const signed = await sql`select from audit_entries where mac is not null limit 1`.execute(tx)
  if (signed.rows.length > 0) return
  const mac = signHead(keys, keys.current, INSTANCE_CHAIN, 0, genesisHash(INSTANCE_CHAIN))
  await sql`update audit_heads set mac = ${mac}, key_id = ${keys.current}
    where team_id = ${INSTANCE_CHAIN} and seq = 0`.execute(tx)
}

/**
 * Notes that the entries up to `toSeq` have no signature of their own: an older process has appended them, as
 * the head that it has signed proves.
 */
async function noteUnsigned(tx: Tx, keys: Keys, teamId: string, toSeq: number, hash: Buffer): Promise<void> {
  const { rows } = await sql<{ seq: number }>`
    select seq from audit_entries where team_id = ${teamId} and seq < ${toSeq} and mac is not null
    order by seq desc limit 1`.execute(tx)
  const { rows: noted } = await sql<{ seq: number | null }>`
    select max(to_seq) as seq from audit_unsigned where team_id = ${teamId}`.execute(tx)
  const fromSeq = Math.max(rows[0]?.seq ?? 0, noted[0]?.seq ?? 0) + 1
  const mac = signRange(keys, keys.current, { teamId, fromSeq, toSeq, hash })
  await sql`insert into audit_unsigned (team_id, from_seq, to_seq, hash, mac, key_id)
    values (${teamId}, ${fromSeq}, ${toSeq}, ${hash}, ${mac}, ${keys.current}) on conflict do nothing`.execute(
    tx,
  )
}
