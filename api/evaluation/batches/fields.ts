import * as v from 'valibot'
import { CASE_STATUSES } from '../../../db/evaluation/batches/results.ts'
import { BATCH_STATUSES } from '../../../db/evaluation/batches/runs.ts'
import { EVAL_PROVIDERS } from '../../../db/evaluation/providers.ts'
import { describeIssues, type Problem } from '../../../workflows/problem.ts'
import {
  boundedInteger,
  boundedString,
  documentAs,
  objectField,
  trimmedString,
  uuidField,
} from '../../http/fields.ts'
import { paging, queryInteger } from '../../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema, versionSchema } from '../../http/responses.ts'

export const MOST_CASES = 10_000
/** The most bytes of a request with all its cases. */
export const MOST_BATCH_BYTES = 16_000_000
const MOST_TEXT = 100_000
const MOST_DIMENSIONS = 10
/** How many problems of cases are told. */
const MOST_TOLD = 100

const score = (description: string) =>
  v.pipe(
    v.number('must be a number'),
    v.minValue(1, 'must be at least 1'),
    v.maxValue(5, 'must be at most 5'),
    v.description(description),
  )

/** A list too long to be checked at once: `checkCases` does it. */
const casesField = v.pipe(
  v.custom<unknown[]>(Array.isArray, 'must be an array'),
  documentAs<unknown[]>({
    type: 'array',
    minItems: 1,
    maxItems: MOST_CASES,
    items: {
      type: 'object',
      properties: {
        input: { type: 'object' },
        output: { type: 'string', maxLength: MOST_TEXT, pattern: '^[^\\u0000]*$' },
        expectedOutput: { type: 'string', maxLength: MOST_TEXT, pattern: '^[^\\u0000]*$' },
      },
      required: ['input'],
    },
  }),
)

export const NewBatch = v.object({
  name: v.optional(v.pipe(trimmedString(200), v.description('Without it, the date'))),
  judgeProvider: v.optional(v.picklist(EVAL_PROVIDERS, `must be one of ${EVAL_PROVIDERS.join(', ')}`)),
  judgeModel: v.optional(boundedString(200)),
  judgeCredentialId: v.optional(uuidField),
  evalDimensions: v.optional(
    v.pipe(
      v.array(boundedString(100), 'must be an array'),
      v.maxLength(MOST_DIMENSIONS, `must have at most ${MOST_DIMENSIONS} entries`),
      v.check((names) => new Set(names).size === names.length, 'must not name a dimension twice'),
      v.description('Without it, those of the evaluation config, or else groundedness, relevance and safety'),
      v.examples([['groundedness', 'relevance', 'safety']]),
    ),
  ),
  passThreshold: v.optional(score('Cases pass from this composite score on')),
  maxCost: v.optional(
    v.pipe(
      v.number('must be a number'),
      v.minValue(0.000001, 'must be more than 0'),
      v.maxValue(1_000_000, 'must be at most 1000000'),
      v.description('US dollars. The batch is FAILED once it has cost so much, with its results so far'),
    ),
  ),
  runWorkflow: v.optional(
    v.pipe(
      v.boolean('must be true or false'),
      v.description('Cases without an output get it from an execution of the workflow'),
    ),
  ),
  concurrency: v.optional(
    v.pipe(
      boundedInteger(1, 10),
      v.description('How many cases may be under way at the same time. Default: 4'),
    ),
  ),
  testCases: casesField,
})

const textField = v.nullish(boundedString(MOST_TEXT, 0), null)
const Case = v.object(
  { input: objectField, output: textField, expectedOutput: textField },
  'must be an object',
)

export type GivenCase = v.InferOutput<typeof Case>

/** Cases that were checked. */
export const readCase = (given: unknown): GivenCase => v.parse(Case, given)

/** Finds what is wrong with the cases of a body, in pieces. */
export async function checkCases({ testCases, runWorkflow }: Record<string, unknown>): Promise<Problem[]> {
  if (!Array.isArray(testCases)) return []
  if (testCases.length === 0) return [{ path: 'testCases', message: 'must not be empty' }]
  if (testCases.length > MOST_CASES)
    return [
      { path: 'testCases', message: `must have at most ${MOST_CASES} entries, not ${testCases.length}` },
    ]
  const problems: Problem[] = []
  let since = performance.now()
  for (const [index, given] of testCases.entries()) {
    const parsed = v.safeParse(Case, given)
    if (!parsed.success) problems.push(...describeIssues(parsed.issues, `testCases[${index}]`))
    else if (parsed.output.output === null && runWorkflow !== true)
      problems.push({ path: `testCases[${index}].output`, message: 'is required unless runWorkflow is true' })
    else if (JSON.stringify(parsed.output.input).length > MOST_TEXT)
      problems.push({
        path: `testCases[${index}].input`,
        message: `must have at most ${MOST_TEXT} characters as JSON`,
      })
    if (problems.length >= MOST_TOLD) break
    if (performance.now() - since < SLICE_MS) continue
    await new Promise((resolve) => setImmediate(resolve))
    since = performance.now()
  }
  return problems.slice(0, MOST_TOLD)
}

const SLICE_MS = 8

export const InWorkflow = v.object({ workflowId: uuidField })
export const BatchParams = v.object({ workflowId: uuidField, runId: uuidField })
export const BatchListQuery = v.object({
  ...paging,
  status: v.optional(v.picklist(BATCH_STATUSES, `must be one of ${BATCH_STATUSES.join(', ')}`)),
})

