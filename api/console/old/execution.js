import { ask, listen, poll } from './ask.js'
import { showApproval } from './decide.js'
import { openDialog } from './dialog.js'
import { fill, h } from './dom.js'
import { showFiles } from './files.js'
import { drawGraph } from './graph.js'
import { showJson } from './json.js'
import { showCrumbs, showFacts, showHeading } from './lists.js'
import { notify, notifyError } from './notices.js'
import { listUsage } from './record.js'
import { createRecords } from './records.js'
import { canRetry, listRelated, openRecover, roleOf } from './recover.js'
import { isOpen, showStatus } from './status.js'
import { formatDuration, showTime } from './time.js'

const POLL_MS = 1_000
const ASKED = 20

/** One run, followed until it ends: its graph by the nodes' status, and the record of every node. @param {import('./main.js').Page} page */
export async function showExecution({ main, id, signal, frame }) {
  const path = `/api/executions/${id}`
  let run = await ask('GET', path, { signal })
  // The graph is beside the point where the workflow cannot be read.
  const workflow = await ask('GET', `/api/workflows/${run.workflowId}`, { signal }).catch((error) => {
    if (signal.aborted) throw error
  })
  if (workflow) frame.choose(workflow.teamId)
  const drawn = workflow && (await readDrawn())
  document.title = `${run.workflowName} ${id.slice(-12)} · Perdure`

  const records = createRecords({
    executionId: id,
    nodes: drawn?.nodes ?? [],
    load: (query) => ask('GET', `${path}/nodes`, { query, signal }),
    loadRequests: (recordId, query) => ask('GET', `${path}/nodes/${recordId}/requests`, { query, signal }),
  })
  const graph = drawn && drawGraph(drawn, { label: `Graph of ${run.workflowName}`, onPick: records.open })
  const heading = h('div')
  const summary = h('div')
  const values = h('div', { class: 'values' })
  const status = h('span', { class: 'hidden', role: 'status' })
  const asked = h('div')
  /** @type {{ totalElements: number, content: any[] }} */
  let approvals = { totalElements: 0, content: [] }
  const stop = button('Cancel execution', 'danger', askCancel)
  const retry = button('Retry from failed nodes', '', () => openRecover(run, 'retry', workflow.version))
  const again = button('Execute again', '', () => openRecover(run, 'rerun', workflow.version))
  fill(heading, ...showHead())
  await readApprovals()
  update()
  fill(
    main,
    heading,
    status,
    summary,
    asked,
    workflow &&
      workflow.version !== run.workflowVersion &&
      tellVersion(run.workflowVersion, workflow.version),
    graph && h('section', { class: 'drawing' }, graph.element),
    h('h2', null, 'Nodes'),
    records.element,
    h('h2', null, 'Data'),
    values,
  )
  if (isOpen(run.status)) void poll(signal, POLL_MS, follow, notifyError, listen(signal, `${path}/events`))

  /** The graph that the run follows, which may be older than the one that stands. */
  async function readDrawn() {
    const version = run.workflowVersion
    if (version === workflow.version) return workflow
    return ask('GET', `/api/workflows/${run.workflowId}/versions/${version}`, { signal })
  }

  async function follow() {
    run = await ask('GET', path, { signal })
    await readApprovals()
    update()
    return isOpen(run.status)
  }

  function showHead() {
    return [
      showCrumbs(['Executions', '#/executions'], [run.workflowName, `#/workflows/${run.workflowId}`]),
      showHeading(`Execution ${id.slice(-12)}`, stop, retry, again),
    ]
  }

  function update() {
    const open = isOpen(run.status)
    const allowed = workflow && frame.can(open ? 'OPERATOR' : roleOf(run), workflow.teamId)
    stop.hidden = !(allowed && open)
    retry.hidden = !(allowed && canRetry(run))
    again.hidden = !(allowed && !open)
    if (status.textContent !== run.status) status.textContent = run.status
    const soFar = run.startedAt ? Date.now() - Date.parse(run.startedAt) : null
    fill(
      summary,
      showFacts([
        ['Status', showStatus(run.status)],
        ['Started', showTime(run.startedAt)],
        ['Ended', showTime(run.completedAt)],
        ['Duration', formatDuration(open ? soFar : run.durationMs)],
        ['Trigger', run.trigger],
        ['Version', run.workflowVersion],
        ...listUsage(run),
        ['Id', h('code', null, id)],
        ...listRelated(run),
        ...listCallback(run),
      ]),
      run.errorMessage && h('p', { class: 'failure', role: 'alert' }, run.errorMessage),
    )
    showAsked()
    graph?.update(run.nodeExecutions.filter((/** @type {any} */ { step }) => step === null))
    records.update(run)
    showValues()
  }

  /** What the run waits for people to decide. */
  async function readApprovals() {
    // A step of an agent waits too, if somebody is asked before its tool is called.
    const waits = run.nodeExecutions.some(
      (/** @type {any} */ { nodeType, tool, status }) =>
        status === 'RUNNING' && (nodeType === 'APPROVAL' || tool !== null),
    )
    if (!waits || !workflow) approvals = { totalElements: 0, content: [] }
    else {
      const query = { teamId: workflow.teamId, size: ASKED, executionId: id }
      approvals = await ask('GET', '/api/approvals', { query, signal })
    }
  }

  function showAsked() {
    const text = JSON.stringify(approvals)
    if (asked.dataset.shown === text) return
    asked.dataset.shown = text
    const decided = async () => {
      await follow()
      frame.count()
    }
    const more = approvals.totalElements - approvals.content.length
    fill(
      asked,
      ...approvals.content.map((one) => showApproval(one, decided)),
      more > 0 &&
        h('p', { class: 'hint' }, `${more} more: see `, h('a', { href: '#/approvals' }, 'Approvals')),
    )
  }

  function showValues() {
    if (run.hidden) {
      values.dataset.shown = 'hidden'
      const why = 'A private chat: its owner and ADMINs see what went into the nodes and came out of them.'
      return fill(values, h('p', { class: 'hint' }, why))
    }
    const given = { inputData: run.inputData, outputData: run.outputData }
    const text = JSON.stringify(given)
    if (values.dataset.shown === String(text.length) && isOpen(run.status)) return
    values.dataset.shown = String(text.length)
    fill(
      values,
      showJson('Input', run.inputData),
      run.outputData !== null && showJson('Output', run.outputData),
      showFiles(id, run.outputData, run.inputData),
    )
  }

  function askCancel() {
    openDialog({
      title: 'Cancel this execution?',
      label: 'Cancel execution',
      danger: true,
      body: [
        h('p', null, 'Nodes that are running are told to stop. What they have done already is not undone.'),
      ],
      submit: async () => {
        await ask('POST', `${path}/cancel`)
        notify('The execution is being cancelled')
        await follow()
      },
    })
  }
}

/** @param {string} text @param {string} look @param {() => void} onclick */
function button(text, look, onclick) {
  return h('button', { type: 'button', class: `button ${look}`, hidden: true, onclick }, text)
}

/** @param {number} ran @param {number} stands */
function tellVersion(ran, stands) {
  const text = `This execution follows version ${ran}, drawn below; the workflow is at version ${stands} now.`
  return h('p', { class: 'hint' }, text)
}

/** Whom the service calls at the end of a run, and whether it has. @param {any} run @returns {[string, import('./dom.js').Child][]} */
function listCallback({ callback }) {
  if (!callback) return []
  const { url, status, attempts, lastError } = callback
  const tried = attempts > 1 ? ` (${attempts} attempts)` : ''
  return [['Callback', `${status.toLowerCase()}${tried}: ${url}${lastError ? `, ${lastError}` : ''}`]]
}
