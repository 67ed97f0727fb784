import type { Connector, ConnectorAction, ConnectorStep } from '../../workflows/connectors/connector.ts'
import { isReading } from '../../workflows/connectors/connector.ts'
import { isObject } from '../../workflows/json.ts'
import { MAX_FILE_BYTES } from '../../workflows/nodes/files.ts'
import type { HttpPass } from '../credentials/authorize.ts'
import { createPacer } from '../expressions/pace.ts'
import type { FileValue } from '../files/files.ts'
import { isJsonType } from '../http/body.ts'
import type { HttpResponse } from '../http/http.ts'
import { HttpError } from '../http/httperror.ts'
import { findMessage, isUnsent } from '../models/failures.ts'
import { EXCERPT_BYTES, excerptBody, requestFailure } from '../nodes/http.ts'
import { invalidConfig } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { buildRequest } from '../nodes/kit/request.ts'
import { readBody } from '../nodes/kit/response.ts'
import { refuseStatus } from '../nodes/kit/retryafter.ts'
import { decodeText } from '../reading/charset.ts'
import type { Handover } from '../send/once.ts'
import { placeParameters } from './parameters.ts'

/** An action that is carried out, with all that it needs. */
export type ActionCall = {
  connector: Pick<Connector, 'title'>
  action: Pick<ConnectorAction, 'name' | 'safety' | 'steps' | 'result'>
  /** The address that paths follow. */
  server: string
  /** Checked against the action's schema. */
  input: Record<string, unknown>
  pass: HttpPass | undefined
  /** Rather done twice than not at all. */
  repeat: boolean
  /** Whether there may be further attempts, for which its requests are noted. */
  noted: boolean
}

/** The answer to a request of an action. `body` is JSON, a text, a file value, or null. */
export type Answer = { status: number; headers: Record<string, string>; body: unknown; bytes: number }

/** The part of a request beyond its step: that which leads to a further page. */
export type Further = { url?: string; query?: Record<string, unknown>; body?: Record<string, unknown> }

const UNNOTED: Handover = { begin: async () => {}, refused: () => {} }

/**
 * Sends one request of an action. Tells the handover when it may have an effect, and when it certainly had none: a
 * connection that was never made, and every refusal but 408 and 5xx.
 */
export async function sendStep(
  context: NodeContext,
  call: ActionCall,
  step: ConnectorStep,
  handover = UNNOTED,
  further: Further = {},
): Promise<Answer> {
  const rendered = await renderStep(context, call, step, further)
  const { request } = await buildRequest(rendered, { pass: call.pass, encodes: true })
  const saving = saveFile(context, step, await renderName(context, step))
  await handover.begin()
  const { title } = call.connector
  let response: HttpResponse
  try {
    const redirects = isReading(step.method) ? 'follow' : 'none'
    response = await context.http.request({ ...request, redirects, ...saving.request })
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    if (isUnsent(error)) handover.refused()
    context.signal.throwIfAborted()
    throw requestFailure(title, error)
  }
  const { status, headers } = response
  const isDone = handover.again === true && step.done?.includes(status)
  if (status >= 300 && !step.takes?.includes(status) && !isDone) {
    if (status < 500 && status !== 408 && status >= 400) handover.refused()
    const said = findMessage(decodeText(response.body.subarray(0, EXCERPT_BYTES), headers['content-type']))
    const excerpt = excerptBody(said, request, context.credentials?.secrets())
    throw refuseStatus(`${title} responded with ${status}`, excerpt, response, { busy: isLimit(response) })
  }
  const body = saving.file ?? (await readAnswer(context, step, response, title))
  return { status, headers, body, bytes: response.body.length }
}

/** Whether a refusal says that there were too many requests: some services have no 429 for that. */
function isLimit({ status, headers, body }: HttpResponse): boolean {
  if (status !== 403) return false
  if (headers['retry-after'] !== undefined || headers['x-ratelimit-remaining'] === '0') return true
  const text = Buffer.from(body.subarray(0, EXCERPT_BYTES)).toString('latin1')
  return /"(?:user)?rateLimitExceeded"/i.test(text)
}

