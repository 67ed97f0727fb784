import type { Context } from 'hono'
import type { StatusCode } from 'hono/utils/http-status'
import type { Logger } from 'pino'
import * as v from 'valibot'
import { writeDisposition } from '../../../activities/files/disposition.ts'
import { readExecution } from '../../../db/executions/executions.ts'
import type { StartedExecution } from '../../../db/executions/starts/add.ts'
import {
  awaitAnswer,
  leaveAnswer,
  readWebhookAnswer,
  type Webhook,
  type WebhookAnswer,
} from '../../../db/executions/starts/webhooks.ts'
import { isEnded } from '../../../db/executions/status.ts'
import { Fault } from '../../../db/fault.ts'
import { findFile } from '../../../db/files/files.ts'
import { type Scope, serviceScope } from '../../../db/scope.ts'
import { isItemList, itemsOf } from '../../../workflows/input.ts'
import { filesOf, withoutFiles } from '../../../workflows/itemfiles.ts'
import { getOwn, isObject } from '../../../workflows/json.ts'
import { findHeaderFault, type WebhookRespond } from '../../../workflows/nodes/webhooks.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { sendFile } from '../../files/send.ts'
import { describeError } from '../../http/errors.ts'
import { ErrorSchema, idSchema, type ResponseSpec } from '../../http/responses.ts'
import { carryOutEach } from '../../outbox.ts'
import { waitFor } from '../wait.ts'
import { startAwaited } from './awaited.ts'

/**
 * Gives a page that a workflow responds with an origin of its own. In the console's origin its scripts could
 * act as the user who is signed in there.
 */
const SANDBOX = 'sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts'

const WebhookErrorSchema = v.pipe(
  v.object({ ...ErrorSchema.entries, executionId: v.optional(idSchema) }),
  v.title('WebhookError'),
)

/** The responses, besides 202, of a webhook whose trigger waits for the execution. */
export const AWAITED_RESPONSES: Record<500 | 504 | 'default', ResponseSpec> = {
  default: {
    description:
      "With responseMode lastNode, 200 and the execution's output as JSON. With responseNode, the response " +
      'that the RESPOND_TO_WEBHOOK node defines',
    type: '*/*',
  },
  500: {
    description: 'The execution failed, was cancelled, or ended without a response',
    schema: WebhookErrorSchema,
  },
  504: { description: 'There was no response in time. The execution continues', schema: WebhookErrorSchema },
}

/**
 * Starts the execution of a webhook in Temporal and responds with its answer, or with how it ended. The
 * execution continues if the caller disconnects or the time limit is over.
 */
export async function startAndRelayAnswer(
  deps: ApiDeps,
  c: Context<AppEnv>,
  hook: Webhook,
  started: StartedExecution,
): Promise<Response> {
  const { executionId } = started
  const { mode, timeoutMs } = hook.response
  const { stopping } = deps.bus
  const patience = { ms: timeoutMs, request: c.req.raw.signal }
  const outcome = await startAndAwait(deps, hook, started, { ...patience, log: c.get('log') })
  c.header('Location', `/api/executions/${executionId}`)
  const refuse = (status: 500 | 504, message: string) =>
    c.json({ ...describeError(c.req.path, status, message), executionId }, status)
  if (!outcome) {
    const why = stopping.aborted
      ? 'The service is stopping'
      : `The execution has not responded within ${timeoutMs} ms`
    return refuse(504, `${why}; the execution continues`)
  }
  if (outcome.answer?.fileId !== undefined) return sendFileAnswer(deps, c, executionId, outcome)
  if (outcome.answer) return sendAnswer(c, outcome.answer)
  if (outcome.status !== 'SUCCESS') return refuse(500, END_MESSAGES[outcome.status] ?? 'The execution failed')
  const { respond } = hook.response
  if (mode === 'responseNode' && respond) return sendAnswer(c, { status: 200, headers: {}, body: null })
  if (mode === 'responseNode') return refuse(500, 'The execution ended without a response')
  if (respond?.data === 'file') return sendLastFile(deps, c, executionId, respond, outcome)
  return respond ? sendLast(c, respond, outcome.output) : c.json(outcome.output, 200)
}

