import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { bulkCancel, bulkRetry } from '../db/bulk.ts'
import type { STATUSES } from '../db/listing.ts'
import { type Choice, type Recovery, recoverExecution } from '../db/retry.ts'
import { object } from '../workflows/object.ts'
import { accept, ById, InTeam, uuid } from './accept.ts'
import { count, id, LOCATION } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { answerStarted, STARTED, started } from './executions.ts'
import { ONCE, readKey } from './headers.ts'
import { instant, isForward } from './query.ts'

const MAX_IDS = 1_000
const CHOICES = ['same', 'current'] as const

const version = v.pipe(
  v.optional(v.picklist(CHOICES, `must be one of ${CHOICES.join(', ')}`), 'same'),
  v.description("Of the graph: the version that the run had, or the workflow's newest"),
)
const HowRecovered = v.object({ version })

const RECOVERED = {
  ...STARTED,
  schema: v.pipe(
    v.object({
      ...started,
      retriedFrom: id,
      recovery: v.picklist(['RETRY', 'RERUN']),
      workflowVersion: v.pipe(v.number(), v.integer(), v.minValue(1)),
      takenOver: v.pipe(
        v.array(v.string()),
        v.description('The nodes whose outputs are taken over instead of being run'),
        v.examples([['fetch']]),
      ),
    }),
    v.title('RecoveredExecution'),
  ),
  headers: LOCATION,
}

/** What the routes that take up one run have in common. */
const RECOVERY = {
  tag: 'Executions',
  role: 'OPERATOR',
  of: 'executions',
  params: ById,
  json: HowRecovered,
  headers: ONCE,
  responses: { 202: RECOVERED },
  faults: [409],
} as const

/** Which runs: as the list's filter says, and of those the ones that are named. */
function filterOf<const S extends (typeof STATUSES)[number]>(statuses: readonly S[]) {
  return v.pipe(
    object({
      status: v.optional(v.picklist(statuses, `must be one of ${statuses.join(', ')}`)),
      workflowId: v.optional(uuid),
      from: v.optional(instant),
      to: v.optional(instant),
      ids: v.optional(
        v.pipe(
          v.array(uuid, 'must be an array'),
          v.minLength(1, 'must not be empty'),
          v.maxLength(MAX_IDS, `must have at most ${MAX_IDS} entries`),
        ),
      ),
    }),
    v.check(
      (filter) => Object.values(filter).some((value) => value !== undefined),
      'must name at least one thing',
    ),
    v.forward(v.check(isForward, 'must not be after to'), ['from'] as never),
    v.description('As in the list; all that it names must hold. `ids` are 1,000 at most'),
  )
}

const Cancelled = v.object({ filter: filterOf(['PENDING', 'RUNNING']) })
const Retried = v.object({ filter: filterOf(['FAILED', 'CANCELLED']), version })

const skipped = v.pipe(
  v.array(v.object({ id, reason: v.pipe(v.string(), v.examples(['There is no such execution'])) })),
  v.maxLength(MAX_IDS),
  v.description('The first 1,000 that were left as they are'),
)
const tally = {
  matched: v.pipe(count, v.description('Runs that the filter found before the call')),
  skipped,
  remaining: v.pipe(count, v.description('Of those matched, how many are left for another call')),
}
const CANCELLED = {
  description: 'They can end only CANCELLED now',
  schema: v.pipe(v.object({ ...tally, cancelled: count }), v.title('BulkCancelled')),
}
const RETRIED = {
  description: 'The retries are accepted and start by themselves',
  schema: v.pipe(
    v.object({
      ...tally,
      retried: count,
      executions: v.pipe(
        v.array(v.object({ executionId: id, retriedFrom: id })),
        v.maxLength(MAX_IDS),
        v.description('The new runs'),
      ),
    }),
    v.title('BulkRetried'),
  ),
}

const EXAMPLE_FILTER = { status: 'FAILED', from: '2026-01-01T00:00:00Z' }

/** Taking up runs that have ended, one or many, and ending many. */
export function createRecoveryRoutes(deps: ApiDeps) {
  const recover = async (c: Context<AppEnv>, how: Recovery, id: string, version: Choice) => {
    const asked = { version, idempotencyKey: readKey(c), traceparent: c.get('traceparent') }
    return answerStarted(deps, c, await recoverExecution(c.get('scope'), id, how, asked))
  }
  return new Hono<AppEnv>()
    .post(
      '/api/executions/:id/retry',
      accept({
        id: 'retryExecution',
        summary: 'Retry an execution from its failed nodes on',
        description:
          'A new run with the same trigger and input. Taken over, and marked by `takenFrom`, is the output of each ' +
          'node that succeeded and whose type, config and all nodes upstream are unchanged in the version that is ' +
          'run; a loop as a whole, unless an iteration of it failed. A failed node runs anew, also where its error ' +
          'was handled, and so does all after it. 409 unless the run ended FAILED or CANCELLED, and where its values ' +
          'were not kept. Of a run with pinned outputs, or of one node: BUILDER and up.',
        ...RECOVERY,
        example: { version: 'same' },
      }),
      (c) => recover(c, 'RETRY', c.req.valid('param').id, c.req.valid('json').version),
    )
    .post(
      '/api/executions/:id/rerun',
      accept({
        id: 'rerunExecution',
        summary: 'Run an execution again from the start',
        description:
          'A new run with the same trigger and input, and the same pinned outputs if there are any. 409 while the ' +
          'run is under way, and where its input was not kept.',
        ...RECOVERY,
        example: { version: 'current' },
      }),
      (c) => recover(c, 'RERUN', c.req.valid('param').id, c.req.valid('json').version),
    )
    .post(
      '/api/executions/team/:teamId/cancel',
      accept({
        id: 'cancelExecutions',
        tag: 'Executions',
        summary: 'Cancel many executions',
        description:
          'Those under way that fit the filter, those not started first, 10,000 in one call. From now on they can ' +
          'only end CANCELLED.',
        role: 'OPERATOR',
        params: InTeam,
        json: Cancelled,
        example: { filter: { status: 'RUNNING' } },
        responses: { 200: CANCELLED },
      }),
      async (c) => {
        const { filter } = c.req.valid('json')
        return c.json(await bulkCancel(c.get('scope'), c.req.valid('param').teamId, filter))
      },
    )
    .post(
      '/api/executions/team/:teamId/retry',
      accept({
        id: 'retryExecutions',
        tag: 'Executions',
        summary: 'Retry many executions',
        description:
          'Those that ended FAILED or CANCELLED, fit the filter and have not been retried yet, the oldest first, as ' +
          'one call of retryExecution each; up to 1,000 in one call, or as many as 20 seconds allow.',
        role: 'OPERATOR',
        params: InTeam,
        json: Retried,
        example: { filter: EXAMPLE_FILTER, version: 'current' },
        responses: { 200: RETRIED },
      }),
      async (c) => {
        const { filter, version } = c.req.valid('json')
        return c.json(await bulkRetry(c.get('scope'), c.req.valid('param').teamId, filter, version))
      },
    )
}
