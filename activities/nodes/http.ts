import { setTimeout as sleep } from 'node:timers/promises'
import type { WrittenOutput } from '../../db/records/written.ts'
import { createExactMask } from '../../db/redaction/exact.ts'
import { redactText } from '../../db/redaction/redact.ts'
import { listRequestSecrets } from '../../db/redaction/requests.ts'
import { splitTemplate } from '../../workflows/expressions/expressions.ts'
import { isHostOpen, OPEN_HOST } from '../../workflows/graph/openhost.ts'
import { HIDDEN } from '../../workflows/graph/secrets.ts'
import { isObject } from '../../workflows/json.ts'
import { MAX_ANSWER_BYTES, type ResponseShape } from '../../workflows/nodes/calls.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import { HTTP_METHODS } from '../../workflows/nodes/fields.ts'
import { MAX_FILE_BYTES } from '../../workflows/nodes/files.ts'
import { decodeUriPart } from '../../workflows/texts.ts'
import { authorizeWith, type HttpPass } from '../credentials/authorize.ts'
import { EXPRESSIONS_DOWN } from '../expressions/failures.ts'
import { readDispositionName } from '../files/disposition.ts'
import type { FileValue } from '../files/files.ts'
import type { LargeAnswer } from '../http/answer.ts'
import { parseResponseBody } from '../http/body.ts'
import { showHeaders } from '../http/headers.ts'
import { findRequestHeaderFault, type HttpRequest } from '../http/http.ts'
import { HttpError, type HttpErrorKind } from '../http/httperror.ts'
import { decodeText } from '../reading/charset.ts'
import { readJson, readLargeNumbers } from '../reading/json.ts'
import { EMPTY_PART, isMixedUrl, joinUrl, takeUrlApart } from './kit/address.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import { buildFileBody, buildMultipart, type FileBody, readFormPairs } from './kit/fileparts.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'
import { shapeResponse } from './kit/response.ts'
import { readRetryAfter } from './kit/retryafter.ts'

const COMPUTED = new Set(['method', 'url', 'headers', 'query', 'body', 'timeoutMs', 'contentType'])
const MAX_TIMEOUT_MS = 3_600_000
const EXCERPT = 200
const EXCERPT_BYTES = 16_384

/** Larger bodies are read by another process: parsed, they may take many times their bytes. */
const MAX_READ_HERE = 256 * 1024

/** The bytes that are held in memory at once of an answer that becomes a file. */
const HELD_BYTES = 2 * 1024 * 1024

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
  const pass = await openPass(context)
  const { request, host } = await buildRequest(context, pass, manner !== undefined)
  const saving = saveAnswer(context, request)
  await manner?.begin?.()
  let response: Awaited<ReturnType<NodeContext['http']['request']>>
  try {
    response = await context.http.request({ ...request, ...saving.request })
    context.sending?.answered()
  } catch (error) {
    if (error instanceof NodeFailure || (error instanceof HttpError && ANSWERED.has(error.kind)))
      context.sending?.answered()
    context.signal.throwIfAborted()
    throw error instanceof HttpError ? requestFailure(request.method, error) : error
  }
  const { status, headers, cookies, body } = response
  const shown = showHeaders(response)
  if (saving.file) return { output: { status, headers: shown, body: saving.file } }
  const message = `${request.method} ${host} responded with ${status}`
  const shape = context.config.response as ResponseShape | undefined
  if (status >= 400 && !shape?.neverError && !manner?.takes?.(status)) {
    const start = decodeText(body.subarray(0, EXCERPT_BYTES), headers['content-type'])
    const excerpt = excerptBody(start, request, context.credentials?.secrets())
    const retryable = status >= 500 || status === 408 || status === 425 || status === 429
    const retryAfterMs = retryable ? readRetryAfter(headers['retry-after'], Date.now()) : undefined
    throw new NodeFailure(excerpt ? `${message}: ${excerpt}` : message, {
      type: `Http${status}`,
      retryable,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    })
  }
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
  if (config.responseType !== 'file' || !files) return saving
  const maxBytes = readHeldBytes(config)
  saving.request = { maxBytes, saveBytes: readMaxBytes(config) }
  saving.request.save = ({ status, headers, url }) => {
    if (status >= 400 || status === 204 || status === 304 || method === 'HEAD') return undefined
    const name = readDispositionName(headers['content-disposition']) ?? nameOf(url)
    return async (body) => {
      saving.file = await files.store({ name, mimeType: headers['content-type'] ?? '' }, body)
    }
  }
  return saving
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

