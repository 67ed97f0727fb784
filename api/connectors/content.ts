import { MAX_DOCUMENT, readOpenApiDocument } from '../../activities/connectors/openapi/document.ts'
import type { Outsides } from '../../activities/egress/outside.ts'
import { HttpError } from '../../activities/http/httperror.ts'
import { NodeFailure } from '../../activities/nodes/kit/failure.ts'
import type { ConnectorContent } from '../../db/connectors/connectors.ts'
import { Fault, invalid } from '../../db/fault.ts'
import { isMaking, isReading } from '../../workflows/connectors/connector.ts'

/** What a person gives of a connector that is made of a document. */
type Given = {
  openapi: string
  title?: string | undefined
  server?: string | undefined
  repeatable?: string[] | undefined
  paging?: 'link' | undefined
}

const FETCH_MS = 30_000

/**
 * Reads what a document says of a service. Throws INVALID with what is wrong with the document, with an address that gives
 * none, or with what it lacks.
 */
export async function readContent(
  outside: Outsides | undefined,
  teamId: string,
  { openapi, title, server, repeatable = [], paging }: Given,
): Promise<ConnectorContent> {
  const isAddress = /^\s*https?:\/\/\S+\s*$/i.test(openapi)
  const source = isAddress ? openapi.trim() : null
  const text = source === null ? openapi : await fetchDocument(outside, teamId, source)
  const read = await readOrExplain(text, { repeatable, ...(paging ? { paging } : {}) })
  const own = read.server ?? (source === null ? undefined : URL.parse(read.relative ?? '/', source)?.href)
  const address = (server ?? own)?.replace(/\/+$/, '')
  if (address === undefined)
    throw invalid([{ path: 'server', message: 'is required, since the document names no whole address' }])
  demandActions(repeatable, read.actions)
  const refused = read.refused.map((one) => `the sign-in ${one} is not supported`)
  const { signIn, setup, actions, summary } = read
  return {
    title: (title ?? read.title).slice(0, 100),
    summary,
    actions,
    head: {
      ...{ server: address, signIn, source, repeatable, paging: paging ?? null },
      ...(setup === undefined ? {} : { setup }),
      problems: [...refused, ...read.problems],
    },
  }
}

/**
 * The content of a connector that is changed: read out of another document, or as it was but for what is given. Throws
 * INVALID as readContent does, and for paging without the document, which says what is a list.
 */
export async function changeContent(
  outside: Outsides | undefined,
  teamId: string,
  before: ConnectorContent,
  { openapi, title = before.title, server = before.head.server, repeatable, paging }: Partial<Given>,
): Promise<ConnectorContent> {
  const given = { title, server, repeatable: repeatable ?? before.head.repeatable }
  if (openapi !== undefined) return readContent(outside, teamId, { ...given, openapi, paging })
  if (paging === undefined) return reviseContent(before, given)
  throw invalid([{ path: 'paging', message: 'can only be changed with the document, as openapi' }])
}

/** The same connector with another address, or with other actions that may be done twice. */
function reviseContent(
  { summary, head, actions }: ConnectorContent,
  { title, server, repeatable }: { title: string; server: string | undefined; repeatable: string[] },
): ConnectorContent {
  demandActions(repeatable, actions)
  const revised = Object.entries(actions).map(([id, action]) => {
    const reads = action.steps.every((step) => isMaking(step) || isReading(step.method))
    const safety = reads || repeatable.includes(id) ? 'REPEATABLE' : 'ONCE'
    return [id, { ...action, safety }] as const
  })
  const address = server === undefined ? {} : { server: server.replace(/\/+$/, '') }
  return { title, summary, head: { ...head, repeatable, ...address }, actions: Object.fromEntries(revised) }
}

function demandActions(ids: string[], actions: Record<string, unknown>): void {
  const unknown = ids.filter((id) => !Object.hasOwn(actions, id))
  if (unknown.length === 0) return
  const message = `has ids of no actions: ${unknown.slice(0, 20).join(', ')}`
  throw invalid([{ path: 'repeatable', message }])
}

async function readOrExplain(text: string, options: Parameters<typeof readOpenApiDocument>[1]) {
  try {
    return await readOpenApiDocument(text, options)
  } catch (error) {
    if (!(error instanceof NodeFailure)) throw error
    if (error.retryable) throw new Fault('UNAVAILABLE', error.message, { retryAfter: 5 })
    const message = error.message.replace(/^the OpenAPI document cannot be converted: /, '')
    throw invalid([{ path: 'openapi', message }])
  }
}

async function fetchDocument(outside: Outsides | undefined, teamId: string, url: string): Promise<string> {
  if (!outside) throw new Fault('UNAVAILABLE', 'This process fetches no documents', { retryAfter: 5 })
  const { http } = await outside.forTeam(teamId)
  try {
    const accept = 'application/json, application/yaml, text/yaml, */*'
    const { status, body } = await http.request({
      ...{ method: 'GET', url, headers: { accept }, maxBytes: MAX_DOCUMENT, timeoutMs: FETCH_MS },
    })
    if (status !== 200)
      throw invalid([{ path: 'openapi', message: `is an address that responded with ${status}` }])
    return Buffer.from(body).toString()
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    throw invalid([{ path: 'openapi', message: `is an address that gives no document: ${error.message}` }])
  }
}
