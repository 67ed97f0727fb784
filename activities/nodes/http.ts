import { setTimeout as sleep } from 'node:timers/promises'
import type { WrittenOutput } from '../../db/executions/records/written.ts'
import { createExactMask } from '../../db/redaction/exact.ts'
import { redactText } from '../../db/redaction/redact.ts'
import { listRequestSecrets } from '../../db/redaction/requests.ts'
import type { ResponseShape } from '../../workflows/nodes/calls.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import { MAX_FILE_BYTES } from '../../workflows/nodes/files.ts'
import { decodeUriPart } from '../../workflows/texts.ts'
import { EXPRESSIONS_DOWN } from '../expressions/failures.ts'
import { readDispositionName } from '../files/disposition.ts'
import type { FileValue } from '../files/files.ts'
import { findExtension } from '../files/types.ts'
import type { LargeAnswer } from '../http/answer.ts'
import { parseResponseBody } from '../http/body.ts'
import { showHeaders } from '../http/headers.ts'
import type { HttpRequest, HttpResponse } from '../http/http.ts'
import { HttpError, type HttpErrorKind } from '../http/httperror.ts'
import { decodeText } from '../reading/charset.ts'
import { readLargeNumbers } from '../reading/json.ts'
import { NodeFailure } from './kit/failure.ts'
import { workedItem } from './kit/items.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'
import { readAllPages } from './kit/pagination.ts'
import { openPass } from './kit/pass.ts'
import { buildRequest, readHeldBytes, readMaxBytes } from './kit/request.ts'
import { isBytes, shapeFile, shapeResponse } from './kit/response.ts'
import { refuseStatus } from './kit/retryafter.ts'

const EXCERPT = 200
/** The first bytes of an answer that are read of a refusal. */
export const EXCERPT_BYTES = 16_384

/** Larger bodies are read by another process: parsed, they may take many times their bytes. */
const MAX_READ_HERE = 256 * 1024

/** After how long a body is given to another process again, when none could be had. */
const READ_AGAIN_MS = 1_000

/**
 * HTTP_REQUEST: outputs {status, headers, body} of a response with a status below 400. Other outcomes are
 * failures. Retried: 408, 425, 429 and 5xx (type Http503 and so on, after Retry-After, at most an hour),
 * network errors (HttpNetwork) and timeouts (HttpTimeout). Final: other 4xx (Http404 and so on), a config
 * that cannot be sent (InvalidConfig), a refused address (HttpRefusedAddress), a broken redirect
 * (HttpRedirect), a response that is too large (HttpTooLarge) or is not JSON although responseType is json
 * (InvalidResponse). A large body is read by another process, whose end is a failure too (HttpTooLarge). All
 * methods but GET, HEAD and OPTIONS carry an Idempotency-Key.
 */
export const runHttpRequest: NodeRunner = (context) => sendRequest(context)

/** How a request is sent whose values come from a source that is not trusted, such as a model. */
export type HttpManner = {
  /** Called before the request is sent, once nothing else can fail. What it throws, the node fails with. */
  begin?: () => Promise<void>
  /** Whether an answer with this status is an output like any other. Default: below 400. */
  takes?: (status: number) => boolean
}

/**
 * As runHttpRequest. With a `manner`, values within the path, query or fragment of the URL are always percent-encoded,
 * so that they cannot change where the request goes; one beside other text of the host is refused if it could.
 */
export async function sendRequest(context: NodeContext, manner?: HttpManner): Promise<NodeResult> {
  const pass = await openPass(context, context.config)
  if (context.config.pagination !== undefined && !manner)
    return readAllPages(context, pass, async (request, host, takes) => {
      const response = await send(context, request)
      if (response.status >= 400 && !(await takes(response)))
        throw failStatus(context, request, host, response)
      return response
    })
  const { request, host } = await buildRequest(context, { pass, encodes: manner !== undefined })
  const saving = saveAnswer(context, request)
  await manner?.begin?.()
  const response = await send(context, { ...request, ...saving.request })
  const { status, headers, cookies, body } = response
  const shown = showHeaders(response)
  const shape = context.config.response as ResponseShape | undefined
  if (saving.file && shape) return { output: shapeFile(shape, response, saving.file, workedItem(context)) }
  if (saving.file) return { output: { status, headers: shown, body: saving.file } }
  const message = `${request.method} ${host} responded with ${status}`
  if (status >= 400 && !shape?.neverError && !manner?.takes?.(status))
    throw failStatus(context, request, host, response)
  const { responseType } = context.config
  const largeNumbers = readLargeNumbers(context.config)
  if (shape) {
    const { output, warnings } = await shapeResponse(shape, response, largeNumbers)
    noteWarnings(context, warnings)
    return { output }
  }
  if (body.length > MAX_READ_HERE) {
    const answer = { status, headers, cookies, body, responseType, largeNumbers }
    const { output: written, warnings } = await readAway(context, answer, message)
    noteWarnings(context, warnings)
    context.share?.shrink(written.zipped.length)
    return { written }
  }
  const read = parseResponseBody(body, headers['content-type'], { responseType, largeNumbers })
  if ('fault' in read) {
    throw new NodeFailure(`${message} and a body that ${read.fault}`, { type: 'InvalidResponse' })
  }
  noteWarnings(context, read.warnings)
  return { output: { status, headers: shown, body: read.value } }
}