async function buildRequest(
  context: NodeContext,
  pass: HttpPass | undefined,
  encodes: boolean,
): Promise<{ request: HttpRequest; host: string }> {
  const computed = Object.entries(context.config).filter(([key]) => COMPUTED.has(key))
  const { url } = context.config
  // A URL that is one expression gives all of itself.
  const isApart = pass !== undefined || encodes || isMixedUrl(url)
  const texts = { method: 'GET', headers: {}, ...Object.fromEntries(computed) }
  const rendered = (await context.evaluator.render(
    isApart ? { ...texts, url: takeUrlApart(url) } : texts,
    context.bindings,
  )) as Record<string, unknown>
  for (const [key, value] of computed) {
    if (JSON.stringify(value).includes(HIDDEN))
      throw invalidConfig(key, `still has ${HIDDEN} in the place of a secret that was not exported: set it`)
  }
  const verb = typeof rendered.method === 'string' ? rendered.method.toUpperCase() : ''
  if (!(HTTP_METHODS as readonly string[]).includes(verb))
    throw invalidConfig('method', `must be one of ${HTTP_METHODS.join(', ')}`)
  const joined = isApart
    ? joinUrl(url, rendered.url, {
        strict: encodes,
        encodes: pass !== undefined || encodes,
        onEmpty: () => context.notes.add({ warnings: [{ path: 'config.url', message: EMPTY_PART }] }),
      })
    : rendered.url
  const target = readUrl(joined)
  for (const [name, value] of readPairs('query', parseText('query', rendered.query, context.config)))
    target.searchParams.append(name, value)
  const all = readHeaders(parseText('headers', rendered.headers, context.config))
  const streamed = await readFileBody(context, rendered.body)
  const sent = streamed ?? encodeBody(context.config, rendered.body)
  if (sent && !all.has('content-type')) all.set('content-type', sent.type)
  if (sent && rendered.contentType) all.set('content-type', String(rendered.contentType))
  const safe = verb === 'GET' || verb === 'HEAD' || verb === 'OPTIONS'
  if (!safe && !all.has('idempotency-key')) {
    const key = context.sending?.begin({ method: verb, url: target.href, body: sent?.text })
    all.set('idempotency-key', key ?? context.idempotencyKey)
  }
  const limit = readTimeout(rendered.timeoutMs)
  const request: HttpRequest = {
    method: verb,
    url: target.href,
    headers: Object.fromEntries(all),
    signal: context.signal,
    maxBytes: readMaxBytes(context.config),
    onBound: (bytes) => context.share?.shrink(bytes),
    ...(streamed ? { body: streamed.stream } : sent ? { body: sent.text } : {}),
    ...pass,
    ...(limit === undefined ? {} : { timeoutMs: limit }),
  }
  return { request, host: target.host }
}

/** What the node's credential lets the request do; undefined if it has none. */
async function openPass({ config, credentials }: NodeContext): Promise<HttpPass | undefined> {
  if (config.credentialId === undefined) return undefined
  if (!credentials) throw invalidConfig('credentialId', 'can only be used by an attempt of its own')
  const opened = await credentials.open(config.credentialId, 'HTTP')
  const pass = await authorizeWith(opened, credentials)
  if (!pass.allowedHosts && isHostOpen(config.url)) throw invalidConfig('url', OPEN_HOST)
  return pass
}

/** A query or headers that were written as JSON in a text. */
function parseText(key: string, value: unknown, config: Record<string, unknown>): unknown {
  if (typeof value === 'object' && value !== null && typeof config[key] === 'string')
    throw invalidConfig(key, 'is not valid JSON: its text gives an object, and not the JSON of one')
  if (typeof value !== 'string') return value
  try {
    return readJson(value).value
  } catch {
    throw invalidConfig(key, 'must be an object, or the JSON of one')
  }
}

function readUrl(value: unknown): URL {
  const url = typeof value === 'string' ? URL.parse(value.trim()) : null
  if (!url) throw invalidConfig('url', `must be a URL, not ${describe(value)}`)
  if (url.protocol === 'http:' || url.protocol === 'https:') return url
  throw invalidConfig('url', `must begin with http:// or https://, not ${url.protocol}`)
}

// Does not quote the value, which may hold a key.
function describe(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'an empty value'
  return typeof value === 'string' ? 'a string that does not parse as one' : `a value of type ${typeof value}`
}

/** The pairs of a query or form: arrays repeat the name, null leaves it out, objects become JSON. */
function readPairs(key: string, value: unknown): [string, string][] {
  if (value === null || value === undefined) return []
  if (typeof value !== 'object' || Array.isArray(value)) throw invalidConfig(key, 'must be an object')
  const pairs: [string, string][] = []
  for (const [name, entry] of Object.entries(value)) {
    for (const item of Array.isArray(entry) ? entry : [entry]) {
      if (item === null || item === undefined) continue
      pairs.push([name, typeof item === 'object' ? JSON.stringify(item) : String(item)])
    }
  }
  return pairs
}

