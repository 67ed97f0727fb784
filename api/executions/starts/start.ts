import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { readExecution } from '../../../db/executions/executions.ts'
import type { StartedExecution } from '../../../db/executions/starts/add.ts'
import { startExecution } from '../../../db/executions/starts/start.ts'
import { EXECUTION_STATUSES } from '../../../db/executions/status.ts'
import { Fault } from '../../../db/fault.ts'
import type { Problem } from '../../../workflows/problem.ts'
import type { BodyReader } from '../../bodies/away.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { ById, boundedString, objectField, uuidField } from '../../http/fields.ts'
import { EXAMPLE_ID, idSchema, LOCATION_HEADER, timeSchema, warningsEntry } from '../../http/responses.ts'
import { carryOutEach } from '../../outbox.ts'
import { listWarnings, warnLargeNumbers, warnUnknownKeys } from '../../warnings.ts'
import { ExecutionSchema } from '../fields.ts'
import type { Seats } from '../seats.ts'
import { awaitEnd, PREFER_HEADER, readWait, waitMsField } from '../wait.ts'
import { startAwaited } from './awaited.ts'
import { callbackFields, checkCallback } from './callback.ts'
import { chosenVersionField } from './chosenversion.ts'
import { startWithFiles } from './hookcall.ts'
import { IDEMPOTENCY_HEADER, readIdempotencyKey } from './idempotency.ts'
import { pinnedField } from './pins.ts'
import { checkOneInput, createRequestReader, requestSchema, warnBodiless } from './request.ts'

const NewExecution = v.pipe(
  v.object({
    teamId: uuidField,
    data: v.optional(objectField),
    request: v.pipe(
      v.optional(requestSchema),
      v.description(
        'In place of `data`, where the execution starts at a WEBHOOK_TRIGGER: a call, which becomes the ' +
          'output of the trigger as a real one does',
      ),
    ),
    trigger: v.pipe(
      v.optional(boundedString(100)),
      v.description('The id of the trigger to start at; default: the MANUAL_TRIGGER, else the first one'),
    ),
    until: v.pipe(
      v.optional(boundedString(100)),
      v.description(
        'Needs the role BUILDER or higher. The id of a node outside of loops: only this node and what leads ' +
          'to it are executed',
      ),
    ),
    reuseFrom: v.pipe(
      v.optional(uuidField),
      v.description(
        'Needs the role BUILDER or higher. An ended execution of the workflow: its input is used, and the ' +
          'outputs of its nodes are reused as in a retry, but not that of `until`',
      ),
    ),
    pinned: pinnedField,
    version: chosenVersionField,
    ...callbackFields,
  }),
  checkCallback(),
  checkOneInput(),
)

type GivenInput = Pick<
  v.InferOutput<typeof NewExecution>,
  'teamId' | 'data' | 'request' | 'trigger' | 'version'
>

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

const takenOverField = v.pipe(
  v.optional(v.array(v.string())),
  v.description('With `reuseFrom`: the nodes that are not executed again, because their outputs are reused'),
  v.examples([['fetch']]),
)

