import type { Logger } from 'pino'
import {
  type CaseEnd,
  type CaseJudgement,
  type ClaimedCase,
  endCase,
  GOLD_STANDARD,
  keepCase,
  leaveCase,
  noteCaseExecution,
  noteCaseOutput,
  readJudgements,
  saveJudgement,
} from '../../db/evaluation/batches/cases.ts'
import { readCaseExecution, startCaseExecution } from '../../db/evaluation/batches/executions.ts'
import type { BatchDimension } from '../../db/evaluation/batches/runs.ts'
import { Fault } from '../../db/fault.ts'
import { redact } from '../../db/redaction/redact.ts'
import { readRecentRules } from '../../db/redaction/rules.ts'
import type { Store } from '../../db/scope.ts'
import { cleanText } from '../../db/text.ts'
import { compareWithExpected, type GoldStandard } from './goldstandard.ts'

/** What the judge is asked about a case. */
export type CaseQuestion = {
  dimension: BatchDimension
  material: { input: string; output: string; expected: string | null }
  signal: AbortSignal
}

export type BatchDeps = {
  store: Store
  log: Logger
  /** Asks the judge of a case's batch. Null: it was not asked, or broken off, so that it may be asked again. */
  judge: (of: ClaimedCase, question: CaseQuestion) => Promise<Omit<CaseJudgement, 'dimension'> | null>
  /** How the scores of a case become one. */
  compose: (scores: Record<string, number | null>) => number | null
  leaseMs: number
}

const GOLD_RUBRIC =
  'Does the output say the same as the expected output? Wording, order and format do not count, unless the expected ' +
  'output is about them. 5: it says the same. 4: it says the same, with harmless details more or less. 3: a part of it is ' +
  'missing. 2: it says something else in an important point. 1: it contradicts it, or has nothing to do with it.'
const LEAST_GOLD = 4

/** Longer outputs of executions are cut: no judge reads them. */
const MOST_OUTPUT = 100_000

/** How long an execution is left alone between two looks, and for how long a workflow's limit may turn a case away. */
const LEAST_REST_MS = 250
const MOST_REST_MS = 5_000
const PATIENCE_MS = 600_000

/**
 * Does all of a case that can be done now: makes its output, asks the judge for each dimension that has no answer
 * yet, and ends it. If it breaks off, the next process to claim the case goes on.
 */
export async function carryOutCase(
  deps: BatchDeps,
  claimed: ClaimedCase,
  signal: AbortSignal,
): Promise<void> {
  const { store } = deps
  const made = await makeOutput(store, claimed)
  if ('restMs' in made) return leaveCase(store, claimed, made.restMs)
  if ('reason' in made) return void (await endCase(store, claimed, failed(made.reason)))
  const rules = await readRecentRules(store.db, store.db)
  const mask = <T>(value: T): T => redact(value, { pii: true, rules })
  const expected = claimed.expectedOutput
  const material = {
    input: JSON.stringify(mask(claimed.input)),
    output: mask(made.output),
    expected: expected === null ? null : mask(expected),
  }
  const answers = new Map(
    (await readJudgements(store, claimed.id)).map((answer) => [answer.dimension, answer]),
  )
  /** False if the case must be left as it is. */
  const ask = async (dimension: BatchDimension): Promise<boolean> => {
    if (answers.has(dimension.name)) return true
    if (signal.aborted || !(await keepCase(store, claimed, deps.leaseMs, { asking: true }))) return false
    const said = await deps.judge(claimed, { dimension, material, signal })
    if (!said) return false
    const answer = { ...said, dimension: dimension.name }
    await saveJudgement(store, claimed, answer)
    answers.set(dimension.name, answer)
    return true
  }
  for (const dimension of claimed.dimensions) if (!(await ask(dimension))) return leaveCase(store, claimed, 0)
  let gold = expected === null ? NO_GOLD : compareWithExpected(made.output, expected)
  if (gold === null) {
    if (!(await ask({ name: GOLD_STANDARD, rubric: GOLD_RUBRIC }))) return leaveCase(store, claimed, 0)
    gold = readGold(answers.get(GOLD_STANDARD)!)
  }
  await endCase(store, claimed, concludeCase(deps, claimed, answers, gold))
}

