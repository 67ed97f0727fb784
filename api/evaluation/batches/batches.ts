import { Hono } from 'hono'
import * as v from 'valibot'
import { BUILT_IN_RUBRICS } from '../../../activities/evaluation/rubrics.ts'
import { compareBatches, summarizeBatch } from '../../../activities/evaluation/summarize.ts'
import { createBatchRun, MOST_OPEN_BATCHES } from '../../../db/evaluation/batches/create.ts'
import { chooseJudge } from '../../../db/evaluation/batches/judging.ts'
import { BATCH_DAYS, MOST_KEPT_BATCHES } from '../../../db/evaluation/batches/purge.ts'
import { countCases, pairCases, readCases } from '../../../db/evaluation/batches/results.ts'
import {
  cancelBatch,
  deleteBatch,
  exportBatch,
  listBatches,
  readBatchRun,
} from '../../../db/evaluation/batches/runs.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { IDEMPOTENCY_HEADER, readIdempotencyKey } from '../../executions/starts/idempotency.ts'
import { accept } from '../../http/accept.ts'
import { EXAMPLE_ID, messageResponse } from '../../http/responses.ts'
import {
  BatchDetailSchema,
  BatchExportQuery,
  BatchListQuery,
  BatchPageSchema,
  BatchParams,
  BatchSchema,
  CaseResultSchema,
  CompareQuery,
  ComparisonSchema,
  checkCases,
  InWorkflow,
  MOST_BATCH_BYTES,
  MOST_CASES,
  NewBatch,
  ResultsQuery,
  readCase,
} from './fields.ts'
import { showCase, streamExport, streamResults } from './results.ts'

const PATH = '/api/workflows/:workflowId/batch-eval'
const ONE = `${PATH}/:runId` as const
const TYPES = { csv: 'text/csv; charset=utf-8', json: 'application/json' }
const BUILT_IN = Object.entries(BUILT_IN_RUBRICS).map(([name, rubric]) => ({ name, rubric }))
const USUAL_CONCURRENCY = 4

const run = { 200: { description: 'The batch', schema: BatchSchema } }

/** The routes for batches of cases that a model judges. */
export function createBatchRoutes(deps: Pick<ApiDeps, 'store'>) {
  return new Hono<AppEnv>()
    .route('/', createBatchListRoutes())
    .route('/', createOneBatchRoutes(deps))
    .route('/', createBatchResultRoutes(deps))
}

function createBatchListRoutes() {
  return new Hono<AppEnv>()
    .get(
      PATH,
      accept({
        id: 'listBatches',
        tag: 'Evaluation',
        summary: "List a workflow's batch evaluations",
        description: `The newest first. The last ${MOST_KEPT_BATCHES} of a workflow are kept, for ${BATCH_DAYS} days.`,
        role: 'member',
        params: InWorkflow,
        query: BatchListQuery,
        responses: { 200: { description: 'One page', schema: BatchPageSchema } },
      }),
      async (c) =>
        c.json(await listBatches(c.get('scope'), c.req.valid('param').workflowId, c.req.valid('query'))),
    )
    .post(
      PATH,
      accept({
        id: 'startBatch',
        tag: 'Evaluation',
        summary: 'Start a batch evaluation',
        description:
          'A model judges the output of each case, 1 to 5 in each dimension. A case with an `expectedOutput` is compared ' +
          'with it too. A case without an `output` needs `runWorkflow`: an execution of the workflow with the input makes it. ' +
          'What is left out comes from the evaluation config. The calls to the judge that are under way when `maxCost` is ' +
          `reached still count. The body may have ${MOST_BATCH_BYTES / 1_000_000} MB, and ${MOST_CASES} cases. A team may have ` +
          `${MOST_OPEN_BATCHES} batches under way.`,
        role: 'BUILDER',
        params: InWorkflow,
        json: NewBatch,
        mostBytes: MOST_BATCH_BYTES,
        checkInTurns: checkCases,
        headers: IDEMPOTENCY_HEADER,
        example: {
          judgeProvider: 'openai',
          judgeModel: 'gpt-4o-mini',
          judgeCredentialId: EXAMPLE_ID,
          testCases: [{ input: { question: 'What is 6 x 7?' }, output: '42', expectedOutput: '42' }],
        },
        responses: run,
        faults: [409],
      }),
      async (c) => {
        const { workflowId } = c.req.valid('param')
        const {
          testCases,
          name,
          maxCost = null,
          runWorkflow = false,
          concurrency,
          ...given
        } = c.req.valid('json')
        const scope = c.get('scope')
        const judge = await chooseJudge(scope, workflowId, given, BUILT_IN)
        const settings = {
          ...judge,
          ...{ maxCost, runWorkflow, concurrency: concurrency ?? USUAL_CONCURRENCY },
          name: name ?? `Batch of ${new Date().toISOString().slice(0, 16).replace('T', ' ')}`,
        }
        const cases = await readGiven(testCases)
        const idempotencyKey = readIdempotencyKey(c)
        const asked = { ...given, name, maxCost, runWorkflow, concurrency }
        return c.json(await createBatchRun(scope, workflowId, settings, { cases, idempotencyKey, asked }))
      },
    )
}

