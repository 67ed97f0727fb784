import { fill, h } from './dom.js'
import { showTable } from './lists.js'
import { notifyError, showEmpty } from './notices.js'
import { createRow } from './record.js'

/** @typedef {import('./record.js').Run} Run */
/** @typedef {import('./record.js').Row} Row */

const SIZE = 100

/**
 * The table of a run's node records, those of a loop's body under the loop by their iterations. `update` keeps what is
 * open open; `open` shows one node's values. Where a run has more records than it shows, `load` reads a page of all.
 * @param {{ executionId: string, nodes: { id: string, parentId?: string | null }[], load: (query: { page: number, size: number }) => Promise<import('./lists.js').Envelope>, loadRequests: import('./requests.js').LoadRequests }} options
 */
export function createRecords({ executionId, nodes, load, loadRequests }) {
  const parents = new Map(nodes.map(({ id, parentId }) => [id, parentId ?? null]))
  /** @type {Map<string, Row>} */
  const rows = new Map()
  const table = showTable(
    'Node records',
    ['Node', 'Status', 'Started', 'Duration', 'Retries', 'Timeline'],
    [],
  )
  table.classList.add('records')
  const body = /** @type {HTMLElement} */ (table.querySelector('tbody'))
  const list = h('div')
  const part = h('div', { class: 'part' })
  const element = h('div', null, part, list)
  /** @type {Run | undefined} */
  let run
  /** @type {import('./lists.js').Envelope | undefined} */
  let page
  /** @type {any[]} */
  let shown = []
  let asked = 0

  return { element, update, open }

  /** @param {Run} next */
  function update(next) {
    run = next
    if (page) void turn(page.number)
    else draw()
  }

  /** @param {string} nodeId */
  function open(nodeId) {
    const found = shown.filter((record) => record.nodeId === nodeId)
    const record = found.find(({ status }) => status === 'FAILED') ?? found[0]
    const row = record && rows.get(record.id)
    row?.toggle(true)
    const smooth = !matchMedia('(prefers-reduced-motion: reduce)').matches
    row?.rows[0]?.scrollIntoView({ block: 'center', behavior: smooth ? 'smooth' : 'auto' })
    row?.rows[0]?.querySelector('button')?.focus({ preventScroll: true })
  }

  /** Shows a page of all records; the overview again with null. @param {number | null} number */
  async function turn(number) {
    asked += 1
    const mine = asked
    try {
      const found = number === null ? undefined : await load({ page: number, size: SIZE })
      // Of two answers the later one counts.
      if (mine !== asked) return
      page = found
      draw()
    } catch (error) {
      if (mine === asked) notifyError(error)
    }
  }

  function draw() {
    if (!run) return
    shown = orderRecords(page?.content ?? run.nodeExecutions, parents)
    const kept = new Set(shown.map(({ id }) => id))
    for (const [id, row] of rows) {
      if (kept.has(id)) continue
      for (const one of row.rows) one.remove()
      rows.delete(id)
    }
    let at = body.firstChild
    for (const record of shown) {
      const row = rows.get(record.id) ?? createRow(record, executionId, loadRequests)
      rows.set(record.id, row)
      for (const one of row.rows) {
        if (one === at) at = at.nextSibling
        else body.insertBefore(one, at)
      }
      row.update(record, run)
    }
    const whole = rows.size > 0 ? table : showEmpty('No records yet', 'A node has one once it has started.')
    if (list.firstChild !== whole) fill(list, whole)
    drawPart(run)
  }

  /** Which of the records these are. @param {Run} run */
  function drawPart({ nodeExecutions, nodeExecutionsTotal }) {
    const total = nodeExecutionsTotal.toLocaleString()
    if (page) {
      const first = page.number * SIZE + 1
      const text = `${first.toLocaleString()}–${(first + page.content.length - 1).toLocaleString()} of ${total} records, as they started`
      return tell(
        text,
        step('Previous', page.number - 1),
        step('Next', page.number + 1),
        step('Overview', null),
      )
    }
    if (nodeExecutionsTotal <= nodeExecutions.length) return fill(part)
    const rest = 'outside of loops, then failed, then newest ones'
    tell(
      `${nodeExecutions.length.toLocaleString()} of ${total} records shown: ${rest}`,
      step('Show all by pages', 0),
    )
  }

  /** @param {string} text @param {...HTMLButtonElement} buttons */
  function tell(text, ...buttons) {
    const [said] = part.querySelectorAll('.pager span')
    const same = [...part.querySelectorAll('button')].map((one) => `${one.textContent}${one.disabled}`)
    // Redrawn while it is looked at, a button must not lose the focus.
    if (
      said &&
      same.join() === buttons.map((one) => `${one.textContent}${one.disabled}`).join() &&
      said.textContent === text
    )
      return
    const focused =
      document.activeElement && part.contains(document.activeElement)
        ? document.activeElement.textContent
        : null
    fill(
      part,
      h(
        'div',
        { class: 'pager', role: 'group', 'aria-label': 'Records' },
        h('span', { role: 'status' }, text),
        ...buttons,
      ),
    )
    const again =
      buttons.find((one) => one.textContent === focused && !one.disabled) ??
      buttons.find((one) => !one.disabled)
    if (focused !== null) again?.focus({ preventScroll: true })
  }

  /** @param {string} text @param {number | null} to */
  function step(text, to) {
    const off = to !== null && page !== undefined && (to < 0 || to >= page.totalPages)
    return h(
      'button',
      { type: 'button', class: 'button small', disabled: off, onclick: () => void turn(to) },
      text,
    )
  }
}

/**
 * The records of a loop's body right behind the loop's own, by their iterations; else as they started.
 * @param {any[]} records
 * @param {Map<string, string | null>} parents
 * @returns {any[]}
 */
function orderRecords(records, parents) {
  const known = new Set(records.map(({ nodeId, iteration }) => `${nodeId}#${iteration ?? ''}`))
  const groups = Map.groupBy(records, ({ nodeId, iteration }) => {
    const parent = iteration === null ? null : parents.get(nodeId)
    const loop = parent && `${parent}#${iteration.split('.').slice(0, -1).join('.')}`
    return loop && known.has(loop) ? loop : null
  })
  return list(null)

  /** @param {string | null} loop @returns {any[]} */
  function list(loop) {
    const group = groups.get(loop) ?? []
    const sorted = loop === null ? group : group.toSorted((a, b) => lastOf(a) - lastOf(b))
    return sorted.flatMap((record) => [record, ...list(`${record.nodeId}#${record.iteration ?? ''}`)])
  }
}

/** @param {{ iteration: string }} record */
function lastOf({ iteration }) {
  return Number(iteration.split('.').at(-1))
}
