import { ask } from './ask.js'
import { openDialog } from './dialog.js'
import { fill, h } from './dom.js'
import { copyText } from './json.js'
import { cell, showHeading, showTable } from './lists.js'
import { notify, showEmpty } from './notices.js'
import { showAge, showTime } from './time.js'

const ROLES = ['Viewer', 'Operator', 'Builder', 'Admin']

/** The team's SDK tokens, for its ADMINs. @param {import('./main.js').Page} page */
export async function showTokens({ main, signal, frame }) {
  const path = `/api/teams/${frame.teamId}/sdk-tokens`
  const fresh = h('div', { 'aria-live': 'polite' })
  const list = h('div')
  await load()
  const add = h('button', { type: 'button', class: 'button primary', onclick: create }, 'New token')
  fill(
    main,
    showHeading('SDK tokens', add),
    h(
      'p',
      { class: 'lead' },
      'Programs sign in with these. A token can do what its role allows, in this team only.',
    ),
    fresh,
    list,
  )

  async function load() {
    const tokens = await ask('GET', path, { signal })
    if (tokens.length === 0)
      return fill(list, showEmpty('No tokens', 'Nothing calls this team’s workflows by a token.'))
    fill(
      list,
      showTable(
        'SDK tokens',
        ['Name', 'Role', 'Token', 'Created', 'Last used', 'Revoke'],
        tokens.map(showRow),
      ),
    )
  }

  /** @param {any} token */
  function showRow(token) {
    const ask = () => revoke(token)
    return h(
      'tr',
      null,
      cell('Name', token.name),
      cell('Role', token.role),
      cell('Token', h('code', null, token.hint ?? '')),
      cell('Created', showTime(token.createdAt)),
      cell(
        'Last used',
        token.lastUsedAt ? showAge(token.lastUsedAt) : h('span', { class: 'quiet' }, 'never'),
      ),
      cell(
        '',
        h(
          'button',
          { type: 'button', class: 'button small', onclick: ask, 'aria-label': `Revoke ${token.name}` },
          'Revoke',
        ),
      ),
    )
  }

  function create() {
    const name = h('input', { id: 'token-name', maxlength: 100, required: true, autocomplete: 'off' })
    const role = h('select', { id: 'token-role' }, ...ROLES.map((one) => h('option', null, one)))
    role.value = 'Operator'
    openDialog({
      title: 'New SDK token',
      label: 'Create',
      body: [
        h('label', { for: 'token-name' }, 'Name'),
        name,
        h('label', { for: 'token-role' }, 'Role'),
        role,
      ],
      submit: async () => {
        const made = await ask('POST', path, { json: { name: name.value, role: role.value } })
        showOnce(made)
        await load()
      },
    })
  }

  /** @param {{ name: string, token: string }} made */
  function showOnce({ name, token }) {
    const hide = () => fill(fresh)
    fill(
      fresh,
      h(
        'section',
        { class: 'once' },
        h('h2', null, `The token ${name}`),
        h('p', null, 'Copy it now: it is shown only once and never again.'),
        h('code', { class: 'secret', tabindex: 0 }, token),
        h(
          'div',
          { class: 'actions' },
          h('button', { type: 'button', class: 'button', onclick: () => copyText(token) }, 'Copy'),
          h('button', { type: 'button', class: 'button', onclick: hide }, 'I have it'),
        ),
      ),
    )
  }

  /** @param {{ id: string, name: string }} token */
  function revoke({ id, name }) {
    openDialog({
      title: 'Revoke this token?',
      label: 'Revoke',
      danger: true,
      body: [h('p', null, 'Whatever uses ', h('strong', null, name), ' is refused from now on.')],
      submit: async () => {
        await ask('DELETE', `${path}/${id}`)
        notify('Token revoked')
        await load()
      },
    })
  }
}
