import { make, makeIcon } from './dom.js'
import { createPanel } from './panel.js'
import { makeSheet } from './style.js'
import { createTalk } from './talk.js'

const BUBBLE = 'M4 5h16v11H9l-5 4z'

const script = /** @type {HTMLScriptElement | null} */ (document.currentScript)
const key = script?.dataset.key
if (script && key) {
  const place = { base: new URL(script.src).origin, key, page: script.dataset.page }
  const begin = () => void startWidget(place)
  if (document.body) begin()
  else document.addEventListener('DOMContentLoaded', begin, { once: true })
} else console.warn('The widget needs its key: <script src=".../widget.js" data-key="...">')

/**
 * Shows the widget, unless it is closed, or this page may not show it: then nothing is to be seen.
 *
 * @param {{ base: string, key: string, page: string | undefined }} place
 */
async function startWidget(place) {
  const { key: name, page } = place
  if (document.querySelector(`perdure-widget[data-key="${CSS.escape(name)}"]`)) return
  const host = document.createElement('perdure-widget')
  host.dataset.key = name
  document.body.append(host)
  const talk = createTalk(place)
  try {
    const look = await talk.readLook()
    const root = host.attachShadow({ mode: 'open' })
    root.adoptedStyleSheets = [makeSheet(look.theme, page !== undefined)]
    const parts = createPanel({ look, talk })
    if (page === undefined) showLauncher(root, look.theme.title, parts)
    else {
      parts.close.hidden = true
      root.append(parts.panel)
      parts.open()
    }
  } catch {
    host.remove()
  }
}

/**
 * @param {ShadowRoot} root
 * @param {string} title
 * @param {ReturnType<typeof createPanel>} parts
 */
function showLauncher(root, title, { panel, close, open, focus }) {
  const label = `Open chat: ${title}`
  const launcher = make(
    'button',
    {
      className: 'launcher',
      type: 'button',
      'aria-label': label,
      'aria-haspopup': 'dialog',
      'aria-expanded': false,
    },
    makeIcon(BUBBLE),
  )
  root.append(launcher, panel)
  const shut = () => {
    panel.hidden = true
    launcher.setAttribute('aria-expanded', 'false')
    launcher.focus()
  }
  launcher.addEventListener('click', () => {
    if (!panel.hidden) return shut()
    launcher.setAttribute('aria-expanded', 'true')
    open()
  })
  close.addEventListener('click', shut)
  panel.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      event.stopPropagation()
      shut()
    }
    // On a phone the chat covers the page: what is behind it cannot be reached.
    if (event.key === 'Tab' && matchMedia('(max-width: 480px)').matches) keepFocus(event, root, panel, focus)
  })
}

/**
 * @param {KeyboardEvent} event
 * @param {ShadowRoot} root
 * @param {HTMLElement} panel
 * @param {() => void} focus
 */
function keepFocus(event, root, panel, focus) {
  const all = [...panel.querySelectorAll('button, input, textarea, a, [tabindex="0"]')]
  const open = /** @type {HTMLElement[]} */ (all).filter(
    (one) => one.offsetParent && !one.hasAttribute('disabled'),
  )
  const [first, last] = [open[0], open.at(-1)]
  const leaves = root.activeElement === (event.shiftKey ? first : last)
  if (!leaves) return
  event.preventDefault()
  if (event.shiftKey) last?.focus()
  else if (first) first.focus()
  else focus()
}
