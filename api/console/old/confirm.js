import { ask } from './ask.js'
import { fill, h } from './dom.js'
import { showHeading } from './lists.js'
import { notify, sendForm } from './notices.js'

/**
 * Where the link in a mail leads. Opening it confirms nothing, because programs that scan mail open links too:
 * a click does. @param {import('./main.js').Page} page
 */
export async function showConfirm({ main, query, signal }) {
  const { email, emailConfirmed, pendingEmail } = await ask('GET', '/api/auth/me', { signal })
  const wanted = pendingEmail ?? email
  const refused = h('div')
  const token = query.get('token')
  const heading = showHeading('Your e-mail')
  if (emailConfirmed && pendingEmail === null) {
    return fill(main, heading, h('p', { class: 'lead' }, `${email} is confirmed.`))
  }
  const label = token === null ? 'Send the link again' : 'Confirm'
  const go = h('button', { type: 'submit', class: 'button primary' }, label)
  const text =
    token === null
      ? `${wanted} is not confirmed yet: open the link that was mailed to it.`
      : `Is ${wanted} your e-mail?`
  fill(main, heading, h('p', { class: 'lead' }, text), h('form', { onsubmit: send }, refused, go))

  /** @param {Event} event */
  function send(event) {
    return sendForm(event, go, refused, token === null ? sendAgain : () => confirm(token))
  }

  async function sendAgain() {
    const { message } = await ask('POST', '/api/auth/email/resend')
    notify(message)
  }

  /** @param {string} token */
  async function confirm(token) {
    const account = await ask('POST', '/api/auth/email/confirm', { json: { token } })
    notify(`${account.email} is confirmed`)
    document.getElementById('unconfirmed')?.remove()
    // The token is used: it need not stay in the browser's history.
    location.replace('#/confirm')
  }
}
