import { linkWith, readPage } from './address.js'
import { ask } from './ask.js'
import { openDialog } from './dialog.js'
import { fill, h } from './dom.js'
import { cell, showCrumbs, showHeading, showPager, showTable } from './lists.js'
import { notify } from './notices.js'
import { showTime } from './time.js'
import { showDrawing } from './workflow.js'

/** The versions of a workflow's graph, one of them drawn, and the way back to it. @param {import('./main.js').Page} page */
export async function showVersions({ main, id, query, signal, frame }) {
  const path = `/api/workflows/${id}`
  const workflow = await ask('GET', path, { signal })
  frame.choose(workflow.teamId)
  document.title = `Versions of ${workflow.name} · Perdure`
  const number = readPage(query.get('page'))
  const chosen = readPage(query.get('version')) || workflow.version
  const [found, version] = await Promise.all([
    ask('GET', `${path}/versions`, { query: { page: number, size: 10 }, signal }),
    ask('GET', `${path}/versions/${chosen}`, { signal }),
  ])
  const builds = frame.can('BUILDER', workflow.teamId)
  fill(
    main,
    showCrumbs(['Workflows', '#/workflows'], [workflow.name, `#/workflows/${id}`]),
    showHeading(
      version.current ? `Version ${chosen}, the newest` : `Version ${chosen}`,
      builds &&
        !version.current &&
        h('button', { type: 'button', class: 'button', onclick: () => restore(chosen) }, 'Restore'),
    ),
    showDrawing({ ...version, name: `version ${chosen}` }),
    h('h2', null, 'Versions'),
    showTable(
      'Versions',
      ['Version', 'Made', 'By', 'Nodes', 'Executions', 'Restored from'],
      found.content.map(showRow),
    ),
    showPager(found, (page) => linkTo(chosen, page)),
  )

  /** @param {number} version @param {number} page */
  function linkTo(version, page) {
    return linkWith(`/workflows/${id}/versions`, { version, page })
  }

  /** @param {any} one */
  function showRow({ version, createdAt, createdBy, nodeCount, inUse, restoredFrom, current }) {
    const at = version === chosen ? 'page' : null
    return h(
      'tr',
      null,
      cell(
        'Version',
        h('a', { class: 'name', href: linkTo(version, number), 'aria-current': at }, `Version ${version}`),
        current && h('span', { class: 'quiet' }, ' newest'),
      ),
      cell('Made', showTime(createdAt)),
      cell('By', createdBy?.name ?? h('span', { class: 'quiet' }, '–')),
      cell('Nodes', nodeCount),
      cell('Executions', inUse ? 'yes' : 'none'),
      cell('Restored from', restoredFrom ?? h('span', { class: 'quiet' }, '–')),
    )
  }

  /** @param {number} version */
  function restore(version) {
    openDialog({
      title: `Restore version ${version}?`,
      label: 'Restore',
      body: [
        h('p', null, 'Its graph becomes the newest version. Executions that are under way keep theirs.'),
      ],
      submit: async () => {
        const now = await ask('POST', `${path}/versions/${version}/restore`)
        notify(`Version ${version} is version ${now.version} now`)
        location.hash = `#/workflows/${id}`
      },
    })
  }
}
