import { ask } from './ask.js'
import { fill, h } from './dom.js'
import { notifyError } from './notices.js'

const SHOWN = 50

/**
 * A field that finds a workflow by its name among any number of them. Names are unique in a team; `onChoose` gets
 * the id, or '' where the field was emptied.
 * @param {string} teamId
 * @param {string} chosen a workflow's id, or ''
 * @param {AbortSignal} signal
 * @param {(id: string) => void} onChoose
 */
export async function chooseWorkflow(teamId, chosen, signal, onChoose) {
  /** @type {Map<string, string>} */
  const ids = new Map()
  const names = h('datalist', { id: 'workflow-names' })
  const field = h('input', {
    id: 'workflow',
    list: 'workflow-names',
    placeholder: 'Any workflow',
    autocomplete: 'off',
    maxlength: 200,
    oninput: follow,
    onchange: settle,
  })
  const known = chosen
    ? await ask('GET', `/api/workflows/${chosen}`, { signal }).catch(() => undefined)
    : undefined
  field.value = known?.name ?? chosen
  await find(signal.aborted ? '' : (known?.name ?? ''))
  return h('span', { class: 'choice' }, field, names)

  async function follow() {
    const id = ids.get(field.value)
    // A pick from the list comes as one input.
    if (id !== undefined) return onChoose(id)
    await find(field.value).catch((error) => !signal.aborted && notifyError(error))
  }

  function settle() {
    if (field.value === '' && chosen !== '') return onChoose('')
    const id = ids.get(field.value)
    field.setCustomValidity(id === undefined && field.value !== '' ? 'No workflow has this name' : '')
    field.reportValidity()
    if (id !== undefined && id !== chosen) onChoose(id)
  }

  /** @param {string} search */
  async function find(search) {
    field.setCustomValidity('')
    const query = { teamId, size: SHOWN, search: ids.has(search) || search === known?.name ? '' : search }
    const { content } = await ask('GET', '/api/workflows', { query, signal })
    for (const { id, name } of content) ids.set(name, id)
    fill(names, ...content.map((/** @type {{ name: string }} */ { name }) => h('option', { value: name })))
  }
}
