/** @typedef {{ path: string, message: string, excerpt?: string[] }} Problem */

const BASE = new URL('..', import.meta.url)

/** What the API refused, in its own words; `problems` field by field. Status 0: it could not be reached. */
export class Refusal extends Error {
  /** @param {number} status @param {string} message @param {Problem[]} [problems] @param {number} [retryAfter] */
  constructor(status, message, problems = [], retryAfter = 0) {
    super(message)
    this.status = status
    this.problems = problems
    this.retryAfter = retryAfter
  }
}

/** Where the API is: the service may stand under a path. @param {string} path */
export function addressOf(path) {
  return new URL(path.slice(1), BASE).href
}

/** What to do when the session has ended; main.js shows the sign-in then. */
export const session = { onEnd: () => {} }

/**
 * @typedef {{ json?: unknown, query?: Record<string, string | number | undefined>, headers?: Record<string, string>,
 *   signal?: AbortSignal }} Options
 */

/**
 * Asks the API. Resolves with what the answer's body holds; throws Refusal.
 * @param {string} method
 * @param {string} path such as /api/teams
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function ask(method, path, options) {
  return (await askTagged(method, path, options)).body
}

/**
 * The same with the answer's ETag.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<{ body: any, tag: string | null }>}
 */
export async function askTagged(method, path, { json, query, headers, signal } = {}) {
  const url = new URL(path.slice(1), BASE)
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== '') url.searchParams.set(key, String(value))
  }
  /** @type {RequestInit} */
  const init = { method, headers: { Accept: 'application/json', ...headers }, cache: 'no-store' }
  if (signal) init.signal = signal
  if (json !== undefined) {
    init.headers = { ...init.headers, 'Content-Type': 'application/json' }
    init.body = JSON.stringify(json)
  }
  const answer = await fetch(url, init).catch((error) => {
    if (signal?.aborted) throw error
    throw new Refusal(0, 'The service cannot be reached')
  })
  const text = await answer.text()
  const body = readJson(text)
  if (answer.ok) return { body, tag: answer.headers.get('etag') }
  if (answer.status === 401 && path !== '/api/auth/login') session.onEnd()
  const message = body?.message ?? `The service responded with ${answer.status}`
  throw new Refusal(answer.status, message, body?.errors, Number(answer.headers.get('retry-after') ?? 0))
}

/** What stands at an address, as a text; throws Refusal. @param {string} path */
export async function readText(path) {
  const answer = await fetch(addressOf(path), { cache: 'no-store' }).catch(() => {
    throw new Refusal(0, 'The service cannot be reached')
  })
  const text = await answer.text()
  if (answer.ok) return text
  throw new Refusal(answer.status, readJson(text)?.message ?? `The service responded with ${answer.status}`)
}

/** @param {string} text */
function readJson(text) {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether this is only a page that was left while it was loading. @param {unknown} error */
export function isLeft(error) {
  return error instanceof DOMException && error.name === 'AbortError'
}

/** Polls until `work` answers false or the page is left; waits while nobody looks, and as long as a refusal says.
 * @param {AbortSignal} signal
 * @param {number} intervalMs
 * @param {() => Promise<boolean>} work
 * @param {(error: unknown) => void} onError
 * @param {(ms: number) => Promise<unknown>} [rest] how to wait between two
 */
export async function poll(signal, intervalMs, work, onError, rest = pause) {
  for (;;) {
    const began = performance.now()
    let wait = intervalMs
    try {
      if (!(await work())) return
      // What is slow to answer is asked less often.
      wait = Math.max(intervalMs, 4 * (performance.now() - began))
    } catch (error) {
      if (signal.aborted) return
      onError(error)
      if (error instanceof Refusal && [401, 403, 404].includes(error.status)) return
      wait = Math.max(5_000, error instanceof Refusal ? error.retryAfter * 1_000 : 0)
    }
    await rest(wait)
    if (!signal.aborted && document.hidden) {
      await new Promise((resolve) => {
        document.addEventListener('visibilitychange', resolve, { once: true, signal })
        signal.addEventListener('abort', resolve, { once: true })
      })
    }
    if (signal.aborted) return
  }
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Events come in bursts, and one reading shows them all. */
const BURST_MS = 150
/** What a stream should have told by then is looked for. */
const SILENCE_MS = 20_000

/**
 * A way to wait for `poll`: until a run's stream tells of news, or as long as asked where there is no stream. While
 * nobody looks there is none: a browser has but few connections to a service.
 * @param {AbortSignal} signal
 * @param {string} path
 */
export function listen(signal, path) {
  /** @type {EventSource | undefined} */
  let source
  let news = false
  let wake = () => {}
  const tell = () => {
    news = true
    wake()
  }
  const follow = () => {
    if (!signal.aborted && !document.hidden) {
      source ??= open()
      return
    }
    source?.close()
    source = undefined
    tell()
  }
  const open = () => {
    const opened = new EventSource(new URL(path.slice(1), BASE))
    for (const name of ['execution', 'node', 'end']) opened.addEventListener(name, tell)
    opened.addEventListener('end', () => opened.close())
    opened.addEventListener('error', tell)
    return opened
  }
  document.addEventListener('visibilitychange', follow, { signal })
  signal.addEventListener('abort', follow, { once: true })
  follow()

  /** @param {number} ms */
  return async (ms) => {
    if (source?.readyState !== EventSource.OPEN) return pause(ms)
    await pause(BURST_MS)
    if (!news && !signal.aborted) {
      await new Promise((resolve) => {
        const late = setTimeout(resolve, SILENCE_MS)
        wake = () => {
          clearTimeout(late)
          resolve(undefined)
        }
      })
    }
    news = false
  }
}
