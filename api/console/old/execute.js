import { ask } from './ask.js'
import { openDialog } from './dialog.js'
import { h, newId } from './dom.js'
import { jsonField, parseJson } from './json.js'

/** What was sent last to each workflow, as long as the page is open. @type {Map<string, string>} */
const sent = new Map()

/** Asks for the trigger's data, starts a run and goes to it. @param {{ id: string, teamId: string, name: string }} workflow */
export function openExecute(workflow) {
  const id = newId('data')
  const hint = newId('hint')
  const field = jsonField({ id, value: sent.get(workflow.id) ?? '{\n  \n}', rows: 12, describedby: hint })
  /** @type {{ text: string, key: string } | undefined} */
  let tried
  openDialog({
    title: `Execute ${workflow.name}`,
    label: 'Execute',
    wide: true,
    body: [
      h('label', { for: id }, 'Data'),
      field,
      h(
        'p',
        { id: hint, class: 'quiet' },
        'A JSON object: the output of the trigger, $trigger in expressions.',
      ),
    ],
    submit: start,
  })

  async function start() {
    const text = field.value
    const data = text.trim() === '' ? {} : parseJson(text)
    // A second try of the same after a broken connection must not start a second run.
    if (tried?.text !== text) tried = { text, key: makeKey() }
    const started = await ask('POST', `/api/workflows/${workflow.id}/execute`, {
      json: { teamId: workflow.teamId, data },
      headers: { 'Idempotency-Key': tried.key },
    })
    sent.set(workflow.id, text)
    location.hash = `#/executions/${started.executionId}`
  }
}

/** A key of its own. crypto.randomUUID is for secure origins; an installation in a private network may have none. */
export function makeKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
