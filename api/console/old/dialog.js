import { h, newId } from './dom.js'
import { sendForm } from './notices.js'

/**
 * Asks in a modal dialog; Escape and Cancel close it. `submit` does the work: it closes when that resolves (unless with
 * false), and says what was refused when it throws. `leave` names the way out, where there is nothing to cancel.
 * @param {{ title: string, body: Node[], label: string, leave?: string, danger?: boolean, wide?: boolean, submit: () => Promise<unknown> }} options
 */
export function openDialog({ title, body, label, leave = 'Cancel', danger, wide, submit }) {
  const titleId = newId('dialog')
  const refused = h('div')
  const go = h('button', { type: 'submit', class: danger ? 'button danger' : 'button primary' }, label)
  const form = h(
    'form',
    { method: 'dialog', onsubmit: send },
    h('h2', { id: titleId }, title),
    ...body,
    refused,
    h(
      'div',
      { class: 'actions' },
      h('button', { type: 'button', class: 'button', onclick: close }, leave),
      go,
    ),
  )
  const dialog = h('dialog', { 'aria-labelledby': titleId, class: wide ? 'wide' : null }, form)
  dialog.addEventListener('close', () => dialog.remove())
  addEventListener('hashchange', close, { once: true })
  document.body.append(dialog)
  dialog.showModal()

  function close() {
    dialog.close()
  }

  /** @param {Event} event */
  function send(event) {
    return sendForm(event, go, refused, async () => {
      if ((await submit()) !== false) close()
    })
  }
}
