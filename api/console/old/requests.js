import { fill, h } from './dom.js'
import { showJson } from './json.js'
import { notifyError } from './notices.js'
import { formatDuration, showTime } from './time.js'

/** @typedef {(recordId: string, query: { page: number }) => Promise<import('./lists.js').Envelope>} LoadRequests */

/**
 * What a node has sent over HTTP, read when somebody asks for it, and again with every click.
 * @param {string} recordId
 * @param {LoadRequests} load
 */
export function showRequests(recordId, load) {
  const list = h('div', { class: 'requests', 'aria-live': 'polite' })
  return h(
    'section',
    { class: 'value' },
    h('button', { type: 'button', class: 'button small', onclick: () => void turn(0) }, 'HTTP requests'),
    list,
  )

  /** @param {number} number */
  async function turn(number) {
    try {
      const page = await load(recordId, { page: number })
      const { content, totalElements, totalPages } = page
      fill(
        list,
        totalElements === 0 && h('p', { class: 'quiet' }, 'None is kept.'),
        ...content.map(showRequest),
        number > 0 && step('Earlier', number - 1),
        number + 1 < totalPages && step('Later', number + 1),
      )
    } catch (error) {
      notifyError(error)
    }
  }

  /** @param {string} text @param {number} to */
  function step(text, to) {
    return h('button', { type: 'button', class: 'button small', onclick: () => void turn(to) }, text)
  }
}

/** @param {any} request */
function showRequest(request) {
  const { attempt, method, url, startedAt, durationMs, redirects, response, error } = request
  const came = response ? `${response.status} ${response.statusText}` : error ? 'no response' : 'under way'
  return h(
    'details',
    null,
    h('summary', null, `Attempt ${attempt}: ${method} ${url}, ${came}`),
    h('p', { class: 'quiet' }, showTime(startedAt), durationMs !== null && `, ${formatDuration(durationMs)}`),
    error && h('p', { class: 'failure' }, error),
    ...redirects.map((/** @type {any} */ hop) =>
      h('p', { class: 'quiet' }, `${hop.status}: ${hop.method} ${hop.url}`),
    ),
    showJson('Request', showPart(request)),
    response && showJson('Response', showPart(response)),
  )
}

/** The headers and the body, as the value that it is where that is JSON. @param {any} part */
function showPart({ headers, body, bodyBytes, bodyCut }) {
  if (body === null)
    return { headers, ...(bodyBytes > 0 ? { body: `${bodyBytes} bytes that are no text` } : {}) }
  if (bodyCut) return { headers, body, cut: `the beginning of ${bodyBytes} bytes` }
  try {
    return { headers, body: JSON.parse(body) }
  } catch {
    return { headers, body }
  }
}