function createOneBatchRoutes({ store }: Pick<ApiDeps, 'store'>) {
  return new Hono<AppEnv>()
    .get(
      ONE,
      accept({
        id: 'readBatch',
        tag: 'Evaluation',
        summary: 'Read a batch evaluation',
        description:
          'With a summary of the cases that have ended: for each dimension the mean with its confidence interval ' +
          "(Student's t), median and range, and shares with Wilson's interval.",
        role: 'member',
        params: BatchParams,
        responses: { 200: { description: 'The batch with its summary', schema: BatchDetailSchema } },
      }),
      async (c) => {
        const found = await readBatchRun(c.get('scope'), c.req.valid('param'))
        return c.json({ ...found, summary: summarizeBatch(found, await countCases(store.db, found.id)) })
      },
    )
    .delete(
      ONE,
      accept({
        id: 'deleteBatch',
        tag: 'Evaluation',
        summary: 'Delete a batch evaluation',
        description: 'With its results. One that is under way is cancelled before.',
        role: 'BUILDER',
        params: BatchParams,
        responses: { 200: messageResponse('Batch deleted') },
      }),
      async (c) => {
        await deleteBatch(c.get('scope'), c.req.valid('param'))
        return c.json({ message: 'Batch deleted' })
      },
    )
    .post(
      `${ONE}/cancel`,
      accept({
        id: 'cancelBatch',
        tag: 'Evaluation',
        summary: 'Cancel a batch evaluation',
        description:
          'Also cancels the executions that it waits for. What has been judged stays. One that has ended stays as it is.',
        role: 'BUILDER',
        params: BatchParams,
        responses: run,
      }),
      async (c) => c.json(await cancelBatch(c.get('scope'), c.req.valid('param'))),
    )
}

function createBatchResultRoutes({ store }: Pick<ApiDeps, 'store'>) {
  return new Hono<AppEnv>()
    .get(
      `${ONE}/results`,
      accept({
        id: 'listBatchResults',
        tag: 'Evaluation',
        summary: 'Read the results of a batch evaluation',
        description:
          'In the order of the cases, those without a result too. All of them, or with `page` or `size` a part.',
        role: 'member',
        params: BatchParams,
        query: ResultsQuery,
        responses: { 200: { description: 'The cases', schema: v.array(CaseResultSchema) } },
      }),
      async (c) => {
        const { id } = await readBatchRun(c.get('scope'), c.req.valid('param'))
        const { page, size, ...filter } = c.req.valid('query')
        if (page !== undefined || size !== undefined) {
          const limit = size ?? USUAL_SIZE
          const rows = await readCases(store.db, id, { skip: (page ?? 0) * limit, limit }, filter)
          return c.json(rows.map(showCase))
        }
        return c.body(streamResults(c, store, id, filter), 200, { 'Content-Type': TYPES.json })
      },
    )
    .get(
      `${ONE}/compare`,
      accept({
        id: 'compareBatches',
        tag: 'Evaluation',
        summary: 'Compare two batch evaluations',
        description:
          'By the cases that have ended in both, with the same place and the same input. Differences are those of the other ' +
          'batch less this one.',
        role: 'member',
        params: BatchParams,
        query: CompareQuery,
        responses: { 200: { description: 'How they differ', schema: ComparisonSchema } },
      }),
      async (c) => {
        const path = c.req.valid('param')
        const before = await readBatchRun(c.get('scope'), path)
        const after = await readBatchRun(c.get('scope'), { ...path, runId: c.req.valid('query').with })
        const { pairs, unpaired } = await pairCases(store.db, before.id, after.id)
        const dimensions = before.evalDimensions.filter((name) => after.evalDimensions.includes(name))
        return c.json({
          before: before.id,
          after: after.id,
          ...compareBatches(pairs, unpaired, dimensions),
        })
      },
    )
    .get(
      `${ONE}/export`,
      accept({
        id: 'exportBatch',
        tag: 'Evaluation',
        summary: 'Export the results of a batch evaluation',
        description:
          'A file of all cases. Personal data and secrets are masked. The connection is cut if the file cannot be completed.',
        role: 'member',
        params: BatchParams,
        query: BatchExportQuery,
        responses: {
          200: {
            description: 'The file',
            schema: v.array(CaseResultSchema),
            texts: ['text/csv'],
            headers: { 'Content-Disposition': 'Holds the name of the file' },
          },
        },
      }),
      async (c) => {
        const { format } = c.req.valid('query')
        const path = c.req.valid('param')
        const headers = {
          'Content-Type': TYPES[format],
          'Content-Disposition': `attachment; filename="batch-${path.runId}.${format}"`,
        }
        // HEAD sends no data, so there is no audit entry.
        if (c.req.method === 'HEAD') {
          await readBatchRun(c.get('scope'), path)
          return c.body(null, 200, headers)
        }
        const { id } = await exportBatch(c.get('scope'), path, format)
        return c.body(await streamExport(c, store, id, format), 200, headers)
      },
    )
}

const USUAL_SIZE = 20

/** The cases of a body, some at a time. */
async function readGiven(given: unknown[]) {
  const cases = []
  for (const [index, one] of given.entries()) {
    const { input, output, expectedOutput: expected } = readCase(one)
    cases.push({ input, output, expected })
    if (index % 500 === 499) await new Promise((resolve) => setImmediate(resolve))
  }
  return cases
}
