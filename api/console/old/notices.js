import { Refusal } from './ask.js'
import { fill, h } from './dom.js'

/** A short message that goes away by itself; read out by screen readers. @param {string} text @param {'good' | 'bad'} [kind] */
export function notify(text, kind = 'good') {
  const place = document.getElementById('notices')
  // What a page that polls says again and again stands there once.
  if (place?.lastElementChild?.textContent === text) return
  const notice = h('div', { class: `notice ${kind}` }, text)
  place?.append(notice)
  setTimeout(() => notice.remove(), kind === 'bad' ? 8_000 : 4_000)
}

/** @param {unknown} error */
export function notifyError(error) {
  notify(error instanceof Error ? error.message : String(error), 'bad')
}

/** What was refused, with every field's problem. @param {unknown} error */
export function describe(error) {
  const message = error instanceof Error ? error.message : String(error)
  const problems = error instanceof Refusal ? error.problems : []
  // Of a single problem the message says the same.
  return h(
    'div',
    { class: 'refusal', role: 'alert' },
    problems.length !== 1 && h('p', null, message),
    problems.length > 0 &&
      h(
        'ul',
        { class: 'problems' },
        ...problems.map(({ path, message, excerpt }) =>
          h(
            'li',
            null,
            h('code', null, path),
            ' ',
            message,
            excerpt && h('pre', { class: 'excerpt' }, excerpt.join('\n')),
          ),
        ),
      ),
  )
}

/** A page's place for what was refused: shown, or emptied with null. @param {Element} place @param {unknown} error */
export function complain(place, error) {
  fill(place, error === null ? null : describe(error))
}

/**
 * Sends a form, one time at once: what is refused is shown in `place`, and `onRefused` called.
 * @param {Event} event @param {HTMLButtonElement} button @param {Element} place
 * @param {() => Promise<unknown>} work @param {() => void} [onRefused]
 */
export async function sendForm(event, button, place, work, onRefused) {
  event.preventDefault()
  if (button.disabled) return
  button.disabled = true
  complain(place, null)
  try {
    await work()
  } catch (error) {
    complain(place, error)
    onRefused?.()
  } finally {
    button.disabled = false
  }
}

/** What a list says when it is empty. @param {string} title @param {string} text @param {...Node} rest */
export function showEmpty(title, text, ...rest) {
  return h('div', { class: 'empty' }, h('h2', null, title), h('p', null, text), ...rest)
}
