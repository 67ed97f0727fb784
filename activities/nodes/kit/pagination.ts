import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type KeptPage, keepPage, readPages } from '../../../db/executions/requests/pages.ts'
import { placeOf } from '../../../db/send/notes.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import type { ResponseShape } from '../../../workflows/nodes/calls.ts'
import {
  MAX_PAGES,
  type Pagination,
  USUAL_PAGES,
  USUAL_PAGES_BYTES,
} from '../../../workflows/nodes/pagination.ts'
import type { HttpPass } from '../../credentials/authorize.ts'
import { createPacer } from '../../expressions/pace.ts'
import { MAX_REQUESTS } from '../../http/exchanges.ts'
import { type ResponseHeaders, showHeaders } from '../../http/headers.ts'
import type { HttpRequest, HttpResponse } from '../../http/http.ts'
import { readLargeNumbers } from '../../reading/json.ts'
import { retryOutages } from '../../run/outages.ts'
import { invalidConfig, NodeFailure, ToBeContinued } from './failure.ts'
import { createOutputBound } from './items.ts'
import type { NodeContext, NodeResult } from './node.ts'
import { composeRequest, renderRequest, renderUrl, type WantedPage } from './request.ts'
import { isBytes, readBody, shapeResponse } from './response.ts'

/** After this time an attempt gives its slot back, between two pages. */
const LEG_MS = 30_000

/** A longer pause is not made in the slot. */
const SHORT_PAUSE_MS = 2_000

/** How long the storing of a page is tried: it has been answered. */
const STORE_MS = 600_000

/** How many same answers in a row are no progress. */
const SAME_ANSWERS = 5

/** The parts that are kept of a page besides its body. `asked` and `said` are hashes of the request and of the body. */
type PageHead = { asked: string; said: string; url: string; hasLeft: boolean; at: number } & {
  status: number
} & ResponseHeaders

/** Sends a request. Throws a NodeFailure for an answer that cannot be read, and for a status that `takes` refuses. */
export type AskPage = (
  request: HttpRequest,
  host: string,
  takes: (response: HttpResponse) => Promise<boolean>,
) => Promise<HttpResponse>

/** The state of the pages so far. */
type State = {
  settings: Pagination
  count: number
  bytes: number
  /** The URL of the first request, without a query. */
  first: URL
  asked: Set<string>
  same: number
  last: PageHead | undefined
  /** `$response`. */
  response: Record<string, unknown>
  items: unknown[]
  bound: ReturnType<typeof createOutputBound>
  pace: ReturnType<typeof createPacer>
}

/**
 * Asks for all pages of a request, one after the other, and outputs {items, pages, more}; with `response` what all pages
 * are as items. Each answer is kept before the next page is asked for: an attempt that comes again goes on there. To
 * another origin than that of the first page nothing of the credential goes, nor from there back. Throws a NodeFailure:
 * PagesEndless for pages that come round again or are too many, HttpTooLarge for too many bytes, and those of requests and
 * expressions; and ToBeContinued if it is to go on in another attempt.
 */
export async function readAllPages(
  context: NodeContext,
  pass: HttpPass | undefined,
  ask: AskPage,
): Promise<NodeResult> {
  const began = performance.now()
  const settings = context.config.pagination as Pagination
  const manner = { pass, encodes: false }
  const base = await renderRequest(context, manner)
  const first = new URL(base.url)
  const { query = {}, headers = {}, body = null, verb } = base
  const request = { method: verb, url: base.url, uri: base.url, headers, query, qs: query, body }
  const bound = createOutputBound()
  const state: State = {
    ...{ settings, count: 0, bytes: 0, first, asked: new Set(), same: 0, last: undefined, response: {} },
    ...{ items: [], bound, pace: createPacer() },
  }
  const { store, executionId } = context.spot
  const place = placeOf(executionId, context.idempotencyKey)
  const own = (): NodeContext => ({
    ...context,
    bindings: { ...context.bindings, response: state.response, pageCount: state.count, request },
  })
  for await (const kept of readKept(context, place)) await takePage(own, state, kept)
  const most = await readMost(own(), settings)
  const pauseMs = await readPause(own(), settings)
  let more = false
  for (;;) {
    if (state.last && (await isLast(own(), state))) break
    if (state.count >= most.pages) {
      more = true
      if (settings.whenMore !== 'stop') throw tooMany(most.pages)
      break
    }
    const page = await nextPage(own(), state)
    if (!page) break
    if (state.last) await rest(context, state.last.at + pauseMs - Date.now(), began)
    const { request: sent, host } = await composeRequest(context, pass, base, page)
    const asked = hashRequest(sent)
    if (state.asked.has(asked) && !settings.repeats)
      throw new NodeFailure(
        `Page ${state.count + 1} is the same request as one before: the pages come round again`,
        { type: 'PagesEndless' },
      )
    const left = (settings.maxBytes ?? USUAL_PAGES_BYTES) - state.bytes
    const maxBytes = Math.min(sent.maxBytes ?? left, left)
    if (left <= 0) throw tooLarge(settings)
    const answer = await ask({ ...sent, maxBytes }, host, (response) => takes(own, state, response)).catch(
      (error) => {
        const isAll = maxBytes === left && error instanceof NodeFailure && error.type === 'HttpTooLarge'
        throw isAll ? tooLarge(settings) : error
      },
    )
    if (settings.endStatus?.includes(answer.status) && answer.status >= 400 && !isItemwise(context)) break
    const kept = keepAnswer(answer, { asked, hasLeft: page.hasLeft, first })
    const isOwn = await retryOutages(AbortSignal.timeout(STORE_MS), () =>
      keepPage(store, place, state.count, kept),
    )
    // Another attempt has got it too, and goes on with its own.
    if (!isOwn) throw new ToBeContinued(1)
    await takePage(own, state, kept)
  }
  noteUnseen(context, state.count)
  const { items, count } = state
  return { output: isItemwise(context) ? items : { items, pages: count, more } }
}

