import { fill, h, newId } from './dom.js'
import { showFiles } from './files.js'
import { showJson } from './json.js'
import { cell, linkRun, showFacts } from './lists.js'
import { showRequests } from './requests.js'
import { showStatus } from './status.js'
import { formatDuration, showTime } from './time.js'

/** @typedef {{ startedAt: string | null, completedAt: string | null, nodeExecutions: any[], nodeExecutionsTotal: number, hidden?: boolean }} Run */
/** @typedef {{ rows: HTMLElement[], toggle: (open?: boolean) => void, update: (record: any, run: Run) => void }} Row */

/**
 * One node's record: a row, and beneath it what it took and gave.
 * @param {any} first
 * @param {string} executionId
 * @param {import('./requests.js').LoadRequests} loadRequests
 * @returns {Row}
 */
export function createRow(first, executionId, loadRequests) {
  const id = newId('record')
  const button = h(
    'button',
    {
      type: 'button',
      class: 'disclose',
      'aria-expanded': 'false',
      'aria-controls': id,
      onclick: () => toggle(),
    },
    h(
      'span',
      { class: 'name' },
      nameOf(first),
      first.iteration !== null && h('span', { class: 'iteration' }, ` #${first.iteration}`),
    ),
    h('span', { class: 'quiet' }, describe(first)),
  )
  const status = cell('Status')
  const started = cell('Started')
  const duration = cell('Duration')
  const retries = cell('Retries')
  const bar = h('span', { class: 'bar' })
  const timeline = h('td', { class: 'timeline', 'aria-hidden': 'true' }, h('span', { class: 'track' }, bar))
  const error = h('div', { class: 'failure line' })
  const marks = h('div', { class: 'marks' })
  const row = h('tr', null, cell('Node', button, marks, error), status, started, duration, retries, timeline)
  // In a loop in a loop: two places to the right. An agent's steps are one to the right of the agent.
  const depth = (first.iteration?.split('.').length ?? 0) + (first.step === null ? 0 : 1)
  row.style.setProperty('--depth', String(depth))
  const inside = h('td', { colspan: 6 })
  const details = h('tr', { id, class: 'details' }, inside)
  details.hidden = true
  // Made once: what is open in it stays open while the run goes on.
  const sends = first.nodeType === 'HTTP_REQUEST' || first.step !== null
  const requests = sends && showRequests(first.id, loadRequests)
  let record = first
  let isHidden = false
  let drawn = ''

  return { rows: [row, details], toggle, update }

  /** @param {boolean} [open] */
  function toggle(open = details.hidden === true) {
    details.hidden = !open
    button.setAttribute('aria-expanded', String(open))
    if (open) showDetails()
  }

  /** @param {any} next @param {Run} run */
  function update(next, run) {
    record = next
    isHidden = run.hidden === true
    row.dataset.node = record.nodeId
    fill(marks, ...showMarks(record))
    fill(status, showStatus(record.status))
    fill(started, showTime(record.startedAt))
    const end = record.completedAt ? Date.parse(record.completedAt) : Date.now()
    fill(duration, formatDuration(record.durationMs ?? end - Date.parse(record.startedAt)))
    fill(retries, record.retryCount)
    error.textContent = tellError(record)
    error.hidden = !record.errorMessage
    drawBar(bar, record, run)
    if (!details.hidden) showDetails()
  }

  function showDetails() {
    const text = JSON.stringify(record)
    if (text === drawn) return
    drawn = text
    fill(
      inside,
      showFacts([
        ['Node id', h('code', null, record.nodeId)],
        ['Started', showTime(record.startedAt)],
        ['Ended', showTime(record.completedAt)],
        ['Retries', record.retryCount],
        ...(record.iteration === null ? [] : [tell('Iteration', record.iteration)]),
        ...(record.takenFrom ? [tell('Taken over from', linkRun(record.takenFrom))] : []),
        ...listUsage(record),
      ]),
      record.errorMessage && h('p', { class: 'failure' }, tellError(record)),
      ...showNotes(record),
      isHidden
        ? h('p', { class: 'quiet' }, 'Its input and output are private')
        : h(
            'div',
            { class: 'values' },
            showJson('Input', record.inputData),
            record.outputData === null
              ? h('p', { class: 'quiet' }, 'No output')
              : showJson('Output', record.outputData),
          ),
      showFiles(executionId, record.outputData, record.inputData),
      requests,
    )
  }
}

