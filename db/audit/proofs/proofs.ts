import { sql } from 'kysely'
import type { Db } from '../../connection.ts'
import type { Keys } from '../../seal.ts'
import { findHeadFault, type Head } from '../chain.ts'
import { isGenuine } from '../checkpoints.ts'
import { type ChainBase, checkAnchors } from '../retention/anchors.ts'
import { INSTANCE_CHAIN } from '../signing.ts'
import { timeText } from '../times.ts'
import type { AuditFinding, Verdict } from '../verify/walk.ts'
import { findCountFault, readCheckpointCount } from './counts.ts'
import { digestCheckpoint, streamStandingCheckpoints } from './forged.ts'
import { readPublicKeys } from './publickeys.ts'

/** What there is of a chain beside its entries, and what was found wrong with it. */
export type ChainProofs = {
  base: ChainBase
  /** About checkpoints and anchors, in the order of the chain. */
  noted: (AuditFinding & { seq: number })[]
  head: HeadRow | undefined
  /** The head is signed, so that it vouches for the last entry. */
  vouched: boolean
  hasTeam: boolean
  /** The greatest number of an entry that a checkpoint or an anchor has signed. */
  signedUpTo: number
  /** The number of signed checkpoints, and the digests of the first ones that are not signed and belong to no break. */
  checkpoints: { genuine: number; forged: string[] }
  /** The faults of the installation's keys, and of the number of checkpoints. */
  otherFaults: { verdict: Verdict; message: string }[]
}

/** A head. `tsText` is null before the first entry. */
type HeadRow = Pick<Head, 'seq' | 'hash' | 'mac' | 'keyId'> & { tsText: string | null }

/** The last entry of a chain, as far as the head and the team are judged by it. */
export type Tail = { seq: number; hash: Buffer; tsText: string; action: string }

/** Reads the anchors, the checkpoints, the public keys and the head of a chain, and checks all but the head. */
export async function readProofs(db: Db, keys: Keys, teamId: string): Promise<ChainProofs> {
  const publicKeys = await readPublicKeys(db, keys)
  const { base, findings } = await checkAnchors(db, publicKeys, teamId)
  const noted = [...findings]
  let signedUpTo = base.purgeSeq
  const checkpoints: ChainProofs['checkpoints'] = { genuine: 0, forged: [] }
  for await (const row of streamStandingCheckpoints(db, teamId)) {
    const { seq, seqText, entryHash, hash } = row
    const find = (verdict: Verdict, message: string) => {
      if (noted.length < MAX_NOTED) noted.push({ verdict, seq, message })
    }
    const known = seq > base.seq ? entryHash : seq === base.seq ? base.hash : hash
    if (!isGenuine(publicKeys, row)) {
      find('checkpoint_invalid', `A checkpoint of entry ${seqText} is not signed by this installation`)
      if (checkpoints.forged.length < MAX_FORGED) checkpoints.forged.push(digestCheckpoint(row))
      continue
    }
    checkpoints.genuine++
    signedUpTo = Math.max(signedUpTo, seq)
    if (!known?.equals(hash))
      find('checkpoint_mismatch', `There is no entry ${seqText} with the hash that a checkpoint has signed`)
  }
  const head = await readHead(db, teamId)
  const team = await db.selectFrom('teams').select('id').where('id', '=', teamId).executeTakeFirst()
  const signed =
    head !== undefined && (!findHeadFault(keys, teamId, head) || (await isUnopened(db, teamId, head)))
  const altered = [...publicKeys].filter(([, { altered }]) => altered).map(([keyId]) => keyId)
  const counted = await readCheckpointCount(db, teamId)
  const countFault = findCountFault(counted, publicKeys, teamId, checkpoints.genuine)
  return {
    base,
    noted: noted.sort((a, b) => a.seq - b.seq),
    head,
    vouched: signed,
    signedUpTo,
    hasTeam: team !== undefined || teamId === INSTANCE_CHAIN,
    checkpoints,
    otherFaults: [
      ...altered.map((id) => ({
        verdict: 'key_invalid' as const,
        message: `The public key ${JSON.stringify(id)} is not the one that was kept`,
      })),
      ...(countFault ? [countFault] : []),
    ],
  }
}

const MAX_NOTED = 1_000
/** The number of forged checkpoints that an entry names when it reopens the chain: the next entry names the others. */
const MAX_FORGED = 200

/** The faults at the end of a chain: its head, whether its team exists, the keys, the number of checkpoints. */
export function judgeEnd(proofs: ChainProofs, teamId: string, tail: Tail | undefined): AuditFinding[] {
  const { base, head, vouched, hasTeam, otherFaults } = proofs
  const findings: AuditFinding[] = []
  const find = (verdict: Verdict, seq: number | null, message: string) =>
    findings.push({ verdict, seq, message })
  const found = tail?.seq ?? base.seq
  const hash = tail?.hash ?? base.hash
  if (!head) find('head_missing', null, 'The chain has no head')
  else {
    const { seq } = head
    if (seq > found)
      find('tail_truncated', seq, `The chain ends at entry ${found}, but its head counts ${seq} entries`)
    else if (seq < found || !head.hash.equals(hash))
      find('head_mismatch', seq, `The head does not match the last entry, ${found}`)
    else if (head.tsText !== (tail?.tsText ?? null))
      find('head_mismatch', seq, `The time of the head is not that of the last entry, ${found}`)
    if (!vouched) find('head_mac_invalid', seq, 'The head is not signed with a key of this installation')
  }
  const isClosed = tail?.action === 'TEAM_DELETED'
  if (!hasTeam && !isClosed)
    find('team_mismatch', null, 'The team is gone, but its chain does not end with TEAM_DELETED')
  if (hasTeam && isClosed && teamId !== INSTANCE_CHAIN)
    find('team_mismatch', null, 'The team exists, but its chain ends with TEAM_DELETED')
  for (const { verdict, message } of otherFaults) find(verdict, null, message)
  return findings
}

async function readHead(db: Db, teamId: string): Promise<HeadRow | undefined> {
  const { rows } = await sql<HeadRow>`
    select seq, hash, mac, key_id, case when ts > '-infinity' then
      ${timeText('ts')} end as ts_text
    from audit_heads where team_id = ${teamId}`.execute(db)
  return rows[0]
}

/** Whether it is the instance's head as the migration made it, and no process has appended anything yet. */
async function isUnopened(db: Db, teamId: string, head: HeadRow): Promise<boolean> {
  if (teamId !== INSTANCE_CHAIN || head.seq !== 0 || head.mac.length > 0) return false
  const signed = await sql`select from audit_entries where mac is not null limit 1`.execute(db)
  return signed.rows.length === 0
}