async function* readKept({ spot, signal }: NodeContext, place: ReturnType<typeof placeOf>) {
  // Pages that were read before an outage are not read again.
  const pages = readPages(spot.store, place)
  const [first, ...rest] = [await retryOutages(signal, () => pages.next())]
  for (let next = first!; !next.done; next = rest.shift() ?? (await pages.next())) {
    signal.throwIfAborted()
    yield next.value
  }
}

/** With `response` it outputs items, and follows n8n where that is different. */
const isItemwise = ({ config }: NodeContext) => config.response !== undefined

/** Whether an answer with a status of 400 or more is a page nevertheless. */
async function takes(own: () => NodeContext, state: State, response: HttpResponse): Promise<boolean> {
  const { endStatus, errorsEnd, until } = state.settings
  if (endStatus?.includes(response.status)) return true
  if (!errorsEnd || until === undefined) return false
  const { bindings, evaluator } = own()
  const { value } = await readBody(response, own().config, state.pace)
  const seen = { ...bindings, response: showResponse(response, value), pageCount: state.count + 1 }
  return evaluator.test(until, seen)
}

function keepAnswer(
  { status, headers, cookies, body, url }: HttpResponse,
  { asked, hasLeft, first }: { asked: string; hasLeft: boolean; first: URL },
): KeptPage {
  const from = new URL(url ?? first)
  const said = createHash('sha256').update(body).digest('base64')
  const head: PageHead = {
    ...{ asked, said, status, headers, url: from.href, at: Date.now() },
    hasLeft: hasLeft || from.origin !== first.origin,
    ...(cookies ? { cookies } : {}),
  }
  return { head, body }
}

/** Adds a page that was answered, now or in an attempt before. */
async function takePage(own: () => NodeContext, state: State, { head: kept, body }: KeptPage): Promise<void> {
  const head = kept as PageHead
  const { config } = own()
  state.same = state.last?.said === head.said ? state.same + 1 : 1
  if (state.same >= SAME_ANSWERS)
    throw new NodeFailure('The returned response was identical 5x, so requests got stopped', {
      type: 'PagesEndless',
    })
  state.count++
  state.bytes += body.length
  state.asked.add(head.asked)
  state.last = head
  const response = { ...head, body: new Uint8Array(body) }
  if (isBytes(head.headers['content-type'] ?? ''))
    throw new NodeFailure(`Page ${state.count} is a file, and no text`, { type: 'InvalidResponse' })
  const { value, warnings } = await readBody(response, config, state.pace)
  state.response = showResponse(head, value)
  for (const message of warnings) own().notes.add({ warnings: [{ path: 'config.pagination', message }] })
  for (const item of await listItems(own(), state, response)) {
    state.bound(item)
    state.items.push(item)
  }
}

function showResponse(head: Pick<PageHead, 'status'> & ResponseHeaders, body: unknown) {
  return { status: head.status, statusCode: head.status, headers: showHeaders(head), body }
}

async function listItems(context: NodeContext, state: State, response: HttpResponse): Promise<unknown[]> {
  const { config, bindings, evaluator } = context
  const { items } = state.settings
  if (items !== undefined) {
    const found = await evaluator.render(items, bindings)
    return Array.isArray(found) ? found : found === null || found === undefined ? [] : [found]
  }
  if (!isItemwise(context)) return [state.response.body]
  const { output } = await shapeResponse(config.response as ResponseShape, response, readLargeNumbers(config))
  return Array.isArray(output) ? output : [output]
}