/** @param {string} name @param {import('./dom.js').Child} value @returns {[string, import('./dom.js').Child]} */
function tell(name, value) {
  return [name, value]
}

/** What its calls to models took, in a line. @param {any} shown @returns {[string, import('./dom.js').Child][]} */
export function listUsage({ usage }) {
  if (!usage) return []
  const { inputTokens, outputTokens, cost, calls, unpricedCalls } = usage
  const tokens = `${inputTokens.toLocaleString()} tokens in, ${outputTokens.toLocaleString()} out`
  const paid = cost === null ? 'cost not known' : `$${cost.toFixed(cost > 0 && cost < 0.01 ? 6 : 2)}`
  const without = cost !== null && unpricedCalls > 0 ? `, and ${unpricedCalls} of which it is not known` : ''
  return [['Models', `${calls} ${calls === 1 ? 'call' : 'calls'}: ${tokens}, ${paid}${without}`]]
}

/** Why it failed, or why its last attempt did and when the next one comes. @param {any} record */
function tellError({ status, errorMessage, retryCount, nextAttemptAt }) {
  if (!errorMessage || status !== 'RUNNING') return errorMessage ?? ''
  if (!nextAttemptAt) return `Attempt ${retryCount + 1} is under way, after: ${errorMessage}`
  const next = new Date(nextAttemptAt).toLocaleTimeString()
  return `Attempt ${retryCount + 1} failed, the next one comes at ${next}: ${errorMessage}`
}

/** Where it went on, what did not run here, and what ran elsewhere. @param {any} record */
function showMarks({ handle, handles = [], pinned, takenFrom, childExecutionId, warnings }) {
  return [
    warnings && h('span', { class: 'pill plain', title: 'What it read that is not there' }, 'Warnings'),
    handle && h('span', { class: 'pill plain', title: 'The handle it left by' }, handle),
    ...handles.map((/** @type {string | null} */ one) =>
      h('span', { class: 'pill plain', title: 'A handle that items left by' }, one ?? 'main'),
    ),
    pinned && h('span', { class: 'pill plain', title: 'Its output was given with the start' }, 'Pinned'),
    takenFrom &&
      h(
        'span',
        { class: 'pill plain', title: 'Its output was taken over from an earlier execution' },
        'Taken over',
      ),
    childExecutionId && h('span', null, 'Execution ', linkRun(childExecutionId)),
  ]
}

/** What was noted beside its output. @param {any} record */
function showNotes({ warnings = [], console: lines = [] }) {
  return [
    ...warnings.map((/** @type {any} */ { path, message }) =>
      h('p', null, h('code', null, path), ` ${message}`),
    ),
    ...lines.map((/** @type {any} */ { level, text }) => h('p', null, h('code', null, level), ` ${text}`)),
  ]
}

/** What it is: a node of a type, or a step of an agent. @param {any} record */
function describe({ nodeType, step, tool }) {
  return step === null ? nodeType : `Step ${step}: ${tool === null ? 'the model' : `the tool ${tool}`}`
}

/** A node that was given no name has its type's. @param {any} record */
function nameOf({ nodeName, nodeType, nodeId }) {
  return nodeName && nodeName !== nodeType ? nodeName : nodeId
}

/** Where in the run's time a node ran. @param {HTMLElement} bar @param {any} record @param {Run} run */
function drawBar(bar, record, run) {
  const begin = Date.parse(run.startedAt ?? record.startedAt)
  const end = run.completedAt ? Date.parse(run.completedAt) : Date.now()
  const whole = Math.max(1, end - begin)
  const from = Math.min(1, Math.max(0, (Date.parse(record.startedAt) - begin) / whole))
  const until = record.completedAt ? Date.parse(record.completedAt) : end
  const share = Math.min(1 - from, Math.max(0, (until - Date.parse(record.startedAt)) / whole))
  bar.className = `bar ${record.status.toLowerCase()}`
  bar.style.left = `${(from * 100).toFixed(2)}%`
  bar.style.width = `${(share * 100).toFixed(2)}%`
}
