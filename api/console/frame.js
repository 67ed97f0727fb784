import { h, s } from './dom.js'
import { notifyError } from './notices.js'
import { may, signOut } from './session.js'

/**
 * What stands around every page.
 * @typedef {{ elements: HTMLElement[], main: HTMLElement, user: import('./session.js').User, teamId: string,
 *   can: (least: string, teamId?: string) => boolean, choose: (teamId: string) => void, mark: (nav: string) => void }} Frame
 */

const KEPT = 'perdure.team'

/** @type {Record<string, string>} */
const ICONS = {
  workflows: 'M3 4h4v3H3zM9 9h4v3H9zM5 7v3.5h4',
  executions: 'M5 3.5v9l7-4.500z',
  tokens: 'M9.800 9.200a3.500 3.500 0 1 0-3-3L2.500 10.500v3h3V12H7v-1.500z',
}

/**
 * The frame with its navigation, the team switch and the user. The chosen team is kept in the browser.
 * @param {import('./session.js').User} user
 * @param {{ onTeam: () => void, onSignOut: () => void }} options
 * @returns {Frame}
 */
export function createFrame(user, { onTeam, onSignOut }) {
  const kept = localStorage.getItem(KEPT)
  const first = user.teams.find((team) => team.teamId === kept) ?? user.teams[0]
  const main = h('main', { id: 'main', tabindex: -1 })
  const options = user.teams.map(({ teamId, teamName }) => h('option', { value: teamId }, teamName))
  const teams = h('select', { id: 'team', 'aria-label': 'Team', onchange: change }, ...options)
  const links = [
    link('workflows', 'Workflows'),
    link('executions', 'Executions'),
    link('tokens', 'SDK tokens'),
  ]
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
    h('nav', { 'aria-label': 'Console' }, ...links),
    h(
      'div',
      { class: 'who' },
      h('span', { title: user.email }, name),
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
      frame.teamId = teamId
      teams.value = teamId
      localStorage.setItem(KEPT, teamId)
      showLinks()
    },
    mark(nav) {
      for (const one of links) {
        if (one.dataset.nav === nav) one.setAttribute('aria-current', 'page')
        else one.removeAttribute('aria-current')
      }
    },
  }
  frame.choose(frame.teamId)
  return frame

  function showLinks() {
    const tokens = links.find((one) => one.dataset.nav === 'tokens')
    if (tokens) tokens.hidden = !frame.can('ADMIN')
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
  const sign = s('svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true' }, s('path', { d: ICONS[nav] }))
  return h('a', { href: `#/${nav}`, 'data-nav': nav }, sign, text)
}
