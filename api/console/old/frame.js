import { ask, poll } from './ask.js'
import { fill, h, s } from './dom.js'
import { notifyError } from './notices.js'
import { may, signOut } from './session.js'

/**
 * What stands around every page.
 * @typedef {{ elements: HTMLElement[], main: HTMLElement, user: import('./session.js').User, teamId: string,
 *   can: (least: string, teamId?: string) => boolean, choose: (teamId: string) => void, mark: (nav: string) => void,
 *   count: () => void }} Frame
 */

const KEPT = 'perdure.team'
const COUNT_MS = 15_000
const COUNTED = 100

/** @type {Record<string, string>} */
const ICONS = {
  workflows: 'M3 4h4v3H3zM9 9h4v3H9zM5 7v3.5h4',
  executions: 'M5 3.5v9l7-4.500z',
  approvals: 'M8 2.500a5.500 5.500 0 1 0 0 11a5.500 5.500 0 0 0 0-11zM5.500 8.200l1.800 1.800 3.200-3.600',
  credentials: 'M4.500 7.500V5.500a3.500 3.500 0 0 1 7 0v2M3.500 7.500h9v6h-9zM8 9.800v1.500',
  tokens: 'M9.800 9.200a3.500 3.500 0 1 0-3-3L2.500 10.500v3h3V12H7v-1.500z',
  guide:
    'M8 4.500C6.500 3.300 4.500 3 2.500 3v9c2 0 4 .300 5.500 1.500 1.500-1.200 3.500-1.500 5.500-1.500V3c-2 0-4 .300-5.500 1.500zM8 4.500v9',
}

/**
 * The frame with its navigation, the team switch and the user. The chosen team is kept in the browser.
 * @param {import('./session.js').User} user
 * @param {{ signal: AbortSignal, onTeam: () => void, onSignOut: () => void }} options `signal` ends with the session
 * @returns {Frame}
 */
export function createFrame(user, { signal, onTeam, onSignOut }) {
  const kept = localStorage.getItem(KEPT)
  const first = user.teams.find((team) => team.teamId === kept) ?? user.teams[0]
  const main = h('main', { id: 'main', tabindex: -1 })
  const options = user.teams.map(({ teamId, teamName }) => h('option', { value: teamId }, teamName))
  const teams = h('select', { id: 'team', 'aria-label': 'Team', onchange: change }, ...options)
  const links = [
    link('workflows', 'Workflows'),
    link('executions', 'Executions'),
    link('approvals', 'Approvals'),
    link('credentials', 'Credentials'),
    link('tokens', 'SDK tokens'),
  ]
  const guide = h('a', { href: '/api/docs/guide' }, sign('guide'), 'Guide')
  const name = `${user.firstName} ${user.lastName}`.trim() || user.email
  const skip = h('a', { class: 'skip', href: '#main', onclick: skipTo }, 'Skip to the page')
  const bar = h(
    'header',
    { class: 'bar' },
    h(
      'a',
      { class: 'brand', href: '#/workflows' },
      h('img', { src: icon(), alt: '', width: 22, height: 22 }),
      'Perdure',
    ),
    teams,
    h('nav', { 'aria-label': 'Console' }, ...links, guide),
    h(
      'div',
      { class: 'who' },
      h('span', { title: user.email }, name),
      (!user.emailConfirmed || user.pendingEmail !== null) &&
        h('a', { id: 'unconfirmed', href: '#/confirm' }, 'Confirm your e-mail'),
      h('button', { type: 'button', class: 'button small', onclick: leave }, 'Sign out'),
    ),
  )
  /** @type {Frame} */
  const frame = {
    elements: [skip, bar, main],
    main,
    user,
    teamId: first?.teamId ?? '',
    can: (least, teamId = frame.teamId) => may(user, teamId, least),
    choose(teamId) {
      if (!user.teams.some((team) => team.teamId === teamId)) return
      const before = frame.teamId
      frame.teamId = teamId
      teams.value = teamId
      localStorage.setItem(KEPT, teamId)
      showLinks()
      if (teamId !== before) frame.count()
    },
    count: () => void countOpen().catch(() => {}),
    mark(nav) {
      for (const one of links) {
        if (one.dataset.nav === nav) one.setAttribute('aria-current', 'page')
        else one.removeAttribute('aria-current')
      }
    },
  }
  const waiting = h('span', { class: 'count' })
  links.find((one) => one.dataset.nav === 'approvals')?.append(waiting)
  frame.choose(frame.teamId)
  // A number that is not known is not shown: nobody asked for it.
  void poll(signal, COUNT_MS, countOpen, () => fill(waiting))
  return frame

  /** Counts the approvals that the user may decide, of the newest ones. */
  async function countOpen() {
    const { teamId } = frame
    if (signal.aborted || !teamId || !frame.can('OPERATOR')) fill(waiting)
    else {
      const query = { teamId, size: COUNTED }
      const { content, totalElements } = await ask('GET', '/api/approvals', { query, signal })
      if (teamId !== frame.teamId) return true
      const open = content.filter((/** @type {any} */ one) => one.mayDecide).length
      fill(waiting, open > 0 && `${open}${totalElements > COUNTED ? '+' : ''}`)
      waiting.title = open > 0 ? 'Open ones that you may decide' : ''
    }
    return true
  }

  function showLinks() {
    const tokens = links.find((one) => one.dataset.nav === 'tokens')
    if (tokens) tokens.hidden = !frame.can('ADMIN')
    const credentials = links.find((one) => one.dataset.nav === 'credentials')
    if (credentials) credentials.hidden = !frame.can('BUILDER')
  }

  // What one team's page shows is not the other team's: the switch leads to the list of the same kind.
  function change() {
    frame.choose(teams.value)
    const nav =
      links.find((one) => one.hasAttribute('aria-current') && !one.hidden)?.dataset.nav ?? 'workflows'
    if (location.hash === `#/${nav}`) onTeam()
    else location.hash = `#/${nav}`
  }

  async function leave() {
    try {
      await signOut()
      onSignOut()
    } catch (error) {
      notifyError(error)
    }
  }

  /** @param {Event} event */
  function skipTo(event) {
    event.preventDefault()
    main.focus()
  }
}

function icon() {
  return new URL('icon.svg', import.meta.url).pathname
}

/** @param {string} nav @param {string} text */
function link(nav, text) {
  return h('a', { href: `#/${nav}`, 'data-nav': nav }, sign(nav), text)
}

/** @param {string} name */
function sign(name) {
  return s('svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true' }, s('path', { d: ICONS[name] }))
}
