import { addressOf, ask } from './ask.js'
import { openDialog } from './dialog.js'
import { h, newId } from './dom.js'
import { parseJson } from './json.js'

/** The way to take a workflow elsewhere. @param {{ id: string, name: string }} workflow */
export function linkExport({ id, name }) {
  const file = `${name.replace(/[\\/:*?"<>|\p{Cc}]/gu, '_').slice(0, 100)}.json`
  return h('a', { class: 'button', href: addressOf(`/api/workflows/${id}/export`), download: file }, 'Export')
}

/** Asks for a file of Perdure's or n8n's, makes a workflow of it, and says what is not as it was. @param {string} teamId @param {() => Promise<unknown>} onDone */
export function openImport(teamId, onDone) {
  const file = h('input', {
    id: newId('file'),
    type: 'file',
    accept: '.json,application/json',
    required: true,
  })
  const name = h('input', { id: newId('name'), maxlength: 200, autocomplete: 'off' })
  openDialog({
    title: 'Import a workflow',
    label: 'Import',
    body: [
      h('label', { for: file.id }, 'File: an export of Perdure or n8n'),
      file,
      h('label', { for: name.id }, 'Name, if it is to have another'),
      name,
    ],
    submit: async () => {
      const workflow = parseJson((await file.files?.[0]?.text()) ?? '')
      const json = { teamId, workflow, ...(name.value ? { name: name.value } : {}) }
      const made = await ask('POST', '/api/workflows/import', { json })
      openReport(made)
      await onDone()
    },
  })
}

/** @param {{ id: string, name: string, report: { mapped: any[], problems: any[], stickyNotes: number }, warnings?: any[] }} made */
function openReport({ id, name, report, warnings = [] }) {
  const { mapped, problems, stickyNotes } = report
  const words = [
    mapped.length > 0 && `Nodes brought in: ${mapped.length}.`,
    stickyNotes > 0 && `Notes of the canvas left out: ${stickyNotes}.`,
    problems.length === 0 ? 'Everything is as it was.' : 'This is not as it was:',
  ]
  openDialog({
    title: `Imported: ${name}`,
    label: 'Open the workflow',
    leave: 'Close',
    wide: true,
    body: [
      h('p', null, words.filter(Boolean).join(' ')),
      h(
        'ul',
        { class: 'problems report', tabindex: 0, 'aria-label': 'Report' },
        ...[...problems, ...warnings].map(({ node, path, message }) =>
          h('li', null, node && h('strong', null, node), ' ', path && h('code', null, path), ' ', message),
        ),
      ),
    ],
    submit: async () => {
      location.hash = `#/workflows/${id}`
    },
  })
}