function readHeaders(value: unknown): Map<string, string> {
  const headers = new Map<string, string>()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidConfig('headers', 'must be an object')
  }
  for (const [name, entry] of Object.entries(value)) {
    // A header whose expression finds nothing is left out.
    if (entry === null || entry === undefined) continue
    const key = `headers.${name.slice(0, 100)}`
    if (typeof entry === 'object') throw invalidConfig(key, 'must be a string, number or boolean')
    const fault = findRequestHeaderFault(name, String(entry))
    if (fault) throw invalidConfig(key, fault)
    headers.set(name.toLowerCase(), String(entry))
  }
  return headers
}

function readTimeout(value: unknown): number | undefined {
  if (value === null || value === undefined) return undefined
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_TIMEOUT_MS
  if (!fits) throw invalidConfig('timeoutMs', `must be a whole number from 1 to ${MAX_TIMEOUT_MS}`)
  return value
}

/** The most bytes that the answer may have. Also known before the node's config is rendered. */
function readMaxBytes({ maxBytes, responseType }: Record<string, unknown>): number {
  if (typeof maxBytes === 'number') return maxBytes
  return responseType === 'file' ? MAX_FILE_BYTES : MAX_ANSWER_BYTES
}

/** The most bytes of the answer that are held at once: of a file only a few pieces, if it is not a failure. */
export function readHeldBytes(config: Record<string, unknown>): number {
  return Math.min(readMaxBytes(config), config.responseType === 'file' ? HELD_BYTES : MAX_ANSWER_BYTES)
}

/** The body that is a file or has some; undefined for other types of bodies. */
async function readFileBody({ config, files }: NodeContext, value: unknown): Promise<FileBody | undefined> {
  if (value === null || value === undefined) return undefined
  if (config.bodyType === 'file') return buildFileBody(files, value)
  if (config.bodyType !== 'multipart') return undefined
  if (!isObject(value))
    throw invalidConfig('body', 'must be an object, whose keys are the fields of the form')
  return buildMultipart(files, readFormPairs(value))
}

type Sent = { text: string; type: string }

/**
 * Writes the body and its content type; null makes no body. `json`: any value is serialised, also a string
 * that is the result of a single expression, but a string written by hand (with expressions in it or none) is
 * taken as JSON and must parse. `form`: an object, or a string that is already encoded. `text`: a string
 * unchanged, objects as JSON.
 */
function encodeBody(config: Record<string, unknown>, value: unknown): Sent | undefined {
  if (value === null || value === undefined) return undefined
  const kind = config.bodyType ?? 'json'
  if (kind === 'form') {
    const form = typeof value === 'string' ? value : new URLSearchParams(readPairs('body', value)).toString()
    const text = config.response === undefined ? form : form.replaceAll('+', '%20')
    return { text, type: 'application/x-www-form-urlencoded' }
  }
  if (kind === 'text') {
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    return { text, type: 'text/plain; charset=utf-8' }
  }
  if (kind !== 'json' && kind !== 'jsonText')
    throw invalidConfig('bodyType', 'must be json, form, text, file or multipart')
  const type = 'application/json'
  if (typeof value !== 'string' || (kind === 'json' && isExpression(config.body)))
    return { text: JSON.stringify(value), type }
  try {
    JSON.parse(value)
  } catch {
    throw invalidConfig('body', 'must be valid JSON; set bodyType to text to send it unchanged')
  }
  return { text: value, type }
}

function isExpression(value: unknown): boolean {
  if (typeof value !== 'string') return false
  const template = splitTemplate(value)
  return template.length === 1 && typeof template[0] === 'object'
}

/** The beginning of a response's text, without the secrets that were sent (or `opened`): servers like to echo them. */
function excerptBody(text: string, request: HttpRequest, opened: string[] = []): string {
  const { url, headers = {}, body } = request
  const secrets = listRequestSecrets({ url, headers, body: typeof body === 'string' ? body : undefined })
  // A secret that is cut in two could not be found.
  const known = opened.length > 0 ? createExactMask(opened).start(text) : text
  const clean = redactText(known.slice(0, 4_096), { secrets })
  const line = clean.replace(/[\p{Cc}\p{Cs}\s]+/gu, ' ').trim()
  return line.length > EXCERPT ? `${line.slice(0, EXCERPT)}...` : line
}
