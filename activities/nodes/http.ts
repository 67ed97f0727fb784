import { isSecretName, redactText } from '../../db/redact.ts'
import { readTemplate } from '../../workflows/expressions.ts'
import { readAnswer, readText } from '../answer.ts'
import { findHeaderFault, type HttpRequest } from '../http.ts'
import { HttpError, type HttpErrorKind } from '../httperror.ts'
import { invalidConfig, NodeFailure } from './failure.ts'
import type { NodeContext, NodeRunner } from './node.ts'

const COMPUTED = new Set(['method', 'url', 'headers', 'query', 'body', 'timeoutMs'])
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
const MAX_TIMEOUT_MS = 3_600_000
const MAX_RETRY_AFTER_MS = 3_600_000
const EXCERPT = 200

/**
 * HTTP_REQUEST: outputs {status, headers, body} of an answer below 400. Fails retryably for 408, 425, 429,
 * 5xx (after Retry-After, at most an hour), network errors and timeouts (types Http503, HttpTimeout,
 * HttpNetwork); for good for other 4xx (Http404), a config that cannot be sent (InvalidConfig), a refused
 * address (HttpRefusedAddress), a broken redirect or too big an answer, and one that is not the JSON that
 * responseType promised (InvalidResponse). All but GET, HEAD and OPTIONS carry an Idempotency-Key.
 */
export const runHttpRequest: NodeRunner = async (context) => {
  const { request, host } = await buildRequest(context)
  let response: Awaited<ReturnType<NodeContext['http']['request']>>
  try {
    response = await context.http.request(request)
  } catch (error) {
    context.signal.throwIfAborted()
    throw error instanceof HttpError ? fail(request.method, error) : error
  }
  const { status, headers, body } = response
  if (status >= 400) {
    const name = `${request.method} ${host} answered ${status}`
    const excerpt = excerptBody(readText(body, headers['content-type']), request)
    const retryable = status >= 500 || status === 408 || status === 425 || status === 429
    const retryAfterMs = retryable ? readRetryAfter(headers['retry-after'], Date.now()) : undefined
    throw new NodeFailure(excerpt ? `${name}: ${excerpt}` : name, {
      type: `Http${status}`,
      retryable,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    })
  }
  const read = readAnswer(body, headers['content-type'], context.config.responseType)
  if ('fault' in read) {
    throw new NodeFailure(`${request.method} ${host} answered ${status} with a body that ${read.fault}`, {
      type: 'InvalidResponse',
      retryable: false,
    })
  }
  return { output: { status, headers, body: read.value } }
}

const RETRYABLE = new Set<HttpErrorKind>(['timeout', 'network'])
const TYPES: Record<HttpErrorKind, string> = {
  'refused-address': 'HttpRefusedAddress',
  timeout: 'HttpTimeout',
  network: 'HttpNetwork',
  'too-large': 'HttpTooLarge',
  'bad-url': 'InvalidConfig',
  'bad-request': 'InvalidConfig',
  aborted: 'HttpAborted',
  redirect: 'HttpRedirect',
}

function fail(method: string, error: HttpError): NodeFailure {
  return new NodeFailure(`${method} failed: ${error.message}`, {
    type: TYPES[error.kind],
    retryable: RETRYABLE.has(error.kind),
  })
}

async function buildRequest(context: NodeContext): Promise<{ request: HttpRequest; host: string }> {
  const computed = Object.entries(context.config).filter(([key]) => COMPUTED.has(key))
  const rendered = (await context.evaluator.render(
    { method: 'GET', headers: {}, ...Object.fromEntries(computed) },
    context.bindings,
  )) as Record<string, unknown>
  const verb = typeof rendered.method === 'string' ? rendered.method.toUpperCase() : ''
  if (!METHODS.includes(verb)) throw invalidConfig('method', `must be one of ${METHODS.join(', ')}`)
  const target = readUrl(rendered.url)
  for (const [name, value] of readPairs('query', rendered.query)) target.searchParams.append(name, value)
  const all = readHeaders(rendered.headers)
  const sent = readBody(context.config, rendered.body)
  if (sent && !all.has('content-type')) all.set('content-type', sent.type)
  const safe = verb === 'GET' || verb === 'HEAD' || verb === 'OPTIONS'
  if (!safe && !all.has('idempotency-key')) all.set('idempotency-key', context.idempotencyKey)
  const limit = readTimeout(rendered.timeoutMs)
  const request: HttpRequest = {
    method: verb,
    url: target.href,
    headers: Object.fromEntries(all),
    signal: context.signal,
    ...(sent ? { body: sent.text } : {}),
    ...(limit === undefined ? {} : { timeoutMs: limit }),
  }
  return { request, host: target.host }
}

