import { createHash, createHmac, randomBytes } from 'node:crypto'
import canonicalize from 'canonicalize'
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { ACTS, type Act } from '../acts.ts'
import type { Tx } from '../connection.ts'
import { redact } from '../redaction/redact.ts'
import { readRecentRules } from '../redaction/rules.ts'
import type { Scope } from '../scope.ts'
import { type Keys, purposeKey } from '../seal.ts'
import { cleanText } from '../text.ts'

/** What an entry says in addition: the id of the resource, and details, to be redacted and hashed. */
export type AuditEntry = { resourceId: string | null; details?: Record<string, unknown> }

/** The chain for acts on the instance, which belong to no team. */
export const INSTANCE_CHAIN = '00000000-0000-0000-0000-000000000000'

const MAX_DETAIL_BYTES = 32_000

/**
 * Appends an entry to the team's chain. It must be the last step of the transaction that did the act, because
 * the head row stays locked until the commit. seq, ts and prev are assigned under that lock and the link is
 * hashed in the same statement, so two writers cannot fork the chain.
 *
 * hash = sha256('audit-v1' || prev || int8(seq) || ts in ISO 8601 || sha256(core)), core = canonical JSON
 * (RFC 8785).
 */
export async function appendAudit(
  tx: Tx,
  scope: Scope,
  act: Act,
  teamId: string,
  entry: AuditEntry,
): Promise<void> {
  const id = uuid()
  const actorName = cleanText(scope.actor.name, 320)
  const rules = await readRecentRules(scope.store.db, tx)
  const details = shrink(cleanDeep(redact(plainJson(entry.details ?? {}), { rules })))
  const salt = randomBytes(16)
  const detailsSha256 = hashDetails(salt, actorName, details)
  const role = scope.roles.get(teamId) ?? null
  const requestId = scope.requestId === null ? null : cleanText(scope.requestId, 200)
  const srcIp = scope.ip === null ? null : cleanText(scope.ip, 64)
  const resource = ACTS[act].resource
  const core = canonicalCore({
    teamId,
    eventId: id,
    actorKind: scope.actor.kind,
    actorId: scope.actor.id,
    actorRole: role,
    action: act,
    resourceType: resource,
    resourceId: entry.resourceId,
    outcome: 'SUCCESS',
    requestId,
    srcIp,
    detailsSha256,
  })
  const coreSha256 = createHash('sha256').update(core).digest()
  // The entry's id is the event id, so that the hash covers it.
  const append = () =>
    sql<{ seq: number; hash: Buffer }>`
    with head as (select seq, hash, ts from audit_heads where team_id = ${teamId} for update),
    next as (
      select seq + 1 as seq, hash as prev, greatest(date_trunc('milliseconds', clock_timestamp()), ts) as ts from head),
    link as (
      select seq, prev, ts, sha256(convert_to('audit-v1', 'UTF8') || prev || int8send(seq)
        || convert_to(to_char(ts at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'UTF8')
        || ${coreSha256}::bytea) as hash
      from next),
    added as (
      insert into audit_entries (id, team_id, seq, prev, hash, ts, event_id, actor_kind, actor_id, actor_role, actor_name,
        action, resource_type, resource_id, outcome, request_id, src_ip, details, details_salt, details_sha256, core)
      select ${id}::uuid, ${teamId}::uuid, seq, prev, hash, ts, ${id}::uuid, ${scope.actor.kind}, ${scope.actor.id}::uuid, ${role},
        ${actorName}, ${act}, ${resource}, ${entry.resourceId}::uuid, 'SUCCESS', ${requestId}, ${srcIp},
        ${canonicalJson(details)}::json, ${salt}::bytea, ${detailsSha256}::bytea, ${core}
      from link)
    update audit_heads h set seq = link.seq, hash = link.hash, ts = link.ts from link where h.team_id = ${teamId}
    returning h.seq, h.hash`.execute(tx)
  let head = (await append()).rows[0]
  if (!head) {
    await openChain(tx, scope.store.keys, teamId)
    head = (await append()).rows[0]
  }
  if (!head) throw new Error('the audit chain has no head')
  const keyId = scope.store.keys.current
  const mac = signHead(scope.store.keys, keyId, teamId, head.seq, head.hash)
  await sql`update audit_heads set mac = ${mac}, key_id = ${keyId} where team_id = ${teamId}`.execute(tx)
}

export type AuditCore = {
  teamId: string
  eventId: string
  actorKind: string
  actorId: string | null
  actorRole: string | null
  action: string
  resourceType: string
  resourceId: string | null
  outcome: string
  requestId: string | null
  srcIp: string | null
  detailsSha256: Buffer
}

/** The part of an entry that is hashed into the chain, as canonical JSON. */
export function canonicalCore(core: AuditCore): string {
  return canonicalJson({
    v: 1,
    team: core.teamId,
    event_id: core.eventId,
    actor: { kind: core.actorKind, id: core.actorId, role: core.actorRole },
    action: core.action,
    resource: { type: core.resourceType, id: core.resourceId },
    outcome: core.outcome,
    request_id: core.requestId,
    src_ip: core.srcIp,
    details_sha256: core.detailsSha256.toString('hex'),
  })
}

/**
 * What the first entry of a chain links to. It depends on the team alone, so that UNIQUE(team, prev) forbids
 * a second first entry.
 */
export function genesisHash(teamId: string): Buffer {
  return createHash('sha256').update(`audit-v1-genesis|${teamId}`).digest()
}

/**
 * Hashes with a salt, so that the hash of erased details reveals nothing of them. Erasing keeps the links of the
 * chain intact, but verifyAudit reports the entry.
 */
export function hashDetails(salt: Uint8Array, actorName: string, details: unknown): Buffer {
  return createHash('sha256')
    .update(salt)
    .update(canonicalJson({ actor_name: actorName, details }))
    .digest()
}

/**
 * Signs the head with a key that is not in the database: somebody who cuts the end of the chain and adapts
 * the head row cannot make a valid signature.
 */
export function signHead(keys: Keys, keyId: string, teamId: string, seq: number, hash: Uint8Array): Buffer {
  const text = `${teamId}|${seq}|${Buffer.from(hash).toString('hex')}`
  return createHmac('sha256', purposeKey(keys, 'audit', keyId))
    .update(text)
    .digest()
}

async function openChain(tx: Tx, keys: Keys, teamId: string): Promise<void> {
  const hash = genesisHash(teamId)
  const mac = signHead(keys, keys.current, teamId, 0, hash)
  await sql`insert into audit_heads (team_id, seq, hash, ts, mac, key_id)
    values (${teamId}, 0, ${hash}, '-infinity', ${mac}, ${keys.current}) on conflict (team_id) do nothing`.execute(
    tx,
  )
}

function plainJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

function cleanDeep(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) return value.map(cleanDeep)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [cleanText(key), cleanDeep(item)]))
}

function shrink(details: unknown): unknown {
  const bytes = Buffer.byteLength(JSON.stringify(details))
  return bytes <= MAX_DETAIL_BYTES ? details : { omitted: true, bytes }
}

export function canonicalJson(value: unknown): string {
  const text = canonicalize(value)
  if (text === undefined) throw new Error('not a JSON value')
  return text
}