const NO_GOLD: GoldStandard = { match: null, rung: null, reasoning: null }

function readGold({ score, explanation }: CaseJudgement): GoldStandard {
  if (score === null)
    return { match: null, rung: null, reasoning: `The judge gave no answer: ${explanation}` }
  return { match: score >= LEAST_GOLD, rung: 'JUDGE', reasoning: explanation }
}

/** Passed is a case whose composite score reaches the threshold; without dimensions, one that is as expected. */
function concludeCase(
  { compose }: BatchDeps,
  { dimensions, passThreshold }: ClaimedCase,
  answers: Map<string, CaseJudgement>,
  gold: GoldStandard,
): CaseEnd {
  const about = {
    goldStandardMatch: gold.match,
    goldStandardRung: gold.rung,
    goldStandardReasoning: gold.reasoning,
  }
  const scores = dimensions.map(({ name }) => [name, answers.get(name)?.score ?? null] as const)
  const compositeScore = compose(Object.fromEntries(scores))
  if (compositeScore === null && dimensions.length > 0) {
    const why = answers.get(dimensions[0]!.name)?.explanation ?? 'it was not asked'
    return { ...failed(`The judge gave no score: ${why}`), ...about }
  }
  if (compositeScore === null && gold.match === null) {
    return { ...failed(gold.reasoning ?? 'Nothing says what is expected'), ...about }
  }
  const passed = compositeScore === null ? gold.match === true : compositeScore >= passThreshold
  return { status: 'COMPLETED', reason: null, compositeScore, passed, ...about }
}

/** Ends a case that cannot be mended. */
export const failCase = (store: Store, claimed: ClaimedCase, reason: string) =>
  endCase(store, claimed, failed(reason))

const failed = (reason: string): CaseEnd => ({
  ...{ status: 'FAILED', reason, compositeScore: null, passed: false },
  ...{ goldStandardMatch: null, goldStandardRung: null, goldStandardReasoning: null },
})

type CaseOutput = { output: string } | { reason: string } | { restMs: number }

/** The output of a case: as it was given, or as an execution makes it, of which there is one for a case. */
async function makeOutput(store: Store, claimed: ClaimedCase): Promise<CaseOutput> {
  const { id, runId, place, executionId, actualOutput, workflowId, workflowVersion: version } = claimed
  if (actualOutput !== null) return { output: actualOutput }
  const waited = Date.now() - claimed.startedAt.getTime()
  const rest = { restMs: Math.min(MOST_REST_MS, Math.max(LEAST_REST_MS, waited / 4)) }
  if (executionId === null) {
    const by = { kind: claimed.startedByKind, id: claimed.startedById, name: '' }
    try {
      const start = { runId, place, workflowId, version, data: claimed.input, by }
      await noteCaseExecution(store, id, await startCaseExecution(store, start))
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const isLater = error.code === 'UNAVAILABLE' || error.code === 'CONFLICT'
      if (isLater && waited < PATIENCE_MS) return rest
      return { reason: `The workflow could not be started: ${error.message}` }
    }
    return rest
  }
  const ended = await readCaseExecution(store, executionId)
  if (ended === null) return rest
  const output = 'output' in ended ? writeOutput(ended.output) : null
  await noteCaseOutput(store, { id, runId, executionId }, output)
  if ('reason' in ended) return { reason: ended.reason }
  return output === null ? { reason: 'The workflow does not keep its outputs' } : { output }
}

/** An output as a text: one that is a text is that text, and any other its JSON. */
function writeOutput(output: unknown): string | null {
  if (output === undefined) return null
  const text = typeof output === 'string' ? output : (JSON.stringify(output) ?? 'null')
  return cleanText(text, MOST_OUTPUT)
}
