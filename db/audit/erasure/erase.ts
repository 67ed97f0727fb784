import { sql } from 'kysely'
import { change, changeInstance } from '../../change.ts'
import type { Db, Tx } from '../../connection.ts'
import { Fault } from '../../fault.ts'
import type { Scope } from '../../scope.ts'
import { INSTANCE_CHAIN } from '../signing.ts'
import { addSeq, type SeqSpan } from './erasures.ts'

/** Entries of a person about which nothing was erased, by the reason. */
type KeptEntries = {
  /** Written by a release before version 2: what is personal lies in what the chain covers. */
  version1: number
  /** Before an entry that has reopened the chain, and has signed all that there was. */
  beforeBreak: number
  /** The entries of purges: they prove where the chain begins. */
  purges: number
}

export type Erasure = { erased: number; entries: number[]; kept: KeptEntries }

/** An entry names so many others at most, so that its details stay small. */
const BATCH = 1_000

/**
 * Erases what is personal about the entries of a person in a chain: the name, the IP address, the user agent and the
 * details, with the salt of their hash. The chain stays intact, and each batch of entries is named by an entry
 * AUDIT_DETAILS_ERASED, whose numbers are `entries` of the result. Throws FORBIDDEN unless for the operator, NOT_FOUND
 * if there is no such team, and AUDIT_CHAIN_BROKEN.
 */
export async function eraseDetails(
  scope: Scope,
  chain: string,
  userId: string,
  { most = BATCH } = {},
): Promise<Erasure> {
  if (scope.actor.kind !== 'SYSTEM')
    throw new Fault('FORBIDDEN', 'Only the operator can erase details of audit entries')
  const begin = await findBegin(scope.store.db, chain)
  const done = { erased: 0, entries: [] as number[] }
  for (let behind = begin; ; ) {
    const batch = await eraseBatch(scope, chain, userId, { behind, most })
    if (batch.seqs.length === 0) break
    done.erased += batch.seqs.length
    behind = batch.seqs.at(-1)!
    if (batch.seqs.length < most) break
  }
  done.entries = await listNaming(scope.store.db, chain, userId, begin)
  return { ...done, kept: await countKept(scope.store.db, chain, userId, begin) }
}

function eraseBatch(
  scope: Scope,
  chain: string,
  userId: string,
  { behind, most }: { behind: number; most: number },
) {
  const work = async (tx: Tx) => {
    const { rows } = await sql<{
      seq: number
    }>`select seq from erase_audit_details(${chain}, ${userId}, ${behind}, ${most}) as seq order by seq`.execute(
      tx,
    )
    const seqs = rows.map(({ seq }) => seq)
    const result = { seqs }
    if (seqs.length === 0) return { result, unchanged: true as const }
    return { result, resourceId: userId, details: { userId, count: seqs.length, seqs: toSpans(seqs) } }
  }
  return chain === INSTANCE_CHAIN
    ? changeInstance(scope, 'AUDIT_DETAILS_ERASED', work)
    : change(scope, 'AUDIT_DETAILS_ERASED', chain, work)
}

function toSpans(seqs: number[]): SeqSpan[] {
  const spans: SeqSpan[] = []
  for (const seq of seqs) addSeq(spans, seq)
  return spans
}

/** The last entry that cannot be erased because of a break: an entry behind it has signed all of those before. */
async function findBegin(db: Db, chain: string): Promise<number> {
  const { rows } = await sql<{ seq: number }>`
    select coalesce(max(seq), 0) as seq from audit_entries
    where team_id = ${chain} and action = 'AUDIT_REOPENED'`.execute(db)
  return rows[0]!.seq
}

async function listNaming(db: Db, chain: string, userId: string, begin: number): Promise<number[]> {
  const { rows } = await sql<{ seq: number }>`
    select seq from audit_entries where team_id = ${chain} and action = 'AUDIT_DETAILS_ERASED'
      and resource_id = ${userId} and seq > ${begin} order by seq`.execute(db)
  return rows.map(({ seq }) => seq)
}

async function countKept(db: Db, chain: string, userId: string, begin: number): Promise<KeptEntries> {
  const { rows } = await sql<KeptEntries>`
    select count(*) filter (where v = 1)::int as version1,
      count(*) filter (where v = 2 and seq < ${begin})::int as before_break,
      count(*) filter (where v = 2 and seq > ${begin} and action = 'AUDIT_PURGED')::int as purges
    from audit_entries where team_id = ${chain} and details is not null
      and (user_id = ${userId} or v = 1 and actor_kind = 'USER' and actor_id = ${userId})`.execute(db)
  return rows[0]!
}
