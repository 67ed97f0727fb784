import { sql } from 'kysely'
import { type Db, readSnapshot } from '../../connection.ts'
import type { Store } from '../../scope.ts'
import { checkpointChain, type SignedCheckpoint } from '../checkpoints.ts'
import { findSpan } from '../list.ts'
import { listPublicKeys, type PublicKeyView } from '../proofs/publickeys.ts'
import { INSTANCE_CHAIN } from '../signing.ts'
import type { ChainVerifier } from '../verify/verifyteam.ts'
import type { Checkpoint } from '../verify/walk.ts'
import { tellActivity } from './activity.ts'
import type { ClaimedReport } from './claims.ts'
import { tellCompliance } from './compliance.ts'
import type { ReportPeriod, ReportSection } from './sections.ts'
import { tellSecurity } from './security.ts'

/** What proves a report: all times are ISO 8601. */
type ReportProof = {
  valid: boolean
  /** The first problem; null if the chain verifies. */
  problem: { kind: string; seq: number | null; message: string } | null
  verifiedAt: string
  entriesVerified: number
  intactFrom: number
  /** How many entries are without details, which entries of the chain name as erased. */
  erased: number
  /** The entries with which the operator has reopened the chain. */
  breaks: { seq: number; at: string }[]
  /** The last entry that the report has seen, which is in the chain that was verified. */
  last: Checkpoint | null
  /** The checkpoint that was signed before the report was made; null if the chain's end does not verify. */
  checkpoint: SignedCheckpoint | null
  publicKeys: PublicKeyView[]
}

/** All that a report says. */
export type ReportContent = {
  report: {
    id: string
    name: string
    type: string
    teamId: string
    teamName: string
    from: string
    to: string
    createdAt: string
    createdBy: { id: string | null; name: string }
    /** The time as of which its tables are read. */
    madeAt: string
  }
  /** The numbers of the entries in the period; null if there are none. */
  entries: { first: number | null; last: number | null; count: number }
  proof: ReportProof
  sections: ReportSection[]
}

const TELL = { COMPLIANCE: tellCompliance, ACTIVITY: tellActivity, SECURITY: tellSecurity }

/**
 * Reads the whole content of a report, as of one moment, and proves it: signs the end of the chain before, and verifies
 * the chain afterwards, with the last entry that was seen. Reads on `reader`, which may be a database of its own.
 */
export async function gatherReport(
  store: Store,
  asked: ClaimedReport,
  { verify, reader, signal }: { verify: ChainVerifier; reader: Db; signal: AbortSignal },
): Promise<ReportContent> {
  const { teamId } = asked
  const checkpoint = await checkpointChain(store, teamId)
  const seen = await readSnapshot(reader).execute((db) => readSections(db, asked, signal))
  const { last, sections, span, count, teamName, madeAt } = seen
  signal.throwIfAborted()
  const found = await verify({ ...store, db: reader }, teamId, last ?? undefined, signal)
  const { problem, intactFrom, erased, purgedBreaks, breaks, entries: entriesVerified, findings } = found
  const { id, name, type, createdAt, createdBy, createdByName } = asked
  return {
    report: {
      ...{ id, name, type, teamId, teamName, from: asked.fromAt.toISOString(), to: asked.toAt.toISOString() },
      ...{ createdAt: createdAt.toISOString(), createdBy: { id: createdBy, name: createdByName }, madeAt },
    },
    entries: count > 0 ? { first: span.low, last: span.high, count } : { first: null, last: null, count: 0 },
    proof: {
      valid: problem === null,
      problem: problem && {
        kind: problem.kind,
        seq: problem.seq,
        message: findings[0]?.message ?? problem.kind,
      },
      ...{ verifiedAt: new Date().toISOString(), entriesVerified, intactFrom, erased },
      breaks: [...purgedBreaks, ...breaks].map(({ seq, at }) => ({ seq, at })),
      ...{ last, checkpoint, publicKeys: await listPublicKeys(store) },
    },
    sections,
  }
}

async function readSections(db: Db, asked: ClaimedReport, signal: AbortSignal) {
  const { teamId, fromAt: from, toAt: to, type } = asked
  // One processor at most for one report, and no compiling of queries that are asked once.
  await sql`set local max_parallel_workers_per_gather = 0`.execute(db)
  await sql`set local jit = off`.execute(db)
  // Counting and sorting a hundred thousand entries stays in memory: there is one report at a time.
  await sql`set local work_mem = '32MB'`.execute(db)
  const span = await findSpan(db, teamId, { from, to })
  const accounts = await findSpan(db, INSTANCE_CHAIN, { from, to })
  const { low: base } = await findSpan(db, teamId, {})
  const period: ReportPeriod = { db, teamId, from, to, span, accounts, base, signal }
  const { rows } = await sql<{
    name: string
    at: Date
    count: number
    seq: number | null
    hash: Buffer | null
  }>`
    select t.name, now() as at, h.seq, h.hash, (select count(*) from audit_entries
      where team_id = ${teamId} and seq between ${span.low} and ${span.high}) as count
    from teams t left join audit_heads h on h.team_id = t.id and h.seq > 0 where t.id = ${teamId}`.execute(db)
  const about = rows[0]
  if (!about) throw new Error(`the team of report ${asked.id} is gone`)
  const { seq, hash } = about
  const last = seq !== null && hash !== null ? { seq, hash: hash.toString('hex') } : null
  const sections = await TELL[type](period)
  return { last, sections, span, count: about.count, teamName: about.name, madeAt: about.at.toISOString() }
}
