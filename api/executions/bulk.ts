import { Hono } from 'hono'
import * as v from 'valibot'
import { bulkCancel, bulkDelete, bulkRetry } from '../../db/executions/bulk.ts'
import { type ExecutionStatus, FINAL_STATUSES, OPEN_STATUSES } from '../../db/executions/status.ts'
import { strictObject } from '../../workflows/object.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { InTeam, instantField, uuidField } from '../http/fields.ts'
import { checkTimeRange } from '../http/query.ts'
import { countSchema, idSchema } from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'
import { versionChoiceField } from './starts/retry.ts'

const MAX_IDS = 1_000

/** Selects executions as the filter of the list does. If `ids` are given, only those among them. */
function filterField<const S extends ExecutionStatus>(statuses: readonly S[]) {
  return v.pipe(
    strictObject({
      status: v.optional(v.picklist(statuses, `must be one of ${statuses.join(', ')}`)),
      workflowId: v.optional(uuidField),
      from: v.optional(instantField),
      to: v.optional(instantField),
      ids: v.optional(
        v.pipe(
          v.array(uuidField, 'must be an array'),
          v.minLength(1, 'must not be empty'),
          v.maxLength(MAX_IDS, `must have at most ${MAX_IDS} entries`),
        ),
      ),
    }),
    v.check(
      (filter) => Object.values(filter).some((value) => value !== undefined),
      'must have at least one of status, workflowId, from, to, ids',
    ),
    checkTimeRange(),
    v.description(
      'The same fields as for listing executions, and `ids` (at most 1,000). An execution must match all ' +
        'fields that are given, and at least one must be given',
    ),
  )
}

const NewBulkCancel = v.object({ filter: filterField(OPEN_STATUSES) })
const NewBulkDelete = v.object({ filter: filterField(FINAL_STATUSES) })
const NewBulkRetry = v.object({ filter: filterField(['FAILED', 'CANCELLED']), version: versionChoiceField })

const skippedSchema = v.pipe(
  v.array(v.object({ id: idSchema, reason: v.pipe(v.string(), v.examples(['There is no such execution'])) })),
  v.maxLength(MAX_IDS),
  v.description('Executions that were left unchanged, and why; at most 1,000'),
)
const tallyEntries = {
  matched: v.pipe(countSchema, v.description('How many executions matched when the request arrived')),
  skipped: skippedSchema,
  remaining: v.pipe(countSchema, v.description('How many of them are left for another request')),
}

const CANCELLED_RESPONSE = {
  description: 'The executions were cancelled. They can only end CANCELLED now',
  schema: v.pipe(v.object({ ...tallyEntries, cancelled: countSchema }), v.title('BulkCancelled')),
}

const DELETED_RESPONSE = {
  description: 'The executions are deleted',
  schema: v.pipe(v.object({ ...tallyEntries, deleted: countSchema }), v.title('BulkDeleted')),
}

const RETRIED_RESPONSE = {
  description: 'The retries are accepted and will start without another request',
  schema: v.pipe(
    v.object({
      ...tallyEntries,
      retried: countSchema,
      executions: v.pipe(
        v.array(v.object({ executionId: idSchema, retriedFrom: idSchema })),
        v.maxLength(MAX_IDS),
        v.description('The new executions, and the ones that they retry'),
      ),
    }),
    v.title('BulkRetried'),
  ),
}

const EXAMPLE_FILTER = { status: 'FAILED', from: '2026-01-01T00:00:00Z' }

/** The routes that cancel, retry or delete many executions of a team. */
export function createBulkRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .post(
      '/api/executions/team/:teamId/cancel',
      accept({
        id: 'cancelExecutions',
        tag: 'Executions',
        summary: 'Cancel many executions',
        description:
          'Cancels the PENDING and RUNNING executions that match the filter, up to 10,000 in one request. ' +
          'Those that have not started yet are cancelled first. After the response they can only end ' +
          'CANCELLED.',
        role: 'OPERATOR',
        params: InTeam,
        json: NewBulkCancel,
        example: { filter: { status: 'RUNNING' } },
        responses: { 200: CANCELLED_RESPONSE },
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
          'Retries the FAILED and CANCELLED executions that match the filter and have not been retried ' +
          'yet, oldest first, each as retryExecution does; tests of drafts only if `ids` names them. One request retries up to 1,000, or as many as ' +
          'fit into 20 seconds.',
        role: 'OPERATOR',
        params: InTeam,
        json: NewBulkRetry,
        example: { filter: EXAMPLE_FILTER, version: 'current' },
        responses: { 200: RETRIED_RESPONSE },
      }),
      async (c) => {
        const { filter, version } = c.req.valid('json')
        return c.json(await bulkRetry(c.get('scope'), c.req.valid('param').teamId, filter, version))
      },
    )
    .post(
      '/api/executions/team/:teamId/delete',
      accept({
        id: 'deleteExecutions',
        tag: 'Executions',
        summary: 'Delete many executions',
        description:
          'Deletes the executions that match the filter and have ended, oldest first, each as deleteExecution does: up ' +
          'to 10,000 in one request, or as many as fit into 20 seconds. Those that are part of chats of somebody else ' +
          'do not match.',
        role: 'BUILDER',
        params: InTeam,
        json: NewBulkDelete,
        example: { filter: { status: 'SUCCESS', to: '2026-01-01T00:00:00Z' } },
        responses: { 200: DELETED_RESPONSE },
      }),
      async (c) => {
        const { filter } = c.req.valid('json')
        const { ids, ...tally } = await bulkDelete(c.get('scope'), c.req.valid('param').teamId, filter)
        await carryOutEach(deps, 'DELETE', ids)
        return c.json(tally)
      },
    )
}
