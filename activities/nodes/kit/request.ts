import { splitTemplate } from '../../../workflows/expressions/expressions.ts'
import { HIDDEN } from '../../../workflows/graph/secrets.ts'
import { isObject } from '../../../workflows/json.ts'
import { MAX_ANSWER_BYTES } from '../../../workflows/nodes/calls.ts'
import { HTTP_METHODS } from '../../../workflows/nodes/fields.ts'
import { MAX_FILE_BYTES } from '../../../workflows/nodes/files.ts'
import { isSecretName } from '../../../workflows/secrets/secretnames.ts'
import type { HttpPass } from '../../credentials/authorize.ts'
import { findRequestHeaderFault } from '../../http/hop.ts'
import type { HttpRequest } from '../../http/http.ts'
import { readJson } from '../../reading/json.ts'
import { EMPTY_PART, isMixedUrl, joinUrl, takeUrlApart } from './address.ts'
import { invalidConfig, NodeFailure } from './failure.ts'
import { buildFileBody, buildMultipart, type FileBody, readFormPairs } from './fileparts.ts'
import type { NodeContext } from './node.ts'

const COMPUTED = new Set(['method', 'url', 'headers', 'query', 'body', 'timeoutMs', 'contentType'])
const MAX_TIMEOUT_MS = 3_600_000

/** The bytes that are held in memory at once of an answer that becomes a file. */
const HELD_BYTES = 2 * 1024 * 1024

/** How a request is signed in, and whether the values within its URL are percent-encoded anyway. */
type Manner = { pass: HttpPass | undefined; encodes: boolean }

/** The request that the node's config gives, and the host that it goes to. */
export async function buildRequest(
  context: NodeContext,
  manner: Manner,
): Promise<{ request: HttpRequest; host: string }> {
  return composeRequest(context, manner.pass, await renderRequest(context, manner))
}

/** What a config says of a request, its expressions filled in. */
type RenderedRequest = { verb: string; url: string; query: unknown; headers: unknown } & {
  [key in 'body' | 'timeoutMs' | 'contentType']?: unknown
}

/** Fills in the expressions of a config. Throws a NodeFailure (InvalidConfig), and those of expressions. */
export async function renderRequest(context: NodeContext, manner: Manner): Promise<RenderedRequest> {
  const { config } = context
  const computed = Object.entries(config).filter(([key]) => COMPUTED.has(key))
  const texts = { method: 'GET', headers: {}, ...Object.fromEntries(computed) }
  const isApart = isTakenApart(config.url, manner)
  const rendered = (await context.evaluator.render(
    isApart ? { ...texts, url: takeUrlApart(config.url) } : texts,
    context.bindings,
  )) as Record<string, unknown>
  for (const [key, value] of computed) {
    if (JSON.stringify(value).includes(HIDDEN))
      throw invalidConfig(key, `still has ${HIDDEN} in the place of a secret that was not exported: set it`)
  }
  const verb = typeof rendered.method === 'string' ? rendered.method.toUpperCase() : ''
  if (!(HTTP_METHODS as readonly string[]).includes(verb))
    throw invalidConfig('method', `must be one of ${HTTP_METHODS.join(', ')}`)
  const url = readUrl(isApart ? joinParts(context, config.url, rendered.url, manner) : rendered.url).href
  return {
    ...rendered,
    ...{ verb, url },
    query: parseText('query', rendered.query, config),
    headers: parseText('headers', rendered.headers, config),
  }
}

/** The address that a text of the config gives; null if its expressions find nothing. */
export async function renderUrl(context: NodeContext, text: string, manner: Manner): Promise<string | null> {
  const isApart = isTakenApart(text, { ...manner, pass: undefined })
  const rendered = await context.evaluator.render(isApart ? takeUrlApart(text) : text, context.bindings)
  const url = isApart ? joinParts(context, text, rendered, manner) : rendered
  if (url === null || url === undefined || url === '') return null
  if (typeof url !== 'string') throw invalidConfig('pagination.url', `must be a URL, not ${describe(url)}`)
  return url
}

/** A URL that is one expression gives all of itself. */
const isTakenApart = (url: unknown, { pass, encodes }: Manner) =>
  pass !== undefined || encodes || isMixedUrl(url)

function joinParts(context: NodeContext, url: unknown, rendered: unknown, { pass, encodes }: Manner): string {
  return joinUrl(url, rendered, {
    strict: encodes,
    encodes: pass !== undefined || encodes,
    onEmpty: () => context.notes.add({ warnings: [{ path: 'config.url', message: EMPTY_PART }] }),
  })
}

/** The request for one page: `url` instead of the config's, what is set for it, and its number. */
export type WantedPage = {
  number: number
  url?: URL
  set: Record<'query' | 'headers' | 'body', Record<string, unknown>>
  /** It goes to another origin than the first, or comes from one: the config's secrets stay here. */
  hasLeft: boolean
}

