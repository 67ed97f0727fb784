import { createHash, createHmac } from 'node:crypto'
import canonicalize from 'canonicalize'
import { type Keys, purposeKey } from '../seal.ts'

/** The chain for acts on the instance and on people's own accounts, which belong to no team. */
export const INSTANCE_CHAIN = '00000000-0000-0000-0000-000000000000'

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
  return sha256(`audit-v1-genesis|${teamId}`)
}

/** What the first entry after a break links to: the entry before it may be missing or forged. */
export function reopeningHash(teamId: string, seq: number): Buffer {
  return sha256(`audit-v1-reopening|${teamId}|${seq}`)
}

/**
 * Hashes with a salt, so that the hash of erased details reveals nothing of them. Erasing keeps the links of the
 * chain intact, but verifyAudit reports the entry.
 */
export function hashDetails(salt: Uint8Array, actorName: string, details: unknown): Buffer {
  return sha256(salt, canonicalJson({ actor_name: actorName, details }))
}

/** An entry as its hash and its signature cover it; `ts` is ISO 8601 with milliseconds. */
export type Link = { teamId: string; seq: number; prev: Uint8Array; ts: string; core: string }

/** hash = sha256('audit-v1' || prev || int8(seq) || ts || sha256(core)) */
export function hashLink({ prev, seq, ts, core }: Link): Buffer {
  const number = Buffer.alloc(8)
  number.writeBigInt64BE(BigInt(seq))
  return sha256('audit-v1', prev, number, ts, sha256(core))
}

/**
 * Signs what an entry says and its place, but not what it links to: where somebody has rewritten an entry and
 * hashed the chain anew, the signatures of all others are still right.
 */
export function signEntry(keys: Keys, keyId: string, { teamId, seq, ts, core }: Omit<Link, 'prev'>): Buffer {
  return sign(keys, keyId, `entry|${teamId}|${seq}|${ts}|${sha256(core).toString('hex')}`)
}

/**
 * Signs the head with a key that is not in the database: somebody who cuts the end of the chain and adapts
 * the head row cannot make a valid signature.
 */
export function signHead(keys: Keys, keyId: string, teamId: string, seq: number, hash: Uint8Array): Buffer {
  return sign(keys, keyId, `${teamId}|${seq}|${Buffer.from(hash).toString('hex')}`)
}

/** Entries that the release before has appended, without signatures; `hash` is that of the last of them. */
export type UnsignedRange = { teamId: string; fromSeq: number; toSeq: number; hash: Uint8Array }

export function signRange(
  keys: Keys,
  keyId: string,
  { teamId, fromSeq, toSeq, hash }: UnsignedRange,
): Buffer {
  const text = `unsigned|${teamId}|${fromSeq}|${toSeq}|${Buffer.from(hash).toString('hex')}`
  return sign(keys, keyId, text)
}

/** Whether `mac` is what `make` signs with the key that it names; false for a key that is not there. */
export function isSigned(
  keys: Keys,
  { mac, keyId }: { mac: Buffer; keyId: string },
  make: (keyId: string) => Buffer,
): boolean {
  return keys.byId.has(keyId) && make(keyId).equals(mac)
}

/** The key that a row names, for messages: somebody else may have written it, and terminals show it. */
export function quoteKey(keyId: string | null): string {
  return JSON.stringify(keyId?.slice(0, 20) ?? null)
}

function sign(keys: Keys, keyId: string, text: string): Buffer {
  return createHmac('sha256', purposeKey(keys, 'audit', keyId))
    .update(text)
    .digest()
}

function sha256(...parts: (string | Uint8Array)[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

export function canonicalJson(value: unknown): string {
  const text = canonicalize(value)
  if (text === undefined) throw new Error('not a JSON value')
  return text
}
