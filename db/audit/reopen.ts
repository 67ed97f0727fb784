import { sql } from 'kysely'
import { changeInstance } from '../change.ts'
import type { Tx } from '../connection.ts'
import { Fault, missing } from '../fault.ts'
import { lockFor } from '../locks.ts'
import { redact } from '../redaction/redact.ts'
import type { Scope } from '../scope.ts'
import { cleanText } from '../text.ts'
import { endAlarm } from './alarm.ts'
import { makeBody } from './audit.ts'
import { findHeadFault, lockHead, openChain, putEntry } from './chain.ts'
import { forgetAuditCounts } from './counts.ts'
import { signCheckpointCount } from './proofs/counts.ts'
import { INSTANCE_CHAIN, reopeningHash } from './signing.ts'
import { timeText } from './times.ts'
import { verifyChain } from './verify/verify.ts'
import type { BreakDetails, Checkpoint } from './verify/walk.ts'

const MAX_FINDINGS = 20
/** No chain gets there by itself, and JavaScript would round greater numbers. */
const MAX_SEQ = 2 ** 52

/**
 * Begins a new segment of a chain that was tampered with: acts can be recorded again. Its first entry signs
 * what was found, and verifyAudit names it for ever; the instance's chain gets an entry too. Throws FORBIDDEN
 * unless for the operator, CONFLICT if the chain is intact, NOT_FOUND if there is no such team.
 */
export async function reopenChain(
  scope: Scope,
  chain: string,
  asked: { by: string; note: string | null; checkpoint?: Checkpoint | undefined },
): Promise<{ seq: number; details: BreakDetails }> {
  const { store } = scope
  if (scope.actor.kind !== 'SYSTEM')
    throw new Fault('FORBIDDEN', 'Only the operator can reopen an audit chain')
  const reopened = await changeInstance(scope, 'AUDIT_REOPENED', async (tx) => {
    await demandChain(tx, chain)
    const head = await lockHead(tx, chain)
    const { found, signedUpTo, checkpoints } = await verifyChain(tx, store, chain, asked.checkpoint)
    if (found.findings.length === 0)
      throw new Fault('CONFLICT', 'The audit chain is intact, so there is nothing to reopen')
    const counted = findHeadFault(store.keys, chain, head) ? 0 : head!.seq
    // Behind all that was ever signed, so that no checkpoint speaks of another entry with the same number.
    const seq = Math.max(found.last?.seq ?? 0, counted, signedUpTo) + 1
    if (seq > MAX_SEQ) {
      const forged = `Entry ${seq - 1} cannot have been written by this service`
      throw new Fault('CONFLICT', `${forged}: keep a copy of it elsewhere, delete it, and try again`)
    }
    const { by, note } = redact({ by: cleanText(asked.by, 320), note: asked.note && cleanText(asked.note) })
    const details = { ...found, findings: found.findings.slice(0, MAX_FINDINGS), by, note }
    const role = scope.roles.get(chain) ?? null
    const body = makeBody(scope, 'AUDIT_REOPENED', { chain, role, resourceId: null, details })
    await openChain(tx, store.keys, chain)
    const place = { seq, prev: reopeningHash(chain, seq), ts: await readTime(tx) }
    if (!(await putEntry(tx, store.keys, body, place, sql`select false as bare`)))
      throw new Fault('CONFLICT', `Somebody has put an entry ${seq} into the chain in the meantime`)
    await forgetAuditCounts(tx, chain)
    // Those that are gone are among the findings that the entry has signed.
    await signCheckpointCount(tx, store.keys, chain, checkpoints)
    const result = { seq, details }
    if (chain === INSTANCE_CHAIN) return { result, unchanged: true }
    return { result, resourceId: chain, details: { seq, by, note } }
  })
  endAlarm(store, chain)
  return reopened
}

/** Makes sure that entries can follow, and that of two who reopen the chain one waits for the other. */
async function demandChain(tx: Tx, chain: string): Promise<void> {
  await lockFor(tx, 'auditChains', chain)
  if (chain === INSTANCE_CHAIN) return
  const team = await tx
    .selectFrom('teams')
    .select('id')
    .where('id', '=', chain)
    .forKeyShare()
    .executeTakeFirst()
  if (!team) throw missing('team')
}

/** The present time, independent of the times in the chain, which may be forged. */
async function readTime(tx: Tx): Promise<string> {
  const { rows } = await sql<{ now: string }>`
    select ${timeText('clock_timestamp()')} as now`.execute(tx)
  return rows[0]!.now
}