/** Makes a request of what was rendered. Throws a NodeFailure (InvalidConfig). */
export async function composeRequest(
  context: NodeContext,
  pass: HttpPass | undefined,
  rendered: RenderedRequest,
  page?: WantedPage,
): Promise<{ request: HttpRequest; host: string }> {
  const { verb } = rendered
  const target = new URL(page?.url ?? rendered.url)
  fillQuery(context, target, rendered.query, page)
  const all = readHeaders(
    page ? { ...demandObject(rendered.headers), ...page.set.headers } : rendered.headers,
  )
  if (page?.hasLeft) for (const name of [...all.keys()]) if (isSecretName(name)) all.delete(name)
  const body = setBody(rendered.body, page?.set.body)
  const streamed = await readFileBody(context, body)
  const sent = streamed ?? encodeBody(context.config, body)
  if (sent && !all.has('content-type')) all.set('content-type', sent.type)
  if (sent && rendered.contentType) all.set('content-type', String(rendered.contentType))
  const safe = verb === 'GET' || verb === 'HEAD' || verb === 'OPTIONS'
  if (!safe && !all.has('idempotency-key')) {
    const begun = context.sending?.begin({ method: verb, url: target.href, body: sent?.text })
    const key = begun ?? context.idempotencyKey
    all.set('idempotency-key', page ? `${key}/${page.number}` : key)
  }
  const limit = readTimeout(rendered.timeoutMs)
  const { allowedHosts } = pass ?? {}
  const request: HttpRequest = {
    method: verb,
    url: target.href,
    headers: Object.fromEntries(all),
    signal: context.signal,
    maxBytes: readMaxBytes(context.config),
    ...(page ? { line: page.number } : { onBound: (bytes: number) => context.share?.shrink(bytes) }),
    ...(streamed ? { body: streamed.stream } : sent ? { body: sent.text } : {}),
    ...(page?.hasLeft ? (allowedHosts ? { allowedHosts } : {}) : pass),
    ...(limit === undefined ? {} : { timeoutMs: limit }),
  }
  return { request, host: target.host }
}

function demandObject(headers: unknown): Record<string, unknown> {
  if (isObject(headers)) return headers
  throw invalidConfig('headers', 'must be an object')
}

/** Adds the query; to the address of a page what it does not have itself, unless the node works on items as n8n does. */
function fillQuery({ config }: NodeContext, target: URL, query: unknown, page: WantedPage | undefined): void {
  const has = page?.url && config.response === undefined ? new Set(target.searchParams.keys()) : new Set()
  const pairs = readPairs('query', query)
  const set = page?.set.query ?? {}
  for (const [name, value] of pairs) {
    if (has.has(name) || Object.hasOwn(set, name) || (page?.hasLeft && isSecretName(name))) continue
    target.searchParams.append(name, value)
  }
  for (const name of Object.keys(set)) target.searchParams.delete(name)
  for (const [name, value] of readPairs('query', set)) target.searchParams.append(name, value)
}

function setBody(body: unknown, set: Record<string, unknown> = {}): unknown {
  if (Object.keys(set).length === 0) return body
  let before: unknown = body ?? {}
  // A text that is the JSON of an object.
  if (typeof before === 'string') {
    try {
      before = readJson(before).value
    } catch {
      before = undefined
    }
  }
  if (!isObject(before)) throw invalidConfig('body', 'must be an object, in which pages set their parameters')
  return { ...before, ...set }
}

/** The most bytes that the answer may have. Also known before the node's config is rendered. */
export function readMaxBytes({ maxBytes, responseType }: Record<string, unknown>): number {
  if (typeof maxBytes === 'number') return maxBytes
  return responseType === 'file' ? MAX_FILE_BYTES : MAX_ANSWER_BYTES
}

/** The most bytes of the answer that are held at once: of a file only a few pieces, if it is not a failure. */
export function readHeldBytes(config: Record<string, unknown>): number {
  // A page, and what was taken of those before.
  if (config.pagination !== undefined)
    return Math.min(readMaxBytes(config), MAX_ANSWER_BYTES) + MAX_ANSWER_BYTES
  return Math.min(readMaxBytes(config), config.responseType === 'file' ? HELD_BYTES : MAX_ANSWER_BYTES)
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

/** The body that is a file or has some; undefined for other types of bodies. */
async function readFileBody({ config, files }: NodeContext, value: unknown): Promise<FileBody | undefined> {
  if (config.response !== undefined) demandFiles(config.body, value)
  if (value === null || value === undefined) return undefined
  if (config.bodyType === 'file') return buildFileBody(files, value)
  if (config.bodyType !== 'multipart') return undefined
  if (!isObject(value))
    throw invalidConfig('body', 'must be an object, whose keys are the fields of the form')
  return buildMultipart(files, readFormPairs(value))
}

/** For items a file of theirs that is not there is a failure, and not a body or a field that is left out. */
function demandFiles(template: unknown, value: unknown): void {
  const isMissing = (text: unknown, file: unknown) =>
    typeof text === 'string' && /\$binary\b/.test(text) && (file === null || file === undefined)
  const fields = isObject(template) ? Object.keys(template) : []
  const missing = fields.find((key) => isMissing(Object(template)[key], Object(value)[key]))
  if (missing === undefined && !isMissing(template, value)) return
  const what = missing === undefined ? 'The body' : `The field "${missing}"`
  throw new NodeFailure(`${what} is to be a file of the item, which does not have it`, {
    type: 'FileMissing',
  })
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
