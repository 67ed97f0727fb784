import { linkWith, readPage } from './address.js'
import { ask } from './ask.js'
import { fill, h } from './dom.js'
import { cell, showHeading, showPager, showTable } from './lists.js'
import { notifyError, showEmpty } from './notices.js'
import { showActive, showStatus } from './status.js'
import { showAge } from './time.js'
import { openImport } from './transfer.js'

const PAUSE_MS = 200

/** The team's workflows, with a search that follows the typing. @param {import('./main.js').Page} page */
export async function showWorkflows({ main, query, signal, frame }) {
  const { teamId } = frame
  if (!teamId)
    return fill(main, showHeading('Workflows'), showEmpty('No team yet', 'Ask an ADMIN to add you to one.'))
  const search = h('input', {
    type: 'search',
    placeholder: 'Search by name',
    'aria-label': 'Search workflows by name',
    maxlength: 200,
    oninput: later,
  })
  search.value = query.get('search') ?? ''
  const list = h('div', { 'aria-live': 'polite' })
  let timer = 0
  let asked = 0
  await load(readPage(query.get('page')))
  const builds = frame.can('BUILDER')
  const add = builds && h('a', { class: 'button primary', href: '#/workflows/new' }, 'New workflow')
  const open = () => openImport(teamId, () => load(0))
  const bring = builds && h('button', { type: 'button', class: 'button', onclick: open }, 'Import')
  fill(main, showHeading('Workflows', bring, add), h('div', { class: 'filters' }, search), list)

  function later() {
    clearTimeout(timer)
    timer = setTimeout(async () => {
      try {
        await load(0)
        history.replaceState(null, '', linkWith('/workflows', { search: search.value }))
      } catch (error) {
        if (!signal.aborted) notifyError(error)
      }
    }, PAUSE_MS)
  }

  /** @param {number} number */
  async function load(number) {
    asked += 1
    const mine = asked
    const text = search.value
    const found = await ask('GET', '/api/workflows', {
      query: { teamId, page: number, search: text },
      signal,
    })
    // The answer to what was typed before may come last.
    if (mine !== asked) return
    if (found.totalElements === 0) {
      const message = text
        ? 'No name holds this text.'
        : 'A workflow is a graph of nodes, executed from its trigger on.'
      return fill(list, showEmpty(text ? 'Nothing found' : 'No workflows yet', message))
    }
    const rows = found.content.map(showRow)
    fill(
      list,
      showTable('Workflows', ['Name', 'State', 'Nodes', 'Last execution', 'Changed'], rows),
      showPager(found, (to) => linkWith('/workflows', { search: text, page: to })),
    )
  }
}

/** @param {any} workflow */
function showRow(workflow) {
  return h(
    'tr',
    null,
    cell(
      'Name',
      h('a', { class: 'name', href: `#/workflows/${workflow.id}` }, workflow.name),
      workflow.description && h('div', { class: 'quiet line' }, workflow.description),
    ),
    cell('State', showActive(workflow.active)),
    cell('Nodes', workflow.nodeCount),
    cell('Last execution', showStatus(workflow.lastExecutionStatus)),
    cell('Changed', showAge(workflow.updatedAt)),
  )
}