const flag = v.optional(
  v.pipe(
    v.picklist(['true', 'false'], 'must be true or false'),
    v.transform((text) => text === 'true'),
  ),
)
export const ResultsQuery = v.object({
  status: v.optional(v.picklist(CASE_STATUSES, `must be one of ${CASE_STATUSES.join(', ')}`)),
  passed: flag,
  goldStandardMatch: flag,
  page: v.optional(v.pipe(queryInteger(0, 1_000_000), v.description('Without it and size, all results'))),
  size: v.optional(queryInteger(1, 100)),
})
export const CompareQuery = v.object({
  with: v.pipe(uuidField, v.description('Another batch of the workflow, which is taken for the later one')),
})
export const BatchExportQuery = v.object({
  format: v.optional(v.picklist(['csv', 'json'], 'must be csv or json'), 'json'),
})

const figure = v.nullable(v.number())
const interval = v.pipe(v.nullable(v.object({ low: v.number(), high: v.number() })), v.description('At 95 %'))
const summary = { n: countSchema, mean: figure, median: figure, min: figure, max: figure, ci95: interval }
const share = { hits: countSchema, n: countSchema, rate: figure, ci95: interval }

const batchEntries = {
  id: idSchema,
  workflowId: idSchema,
  workflowVersion: versionSchema,
  name: v.string(),
  status: v.picklist(BATCH_STATUSES),
  reason: v.pipe(v.nullable(v.string()), v.description('Why it is FAILED or CANCELLED')),
  totalCases: countSchema,
  completedCases: v.pipe(
    countSchema,
    v.description('Those that have ended: passedCases and failedCases together'),
  ),
  passedCases: countSchema,
  failedCases: v.pipe(
    countSchema,
    v.description('Those below the threshold, and those that could not be judged'),
  ),
  judgeProvider: v.picklist(EVAL_PROVIDERS),
  judgeModel: v.string(),
  judgeCredentialId: idSchema,
  evalDimensions: v.array(v.string()),
  passThreshold: v.number(),
  maxCost: figure,
  runWorkflow: v.boolean(),
  concurrency: countSchema,
  inputTokens: countSchema,
  outputTokens: countSchema,
  cost: v.pipe(v.number(), v.description('US dollars, of all calls whose cost is known')),
  calls: countSchema,
  unpricedCalls: countSchema,
  startedBy: v.string(),
  createdAt: timeSchema,
  startedAt: v.nullable(timeSchema),
  completedAt: v.nullable(timeSchema),
}
export const BatchSchema = v.pipe(v.object(batchEntries), v.title('BatchEvaluation'))
export const BatchPageSchema = pageSchema('BatchEvaluationPage', BatchSchema)
export const BatchDetailSchema = v.pipe(
  v.object({
    ...batchEntries,
    summary: v.object({
      dimensions: v.record(v.string(), v.object({ ...summary, failed: countSchema })),
      compositeScore: v.object(summary),
      passRate: v.object(share),
      goldStandard: v.object({ ...share, rungs: v.record(v.string(), countSchema) }),
      flaggedCases: countSchema,
      failureReasons: v.array(v.object({ reason: v.string(), count: countSchema })),
    }),
  }),
  v.title('BatchEvaluationDetail'),
)

const grade = v.nullable(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(5)))
export const CaseResultSchema = v.pipe(
  v.object({
    id: idSchema,
    testCaseIndex: countSchema,
    testInput: v.record(v.string(), v.unknown()),
    actualOutput: v.nullable(v.string()),
    expectedOutput: v.nullable(v.string()),
    groundednessScore: grade,
    relevanceScore: grade,
    safetyScore: grade,
    scores: v.pipe(v.record(v.string(), grade), v.description('Of all dimensions, by name')),
    compositeScore: figure,
    reasoning: v.pipe(v.record(v.string(), v.string()), v.description('By dimension')),
    flagged: v.pipe(v.boolean(), v.description('Something may have tried to tell the judge what to say')),
    goldStandardMatch: v.nullable(v.boolean()),
    goldStandardReasoning: v.nullable(v.string()),
    goldStandardRung: v.nullable(v.picklist(['EXACT', 'NUMERIC', 'JSON', 'SIMILARITY', 'JUDGE'])),
    passed: v.nullable(v.boolean()),
    status: v.picklist(CASE_STATUSES),
    reason: v.pipe(v.nullable(v.string()), v.description('Why it is FAILED')),
    executionId: v.nullable(idSchema),
    startedAt: v.nullable(timeSchema),
    completedAt: v.nullable(timeSchema),
  }),
  v.title('BatchCaseResult'),
)

const difference = v.object({
  n: countSchema,
  before: figure,
  after: figure,
  meanDifference: figure,
  ci95: interval,
  better: countSchema,
  worse: countSchema,
  pValue: v.pipe(v.number(), v.description("Of Wilcoxon's signed-rank test, two-sided")),
  signPValue: v.pipe(v.number(), v.description('Of the exact sign test, two-sided')),
})
const eachSide = { before: countSchema, after: countSchema }
export const ComparisonSchema = v.pipe(
  v.object({
    before: idSchema,
    after: idSchema,
    paired: countSchema,
    unpaired: v.object(eachSide),
    compositeScore: difference,
    dimensions: v.record(v.string(), difference),
    pass: v.object({
      before: figure,
      after: figure,
      gained: countSchema,
      lost: countSchema,
      pValue: v.pipe(v.number(), v.description("Of McNemar's exact test, two-sided")),
    }),
  }),
  v.title('BatchComparison'),
)
