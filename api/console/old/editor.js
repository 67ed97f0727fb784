import { ask, askTagged } from './ask.js'
import { fill, h } from './dom.js'
import { EXAMPLES } from './examples.js'
import { drawGraph } from './graph.js'
import { jsonField, parseJson } from './json.js'
import { showCrumbs, showHeading } from './lists.js'
import { describe, notify, sendForm } from './notices.js'

const PAUSE_MS = 250

/** @typedef {{ name: string, description: string, nodes: unknown, edges: unknown, settings?: unknown }} Draft */

/** A new workflow, from nothing or from an example. @param {import('./main.js').Page} page */
export async function showNew({ main, frame }) {
  /** @type {Draft} */
  const empty = {
    name: '',
    description: '',
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }],
    edges: [],
  }
  const editor = createEditor(empty, 'Create', '#/workflows', async (draft) => {
    const json = { ...draft, teamId: frame.teamId }
    const { body: made } = await askTagged('POST', '/api/workflows', { json })
    tellSaved('Workflow created', made.warnings)
    location.hash = `#/workflows/${made.id}`
  })
  const choice = h(
    'select',
    { id: 'example', onchange: choose },
    h('option', { value: '' }, 'Start from nothing'),
    ...EXAMPLES.map(({ name }, at) => h('option', { value: at }, name)),
  )
  fill(
    main,
    showHeading('New workflow'),
    h(
      'div',
      { class: 'filters' },
      h('div', null, h('label', { for: 'example' }, 'New from example'), choice),
    ),
    editor.element,
  )

  async function choose() {
    const wanted = choice.value
    const example = wanted === '' ? undefined : EXAMPLES[Number(wanted)]
    try {
      const credentialId = example?.asks && (await findCredential(frame.teamId, example.asks))
      // Somebody may have chosen another one meanwhile.
      if (choice.value === wanted) editor.load(example?.make(credentialId) ?? empty)
    } catch (error) {
      notify(/** @type {Error} */ (error).message, 'bad')
    }
  }
}

/**
 * A credential of the team that needs no data, such as that of the demo model. It is made if there is none.
 * @param {string} teamId @param {string} type @returns {Promise<string>}
 */
async function findCredential(teamId, type) {
  const all = await ask('GET', '/api/credentials', { query: { teamId } })
  const known = all.find((/** @type {{ type: string }} */ one) => one.type === type)
  if (known) return known.id
  const json = { teamId, name: 'Demo model', type, data: {} }
  const { id } = await ask('POST', '/api/credentials', { json })
  notify('The credential "Demo model" was made: it needs no key')
  return id
}

/** Changes a workflow. Somebody else's change in the meantime is not overwritten. @param {import('./main.js').Page} page */
export async function showEdit({ main, id, signal, frame }) {
  const path = `/api/workflows/${id}`
  const { body: workflow, tag } = await askTagged('GET', path, { signal })
  frame.choose(workflow.teamId)
  const editor = createEditor(workflow, 'Save', `#/workflows/${id}`, async (draft) => {
    const { body: saved } = await askTagged('PUT', path, {
      json: draft,
      headers: tag ? { 'If-Match': tag } : {},
    })
    tellSaved('Workflow saved', saved.warnings)
    location.hash = `#/workflows/${id}`
  })
  fill(main, showCrumbs([workflow.name, `#/workflows/${id}`]), showHeading('Edit workflow'), editor.element)
}

/** So many warnings are shown; the response has all of them. */
const MAX_SHOWN = 3

/** What is valid may still not be what was meant. @param {string} text @param {import('./ask.js').Problem[]} [warnings] */
function tellSaved(text, warnings = []) {
  notify(text)
  for (const { path, message } of warnings.slice(0, MAX_SHOWN)) notify(`${path}: ${message}`, 'bad')
  const more = warnings.length - MAX_SHOWN
  if (more > 0) notify(`${more} more warnings are in the response of the API`, 'bad')
}

/**
 * Name, description, and the graph as JSON with its drawing beside it.
 * @param {Draft} draft
 * @param {string} label
 * @param {string} back
 * @param {(draft: Draft) => Promise<void>} save
 */
function createEditor(draft, label, back, save) {
  const name = h('input', { id: 'name', maxlength: 200, required: true, autocomplete: 'off' })
  const description = h('input', { id: 'description', maxlength: 5_000, autocomplete: 'off' })
  const graph = jsonField({ id: 'graph', value: '', rows: 26, describedby: 'graph-hint' })
  const preview = h('div', { class: 'preview' })
  const refused = h('div')
  const go = h('button', { type: 'submit', class: 'button primary' }, label)
  let timer = 0
  graph.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(draw, PAUSE_MS)
  })
  const element = h(
    'form',
    { class: 'editor', onsubmit: send },
    h(
      'div',
      { class: 'fields' },
      h('label', { for: 'name' }, 'Name'),
      name,
      h('label', { for: 'description' }, 'Description'),
      description,
      h('label', { for: 'graph' }, 'Graph'),
      graph,
      h(
        'p',
        { id: 'graph-hint', class: 'quiet' },
        'JSON with nodes, edges and settings. Expressions stand in {{ }}. Ctrl+Enter saves.',
      ),
    ),
    h('div', { class: 'beside' }, h('h2', null, 'Preview'), preview, refused),
    h('div', { class: 'actions' }, h('a', { class: 'button', href: back }, 'Cancel'), go),
  )
  load(draft)
  return { element, load }

  /** @param {Draft} next */
  function load(next) {
    name.value = next.name
    description.value = next.description ?? ''
    const { nodes, edges, settings } = next
    graph.value = JSON.stringify(settings ? { nodes, edges, settings } : { nodes, edges }, null, 2)
    fill(refused)
    draw()
  }

  function draw() {
    try {
      const { nodes, edges } = readGraph(graph.value)
      const known = nodes.filter((one) => typeof one?.id === 'string' && typeof one?.type === 'string')
      const lines = edges.filter((one) => typeof one?.source === 'string' && typeof one?.target === 'string')
      fill(preview, drawGraph({ nodes: known, edges: lines }, { label: 'Preview of the graph' }).element)
    } catch (error) {
      fill(preview, describe(error))
    }
  }

  /** @param {Event} event */
  function send(event) {
    const work = async () => {
      const { nodes, edges, settings } = readGraph(graph.value)
      await save({ name: name.value, description: description.value, nodes, edges, settings })
    }
    return sendForm(event, go, refused, work, () => refused.scrollIntoView({ block: 'nearest' }))
  }
}

/** @param {string} text @returns {{ nodes: any[], edges: any[], settings?: unknown }} */
function readGraph(text) {
  const value = /** @type {any} */ (parseJson(text))
  if (!Array.isArray(value?.nodes) || !Array.isArray(value.edges ?? [])) {
    throw new Error('The graph is an object with the arrays nodes and edges')
  }
  return { nodes: value.nodes, edges: value.edges ?? [], settings: value.settings }
}
