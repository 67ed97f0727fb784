import { sql } from 'kysely'
import type { Db } from '../connection.ts'
import { readSnapshot } from '../connection.ts'
import { Fault } from '../fault.ts'
import type { Store } from '../scope.ts'
import { findHeadFault, type Head } from './chain.ts'
import { readEntries, readUnsigned, type StoredEntry } from './entries.ts'
import { genesisHash, INSTANCE_CHAIN } from './signing.ts'
import { type AuditBreak, type AuditFinding, type BreakDetails, type Checkpoint, walkChain } from './walk.ts'

export type AuditVerification = {
  teamId: string
  /** How many entries were read. */
  entries: number
  /** The last entry, to be noted as a checkpoint; null if there is no entry. */
  last: Checkpoint | null
  /** Whether the chain ends with TEAM_DELETED. */
  closed: boolean
  /** Each time that the chain was found broken and reopened: they are named for ever. */
  breaks: AuditBreak[]
  /** Entries without signatures of their own, because processes of an older release have appended them. */
  unsigned: { fromSeq: number; toSeq: number }[]
  /** The first 1,000 findings since the last break, in the order of the chain; empty if it is intact. */
  findings: AuditFinding[]
}

/** What there is of a chain, for the entry that reopens it. */
export type FoundChain = Omit<BreakDetails, 'by' | 'note'>

/**
 * Verifies a team's audit chain: computes every hash from the columns, and checks every link and signature,
 * and the head. `checkpoint` is an entry that was noted elsewhere: it reveals a chain that was cut back to an
 * older, intact state. Reads one snapshot page by page, so the memory does not depend on the length of the
 * chain. Throws NOT_FOUND if there is neither a team nor a chain.
 */
export async function verifyAudit(
  store: Store,
  teamId: string,
  checkpoint?: Checkpoint,
): Promise<AuditVerification> {
  const verify = (db: Db) => verifyChain(db, store, teamId, checkpoint)
  return (await readSnapshot(store.db).execute(verify)).verification
}

/** Verifies the chain as `db` sees it, and says what there is of it. */
export async function verifyChain(
  db: Db,
  store: Store,
  teamId: string,
  checkpoint?: Checkpoint,
): Promise<{ verification: AuditVerification; found: FoundChain }> {
  const ranges = await readUnsigned(db, teamId)
  const walk = walkChain(store.keys, teamId, ranges)
  let noted = checkpoint === undefined
  let tail: StoredEntry | undefined
  for await (const row of readEntries(db, teamId)) {
    walk.add(row)
    if (row.seq === checkpoint?.seq) noted = row.hash.toString('hex') === checkpoint.hash.toLowerCase()
    tail = row
  }
  const head = await readHead(db, teamId)
  const team = await db.selectFrom('teams').select('id').where('id', '=', teamId).executeTakeFirst()
  if (!team && !head && !tail && teamId !== INSTANCE_CHAIN)
    throw new Fault('NOT_FOUND', 'There is no such team, nor an audit chain of it')
  checkPlace(head, tail)
  const signed = head && (!findHeadFault(store.keys, teamId, head) || (await isUnopened(db, teamId, head)))
  if (head && !signed)
    walk.find('head_mac_invalid', head.seq, 'The head is not signed with a key of this installation')
  if (!noted) {
    const { seq } = checkpoint!
    walk.find('checkpoint_mismatch', seq, `There is no entry ${seq} with the hash that was noted`)
  }
  const closed = tail?.action === 'TEAM_DELETED'
  if (!team && !closed && teamId !== INSTANCE_CHAIN)
    walk.find('team_mismatch', null, 'The team is gone, but its chain does not end with TEAM_DELETED')
  if (team && closed)
    walk.find('team_mismatch', null, 'The team exists, but its chain ends with TEAM_DELETED')
  const { entries, last, lastGood, breaks, findings, digest } = walk.end(signed === true)
  const unsigned = ranges.map(({ fromSeq, toSeq }) => ({ fromSeq, toSeq }))
  return {
    verification: { teamId, entries, last: note(last), closed, breaks, unsigned, findings },
    found: { entries, last: note(last), lastGood: note(lastGood), head: note(head), digest, findings },
  }

  function checkPlace(head: HeadRow | undefined, last: StoredEntry | undefined): void {
    if (!head) {
      walk.find('head_missing', null, 'The chain has no head')
      return
    }
    const { seq } = head
    const found = last?.seq ?? 0
    if (seq > found)
      walk.find('tail_truncated', seq, `The chain ends at entry ${found}, but its head counts ${seq} entries`)
    else if (seq < found || !head.hash.equals(last?.hash ?? genesisHash(teamId)))
      walk.find('head_mismatch', seq, `The head does not match the last entry, ${found}`)
    else if (head.tsText !== (last?.tsText ?? null))
      walk.find('head_mismatch', seq, `The time of the head is not that of the last entry, ${found}`)
  }
}

/** The ids of the instance's chain and of all teams that have a chain or should have one. */
export async function listChains(store: Store): Promise<string[]> {
  // Steps from team to team in the index: the number of their entries does not matter.
  const { rows } = await sql<{ id: string }>`
    with recursive steps as (
      (select team_id from audit_entries order by team_id limit 1)
      union all
      select (select team_id from audit_entries e where e.team_id > s.team_id order by team_id limit 1)
      from steps s where s.team_id is not null)
    select team_id as id from steps where team_id is not null
    union select team_id from audit_heads union select id from teams union select ${INSTANCE_CHAIN}::uuid
    order by id`.execute(store.db)
  return rows.map((row) => row.id)
}

/** `tsText` is null before the first entry. */
type HeadRow = Pick<Head, 'seq' | 'hash' | 'mac' | 'keyId'> & { tsText: string | null }

async function readHead(db: Db, teamId: string): Promise<HeadRow | undefined> {
  const { rows } = await sql<HeadRow>`
    select seq, hash, mac, key_id, case when ts > '-infinity' then
      to_char(ts at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') end as ts_text
    from audit_heads where team_id = ${teamId}`.execute(db)
  return rows[0]
}

/** Whether it is the instance's head as the migration made it, and no process has appended anything yet. */
async function isUnopened(db: Db, teamId: string, head: HeadRow): Promise<boolean> {
  if (teamId !== INSTANCE_CHAIN || head.seq !== 0 || head.mac.length > 0) return false
  const signed = await sql`select from audit_entries where mac is not null limit 1`.execute(db)
  return signed.rows.length === 0
}

function note(at: { seq: number; hash: Buffer } | undefined): Checkpoint | null {
  return at ? { seq: at.seq, hash: at.hash.toString('hex') } : null
}