/** The context of a request: what the step says as the config of an HTTP request, its values as `$args`. */
async function renderStep(
  context: NodeContext,
  { server, input }: ActionCall,
  step: ConnectorStep,
  further: Further,
): Promise<NodeContext> {
  const { evaluator, bindings } = context
  const placed = step.parameters && placeParameters(step.parameters, input)
  const path = placed ? placed.path(step.path) : step.path
  const given = step.bodyOf === undefined ? undefined : pickBody(input, step.bodyOf)
  const rendered = step.body === undefined ? given : await evaluator.render(step.body, bindings)
  const body =
    isObject(rendered) && isObject(step.body) ? { ...withoutNulls(rendered), ...further.body } : rendered
  const args = { ...Object(bindings.args), body, query: further.query, headers: placed?.headers }
  const named = (from: Record<string, unknown> | undefined, at: string) =>
    Object.fromEntries(Object.keys(from ?? {}).map((key) => [key, `{{ $args.${at}.\`${key}\` }}`]))
  const config = {
    method: step.method,
    url: further.url ?? (/^https?:/.test(path) ? path : server + path),
    query: { ...step.query, ...named(further.query, 'query') },
    headers: { accept: ACCEPT[step.answer ?? 'json'], ...step.headers, ...named(placed?.headers, 'headers') },
    ...(body === undefined ? {} : { body: '{{ $args.body }}', bodyType: step.bodyType ?? 'json' }),
    ...(step.contentType === undefined ? {} : { contentType: step.contentType }),
    ...(step.answer === 'file' ? { responseType: 'file' } : {}),
  }
  return { ...context, config, bindings: { ...bindings, args } }
}

const ACCEPT = { json: 'application/json', text: '*/*', file: '*/*' }

function pickBody(input: Record<string, unknown>, of: string | readonly string[]): unknown {
  if (typeof of === 'string') return input[of]
  const entries = Object.entries(input).filter(([key]) => of.includes(key))
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

function withoutNulls(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null && one !== undefined))
}

async function renderName(
  { evaluator, bindings }: NodeContext,
  { fileName }: ConnectorStep,
): Promise<string> {
  const name = fileName === undefined ? undefined : await evaluator.render(fileName, bindings)
  return typeof name === 'string' && name !== '' ? name : 'file'
}

/** Has the body of an answer become a file of the execution as it comes, where the step wants that. */
function saveFile({ files }: NodeContext, step: ConnectorStep, name: string) {
  const saving: {
    request: Pick<Parameters<NodeContext['http']['request']>[0], 'save' | 'saveBytes'>
    file?: FileValue
  } = { request: {} }
  if (step.answer !== 'file') return saving
  if (!files) throw invalidConfig('action', 'answers with a file, which only an execution can keep')
  saving.request = {
    saveBytes: MAX_FILE_BYTES,
    save: ({ status, headers }) => {
      if (status >= 300) return undefined
      const mimeType = step.fileType ?? headers['content-type'] ?? 'application/octet-stream'
      return async (body) => {
        saving.file = await files.store({ name, mimeType }, body)
      }
    },
  }
  return saving
}

/** The body of an answer: JSON where it says so and no text is wanted, else a text. */
async function readAnswer(
  { notes }: NodeContext,
  { answer }: ConnectorStep,
  response: HttpResponse,
  title: string,
): Promise<unknown> {
  const isJson = answer !== 'text' && isJsonType(response.headers['content-type'])
  const how = { responseType: isJson ? 'json' : 'text' }
  const { value, warnings } = await readBody(response, how, createPacer(), `${title} responded with`)
  if (warnings.length > 0)
    notes.add({ warnings: warnings.map((message) => ({ path: 'config.action', message })) })
  return value
}
