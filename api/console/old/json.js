import { fill, h } from './dom.js'
import { notify } from './notices.js'

const SHOWN = 100_000
const COLOURED = 20_000
const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** A JSON value to read and to copy; of a huge one the beginning. @param {string} label @param {unknown} value */
export function showJson(label, value) {
  const text = JSON.stringify(value, null, 2) ?? ''
  const shown = text.slice(0, SHOWN)
  const block = h('pre', { class: 'json', tabindex: 0, 'aria-label': label })
  if (shown.length <= COLOURED) fill(block, ...colour(shown))
  else block.textContent = shown
  const rest = text.length - shown.length
  return h(
    'section',
    { class: 'value' },
    h(
      'header',
      null,
      h('h4', null, label),
      h('button', { type: 'button', class: 'button small', onclick: copy }, 'Copy'),
    ),
    block,
    rest > 0 && h('p', { class: 'quiet' }, `${rest.toLocaleString()} more characters; Copy takes all of it.`),
  )

  function copy() {
    copyText(text)
  }
}

/** @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text)
    notify('Copied')
  } catch {
    // Browsers give the clipboard to secure origins only.
    notify('This browser does not allow copying here; select the text instead', 'bad')
  }
}

/** Texts and spans, never markup. @param {string} text */
function colour(text) {
  /** @type {(string | Node)[]} */
  const parts = []
  let at = 0
  for (const found of text.matchAll(TOKEN)) {
    parts.push(text.slice(at, found.index))
    const [whole, string, colon] = found
    const kind = string === undefined ? 'literal' : colon === undefined ? 'text' : 'key'
    parts.push(h('span', { class: `json-${kind}` }, string ?? whole))
    if (colon !== undefined) parts.push(colon)
    at = found.index + whole.length
  }
  return [...parts, text.slice(at)]
}

/** Reads what a user typed; throws with the place of the mistake. @param {string} text @returns {unknown} */
export function parseJson(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    const at = Number(/position (\d+)/.exec(message)?.[1] ?? Number.NaN)
    const line = text.slice(0, at).split('\n').length
    throw new Error(
      Number.isNaN(at) ? `This is not JSON: ${message}` : `This is not JSON: see line ${line}. ${message}`,
    )
  }
}

/** A text area for JSON: Ctrl+Enter sends its form. @param {{ id: string, value: string, rows?: number, describedby?: string }} options */
export function jsonField({ id, value, rows = 10, describedby }) {
  const field = h('textarea', {
    id,
    rows,
    class: 'code',
    spellcheck: 'false',
    autocapitalize: 'off',
    autocomplete: 'off',
    'aria-describedby': describedby,
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) field.form?.requestSubmit()
    },
  })
  field.value = value
  return field
}