/** Sends the request. Throws a NodeFailure if no answer comes that can be taken. */
async function send(context: NodeContext, request: HttpRequest): Promise<HttpResponse> {
  try {
    const response = await context.http.request(request)
    context.sending?.answered()
    return response
  } catch (error) {
    if (error instanceof NodeFailure || (error instanceof HttpError && ANSWERED.has(error.kind)))
      context.sending?.answered()
    context.signal.throwIfAborted()
    throw error instanceof HttpError ? requestFailure(request.method, error) : error
  }
}

/** The failure for an answer with a status of 400 or more. */
function failStatus(
  { credentials }: NodeContext,
  request: HttpRequest,
  host: string,
  response: HttpResponse,
): NodeFailure {
  const start = decodeText(response.body.subarray(0, EXCERPT_BYTES), response.headers['content-type'])
  const excerpt = excerptBody(start, request, credentials?.secrets())
  return refuseStatus(`${request.method} ${host} responded with ${response.status}`, excerpt, response)
}

function noteWarnings({ notes }: NodeContext, messages: string[]): void {
  if (messages.length > 0)
    notes.add({ warnings: messages.map((message) => ({ path: 'config.url', message })) })
}

/**
 * Reads a large answer in another process. While none can be had, the answer is kept, with its share, and the
 * call is not made again: until the node's own limit, or until the answer is no longer wanted.
 */
async function readAway(
  { evaluator, bindings, signal }: NodeContext,
  answer: LargeAnswer,
  message: string,
): Promise<{ output: WrittenOutput; warnings: string[] }> {
  for (;;) {
    try {
      return await evaluator.readAnswer(answer, message, bindings)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof NodeFailure && error.type === EXPRESSIONS_DOWN)) throw error
    }
    await sleep(READ_AGAIN_MS, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}

/**
 * With the responseType `file`, the body of an answer that is no failure becomes a file as it comes. One without a body
 * is as usual.
 */
function saveAnswer({ config, files }: NodeContext, { method }: HttpRequest) {
  const saving: { request: Partial<HttpRequest>; file?: FileValue } = { request: {} }
  const shape = config.response as ResponseShape | undefined
  const mayBeFile = shape
    ? shape.format !== 'json' && shape.format !== 'text'
    : config.responseType === 'file'
  if (!mayBeFile || !files) return saving
  const maxBytes = readHeldBytes(config)
  const saveBytes = shape && config.maxBytes === undefined ? MAX_FILE_BYTES : readMaxBytes(config)
  saving.request = { maxBytes, saveBytes }
  saving.request.save = ({ status, headers, url }) => {
    if ((status >= 400 && !shape?.neverError) || status === 204 || status === 304 || method === 'HEAD')
      return undefined
    const type = headers['content-type'] ?? ''
    if (shape && shape.format !== 'file' && !isBytes(type)) return undefined
    const given = readDispositionName(headers['content-disposition'])
    const name = given ?? (shape ? nameForItem(url, type, shape) : nameOf(url))
    return async (body) => {
      saving.file = await files.store({ name, mimeType: type }, body)
    }
  }
  return saving
}

/** The name of an item's file: the last part of the URL's path as it is written, else its field and its type's ending. */
function nameForItem({ pathname }: URL, type: string, { field = 'data' }: ResponseShape): string {
  const last = pathname.split('/').at(-1)
  if (last) return last
  const ending = findExtension(type)
  return ending === undefined ? field : `${field}.${ending}`
}

/** The last part of a URL's path, as a name for its file. */
function nameOf({ pathname }: URL): string {
  return decodeUriPart(pathname.split('/').at(-1) ?? '')
}

/** An answer came, but cannot be taken. */
const ANSWERED = new Set<HttpErrorKind>(['too-large', 'redirect'])
const RETRYABLE = new Set<HttpErrorKind>(['timeout', 'network'])
const TYPES: Record<HttpErrorKind, FailureType> = {
  'refused-address': 'HttpRefusedAddress',
  'refused-host': 'HttpRefusedHost',
  timeout: 'HttpTimeout',
  network: 'HttpNetwork',
  'too-large': 'HttpTooLarge',
  'bad-url': 'InvalidConfig',
  'bad-request': 'InvalidConfig',
  aborted: 'HttpAborted',
  redirect: 'HttpRedirect',
}

/** The failure of a node for a request, or a connection, that got no response. `what` is what was tried. */
export function requestFailure(what: string, error: HttpError): NodeFailure {
  return new NodeFailure(`${what} failed: ${error.message}`, {
    type: TYPES[error.kind],
    retryable: RETRYABLE.has(error.kind),
    cause: error,
  })
}

/** The beginning of a response's text, without the secrets that were sent (or `opened`): servers like to echo them. */
export function excerptBody(text: string, request: HttpRequest, opened: string[] = []): string {
  const { url, headers = {}, body } = request
  const secrets = listRequestSecrets({ url, headers, body: typeof body === 'string' ? body : undefined })
  // A secret that is cut in two could not be found.
  const known = opened.length > 0 ? createExactMask(opened).start(text) : text
  const clean = redactText(known.slice(0, 4_096), { secrets })
  const line = clean.replace(/[\p{Cc}\p{Cs}\s]+/gu, ' ').trim()
  return line.length > EXCERPT ? `${line.slice(0, EXCERPT)}...` : line
}
