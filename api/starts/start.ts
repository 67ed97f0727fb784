import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { EXECUTION_STATUSES } from '../../db/executions/status.ts'
import { type StartedExecution, startExecution } from '../../db/starts/start.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, objectField, uuidField } from '../http/fields.ts'
import { EXAMPLE_ID, idSchema, LOCATION_HEADER, timeSchema } from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'
import { IDEMPOTENCY_HEADER, readIdempotencyKey } from './idempotency.ts'
import { pinnedField } from './pins.ts'

const NewExecution = v.object({
  teamId: uuidField,
  data: v.optional(objectField),
  pinned: pinnedField,
})

/** The entries of a response that accepts an execution. */
export const startedEntries = {
  executionId: idSchema,
  status: v.pipe(
    v.picklist(EXECUTION_STATUSES),
    v.description('RUNNING if Temporal has already taken it, otherwise PENDING'),
    v.examples(['RUNNING']),
  ),
  startedAt: timeSchema,
}

const BY_ID = { id: '$response.body#/executionId' }

/** The response of every route that starts an execution. */
export const STARTED_RESPONSE = {
  description: 'The execution is accepted',
  schema: v.pipe(v.object(startedEntries), v.title('StartedExecution')),
  headers: LOCATION_HEADER,
  links: { readExecution: { parameters: BY_ID }, cancelExecution: { parameters: BY_ID } },
}

/** The route that starts an execution by hand or over the API. */
export function createStartRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>().post(
    '/api/workflows/:id/execute',
    accept({
      id: 'executeWorkflow',
      tag: 'Workflows',
      summary: 'Execute a workflow',
      description:
        'Starts an execution at the MANUAL_TRIGGER, or at the first trigger if there is none, whether or ' +
        'not the workflow is active. The response does not wait for its end: poll or follow the execution. ' +
        'A workflow without a trigger cannot be executed (409).',
      role: 'OPERATOR',
      of: 'workflows',
      params: ById,
      json: NewExecution,
      headers: IDEMPOTENCY_HEADER,
      example: { teamId: EXAMPLE_ID, data: { order: 17 } },
      responses: { 202: STARTED_RESPONSE },
      faults: [409],
    }),
    async (c) => {
      const { teamId, data = {}, pinned } = c.req.valid('json')
      const { id } = c.req.valid('param')
      const input = {
        teamId,
        data,
        pinned,
        idempotencyKey: readIdempotencyKey(c),
        traceparent: c.get('traceparent'),
      }
      return startAndRespond(deps, c, await startExecution(c.get('scope'), id, input))
    },
  )
}

/** Starts an accepted execution in Temporal and responds 202: RUNNING if Temporal took it, else PENDING. */
export async function startAndRespond(
  deps: ApiDeps,
  c: Context<AppEnv>,
  { fresh, queued, ...started }: StartedExecution,
) {
  c.header('Location', `/api/executions/${started.executionId}`)
  const taken = fresh && !queued && (await carryOutEach(deps, 'START', [started.executionId]))
  return c.json(taken ? { ...started, status: 'RUNNING' } : started, 202)
}
