import { ask, Refusal } from './ask.js'
import { h } from './dom.js'
import { sendForm } from './notices.js'

/** @typedef {{ teamId: string, teamName: string, role: string }} Membership */
/** @typedef {{ id: string, firstName: string, lastName: string, email: string, emailConfirmed: boolean, pendingEmail: string | null, teams: Membership[] }} User */

/** Who is signed in, or null. @returns {Promise<User | null>} */
export async function readUser() {
  try {
    return await ask('GET', '/api/auth/me')
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) return null
    throw error
  }
}

/** The sign-in; calls `onDone` once the cookie is set. @param {() => void} onDone */
export function showSignIn(onDone) {
  const email = h('input', { id: 'email', type: 'email', autocomplete: 'username', required: true })
  const password = h('input', {
    id: 'password',
    type: 'password',
    autocomplete: 'current-password',
    required: true,
  })
  const refused = h('div')
  const go = h('button', { type: 'submit', class: 'button primary' }, 'Sign in')
  return h(
    'main',
    { class: 'sign-in' },
    h(
      'form',
      { onsubmit: send },
      h('img', { src: new URL('icon.svg', import.meta.url).pathname, alt: '', width: 40, height: 40 }),
      h('h1', { tabindex: -1 }, 'Sign in to Perdure'),
      h('label', { for: 'email' }, 'E-mail'),
      email,
      h('label', { for: 'password' }, 'Password'),
      password,
      refused,
      go,
    ),
  )

  /** @param {Event} event */
  function send(event) {
    const work = async () => {
      await ask('POST', '/api/auth/login', { json: { email: email.value, password: password.value } })
      onDone()
    }
    return sendForm(event, go, refused, work, () => password.select())
  }
}

export async function signOut() {
  await ask('POST', '/api/auth/logout')
}

const RANK = ['VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN']

/** Whether the user may in this team what `least` may: for what to show; the API decides. @param {User} user @param {string} teamId @param {string} least */
export function may(user, teamId, least) {
  const role = user.teams.find((team) => team.teamId === teamId)?.role ?? ''
  return RANK.indexOf(role) >= RANK.indexOf(least)
}
