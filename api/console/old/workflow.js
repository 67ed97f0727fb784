import { linkWith } from './address.js'
import { ask } from './ask.js'
import { openDialog } from './dialog.js'
import { fill, h } from './dom.js'
import { openExecute } from './execute.js'
import { showRuns } from './executions.js'
import { drawGraph } from './graph.js'
import { showJson } from './json.js'
import { showCrumbs, showFacts, showHeading } from './lists.js'
import { complain, notify, showEmpty } from './notices.js'
import { showSchedules } from './schedules.js'
import { showActive } from './status.js'
import { formatDuration, showAge } from './time.js'
import { linkExport } from './transfer.js'

/** One workflow: its graph, its newest runs, and what can be done with it. @param {import('./main.js').Page} page */
export async function showWorkflow({ main, id, signal, frame }) {
  const path = `/api/workflows/${id}`
  let workflow = await ask('GET', path, { signal })
  frame.choose(workflow.teamId)
  document.title = `${workflow.name} · Perdure`
  const query = { workflowId: id, size: 5 }
  const runs = await ask('GET', '/api/executions', { query, signal })
  const builds = frame.can('BUILDER', workflow.teamId)
  const place = h('div')
  const refused = h('div')
  draw()
  fill(main, place)

  function draw() {
    const { active } = workflow
    fill(
      place,
      showCrumbs(['Workflows', '#/workflows']),
      showHeading(
        workflow.name,
        linkExport(workflow),
        builds && h('a', { class: 'button', href: `#/workflows/${id}/edit` }, 'Edit'),
        builds &&
          h(
            'button',
            { type: 'button', class: 'button', onclick: toggle },
            active ? 'Deactivate' : 'Activate',
          ),
        frame.can('OPERATOR', workflow.teamId) &&
          h(
            'button',
            { type: 'button', class: 'button primary', onclick: () => openExecute(workflow) },
            'Execute',
          ),
      ),
      workflow.description && h('p', { class: 'lead' }, workflow.description),
      refused,
      showFacts([
        ['State', showActive(active)],
        ['Version', h('a', { href: `#/workflows/${id}/versions` }, `${workflow.version}, see all`)],
        ['Nodes', workflow.nodes.length],
        ['Time limit', formatDuration(workflow.settings?.timeoutMs)],
        ['Created', showAge(workflow.createdAt)],
        ['Changed', showAge(workflow.updatedAt)],
      ]),
      showDrawing(workflow),
      showSchedules(workflow, signal),
      h('h2', null, 'Latest executions'),
      runs.content.length === 0
        ? showEmpty('No executions yet', 'Execute starts one.')
        : h(
            'div',
            null,
            showRuns(runs.content, false),
            h(
              'p',
              { class: 'more quiet' },
              h('a', { href: linkWith('/executions', { workflowId: id }) }, 'All executions'),
            ),
          ),
      builds && showRemoval(),
    )
  }

  async function toggle() {
    complain(refused, null)
    try {
      workflow = await ask('PUT', path, { json: { active: !workflow.active } })
      notify(workflow.active ? 'Activated' : 'Deactivated')
      if (!signal.aborted) draw()
    } catch (error) {
      complain(refused, error)
    }
  }

  function showRemoval() {
    const remove = async () => {
      await ask('DELETE', path)
      notify('Workflow deleted')
      location.hash = '#/workflows'
    }
    const body = [
      h(
        'p',
        null,
        'This deletes ',
        h('strong', null, workflow.name),
        ' and the history of all its executions. It ends the running ones. It cannot be undone.',
      ),
    ]
    const open = () =>
      openDialog({ title: 'Delete this workflow?', label: 'Delete', danger: true, body, submit: remove })
    return h(
      'p',
      { class: 'removal' },
      h('button', { type: 'button', class: 'button danger', onclick: open }, 'Delete workflow'),
    )
  }
}

/** The graph, and beneath it the config of the node that was picked. @param {any} workflow */
export function showDrawing(workflow) {
  if (workflow.nodes.length === 0) return showEmpty('An empty graph', 'Edit it to add nodes.')
  const details = h('div', { class: 'picked', 'aria-live': 'polite' })
  const graph = drawGraph(workflow, { label: `Graph of ${workflow.name}`, onPick: pick })
  return h('section', { class: 'drawing' }, graph.element, details)

  /** @param {string} id */
  function pick(id) {
    const node = workflow.nodes.find((/** @type {{ id: string }} */ one) => one.id === id)
    graph.mark(id)
    fill(details, showJson(`Node ${id}`, node))
  }
}