function readUrl(value: unknown): URL {
  const url = typeof value === 'string' ? URL.parse(value.trim()) : null
  if (!url) throw invalidConfig('url', `must be a URL; it is ${describe(value)}`)
  if (url.protocol === 'http:' || url.protocol === 'https:') return url
  throw invalidConfig('url', `must begin with http:// or https://, not ${url.protocol}`)
}

// The value itself stays unsaid: it may hold a key.
function describe(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'empty'
  return typeof value === 'string' ? 'a text that does not parse as one' : `of type ${typeof value}`
}

/** Names and values for a query or form: arrays repeat the name, null leaves it out, objects go as JSON. */
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
    // An expression that finds nothing leaves its header out.
    if (entry === null || entry === undefined) continue
    const key = `headers.${name.slice(0, 100)}`
    if (typeof entry === 'object') throw invalidConfig(key, 'must be a text, number or boolean')
    const fault = findHeaderFault(name, String(entry))
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

type Sent = { text: string; type: string }

/**
 * No body for null. `json`: any value is serialised, also a text that one expression gave; a text written by
 * hand (around expressions or without any) is the JSON itself and must parse. `form`: an object, or a text
 * that is encoded already. `text`: as it stands; objects as JSON.
 */
function readBody(config: Record<string, unknown>, value: unknown): Sent | undefined {
  if (value === null || value === undefined) return undefined
  const kind = config.bodyType ?? 'json'
  if (kind === 'form') {
    const text = typeof value === 'string' ? value : new URLSearchParams(readPairs('body', value)).toString()
    return { text, type: 'application/x-www-form-urlencoded' }
  }
  if (kind === 'text') {
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    return { text, type: 'text/plain; charset=utf-8' }
  }
  if (kind !== 'json') throw invalidConfig('bodyType', 'must be json, form or text')
  const type = 'application/json'
  if (typeof value !== 'string' || isExpression(config.body)) return { text: JSON.stringify(value), type }
  try {
    JSON.parse(value)
  } catch {
    throw invalidConfig('body', 'is a text that is no valid JSON; bodyType text sends it as it stands')
  }
  return { text: value, type }
}

function isExpression(value: unknown): boolean {
  if (typeof value !== 'string') return false
  const template = readTemplate(value)
  return template.length === 1 && typeof template[0] === 'object'
}

/** Retry-After in ms: seconds or an HTTP date, at most an hour; undefined where it says neither. */
export function readRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  const wait = /^\d{1,12}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now
  if (Number.isNaN(wait) || !/^\d+$|^[A-Z][a-z]+,? /.test(text)) return undefined
  return Math.min(Math.max(wait, 0), MAX_RETRY_AFTER_MS)
}

/** The first words of an answer, without what was sent to it in confidence: servers like to echo. */
function excerptBody(text: string, request: HttpRequest): string {
  const secrets: string[] = []
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (isSecretName(name)) secrets.push(value, ...value.split(/[\s;=,]+/).filter((part) => part.length >= 6))
  }
  const url = new URL(request.url)
  for (const [name, value] of url.searchParams) if (isSecretName(name)) secrets.push(value)
  if (url.password) secrets.push(url.password, decodeURIComponent(url.password))
  const clean = redactText(text.slice(0, 4_096), { secrets })
  const line = clean.replace(/[\p{Cc}\p{Cs}\s]+/gu, ' ').trim()
  return line.length > EXCERPT ? `${line.slice(0, EXCERPT)}...` : line
}
