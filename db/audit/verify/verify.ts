import { sql } from 'kysely'
import type { Db } from '../../connection.ts'
import { readSnapshot } from '../../connection.ts'
import { Fault } from '../../fault.ts'
import type { Store } from '../../scope.ts'
import { readEntries, readUnsigned, type StoredEntry } from '../entries.ts'
import { readErasures } from '../erasure/erasures.ts'
import { type ChainProofs, judgeEnd, readProofs } from '../proofs/proofs.ts'
import type { PurgedBreak } from '../retention/anchors.ts'
import { INSTANCE_CHAIN } from '../signing.ts'
import { timeText } from '../times.ts'
import {
  type AuditBreak,
  type AuditFinding,
  type BreakDetails,
  type Checkpoint,
  type Verdict,
  walkChain,
} from './walk.ts'

export type AuditVerification = {
  teamId: string
  /** How many entries were read. */
  entries: number
  /** The number of entries without details, because those were erased by the service, or removed by an intruder. */
  erased: number
  /** The last entry, to be noted as a checkpoint; null if there is no entry. */
  last: Checkpoint | null
  /** The first entry and the last one that was verified before anything was found, with their times; null without any. */
  first: VerifiedEntry | null
  lastGood: VerifiedEntry | null
  /** The chain is complete from this entry on: those before it were purged. 1 if none were. */
  intactFrom: number
  /** Whether the chain ends with TEAM_DELETED. */
  closed: boolean
  /** Each time that the chain was found broken and reopened: they are named for ever. */
  breaks: AuditBreak[]
  /** Those whose entries were purged. */
  purgedBreaks: PurgedBreak[]
  /** Entries without signatures of their own, because processes of an older release have appended them. */
  unsigned: { fromSeq: number; toSeq: number }[]
  /** Whether the entry that the caller noted is there; null if none was given, 'purged' if it was purged. */
  noted: 'found' | 'missing' | 'purged' | null
  /** The finding that comes first in the chain, and the time of its entry, or of the last one before it. */
  problem: { kind: Verdict; seq: number | null; at: string | null } | null
  /** The first 1,000 findings since the last break, in the order of the chain; empty if it is intact. */
  findings: AuditFinding[]
}

/** An entry, and its time in ISO 8601. */
type VerifiedEntry = { seq: number; at: string }

/** What there is of a chain, for the entry that reopens it. */
export type FoundChain = Omit<BreakDetails, 'by' | 'note'>

/**
 * Verifies a team's audit chain: computes every hash from the columns, and checks every link and signature, the
 * head, the checkpoints and the anchors. `checkpoint` is an entry that was noted elsewhere: it reveals a chain that
 * was cut back to an older, intact state. Reads one snapshot page by page, so the memory does not depend on the
 * length of the chain. Throws NOT_FOUND if there is neither a team nor a chain.
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
  { keys }: Pick<Store, 'keys'>,
  teamId: string,
  checkpoint?: Checkpoint,
): Promise<{
  verification: AuditVerification
  found: FoundChain
  signedUpTo: number
  checkpoints: number
}> {
  const proofs = await readProofs(db, keys, teamId)
  const { base, head, hasTeam, noted } = proofs
  const { genuine, forged } = proofs.checkpoints
  const ranges = await readUnsigned(db, teamId)
  const walk = walkChain(keys, teamId, {
    ...{ ranges, base, noted },
    isErased: await readErasures(db, teamId, base.seq),
  })
  let mark = checkpoint ? judgePlace(proofs, checkpoint) : null
  let first: StoredEntry | undefined
  let tail: StoredEntry | undefined
  for await (const row of readEntries(db, teamId, base.seq)) {
    walk.add(row)
    first ??= row
    tail = row
    if (mark === 'missing' && isNoted(row, checkpoint!)) mark = 'found'
  }
  if (!hasTeam && !head && !tail && base.seq === 0)
    throw new Fault('NOT_FOUND', 'There is no such team, nor an audit chain of it')
  if (mark === 'missing') {
    const { seq } = checkpoint!
    walk.find('checkpoint_mismatch', seq, `There is no entry ${seq} with the hash that was noted`)
  }
  for (const { verdict, seq, message } of judgeEnd(proofs, teamId, tail)) walk.find(verdict, seq, message)
  const { entries, erased, last, lastGood, breaks, findings, digest } = walk.end(proofs.vouched)
  return {
    verification: {
      teamId,
      ...{ entries, erased, last: note(last), first: toPlace(first), lastGood: toPlace(lastGood) },
      ...{ intactFrom: base.seq + 1, closed: tail?.action === 'TEAM_DELETED', breaks },
      purgedBreaks: base.breaks,
      unsigned: ranges.map(({ fromSeq, toSeq }) => ({ fromSeq, toSeq })),
      ...{ noted: mark, problem: await findProblem(db, teamId, findings), findings },
    },
    found: {
      ...{ entries, last: note(last), lastGood: note(lastGood), head: note(head), digest },
      ...(forged.length > 0 ? { forged } : {}),
      findings,
    },
    signedUpTo: proofs.signedUpTo,
    checkpoints: genuine,
  }
}

async function findProblem(
  db: Db,
  teamId: string,
  findings: AuditFinding[],
): Promise<AuditVerification['problem']> {
  const place = ({ seq }: AuditFinding) => seq ?? Number.POSITIVE_INFINITY
  const [first] = findings.toSorted((a, b) => place(a) - place(b))
  if (!first) return null
  const { verdict, seq } = first
  const { rows } = await sql<{ at: string | null }>`
    select ${timeText('ts')} as at from audit_entries
    where team_id = ${teamId} and isfinite(ts) and (${seq}::text is null or seq <= ${String(seq ?? 0)}::bigint)
    order by seq desc limit 1`.execute(db)
  return { kind: verdict, seq, at: rows[0]?.at ?? null }
}

/** Judges an entry that a caller has noted, before the others are read. */
export function judgePlace({ base }: ChainProofs, noted: Checkpoint): 'found' | 'missing' | 'purged' {
  if (noted.seq < base.seq) return 'purged'
  return isNoted(base, noted) ? 'found' : 'missing'
}

function isNoted({ seq, hash }: { seq: number; hash: Buffer }, noted: Checkpoint): boolean {
  return seq === noted.seq && hash.toString('hex') === noted.hash.toLowerCase()
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

function note(at: { seq: number; hash: Buffer } | undefined): Checkpoint | null {
  return at ? { seq: at.seq, hash: at.hash.toString('hex') } : null
}

function toPlace(row: StoredEntry | undefined): VerifiedEntry | null {
  return row ? { seq: row.seq, at: row.tsText } : null
}
