import {
  countBegun,
  type DimensionScore,
  type EvaluationClaim,
  endEvaluation,
  giveBackEvaluation,
  noteJudge,
  readSavedScores,
  renewEvaluation,
  saveScore,
} from '../../db/evaluation/claims.ts'
import { loadEvalConfig } from '../../db/evaluation/configs.ts'
import { loadDimensions } from '../../db/evaluation/dimensions.ts'
import type { Store } from '../../db/scope.ts'
import { composite, type JudgeDeps, judgeDimension } from './judge.ts'
import { readMaterial } from './material.ts'
import { BUILT_IN_RUBRICS, type Dimension } from './rubrics.ts'

/** After so many tries, by processes that died or could not work, an evaluation is given up. */
const MOST_TRIES = 20
const REST_SECONDS = 15

/**
 * Judges a run that this process has claimed, dimension by dimension; what was judged before another process died is not
 * asked again. Never throws: what this service cannot do now, it does later.
 */
export async function evaluateRun(
  deps: JudgeDeps,
  claim: EvaluationClaim,
  signal: AbortSignal,
): Promise<void> {
  const { store, log } = deps
  try {
    await evaluate(deps, claim, signal)
  } catch (error) {
    const stops = signal.aborted
    if (!stops) {
      // The error itself may hold what was judged.
      const name = error instanceof Error ? error.name : typeof error
      log.warn({ error: name, evaluationId: claim.id }, 'a run could not be judged; it is tried again')
    }
    const end =
      claim.tries >= MOST_TRIES && !stops
        ? endEvaluation(store, claim, { status: 'FAILED', reason: 'INTERNAL' })
        : giveBackEvaluation(store, claim, stops ? 0 : REST_SECONDS)
    // The claim runs out by itself.
    await end.catch(() => {})
  }
}

async function evaluate(deps: JudgeDeps, claim: EvaluationClaim, signal: AbortSignal): Promise<void> {
  const { store } = deps
  const { teamId, workflowId } = claim
  const skip = (reason: string) => endEvaluation(store, claim, { status: 'SKIPPED', reason })
  if (claim.tries > MOST_TRIES) return endEvaluation(store, claim, { status: 'FAILED', reason: 'INTERNAL' })
  const config = await loadEvalConfig(store.db, { teamId, workflowId })
  const { evalProvider: provider, evalModel: model, evalCredentialId: credentialId } = config
  if (!config.evalEnabled) return skip('DISABLED')
  if (provider === null || model === null || credentialId === null) return skip('NO_JUDGE')
  if (claim.tries === 1 && !(await countBegun(store, teamId))) return skip('DAILY_LIMIT')
  const material = await readMaterial(store, claim.executionId)
  if ('missing' in material) return skip(material.missing)
  await noteJudge(store, claim, { provider, model, dimensions: config.evalDimensions })
  const known = new Map((await readSavedScores(store, claim.id)).map((one) => [one.dimension, one]))
  const rubrics = await loadRubrics(store, teamId)
  for (const name of config.evalDimensions) {
    if (known.has(name)) continue
    signal.throwIfAborted()
    if (!(await renewEvaluation(store, claim))) return
    const dimension = rubrics.get(name)
    const said = dimension
      ? await judge(deps, {
          dimension,
          material,
          teamId,
          provider,
          model,
          credentialId,
          workflowId,
          claim,
          signal,
        })
      : { ...UNKNOWN, dimension: name }
    await saveScore(store, claim, said)
    known.set(name, said)
  }
  const all = config.evalDimensions.flatMap((name) => known.get(name) ?? [])
  const total = composite(Object.fromEntries(all.map(({ dimension, score }) => [dimension, score])))
  const flagged = all.some((one) => one.flagged)
  const reason = all.find((one) => one.reason !== null)?.reason ?? 'NO_DIMENSIONS'
  const { evalFailureThreshold: threshold, evalNotifyFailures: notify } = config
  await endEvaluation(
    store,
    claim,
    total === null
      ? { status: 'FAILED', reason, flagged }
      : { status: 'SCORED', composite: total, threshold, notify, flagged },
  )
}

const UNKNOWN: Omit<DimensionScore, 'dimension'> = {
  score: null,
  reason: 'NO_RUBRIC',
  explanation: null,
  flagged: false,
  tokens: { input: 0, output: 0 },
  cost: 0,
}

type JudgedCall = Omit<Parameters<typeof judgeDimension>[1], 'caller'> & {
  workflowId: string
  claim: EvaluationClaim
}

async function judge(deps: JudgeDeps, { workflowId, claim, ...call }: JudgedCall): Promise<DimensionScore> {
  const caller = { workflowId, subjectId: claim.id }
  const judged = await judgeDimension(deps, { ...call, caller })
  const { flagged, tokens, cost } = judged
  const isScored = judged.status === 'SCORED'
  return {
    dimension: call.dimension.name,
    score: isScored ? judged.score : null,
    reason: isScored ? null : judged.reason,
    explanation: isScored ? judged.explanation : null,
    flagged,
    tokens,
    cost,
  }
}

/** All dimensions of a team by their names: those that every team has, and its own. */
async function loadRubrics(store: Store, teamId: string): Promise<Map<string, Dimension>> {
  const builtIn = Object.entries(BUILT_IN_RUBRICS).map(([name, rubric]) => ({ name, rubric }))
  const own = await loadDimensions(store.db, teamId)
  return new Map([...own, ...builtIn].map((dimension) => [dimension.name, dimension]))
}