/** Whether there is no page after the one that was taken last. */
async function isLast(context: NodeContext, { settings, last, response }: State): Promise<boolean> {
  const { until, untilEmpty, items, endStatus } = settings
  const { bindings, evaluator } = context
  if (endStatus?.includes(last!.status)) return true
  if (untilEmpty && isEmpty(items === undefined ? response.body : await evaluator.render(items, bindings)))
    return true
  const ends = until !== undefined && (await evaluator.test(until, bindings))
  // It was taken only because it is the last one.
  return ends || (last!.status >= 400 && settings.errorsEnd === true)
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0
}

/** How the next page is asked for; undefined at the last one. */
async function nextPage(context: NodeContext, state: State): Promise<WantedPage | undefined> {
  const { settings, first, last, count } = state
  const set: WantedPage['set'] = { query: {}, headers: {}, body: {} }
  const values = settings.parameters ?? []
  const rendered = (await context.evaluator.render(
    values.map(({ name, value }) => ({ name, value })),
    context.bindings,
  )) as { name: unknown; value: unknown }[]
  for (const [at, { name, value }] of rendered.entries()) {
    const { in: place = 'query' } = values[at]!
    // n8n leaves out of a body what an expression gives nothing for.
    const isLeftOut = place === 'body' && value === null && isItemwise(context)
    if (!isLeftOut) setOwn(set[place], String(name), value)
  }
  const page = { number: count, set, hasLeft: last?.hasLeft === true }
  if (settings.url === undefined || (!last && !isItemwise(context))) return page
  const given = await renderUrl(context, settings.url, { pass: undefined, encodes: false })
  if (given === null) {
    if (!last) return page
    if (isItemwise(context)) throw new NodeFailure("'' is not a valid URL.", { type: 'InvalidConfig' })
    return undefined
  }
  const url = URL.parse(given.trim(), last?.url ?? first.href)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw invalidConfig('pagination.url', 'must be a URL with http:// or https://')
  if (first.protocol === 'https:' && url.protocol === 'http:')
    throw new NodeFailure(`Page ${count + 1} leads from https to http`, { type: 'HttpRedirect' })
  // As with redirects, what an answer says of a user and a password is not for us.
  url.username = ''
  url.password = ''
  return { ...page, url, hasLeft: page.hasLeft || url.origin !== first.origin }
}

/** Waits between two pages: a long time, and after long work, without a slot. */
async function rest({ signal }: NodeContext, ms: number, began: number): Promise<void> {
  signal.throwIfAborted()
  const isLong = ms > SHORT_PAUSE_MS || performance.now() - began > LEG_MS
  if (isLong) throw new ToBeContinued(Math.max(1, Math.ceil(ms)))
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted())
}

async function readMost({ evaluator, bindings }: NodeContext, { maxPages }: Pagination) {
  if (maxPages === undefined) return { pages: USUAL_PAGES }
  const value = await evaluator.render(maxPages, bindings)
  // A limit of 0 or Infinity is no limit, as in n8n.
  if (value === null || Number(value) === 0 || Number(value) === Number.POSITIVE_INFINITY)
    return { pages: MAX_PAGES }
  const pages = Number(value)
  if (Number.isInteger(pages) && pages >= 1 && pages <= MAX_PAGES) return { pages }
  throw invalidConfig('pagination.maxPages', `must be a whole number from 1 to ${MAX_PAGES}`)
}

async function readPause({ evaluator, bindings }: NodeContext, { pauseMs }: Pagination): Promise<number> {
  const ms = Number((await evaluator.render(pauseMs ?? 0, bindings)) ?? 0)
  if (ms >= 0 && ms <= 3_600_000) return ms
  throw invalidConfig('pagination.pauseMs', 'must be a number of milliseconds, at most an hour')
}

function tooMany(pages: number): NodeFailure {
  const message = `There are more than ${pages} pages: set pagination.maxPages, or whenMore to stop if these are enough`
  return new NodeFailure(message, { type: 'PagesEndless' })
}

function tooLarge({ maxBytes = USUAL_PAGES_BYTES }: Pagination): NodeFailure {
  return new NodeFailure(`The pages have more than ${maxBytes} bytes together: set pagination.maxBytes`, {
    type: 'HttpTooLarge',
  })
}

/** Without the key that makes each of them another. */
function hashRequest({ method, url, headers = {}, body }: HttpRequest): string {
  const { 'idempotency-key': _, ...others } = headers
  const hash = createHash('sha256').update(JSON.stringify([method, url, Object.entries(others).sort()]))
  if (typeof body === 'string' || body instanceof Uint8Array) hash.update(body)
  return hash.digest('base64')
}

/** The record has the requests of the first pages only. */
function noteUnseen({ notes }: NodeContext, count: number): void {
  if (count <= MAX_REQUESTS) return
  const text = `${count} pages were read; the record has the requests of the first ${MAX_REQUESTS}, and those that failed`
  notes.add({ console: [{ level: 'info', text }] })
}