/** Starts the execution of a webhook that says what its callers get at once. */
export async function startAndAcknowledge(
  deps: ApiDeps,
  c: Context<AppEnv>,
  { executionId, fresh, queued }: StartedExecution,
  respond: WebhookRespond,
): Promise<Response> {
  if (fresh && !queued) void carryOutEach(deps, 'START', [executionId])
  c.header('Location', `/api/executions/${executionId}`)
  const body = respond.data === 'none' ? null : (respond.text ?? { message: 'Workflow was started' })
  return sendAnswer(c, { status: respond.status ?? 200, headers: withType(respond, body), body })
}

/** Sends the first item that left the node which ended last, all of its items, or nothing. */
function sendLast(c: Context<AppEnv>, respond: WebhookRespond, output: unknown): Response {
  const { data = 'first', status = 200, field } = respond
  const items = itemsOf(findLast(output, respond.ends ?? [])).map(withoutFiles)
  if (data === 'first' && items.length === 0) {
    const message = 'No item to return was found'
    return c.json(describeError(c.req.path, 500, message), 500)
  }
  const [first] = items
  const one = field === undefined ? first : readPath(first, field)
  const body = data === 'none' ? null : data === 'all' ? items : (one ?? null)
  return sendAnswer(c, { status, headers: withType(respond, body), body })
}

/** Sends a file of the first item that left the node which ended last: the one of that name, or the first. */
async function sendLastFile(
  deps: ApiDeps,
  c: Context<AppEnv>,
  executionId: string,
  respond: WebhookRespond,
  outcome: WebhookOutcome,
): Promise<Response> {
  const [first] = itemsOf(findLast(outcome.output, respond.ends ?? []))
  const files = filesOf(first) ?? {}
  const file = respond.field === undefined ? Object.values(files)[0] : getOwn(files, respond.field)
  const fileId: unknown = Object(Object(file).file).id
  if (typeof fileId !== 'string') {
    const message = 'No file to return was found'
    return c.json(describeError(c.req.path, 500, message), 500)
  }
  const { status = 200 } = respond
  const answer = { status, headers: withType(respond, null), body: null, fileId }
  return sendFileAnswer(deps, c, executionId, { ...outcome, answer })
}

/** A field of an item, by its name or by a path with dots. */
function readPath(item: unknown, path: string): unknown {
  if (getOwn(Object(item), path) !== undefined) return getOwn(Object(item), path)
  return path.split('.').reduce<unknown>((value, key) => getOwn(Object(value), key), item)
}

function withType({ headers = {}, contentType }: WebhookRespond, body: unknown): Record<string, string> {
  const type = contentType ?? (typeof body === 'string' ? 'text/html; charset=utf-8' : undefined)
  const given = Object.entries(headers).map(([name, value]) => [name, String(value)])
  return { ...(type === undefined ? {} : { 'content-type': type }), ...Object.fromEntries(given) }
}

/** From an output that combines those of several nodes, by their ids, the one of the node that is last in `ends`. */
function findLast(output: unknown, ends: string[]): unknown {
  if (!isObject(output) || isItemList(output)) return output
  const last = ends.findLast((id) => Object.hasOwn(output, id))
  const known = new Set(ends)
  const isOfNodes = last !== undefined && Object.keys(output).every((id) => known.has(id))
  return isOfNodes ? output[last] : output
}

/**
 * `answer` is set by a RESPOND_TO_WEBHOOK node (mode responseNode), `output` is the execution's (lastNode).
 */
type WebhookOutcome = {
  status: string
  answer: WebhookAnswer | null
  output: unknown
  /** Notes that the request no longer waits. Only an answer that is a file leaves that to its end. */
  leave: () => Promise<void>
}

