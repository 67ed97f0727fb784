import { demandTeam, type Scope, type Store } from '../../scope.ts'
import { type AuditVerification, verifyAudit } from './verify.ts'
import type { Checkpoint, Verdict } from './walk.ts'

/** What a verification has found, as the API shows it. Times are ISO 8601. */
export type VerificationView = {
  valid: boolean
  entriesVerified: number
  verifiedAt: string
  firstEntry?: string
  lastEntry?: string
  brokenAtTimestamp?: string
  problem?: { kind: Verdict; seq: number | null }
  intactFrom: number
  erased: number
  breaks: { seq: number; at: string }[]
  noted?: 'found' | 'missing' | 'purged'
  last?: Checkpoint
}

/** Verifies a chain, given up when `signal` is aborted. */
export type ChainVerifier = (
  store: Store,
  teamId: string,
  noted: Checkpoint | undefined,
  signal?: AbortSignal,
) => Promise<AuditVerification>

/**
 * Verifies a team's chain (ADMIN). `noted` is an entry that the caller has noted before. Throws FORBIDDEN, and
 * NOT_FOUND if there is no such team.
 */
export async function verifyTeam(
  scope: Scope,
  teamId: string,
  noted?: Checkpoint,
  { verify = verifyAudit, signal }: { verify?: ChainVerifier | undefined; signal?: AbortSignal } = {},
): Promise<VerificationView> {
  await demandTeam(scope, teamId, 'ADMIN')
  return toView(await verify(scope.store, teamId, noted, signal))
}

function toView(found: AuditVerification): VerificationView {
  const { entries, erased, first, last, lastGood, problem, noted, intactFrom, purgedBreaks, breaks } = found
  const verifiedAt = new Date().toISOString()
  const places = breaks.map(({ seq, at }) => ({ seq, at }))
  return {
    valid: problem === null,
    entriesVerified: entries,
    verifiedAt,
    ...(problem === null && first && lastGood ? { firstEntry: first.at, lastEntry: lastGood.at } : {}),
    ...(problem
      ? { brokenAtTimestamp: problem.at ?? verifiedAt, problem: { kind: problem.kind, seq: problem.seq } }
      : {}),
    intactFrom,
    erased,
    breaks: [...purgedBreaks, ...places],
    ...(noted ? { noted } : {}),
    ...(last ? { last } : {}),
  }
}
