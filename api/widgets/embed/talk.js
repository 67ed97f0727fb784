/**
 * @typedef {{ accent: string, background: string, text: string }} Colours
 * @typedef {{ colours: Colours, title: string, welcomeText: string, position: string }} Theme
 * @typedef {{ theme: Theme, collectEmail: boolean }} Look
 * @typedef {{ role: 'user' | 'assistant', status: string, content: string }} Said
 * @typedef {{ type: 'chunk', content: string } | { type: 'reset' } | { type: 'done' } |
 *   { type: 'error', message: string }} TalkEvent
 * @typedef {{ content: string, key: string }} Open
 */

/** A token that holds for less than this is exchanged for a new one before it is used. */
const RENEW_MS = 30 * 60_000

/** How often a reply is asked for if the connection breaks, or the service is away: for half a minute. */
const TRIES = 6
const AWAY = [502, 503, 504]

/** The service says something every 15 s. After this long the connection is dead, even without an error. */
const SILENCE_MS = 45_000

/** @typedef {ReturnType<typeof createTalk>} Talk */

/**
 * What a visitor says to the service, and hears from it. The session is kept for as long as the tab is open.
 *
 * @param {{ base: string, key: string, page: string | undefined }} place
 */
export function createTalk({ base, key, page }) {
  const root = `${base}/api/public/widgets/${encodeURIComponent(key)}`
  const kept = createKept(`perdure-widget ${key}`)

  /**
   * @param {string} path
   * @param {{ method?: string, json?: object, headers?: Record<string, string> }} [how]
   */
  async function ask(path, { method = 'GET', json, headers = {} } = {}) {
    const token = kept.read()?.token
    /** @type {Record<string, string>} */
    const all = { ...headers }
    if (token && path !== '') all.Authorization = `Bearer ${token}`
    if (page) all['X-Widget-Page'] = page
    if (json) all['Content-Type'] = 'application/json'
    const body = json ? JSON.stringify(json) : null
    const response = await fetch(root + path, { method, headers: all, body, credentials: 'omit' })
    if (response.ok) return response
    const wait = Number(response.headers.get('retry-after') ?? 0)
    throw Object.assign(new Error(`The service answered ${response.status}`), {
      status: response.status,
      wait,
    })
  }

  /**
   * Begins a session, or goes on with the one there is.
   *
   * @param {string} [email]
   */
  async function begin(email) {
    const response = await ask('/sessions', { method: 'POST', json: email ? { email } : {} })
    const { token, expiresIn } = await response.json()
    // The visitor's clock may be wrong by days, but it goes on as others do.
    kept.write({ ...kept.read(), token, until: Date.now() + expiresIn * 1000 })
  }

  async function renew() {
    const known = kept.read()
    if (known && known.until - Date.now() > RENEW_MS) return
    if (known && known.until < Date.now()) kept.write(undefined)
    await begin()
  }

  /**
   * Posts a message and calls `hear` with each event of the reply. If the connection breaks, the same message is posted
   * again under the same key: that starts nothing, and the reply comes from its beginning. So it is if the visitor sends
   * the same once more, or loads the page anew, before they have the whole reply.
   *
   * @param {string} content
   * @param {(event: TalkEvent) => void} hear
   */
  async function say(content, hear) {
    await renew()
    const before = kept.read()?.open
    const open = before?.content === content ? before : { content, key: makeKey() }
    keepOpen(open)
    const how = { method: 'POST', json: { content }, headers: { 'Idempotency-Key': open.key } }
    for (let attempt = 1; ; attempt++) {
      let wait = 0
      try {
        if (await readEvents(await ask('/messages?resets=1', how), hear)) return keepOpen(undefined)
      } catch (error) {
        const status = statusOf(error)
        // The connection that broke may still hold the visitor's place.
        const passes = status === 0 || AWAY.includes(status) || (status === 429 && attempt > 1)
        if (!passes) {
          keepOpen(undefined)
          throw error
        }
        wait = /** @type {{ wait?: number }} */ (error).wait ?? 0
        if (attempt === TRIES) throw error
      }
      if (attempt === TRIES) throw new Error('The connection broke')
      hear({ type: 'reset' })
      const pause = Math.max(500 * 2 ** attempt, Math.min(wait, 15) * 1000)
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }

  /** @param {Open | undefined} open */
  function keepOpen(open) {
    const known = kept.read()
    if (known) kept.write({ ...known, open })
  }

  return {
    begin,
    say,
    /** The message to which the visitor has not had the whole reply. */
    readOpen: () => kept.read()?.open?.content,
    closeOpen: () => keepOpen(undefined),
    isKnown: () => (kept.read()?.until ?? 0) > Date.now(),
    forget: () => kept.write(undefined),
    /** @returns {Promise<Look>} */
    readLook: async () => (await ask('')).json(),
    /** @returns {Promise<Said[]>} */
    readHistory: async () => (await (await ask('/messages')).json()).messages,
  }
}

/**
 * The status of a response that was refused; 0 if there was none.
 *
 * @param {unknown} error
 */
export function statusOf(error) {
  return /** @type {{ status?: number }} */ (error).status ?? 0
}

/**
 * Reads Server-Sent Events. Resolves to false if they break off.
 *
 * @param {Response} response
 * @param {(event: TalkEvent) => void} hear
 */
async function readEvents(response, hear) {
  if (!response.body) return false
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await within(SILENCE_MS, reader.read())
    if (done) {
      void reader.cancel().catch(() => {})
      return false
    }
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const data = block.split('\n').find((line) => line.startsWith('data: '))
      if (!data) continue
      const event = JSON.parse(data.slice('data: '.length))
      hear(event)
      if (event.type === 'done' || event.type === 'error') return true
    }
  }
}

/**
 * The next chunk, or the end if nothing comes for so long.
 *
 * @param {number} ms
 * @param {Promise<ReadableStreamReadResult<string>>} reading
 * @returns {Promise<{ done: boolean, value?: string | undefined }>}
 */
async function within(ms, reading) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const silence = new Promise((resolve) => {
    timer = setTimeout(() => resolve({ done: true }), ms)
  })
  try {
    return await Promise.race([reading, silence])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * A session in the tab's storage; in memory where a page is allowed none.
 *
 * @param {string} name
 */
function createKept(name) {
  /** @typedef {{ token: string, until: number, open?: Open | undefined } | undefined} Kept */
  /** @type {Kept} */
  let here
  try {
    here = JSON.parse(sessionStorage.getItem(name) ?? 'null') ?? undefined
  } catch {}
  return {
    read: () => here,
    /** @param {Kept} next */
    write(next) {
      here = next
      try {
        if (next) sessionStorage.setItem(name, JSON.stringify(next))
        else sessionStorage.removeItem(name)
      } catch {}
    },
  }
}

// crypto.randomUUID is missing on pages without https.
function makeKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16)).join('-')
}
