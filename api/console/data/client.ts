import { keepPreviousData, QueryClient } from '@tanstack/react-query'
import { createClient } from '../../client.ts'
import { readClock } from './clock.ts'
import { type Problem, Refusal } from './refusal.ts'

/** Where the service is: it may stand under a path. */
const BASE = new URL('.', document.baseURI)

/** The address of a path of the API, such as `/api/executions/…/events`. */
export function addressOf(path: string): string {
  return new URL(path.slice(1), BASE).href
}

/**
 * The reactions to the end of the session, for which the shell asks to sign in again, and to a refusal: the role may be
 * another one by now.
 */
export const session = { onEnd: () => {}, onForbidden: () => {} }

async function ask(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const answer = await fetch(input, { cache: 'no-store', ...init }).catch((error) => {
    if (init?.signal?.aborted) throw error
    throw new Refusal(0, 'The service cannot be reached')
  })
  readClock(answer)
  if (answer.ok) return answer
  if (answer.status === 401 && !answer.url.endsWith('/api/auth/login')) session.onEnd()
  if (answer.status === 403) session.onForbidden()
  const body = await readBody(answer)
  const message = body?.message ?? `The service responded with ${answer.status}`
  throw new Refusal(answer.status, message, body?.errors, Number(answer.headers.get('retry-after') ?? 0))
}

async function readBody(answer: Response): Promise<{ message?: string; errors?: Problem[] } | undefined> {
  return answer.json().catch(() => undefined)
}

/** The API, typed: `read(api.api.approvals.$get({ query }))`. What it refuses is thrown as a Refusal. */
export const api = createClient(BASE.href, { fetch: ask })

type Answer = { ok: boolean; json(): Promise<unknown>; headers: Headers }
type Body<R> = R extends { ok: true; json(): Promise<infer T> } ? T : never

/** What an answer holds. */
export async function read<R extends Answer>(asked: Promise<R>): Promise<Body<R>> {
  return (await (await asked).json()) as Body<R>
}

/** The same with the answer's ETag, to be sent back as If-Match. */
export async function readTagged<R extends Answer>(
  asked: Promise<R>,
): Promise<{ body: Body<R>; tag: string | null }> {
  const answer = await asked
  return { body: (await answer.json()) as Body<R>, tag: answer.headers.get('etag') }
}

/** A path of the API that is no JSON, or has no type here. */
export async function askRaw(
  method: string,
  path: string,
  json?: unknown,
  more: Record<string, string> = {},
): Promise<Response> {
  if (json === undefined) return ask(addressOf(path), { method, headers: more })
  const headers = { ...more, 'Content-Type': 'application/json' }
  return ask(addressOf(path), { method, headers, body: JSON.stringify(json) })
}

/** Sends a file as it is, without reading it into memory; with its `name` if the service is to know it. */
export async function sendFile(path: string, file: Blob, type: string, name?: string): Promise<Response> {
  const named = name && `attachment; filename*=UTF-8''${encodeURIComponent(name).replace(/['()*]/g, percent)}`
  const headers = { 'Content-Type': type, ...(named ? { 'Content-Disposition': named } : {}) }
  return ask(addressOf(path), { method: 'POST', headers, body: file })
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

/** What passes: the service is away or restarting, or asks to come again later. */
function passes(error: Error | null): boolean {
  return error instanceof Refusal && [0, 429, 502, 503, 504].includes(error.status)
}

/** Wait as long as a refusal says; what is refused for good is not asked again. */
function retry(count: number, error: Error): boolean {
  return count < 3 && passes(error)
}

const BACK_MS = 5_000

/** The cache of reads. A list keeps its rows while its next page loads; a query with polling names its interval. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry,
      retryDelay: (count, error) =>
        Math.max(1_000 * 2 ** count, error instanceof Refusal ? error.retryAfter * 1_000 : 0),
      staleTime: 2_000,
      // After the retries the page says what is wrong, and comes to itself once the service is back.
      refetchInterval: ({ state }) => (passes(state.error) ? BACK_MS : false),
      // A service on this machine is reached without a network.
      networkMode: 'always',
      refetchIntervalInBackground: false,
    },
    mutations: { networkMode: 'always' },
  },
})

/** For lists with pages and filters: the rows stay while the next ones load. */
export const keepRows = { placeholderData: keepPreviousData }

/** How often a list keeps itself fresh. */
export const FRESH_MS = 5_000