/** An execution as its own route shows it, with its id also where the response without a wait has it. */
const EndedExecutionSchema = v.pipe(
  v.object({
    executionId: idSchema,
    ...ExecutionSchema.entries,
    takenOver: takenOverField,
    ...warningsEntry,
  }),
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

const EXECUTED_RESPONSE = {
  ...STARTED_RESPONSE,
  schema: v.pipe(
    v.object({
      ...startedEntries,
      takenOver: takenOverField,
    }),
    v.title('ExecutedWorkflow'),
  ),
}

/** The route that starts an execution by hand or over the API. */
export function createStartRoutes(deps: ApiDeps, seats: Seats, readAway: BodyReader) {
  const readRequest = createRequestReader(deps, readAway)
  const readInput = async (c: Context<AppEnv>, id: string, given: GivenInput) => {
    const { teamId, data, request, trigger, version } = given
    if (!request) return { data, trigger, version, call: undefined }
    const { hook, call, files, warning } = await readRequest(c.get('scope'), id, {
      teamId,
      trigger,
      version,
      request,
    })
    return {
      data: { ...call },
      trigger: hook.node.id,
      version,
      call: { asked: request, files },
      ...(warning === undefined ? {} : { inputWarning: warning }),
    }
  }
  return new Hono<AppEnv>().post(
    '/api/workflows/:id/execute',
    accept({
      id: 'executeWorkflow',
      tag: 'Workflows',
      summary: 'Execute a workflow',
      description:
        'Starts an execution at the MANUAL_TRIGGER, or at the first trigger if there is none, or at ' +
        '`trigger`, whether or not the workflow is active. The output of the trigger is `data`; for a ' +
        'WEBHOOK_TRIGGER, `request` describes a call that is read as a real one, except that neither secret ' +
        'nor signature is asked for. The response does not wait for its end, unless `waitMs` or the header ' +
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
        202: EXECUTED_RESPONSE,
      },
      faults: [409],
    }),
    async (c) => {
      const {
        teamId,
        pinned,
        callbackUrl: url,
        callbackSecret: secret,
        until,
        reuseFrom,
        ...given
      } = c.req.valid('json')
      const { id } = c.req.valid('param')
      const { data, ...more } = await readInput(c, id, { teamId, ...given })
      const input = {
        teamId,
        data,
        pinned,
        until,
        reuseFrom,
        callback: url && secret ? { url, secret } : undefined,
        idempotencyKey: readIdempotencyKey(c),
        inputWarning: c.get('largeNumbers'),
        ...more,
        ...c.get('trace'),
      }
      const { start, ...started } = await startWithFiles(deps.store, more.call?.files ?? [], () =>
        startExecution(c.get('scope'), id, input),
      )
      const warnings = reuseFrom === undefined ? warnBodiless(start, data) : []
      const wait = readWait(c, c.req.valid('query'))
      if (wait.ms === 0) return startAndRespond(deps, c, started, warnings)
      return startAndAwait(deps, c, started, { ...wait, seats, warnings })
    },
  )
}

/** Starts an accepted execution in Temporal, and responds with its end, or 202 if that does not come in time. */
async function startAndAwait(
  deps: ApiDeps,
  c: Context<AppEnv>,
  { takenOver, ...started }: StartedExecution & { takenOver?: string[] },
  { warnings, ...wait }: { ms: number; preferred?: string; seats: Seats; warnings: Problem[] },
) {
  const { executionId, fresh, queued } = started
  const ending = awaitEnd(deps, c, executionId, { fresh, ...wait })
  const start = fresh && !queued ? startAwaited(deps, executionId) : undefined
  const reused = takenOver ? { takenOver } : {}
  try {
    if (!(await ending.catch(ignoreThrottled))) {
      const taken = (await start?.leave()) ?? false
      return respondStarted(c, { ...started, ...reused }, taken, warnings)
    }
    const ended = await readExecution(c.get('scope'), executionId, deps.temporalUi)
    start?.end(ended.status)
    c.header('Location', locate(executionId))
    return c.json({ executionId, ...ended, ...reused, ...listWarnings([...warnOfKeys(c), ...warnings]) }, 200)
  } finally {
    void start?.leave()
  }
}

const locate = (executionId: string) => `/api/executions/${executionId}`

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
  return [...warnUnknownKeys(c, DATA_KEYS), ...warnLargeNumbers(c)]
}

/**
 * Starts an accepted execution in Temporal and responds 202: RUNNING if Temporal took it, else PENDING. Keys of
 * the body that were not read become warnings, beside `warnings`.
 */
export async function startAndRespond(
  deps: ApiDeps,
  c: Context<AppEnv>,
  started: StartedExecution,
  warnings: Problem[] = [],
) {
  const { executionId, fresh, queued } = started
  const taken = fresh && !queued && (await carryOutEach(deps, 'START', [executionId]))
  return respondStarted(c, started, taken, warnings)
}

/** Responds 202; `taken`: Temporal has the execution. */
function respondStarted(
  c: Context<AppEnv>,
  { fresh, queued, ...started }: StartedExecution,
  taken: boolean,
  warnings: Problem[],
) {
  c.header('Location', locate(started.executionId))
  return c.json(
    { ...started, ...(taken ? { status: 'RUNNING' } : {}), ...listWarnings([...warnOfKeys(c), ...warnings]) },
    202,
  )
}
