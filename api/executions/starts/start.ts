import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { readExecution } from '../../../db/executions/executions.ts'
import type { StartedExecution } from '../../../db/executions/starts/add.ts'
import { startExecution } from '../../../db/executions/starts/start.ts'
import { EXECUTION_STATUSES } from '../../../db/executions/status.ts'
import { Fault } from '../../../db/fault.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { ById, objectField, uuidField } from '../../http/fields.ts'
import { EXAMPLE_ID, idSchema, LOCATION_HEADER, timeSchema, warningsEntry } from '../../http/responses.ts'
import { carryOutEach } from '../../outbox.ts'
import { listWarnings, warnLargeNumbers, warnUnknownKeys } from '../../warnings.ts'
import { ExecutionSchema } from '../fields.ts'
import type { Seats } from '../seats.ts'
import { awaitEnd, PREFER_HEADER, readWait, waitMsField } from '../wait.ts'
import { callbackFields, checkCallback } from './callback.ts'
import { chosenVersionField } from './chosenversion.ts'
import { IDEMPOTENCY_HEADER, readIdempotencyKey } from './idempotency.ts'
import { pinnedField } from './pins.ts'

const NewExecution = v.pipe(
  v.object({
    teamId: uuidField,
    data: v.optional(objectField),
    pinned: pinnedField,
    version: chosenVersionField,
    ...callbackFields,
  }),
  checkCallback(),
)

/** The entries of a response that accepts an execution. */
export const startedEntries = {
  executionId: idSchema,
  status: v.pipe(
    v.picklist(EXECUTION_STATUSES),
    v.description('RUNNING if Temporal has already taken it, otherwise PENDING'),
    v.examples(['RUNNING']),
  ),
  startedAt: timeSchema,
  ...warningsEntry,
}

/** An execution as its own route shows it, with its id also where the response without a wait has it. */
const EndedExecutionSchema = v.pipe(
  v.object({ executionId: idSchema, ...ExecutionSchema.entries, ...warningsEntry }),
  v.title('EndedExecution'),
)

const BY_ID = { id: '$response.body#/executionId' }

/** The response of every route that starts an execution. */
export const STARTED_RESPONSE = {
  description: 'The execution is accepted',
  schema: v.pipe(v.object(startedEntries), v.title('StartedExecution')),
  headers: LOCATION_HEADER,
  links: { readExecution: { parameters: BY_ID }, cancelExecution: { parameters: BY_ID } },
}

/** The route that starts an execution by hand or over the API. */
export function createStartRoutes(deps: ApiDeps, seats: Seats) {
  return new Hono<AppEnv>().post(
    '/api/workflows/:id/execute',
    accept({
      id: 'executeWorkflow',
      tag: 'Workflows',
      summary: 'Execute a workflow',
      description:
        'Starts an execution at the MANUAL_TRIGGER, or at the first trigger if there is none, whether or ' +
        'not the workflow is active. The response does not wait for its end, unless `waitMs` or the header ' +
        '`Prefer: wait=<seconds>` asks for that: if the execution has ended by then, it is the response (200). ' +
        'A workflow without a trigger cannot be executed (409). With `version` a BUILDER tries the draft or another ' +
        'version than the published one (`draft`). A `callbackUrl` gets a POST with the ' +
        'ended execution, again and again for 24 hours until it responds with a status from 200 to 299.',
      role: 'OPERATOR',
      of: 'workflows',
      params: ById,
      query: v.object({ waitMs: waitMsField }),
      json: NewExecution,
      headers: { ...IDEMPOTENCY_HEADER, ...PREFER_HEADER },
      example: { teamId: EXAMPLE_ID, data: { order: 17 } },
      responses: {
        200: {
          description: 'The execution has ended within the time that the request was to wait',
          schema: EndedExecutionSchema,
          headers: LOCATION_HEADER,
        },
        202: STARTED_RESPONSE,
      },
      faults: [409],
    }),
    async (c) => {
      const {
        teamId,
        data = {},
        pinned,
        version,
        callbackUrl: url,
        callbackSecret: secret,
      } = c.req.valid('json')
      const { id } = c.req.valid('param')
      const input = {
        teamId,
        data,
        pinned,
        version,
        callback: url && secret ? { url, secret } : undefined,
        idempotencyKey: readIdempotencyKey(c),
        inputWarning: c.get('largeNumbers'),
        ...c.get('trace'),
      }
      const started = await startExecution(c.get('scope'), id, input)
      const { executionId, fresh } = started
      const wait = readWait(c, c.req.valid('query'))
      const awaited = wait.ms > 0 && awaitEnd(deps, c, executionId, { seats, fresh, ...wait })
      // It may be refused while the execution is still being started, before its result is awaited.
      if (awaited) awaited.catch(() => {})
      const response = await startAndRespond(deps, c, started)
      if (!(awaited && (await awaited.catch(ignoreThrottled)))) return response
      const ended = await readExecution(c.get('scope'), executionId, deps.temporalUi)
      return c.json({ executionId, ...ended, ...warnOfKeys(c) }, 200)
    },
  )
}

/**
 * The execution has been accepted, so too many waiting requests are no reason to refuse it: it is answered without a
 * wait.
 */
function ignoreThrottled(error: unknown): false {
  if (error instanceof Fault && ['THROTTLED', 'UNAVAILABLE'].includes(error.code)) return false
  throw error
}

/** The words of others for the data that an execution is started with. */
const DATA_WORDS = ['input', 'inputs', 'inputData', 'payload', 'body', 'json', 'variables', 'parameters']

const DATA_KEYS = Object.fromEntries(DATA_WORDS.map((word) => [word, 'data']))

function warnOfKeys(c: Context<AppEnv>) {
  return listWarnings([...warnUnknownKeys(c, DATA_KEYS), ...warnLargeNumbers(c)])
}

/**
 * Starts an accepted execution in Temporal and responds 202: RUNNING if Temporal took it, else PENDING. Keys of
 * the body that were not read become warnings.
 */
export async function startAndRespond(
  deps: ApiDeps,
  c: Context<AppEnv>,
  { fresh, queued, ...started }: StartedExecution,
) {
  c.header('Location', `/api/executions/${started.executionId}`)
  const taken = fresh && !queued && (await carryOutEach(deps, 'START', [started.executionId]))
  return c.json({ ...started, ...(taken ? { status: 'RUNNING' } : {}), ...warnOfKeys(c) }, 202)
}
