import { fill, h, newId } from './dom.js'
import { showJson } from './json.js'
import { cell, showFacts, showTable } from './lists.js'
import { showEmpty } from './notices.js'
import { showStatus } from './status.js'
import { formatDuration, showTime } from './time.js'

/** @typedef {{ startedAt: string | null, completedAt: string | null, nodeExecutions: any[] }} Run */
/** @typedef {{ nodeId: string, rows: HTMLElement[], toggle: (open?: boolean) => void, update: (record: any, run: Run) => void }} Row */

/**
 * The table of a run's node records. `update` keeps what is open open; `open` shows one node's values.
 */
export function createRecords() {
  /** @type {Map<string, Row>} */
  const rows = new Map()
  const table = showTable(
    'Node records',
    ['Node', 'Status', 'Started', 'Duration', 'Retries', 'Timeline'],
    [],
  )
  table.classList.add('records')
  const body = /** @type {HTMLElement} */ (table.querySelector('tbody'))
  const element = h('div')

  return {
    element,
    /** @param {Run} run */
    update(run) {
      for (const record of run.nodeExecutions) {
        let row = rows.get(record.id)
        if (!row) {
          row = createRow(record)
          rows.set(record.id, row)
          body.append(...row.rows)
        }
        row.update(record, run)
      }
      const shown = rows.size > 0 ? table : showEmpty('No records yet', 'A node has one once it has started.')
      if (element.firstChild !== shown) fill(element, shown)
    },
    /** @param {string} nodeId */
    open(nodeId) {
      const row = [...rows.values()].find((one) => one.nodeId === nodeId)
      row?.toggle(true)
      const smooth = !matchMedia('(prefers-reduced-motion: reduce)').matches
      row?.rows[0]?.scrollIntoView({ block: 'center', behavior: smooth ? 'smooth' : 'auto' })
      row?.rows[0]?.querySelector('button')?.focus({ preventScroll: true })
    },
  }
}

/** @param {any} first @returns {Row} */
function createRow(first) {
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
    h('span', { class: 'name' }, nameOf(first)),
    h('span', { class: 'quiet' }, first.nodeType),
  )
  const status = cell('Status')
  const started = cell('Started')
  const duration = cell('Duration')
  const retries = cell('Retries')
  const bar = h('span', { class: 'bar' })
  const timeline = h('td', { class: 'timeline', 'aria-hidden': 'true' }, h('span', { class: 'track' }, bar))
  const error = h('div', { class: 'failure line' })
  const row = h('tr', null, cell('Node', button, error), status, started, duration, retries, timeline)
  const inside = h('td', { colspan: 6 })
  const details = h('tr', { id, class: 'details' }, inside)
  details.hidden = true
  let record = first
  let drawn = ''

  return { nodeId: first.nodeId, rows: [row, details], toggle, update }

  /** @param {boolean} [open] */
  function toggle(open = details.hidden === true) {
    details.hidden = !open
    button.setAttribute('aria-expanded', String(open))
    if (open) showDetails()
  }

  /** @param {any} next @param {Run} run */
  function update(next, run) {
    record = next
    row.dataset.node = record.nodeId
    fill(status, showStatus(record.status))
    fill(started, showTime(record.startedAt))
    const end = record.completedAt ? Date.parse(record.completedAt) : Date.now()
    fill(duration, formatDuration(record.durationMs ?? end - Date.parse(record.startedAt)))
    fill(retries, record.retryCount)
    error.textContent = record.errorMessage ?? ''
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
      ]),
      record.errorMessage && h('p', { class: 'failure' }, record.errorMessage),
      h(
        'div',
        { class: 'values' },
        showJson('Input', record.inputData),
        record.outputData === null
          ? h('p', { class: 'quiet' }, 'No output')
          : showJson('Output', record.outputData),
      ),
    )
  }
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
