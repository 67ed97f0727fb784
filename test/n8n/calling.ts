import type { HookCall, Recording } from './cases.ts'

const ANSWER_MS = 30_000
/** Headers of an answer that an author can set, besides those that begin with x-. */
const KEPT = ['content-type', 'location', 'content-disposition', 'cache-control']
const OWN = ['x-powered-by', 'x-content-type-options', 'x-request-id']

/** Sends a request of a case to `url`, without its query, and reads the answer as a recording has it. */
export async function callHook(
  send: (url: string, init: RequestInit) => Promise<Response>,
  url: string,
  { method, query = '', headers, body, text }: HookCall,
): Promise<Pick<Recording, 'status' | 'headers' | 'body'>> {
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const init: RequestInit = {
    method,
    headers: { 'user-agent': 'cases', accept: '*/*', ...json, ...headers },
    redirect: 'manual',
    signal: AbortSignal.timeout(ANSWER_MS),
  }
  if (text !== undefined || body !== undefined) init.body = text ?? JSON.stringify(body)
  try {
    const response = await send(`${url}${query}`, init)
    return {
      status: response.status,
      headers: pickHeaders(response.headers),
      body: readBody(await response.text()),
    }
  } catch (error) {
    return { status: 0, headers: {}, body: String(error) }
  }
}

function pickHeaders(headers: Headers): Record<string, string> {
  const kept = [...headers].filter(
    ([name]) => KEPT.includes(name) || (name.startsWith('x-') && !OWN.includes(name)),
  )
  return Object.fromEntries(
    kept.map(([name, value]) => [name, name === 'content-type' ? value.split(';')[0]!.trim() : value]).sort(),
  )
}

function readBody(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
