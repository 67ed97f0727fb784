import { createHash, createHmac } from 'node:crypto'
import canonicalize from 'canonicalize'
import { type Keys, purposeKey } from '../seal.ts'

/** The chain for acts on the instance and on people's own accounts, which belong to no team. */
export const INSTANCE_CHAIN = '00000000-0000-0000-0000-000000000000'

/**
 * `v` 2 also covers who was behind a token (`userId`) and what they have shown (`accessId`). `srcIp` is in the core of
 * version 1 only: later it is hashed with the details, as all that is personal, so that it can be erased.
 */
export type AuditCore = {
  v: number
  teamId: string
  eventId: string
  actorKind: string
  actorId: string | null
  actorRole: string | null
  userId: string | null
  accessId: string | null
  action: string
  resourceType: string
  resourceId: string | null
  outcome: string
  requestId: string | null
  srcIp: string | null
  detailsSha256: Buffer
}

/** The personal data of an entry, hashed with a salt; `details` is canonical JSON. */
export type Personal = {
  actorName: string | null
  srcIp: string | null
  userAgent: string | null
  details: string
}

/**
 * The part of an entry that is hashed into the chain, as canonical JSON (RFC 8785). It is put together by hand,
 * with its keys in their order, because `verify` does so for a hundred thousand entries a second.
 */
export function canonicalCore(core: AuditCore): string {
  const { v, action, actorId, actorKind, actorRole, detailsSha256, outcome, resourceId, resourceType } = core
  const actor = `{"id":${quote(actorId)},"kind":${quote(actorKind)},"role":${quote(actorRole)}`
  const hash = `"details_sha256":"${detailsSha256.toString('hex')}","event_id":${quote(core.eventId)}`
  const what = `"outcome":${quote(outcome)},"request_id":${quote(core.requestId)},"resource":{"id":${quote(resourceId)},"type":${quote(resourceType)}}`
  const team = `"team":${quote(core.teamId)},"v":${v}}`
  return v === 1
    ? `{"action":${quote(action)},"actor":${actor}},${hash},${what},"src_ip":${quote(core.srcIp)},${team}`
    : `{"access":${quote(core.accessId)},"action":${quote(action)},"actor":${actor},"user":${quote(core.userId)}},${hash},${what},${team}`
}

/** Texts of PostgreSQL are well-formed, so that this is the canonical form. */
const quote = (text: string | null): string => JSON.stringify(text)

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

/** The text that is hashed for the personal data of an entry of version `v`: canonical JSON. */
export function personalText(v: number, { actorName, srcIp, userAgent, details }: Personal): string {
  const begin = `{"actor_name":${quote(actorName)},"details":${details}`
  return v === 1 ? `${begin}}` : `${begin},"src_ip":${quote(srcIp)},"user_agent":${quote(userAgent)}}`
}

/**
 * Hashes with a salt, so that the hash of what was erased reveals nothing of it: erasing keeps the chain intact.
 */
export function hashPersonal(salt: Uint8Array, v: number, personal: Personal): Buffer {
  return sha256(salt, personalText(v, personal))
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
 * Signs an entry's content and its place, but not its link: if an entry was rewritten and the chain hashed anew, the
 * signatures of all others are still right.
 */
export function signEntry(keys: Keys, keyId: string, { teamId, seq, ts, core }: Omit<Link, 'prev'>): Buffer {
  return sign(keys, keyId, `entry|${teamId}|${seq}|${ts}|${sha256(core).toString('hex')}`)
}

/**
 * Signs the head with a key that is not in the database: an intruder who cuts the end of the chain and adapts the head
 * row cannot make a valid signature.
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

/** The key that a row names, for messages: the row may be forged, and terminals show it. */
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
