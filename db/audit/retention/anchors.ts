import { sql } from 'kysely'
import type { Db, Tx } from '../../connection.ts'
import type { Keys } from '../../seal.ts'
import { type PublicKeys, signPublicly, verifyPublicly } from '../proofs/publickeys.ts'
import { genesisHash } from '../signing.ts'
import { timeText } from '../times.ts'
import type { AuditFinding } from '../verify/walk.ts'

/** Entries with which a chain was reopened, and when: they are named for ever, even when they are purged. */
export type PurgedBreak = { seq: number; at: string }

/**
 * The signed facts of a purge: the entries up to `baseSeq` are gone, as the entry `purgeSeq` says. Times are ISO 8601
 * with milliseconds, in UTC; `breaks` is JSON of PurgedBreak[].
 */
export type AnchorRow = {
  teamId: string
  baseSeq: number
  baseHash: Buffer
  baseTs: string
  purgeSeq: number
  cutoff: string
  breaks: string
  createdAt: string
  keyId: string
  signature: Buffer
}

/**
 * Where a chain begins: behind its last purge, or at its very beginning, with 0. `purgeSeq` is the entry that tells of
 * the purge, else 0.
 */
export type ChainBase = { seq: number; hash: Buffer; purgeSeq: number; breaks: PurgedBreak[] }

/** The text that is signed, in UTF-8. */
export function anchorText(row: Omit<AnchorRow, 'keyId' | 'signature'>): string {
  const { teamId, baseSeq, baseHash, baseTs, purgeSeq, cutoff, breaks, createdAt } = row
  const lines = [teamId, baseSeq, baseHash.toString('hex'), baseTs, purgeSeq, cutoff, breaks, createdAt]
  return `perdure-audit-anchor-v1\n${lines.join('\n')}\n`
}

/** Signs an anchor and keeps it; the caller holds the head, and appends the entry in the same transaction. */
export async function putAnchor(
  tx: Tx,
  keys: Keys,
  row: Omit<AnchorRow, 'keyId' | 'signature'>,
): Promise<void> {
  const keyId = keys.current
  const { teamId, baseSeq, baseHash, baseTs, purgeSeq, cutoff, breaks, createdAt } = row
  await sql`insert into audit_anchors
      (team_id, base_seq, base_hash, base_ts, purge_seq, cutoff, breaks, created_at, key_id, signature)
    values (${teamId}, ${baseSeq}, ${baseHash}, ${baseTs}::timestamptz, ${purgeSeq}, ${cutoff}::timestamptz, ${breaks},
      ${createdAt}::timestamptz, ${keyId}, ${signPublicly(keys, keyId, anchorText(row))})`.execute(tx)
}

/** The anchors of a chain in its order. */
export async function readAnchors(db: Db, teamId: string): Promise<AnchorRow[]> {
  const { rows } = await sql<AnchorRow>`
    select team_id, base_seq, base_hash, ${timeText('base_ts')} as base_ts, purge_seq, ${timeText('cutoff')} as cutoff, breaks,
      ${timeText('created_at')} as created_at, key_id, signature
    from audit_anchors where team_id = ${teamId} order by audit_anchors.base_seq`.execute(db)
  return rows
}

/**
 * Where a chain begins, by the last anchor that this installation has signed, and what is wrong with its anchors: each
 * must be signed, and agree with an entry of the chain, and each purge that an entry tells of must have its anchor.
 */
export async function checkAnchors(
  db: Db,
  publicKeys: PublicKeys,
  teamId: string,
): Promise<{ base: ChainBase; findings: (AuditFinding & { seq: number })[] }> {
  const anchors = await readAnchors(db, teamId)
  const findings: (AuditFinding & { seq: number })[] = []
  const genuine = anchors.filter((anchor) => {
    if (verifyPublicly(publicKeys, anchor.keyId, anchorText(anchor), anchor.signature)) return true
    const { baseSeq, purgeSeq } = anchor
    const message = `The anchor of the purge up to entry ${baseSeq} is not signed by this installation`
    findings.push({ verdict: 'anchor_invalid', seq: purgeSeq, message })
    return false
  })
  const last = genuine.at(-1)
  const base: ChainBase = last
    ? { seq: last.baseSeq, hash: last.baseHash, purgeSeq: last.purgeSeq, breaks: JSON.parse(last.breaks) }
    : { seq: 0, hash: genesisHash(teamId), purgeSeq: 0, breaks: [] }
  const purges = await readPurges(db, teamId, base.seq)
  const told = ({ baseSeq, baseHash, purgeSeq }: AnchorRow) => {
    const purge = purges.find(({ seq }) => seq === purgeSeq)
    return purge?.toSeq === String(baseSeq) && purge.lastHash === baseHash.toString('hex')
  }
  for (const anchor of genuine.filter(({ purgeSeq }) => purgeSeq > base.seq)) {
    if (told(anchor)) continue
    const { baseSeq, purgeSeq } = anchor
    const message = `There is no entry ${purgeSeq} that tells of the purge up to entry ${baseSeq}`
    findings.push({ verdict: 'anchor_invalid', seq: purgeSeq, message })
  }
  for (const { seq, toSeq } of purges) {
    if (genuine.some(({ purgeSeq }) => purgeSeq === seq)) continue
    const message = `Entry ${seq} tells of a purge up to entry ${toSeq}, but its anchor is missing`
    findings.push({ verdict: 'anchor_missing', seq, message })
  }
  return { base, findings }
}

/** The entries that tell of a purge which has removed something. */
async function readPurges(db: Db, teamId: string, after: number) {
  const { rows } = await sql<{ seq: number; toSeq: string; lastHash: string | null }>`
    select seq, details->>'toSeq' as to_seq, details->>'lastHash' as last_hash from audit_entries
    where team_id = ${teamId} and action = 'AUDIT_PURGED' and seq > ${after} and details->>'toSeq' is not null
    order by seq`.execute(db)
  return rows
}
