import { sql } from 'kysely'
import { record } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { lockFor } from '../locks.ts'
import type { Store } from '../scope.ts'
import type { Keys } from '../seal.ts'
import { raiseAlarm } from './alarm.ts'
import { findHeadFault, type Head } from './chain.ts'
import { countCheckpoint } from './proofs/counts.ts'
import {
  ensurePublicKey,
  type PublicKeys,
  readPublicKeys,
  signPublicly,
  verifyPublicly,
} from './proofs/publickeys.ts'
import { timeText } from './times.ts'

/** The state of a chain at some time, signed so that anyone can verify it: `hash` is hexadecimal, `signature` base64. */
export type SignedCheckpoint = {
  teamId: string
  seq: number
  hash: string
  /** ISO 8601 with milliseconds, in UTC. */
  at: string
  keyId: string
  signature: string
}

export type CheckpointRow = Omit<SignedCheckpoint, 'hash' | 'signature'> & { hash: Buffer; signature: Buffer }

/**
 * Signs the end of a chain, and keeps that as a row; if it has not moved since the last time, the last checkpoint is
 * returned. Null for a chain without entries, and for one whose head was not signed by this installation: that raises
 * the alarm.
 */
export async function checkpointChain(store: Store, teamId: string): Promise<SignedCheckpoint | null> {
  return record(store, (tx) => signCheckpoint(tx, store, teamId))
}

const BATCH = 200

/**
 * Signs a checkpoint of every chain that has moved since its last one; stops early when `signal` is aborted. Resolves to
 * how many there are.
 */
export async function checkpointAll(store: Store, signal?: AbortSignal): Promise<number> {
  let made = 0
  let after: string | null = null
  for (;;) {
    const { rows }: { rows: { teamId: string }[] } = await sql<{ teamId: string }>`
      select h.team_id from audit_heads h
      where (${after}::uuid is null or h.team_id > ${after}::uuid) and h.seq > 0
        and not exists (select from audit_checkpoints c where c.team_id = h.team_id and c.seq = h.seq and c.hash = h.hash)
      order by h.team_id limit ${BATCH}`.execute(store.db)
    for (const { teamId } of rows) {
      if (signal?.aborted) return made
      if (await checkpointChain(store, teamId)) made++
    }
    if (rows.length < BATCH) return made
    after = rows.at(-1)!.teamId
  }
}

async function signCheckpoint(tx: Tx, store: Store, teamId: string): Promise<SignedCheckpoint | null> {
  const { keys } = store
  // If two come at once, one waits; appending goes on meanwhile.
  await lockFor(tx, 'auditCheckpoints', teamId)
  const { rows } = await sql<Pick<Head, 'seq' | 'hash' | 'mac' | 'keyId'> & { ends: boolean; at: string }>`
    select seq, hash, mac, key_id, ${timeText('clock_timestamp()')} as at,
      exists (select from audit_entries e where e.team_id = h.team_id and e.seq = h.seq and e.hash = h.hash) as ends
    from audit_heads h where team_id = ${teamId}`.execute(tx)
  const [head] = rows
  if (head?.seq === 0) return null
  const fault =
    findHeadFault(keys, teamId, head) ??
    (head?.ends ? undefined : 'its last entry is not the one that its head names')
  if (fault !== undefined || !head) {
    raiseAlarm(store, { teamId, why: fault! })
    return null
  }
  const { seq, hash, at } = head
  const known = await readLast(tx, keys, teamId, { seq, hash })
  if (known) return known
  const keyId = keys.current
  await ensurePublicKey(tx, keys)
  const signature = signPublicly(keys, keyId, checkpointText({ teamId, seq, hash, at }))
  await sql`insert into audit_checkpoints (team_id, seq, hash, at, key_id, signature)
    values (${teamId}, ${seq}, ${hash}, ${at}::timestamptz, ${keyId}, ${signature})`.execute(tx)
  await countCheckpoint(tx, keys, teamId)
  return toCheckpoint({ teamId, seq, hash, at, keyId, signature })
}

/** A checkpoint of this very place of the chain, if it is signed with the current key. */
async function readLast(
  db: Db,
  keys: Keys,
  teamId: string,
  { seq, hash }: { seq: number; hash: Buffer },
): Promise<SignedCheckpoint | undefined> {
  const { rows } = await sql<CheckpointRow>`
    select team_id, seq, hash, ${timeText('at')} as at, key_id, signature
    from audit_checkpoints where team_id = ${teamId} and seq = ${seq} and hash = ${hash} and key_id = ${keys.current}
    order by audit_checkpoints.at desc limit 1`.execute(db)
  const publicKeys = await readPublicKeys(db, keys)
  return rows[0] && isGenuine(publicKeys, rows[0]) ? toCheckpoint(rows[0]) : undefined
}

/** Each is verified, which takes some 0.1 ms. */
const PAGE = 100

/**
 * The checkpoints of a chain in its order, page by page, each with the hash of the entry that it is about, if that is
 * there. `seqText` is for numbers too great for JavaScript.
 */
export async function* streamCheckpoints(
  db: Db,
  teamId: string,
): AsyncGenerator<CheckpointRow & { seqText: string; entryHash: Buffer | null }> {
  let after = { seqText: '-9223372036854775808', place: '-infinity' }
  for (;;) {
    const { rows } = await sql<CheckpointRow & { seqText: string; entryHash: Buffer | null; place: string }>`
      select c.team_id, c.seq, c.seq::text as seq_text, c.hash, ${timeText('c.at')} as at,
        c.at::text as place, c.key_id, c.signature, e.hash as entry_hash
      from audit_checkpoints c left join audit_entries e on e.team_id = c.team_id and e.seq = c.seq
      where c.team_id = ${teamId} and (c.seq, c.at) > (${after.seqText}::bigint, ${after.place}::timestamptz)
      order by c.seq, c.at limit ${PAGE}`.execute(db)
    yield* rows
    if (rows.length < PAGE) return
    after = rows.at(-1)!
  }
}

/** Whether the checkpoint is signed with the key that it names. */
export function isGenuine(publicKeys: PublicKeys, row: CheckpointRow): boolean {
  return verifyPublicly(publicKeys, row.keyId, checkpointText(row), row.signature)
}

/** The text that is signed, in UTF-8. */
export function checkpointText({
  teamId,
  seq,
  hash,
  at,
}: Omit<CheckpointRow, 'keyId' | 'signature'>): string {
  return `perdure-audit-checkpoint-v1\n${teamId}\n${seq}\n${hash.toString('hex')}\n${at}\n`
}

/** A checkpoint as exports and answers show it. */
export function toCheckpoint({ teamId, seq, hash, at, keyId, signature }: CheckpointRow): SignedCheckpoint {
  return { teamId, seq, hash: hash.toString('hex'), at, keyId, signature: signature.toString('base64') }
}
