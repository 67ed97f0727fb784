import { sql } from 'kysely'
import type { Db } from '../../connection.ts'
import { readSnapshot } from '../../connection.ts'
import type { Store } from '../../scope.ts'
import { readErasures } from '../erasure/erasures.ts'
import { type ChainProofs, judgeEnd, readProofs } from '../proofs/proofs.ts'
import type { RangeResult } from './ranges.ts'
import { createTurns, runThread } from './turns.ts'
import { type AuditVerification, judgePlace, verifyAudit } from './verify.ts'
import type { ChainVerifier } from './verifyteam.ts'
import type { Checkpoint } from './walk.ts'

type ParallelOptions = {
  /** The database, for connections of the threads' own. */
  url: string
  /** How many threads share a chain. */
  threads?: number
  /** Shorter chains are verified without threads, whose start takes longer. */
  least?: number
}

/**
 * Verifies chains beside the serving thread: two threads share a long chain, and read it by the same snapshot. One
 * long chain at a time: others wait, and THROTTLED is thrown if too many do. A chain that is not intact is walked once
 * more by one thread, which says what is wrong.
 */
export function createChainVerifier({ url, threads = 2, least = 2_000 }: ParallelOptions): ChainVerifier {
  const inTurn = createTurns()
  return async (store, teamId, checkpoint, signal) => {
    if ((await countEntries(store.db, teamId)) < least) return verifyAudit(store, teamId, checkpoint)
    return inTurn(
      teamId,
      () =>
        readSnapshot(store.db).execute((db) =>
          verifyParallel(db, { url, store, teamId, checkpoint, threads, signal }),
        ),
      signal,
    )
  }
}

type Verification = {
  url: string
  store: Store
  teamId: string
  checkpoint: Checkpoint | undefined
  threads: number
  signal: AbortSignal | undefined
}

async function verifyParallel(db: Db, asked: Verification): Promise<AuditVerification> {
  const { url, store, teamId, checkpoint, threads, signal } = asked
  const { keys } = store
  const { rows } = await sql<{ snapshot: string }>`select pg_export_snapshot() as snapshot`.execute(db)
  const { snapshot } = rows[0]!
  const proofs = await readProofs(db, keys, teamId)
  const quick = await checkQuickly(db, asked, proofs, (from, to) =>
    runThread({ url, keys, range: { teamId, from, to, snapshot } }, signal).then(
      (answer) => (answer as { range: RangeResult }).range,
    ),
  )
  if (quick) return quick
  const answer = await runThread({ url, keys, walk: { teamId, checkpoint, snapshot } }, signal)
  return (answer as { walk: AuditVerification }).walk

  /** The verification of a chain in which all is well; undefined if it must be walked to say what is not. */
  async function checkQuickly(
    db: Db,
    { checkpoint, teamId }: Verification,
    proofs: ChainProofs,
    check: (from: number, to: number) => Promise<RangeResult>,
  ): Promise<AuditVerification | undefined> {
    const { base, head, noted } = proofs
    if (!head || noted.length > 0 || (await isSpecial(db, teamId))) return undefined
    const parts = split(base.seq + 1, head.seq, threads)
    const found = await Promise.all(parts.map(([from, to]) => check(from, to)))
    let { hash } = { hash: base.hash.toString('hex') }
    for (const part of found) {
      if (!part.clean || part.prev !== hash) return undefined
      hash = part.last.hash
    }
    const clean = found as Extract<RangeResult, { clean: true }>[]
    const tail = clean.at(-1)?.last
    if (!tail || judgeEnd(proofs, teamId, { ...tail, hash: Buffer.from(tail.hash, 'hex') }).length > 0)
      return undefined
    const isErased = await readErasures(db, teamId, base.seq)
    let erased = 0
    for (const [from, to] of clean.flatMap(({ blank }) => blank)) {
      for (let seq = from; seq <= to; seq++) if (!isErased(seq)) return undefined
      erased += to - from + 1
    }
    let mark = checkpoint ? judgePlace(proofs, checkpoint) : null
    if (mark === 'missing') mark = (await isThere(db, teamId, checkpoint!)) ? 'found' : 'missing'
    if (mark === 'missing') return undefined
    return {
      teamId,
      entries: clean.reduce((sum, { entries }) => sum + entries, 0),
      erased,
      last: { seq: tail.seq, hash: tail.hash },
      first: { seq: base.seq + 1, at: clean[0]!.firstTs },
      lastGood: { seq: tail.seq, at: tail.tsText },
      intactFrom: base.seq + 1,
      closed: tail.action === 'TEAM_DELETED',
      breaks: [],
      purgedBreaks: base.breaks,
      unsigned: [],
      ...{ noted: mark, problem: null, findings: [] },
    }
  }
}

/** About how many entries the chain has: the head says so, which is looked at later. */
async function countEntries(db: Db, teamId: string): Promise<number> {
  const head = await db.selectFrom('auditHeads').select('seq').where('teamId', '=', teamId).executeTakeFirst()
  return head?.seq ?? 0
}

/**
 * Whether a chain has been reopened, has entries without signatures of their own, or some that its head does not count:
 * then it must be walked.
 */
async function isSpecial(db: Db, teamId: string): Promise<boolean> {
  const { rows } = await sql<{ special: boolean }>`
    select exists (select from audit_entries where team_id = ${teamId} and action = 'AUDIT_REOPENED')
      or exists (select from audit_unsigned where team_id = ${teamId})
      or exists (select from audit_entries e join audit_heads h on h.team_id = e.team_id
        where e.team_id = ${teamId} and (e.seq > h.seq or e.seq < 1)) as special`.execute(db)
  return rows[0]!.special
}

async function isThere(db: Db, teamId: string, { seq, hash }: Checkpoint): Promise<boolean> {
  const { rows } = await sql`select from audit_entries
    where team_id = ${teamId} and seq = ${seq} and hash = ${Buffer.from(hash, 'hex')}`.execute(db)
  return rows.length > 0
}

/** About equal parts of a range, both ends inclusive. */
function split(from: number, to: number, parts: number): [from: number, to: number][] {
  const size = Math.ceil((to - from + 1) / parts)
  const begins = Array.from({ length: parts }, (_, at) => from + at * size).filter((begin) => begin <= to)
  return begins.map((begin) => [begin, Math.min(to, begin + size - 1)])
}
