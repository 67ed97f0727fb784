import { ask } from './ask.js'
import { openDialog } from './dialog.js'
import { fill, h, newId } from './dom.js'
import { cell, showHeading, showTable } from './lists.js'
import { notify, notifyError, showEmpty } from './notices.js'
import { createKeys } from './secrets.js'
import { showAge } from './time.js'

const USED = 50

/** @typedef {{ type: string, summary: string, keys: import('./secrets.js').Key[] }} CredentialType */

/** What the team's nodes sign in elsewhere with. @param {import('./main.js').Page} page */
export async function showCredentials({ main, query, signal, frame }) {
  const { teamId } = frame
  const place = showHeading('Credentials')
  if (!frame.can('BUILDER'))
    return fill(main, place, showEmpty('Not for Viewers', 'BUILDERs of a team see its credentials.'))
  /** @type {CredentialType[]} */
  const types = await ask('GET', '/api/credential-types', { signal })
  const kind = h(
    'select',
    { 'aria-label': 'Type', onchange: () => void load().catch(notifyError) },
    h('option', { value: '' }, 'Every type'),
    ...types.map(({ type }) => h('option', { value: type }, type)),
  )
  kind.value = query.get('type') ?? ''
  const list = h('div', { 'aria-live': 'polite' })
  await load()
  const add = h('button', { type: 'button', class: 'button primary', onclick: create }, 'New credential')
  fill(
    main,
    showHeading('Credentials', add),
    h(
      'p',
      { class: 'lead' },
      'What nodes sign in elsewhere with. What is secret is stored sealed, and never shown again.',
    ),
    h('div', { class: 'filters' }, kind),
    list,
  )

  async function load() {
    const found = await ask('GET', '/api/credentials', { query: { teamId, type: kind.value }, signal })
    if (found.length === 0)
      return fill(list, showEmpty('No credentials', 'Nodes that sign in elsewhere need one.'))
    const headings = ['Name', 'Type', 'Created', 'Last test', 'Actions']
    fill(list, showTable('Credentials', headings, found.map(showRow)))
  }

  /** @param {any} one */
  function showRow(one) {
    return h(
      'tr',
      { 'data-credential': one.id },
      cell('Name', one.name),
      cell('Type', h('code', null, one.type)),
      cell('Created', showAge(one.createdAt)),
      cell('Last test', showTest(one)),
      cell(
        '',
        h(
          'div',
          { class: 'actions' },
          act('Test', one, () => test(one)),
          one.type === 'OAUTH2' && act('Connect', one, () => connect(one)),
          act('Edit', one, () => edit(one)),
          act('Usage', one, () => showUsage(one)),
          act('Delete', one, () => remove(one)),
        ),
      ),
    )
  }

  function create() {
    const name = h('input', { id: newId('name'), maxlength: 200, required: true, autocomplete: 'off' })
    const choice = h(
      'select',
      { id: newId('type'), onchange: draw },
      ...types.map(({ type }) => h('option', null, type)),
    )
    if (kind.value) choice.value = kind.value
    const place = h('div')
    /** @type {ReturnType<typeof createKeys>} */
    let keys
    draw()
    openDialog({
      title: 'New credential',
      label: 'Create',
      wide: true,
      body: [
        h('label', { for: name.id }, 'Name'),
        name,
        h('label', { for: choice.id }, 'Type'),
        choice,
        place,
      ],
      submit: async () => {
        const json = { name: name.value, type: choice.value, teamId, data: keys.read() }
        await ask('POST', '/api/credentials', { json })
        notify('Credential created')
        await load()
      },
    })

    function draw() {
      const type = types.find((one) => one.type === choice.value)
      keys = createKeys(type?.keys ?? [])
      fill(place, h('p', { class: 'quiet' }, type?.summary), keys.element)
    }
  }

  /** @param {any} one */
  async function edit(one) {
    const found = await ask('GET', `/api/credentials/${one.id}`, { signal })
    const name = h('input', { id: newId('name'), maxlength: 200, required: true, autocomplete: 'off' })
    name.value = one.name
    const type = types.find((kind) => kind.type === one.type)
    const keys = createKeys(type?.keys ?? [], found.keys)
    openDialog({
      title: `Edit ${one.name}`,
      label: 'Save',
      wide: true,
      body: [
        h('label', { for: name.id }, 'Name'),
        name,
        h('p', { class: 'quiet' }, 'What is left empty stays as it is.'),
        ...(found.broken ? [h('p', { class: 'failure' }, found.broken)] : []),
        ...(found.testMessage ? [h('p', { class: 'quiet' }, `Last test: ${found.testMessage}`)] : []),
        keys.element,
      ],
      submit: async () => {
        const json = { name: name.value, data: keys.read() }
        await ask('PUT', `/api/credentials/${one.id}`, { json })
        notify('Credential saved')
        await load()
      },
    })
  }

  /** @param {any} one */
  async function test({ id, name }) {
    const { status, message } = await ask('POST', `/api/credentials/${id}/test`, { query: { teamId } })
    notify(`${name}: ${message}`, status === 'SUCCESS' ? 'good' : 'bad')
    await load()
  }

  /** The browser goes to the authorization server, which sends it back. @param {any} one */
  async function connect({ id }) {
    const { url } = await ask('POST', `/api/credentials/${id}/connect`)
    // What the server says is an address that the credential names: nothing but HTTP is followed.
    if (!/^https?:\/\//i.test(url)) throw new Error('The authorization URL is no address of the web')
    location.assign(url)
  }

  /** The workflows that name it, those of now first. @param {string} id @returns {Promise<import('./lists.js').Envelope>} */
  function readUsage(id) {
    return ask('GET', `/api/credentials/${id}/usage`, { query: { size: USED }, signal })
  }

  /** @param {any} one */
  async function showUsage({ id, name }) {
    const found = await readUsage(id)
    openDialog({
      title: `Usage of ${name}`,
      label: 'Close',
      leave: 'Back',
      body: [listUsage(found)],
      submit: async () => {},
    })
  }

  /** @param {any} one */
  async function remove({ id, name }) {
    const found = await readUsage(id)
    const used = found.content.some((/** @type {any} */ { active }) => active)
    const force = used && frame.can('ADMIN') ? h('input', { type: 'checkbox', id: newId('force') }) : null
    openDialog({
      title: 'Delete this credential?',
      label: 'Delete',
      danger: true,
      body: [
        h('p', null, 'Nodes that need ', h('strong', null, name), ' fail from now on.'),
        listUsage(found),
        ...(force
          ? [h('label', { class: 'check', for: force.id }, force, 'Although active workflows use it')]
          : []),
      ],
      submit: async () => {
        await ask('DELETE', `/api/credentials/${id}`, { query: force?.checked ? { force: 'true' } : {} })
        notify('Credential deleted')
        await load()
      },
    })
  }
}

/** @param {import('./lists.js').Envelope} found */
function listUsage({ content, totalElements }) {
  if (totalElements === 0) return h('p', null, 'No workflow uses it.')
  return h(
    'ul',
    null,
    ...content.map(({ workflowId, workflowName, active, nodes }) =>
      h(
        'li',
        null,
        h('a', { href: `#/workflows/${workflowId}` }, workflowName),
        active ? ', active' : '',
        nodes.length > 0 && `: ${nodes.map((/** @type {any} */ node) => node.name || node.id).join(', ')}`,
      ),
    ),
    totalElements > content.length && h('li', { class: 'quiet' }, `${totalElements - content.length} more`),
  )
}

/** What the last test said. @param {any} one */
function showTest({ testStatus, lastTestedAt }) {
  if (!testStatus) return h('span', { class: 'quiet' }, 'never')
  const said = testStatus === 'SUCCESS' ? 'Success' : 'Failed'
  return h(
    'span',
    { 'data-status': testStatus },
    said,
    ' ',
    h('span', { class: 'quiet' }, showAge(lastTestedAt)),
  )
}

/** A button for one credential, which is off while its work is under way. @param {string} text @param {any} one @param {() => unknown} work */
function act(text, one, work) {
  const button = h(
    'button',
    { type: 'button', class: 'button small', 'aria-label': `${text} ${one.name}`, onclick: go },
    text,
  )
  return button

  async function go() {
    button.disabled = true
    try {
      await work()
    } catch (error) {
      notifyError(error)
    } finally {
      button.disabled = false
    }
  }
}