/** Resolves once the execution has ended or has an answer; with undefined if `signal` is aborted first. */
async function startAndAwait(
  deps: ApiDeps,
  hook: Webhook,
  { executionId, fresh, queued }: StartedExecution,
  { log, ...patience }: { ms: number; request: AbortSignal; log: Logger },
): Promise<WebhookOutcome | undefined> {
  const { mode } = hook.response
  // Outputs that will not be kept (saveData) stay for as long as a request waits for them.
  const held = mode === 'responseNode' || !hook.workflow.settings.saveData.outputs
  if (held) await awaitAnswer(deps.store, executionId)
  const early = mode === 'responseNode'
  const waiting = waitFor(deps.bus, executionId, { ...patience, fresh, early }, async (isStored) => {
    if (isStored && mode === 'lastNode') return readEnd(deps, hook, executionId)
    const reply = await readWebhookAnswer(deps.store, executionId)
    if (!reply) return DELETED
    if (mode === 'lastNode') return isEnded(reply.status) ? readEnd(deps, hook, executionId) : undefined
    return reply.answer || isEnded(reply.status) ? { ...reply, output: null } : undefined
  })
  const start = fresh && !queued ? startAwaited(deps, executionId) : undefined
  const found = await waiting
    .then((outcome) => {
      if (outcome) start?.end(outcome.status)
      return outcome
    })
    .finally(() => void start?.leave())
  const leave = async () => {
    if (!held) return
    await leaveAnswer(deps.store, executionId).catch((err) =>
      log.warn({ err, executionId }, 'could not remove the answer of a webhook'),
    )
  }
  if (found?.answer?.fileId === undefined) void leave()
  return found && { ...found, leave }
}

const DELETED = { status: 'DELETED', answer: null, output: null }

/** How an execution has ended, with its output. */
async function readEnd(deps: ApiDeps, hook: Webhook, executionId: string) {
  try {
    const { status, outputData } = await readExecution(makeWebhookScope(deps, hook), executionId)
    return { status, answer: null, output: outputData }
  } catch (error) {
    if (error instanceof Fault && error.code === 'NOT_FOUND') return DELETED
    throw error
  }
}

// The caller does not learn what went wrong: only the execution's team may read that.
const END_MESSAGES: Record<string, string> = {
  FAILED: 'The execution failed',
  CANCELLED: 'The execution was cancelled',
  DELETED: 'The execution was deleted',
}

/** The statuses of responses that have no body. */
const BODILESS = [204, 205, 304]

/** Sends a file of the execution, which stays as long as that takes. */
async function sendFileAnswer(
  { store }: ApiDeps,
  c: Context<AppEnv>,
  executionId: string,
  { answer, leave }: WebhookOutcome,
): Promise<Response> {
  const { status, headers, fileId } = answer!
  if (BODILESS.includes(status)) {
    void leave()
    return sendAnswer(c, answer!)
  }
  const file = await findFile(store, executionId, fileId!)
  if (!file) {
    void leave()
    return c.json({ ...describeError(c.req.path, 500, 'The file has been deleted'), executionId }, 500)
  }
  const own = Object.entries(headers).filter(([name, value]) => findHeaderFault(name, value) === undefined)
  const given = {
    'content-security-policy': SANDBOX,
    'content-disposition': writeDisposition('attachment', file.name),
    ...Object.fromEntries(own),
  }
  return sendFile(c, store, file, given, { status, close: leave })
}

function sendAnswer(c: Context<AppEnv>, { status, headers, body }: WebhookAnswer): Response {
  const empty = body === null || BODILESS.includes(status)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json'
  if (!empty) c.header('Content-Type', type)
  c.header('Content-Security-Policy', SANDBOX)
  // Checked again: a process of another release, with other rules, may have executed the node.
  for (const [name, value] of Object.entries(headers)) {
    if (findHeaderFault(name, value) === undefined) c.header(name, value)
  }
  c.status(status as StatusCode)
  return empty ? c.body(null) : c.body(text)
}

function makeWebhookScope({ store }: ApiDeps, { workflow }: Webhook): Scope {
  const actor = { kind: 'SYSTEM', id: null, name: 'webhook' } as const
  return serviceScope(store, actor, [[workflow.teamId, 'VIEWER']])
}
