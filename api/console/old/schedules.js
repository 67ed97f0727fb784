import { ask } from './ask.js'
import { fill, h } from './dom.js'
import { cell, linkRun, showTable } from './lists.js'
import { complain } from './notices.js'
import { showStatus } from './status.js'
import { showTime } from './time.js'

/** When a workflow's schedules fire next; nothing where it has none. @param {any} workflow @param {AbortSignal} signal */
export function showSchedules(workflow, signal) {
  const has = workflow.nodes.some(
    (/** @type {any} */ node) => node.type === 'SCHEDULE_TRIGGER' && !node.disabled,
  )
  if (!has) return null
  const list = h('div', { 'aria-busy': 'true' })
  void load()
  return h('section', null, h('h2', null, 'Schedules'), list)

  // Temporal keeps them, and may be slow to answer: the page does not wait for it.
  async function load() {
    try {
      const found = await ask('GET', `/api/workflows/${workflow.id}/schedules`, { signal })
      fill(
        list,
        showTable(
          'Schedules',
          ['Node', 'Schedule', 'Next executions', 'Last execution', 'Missed'],
          found.map(showRow),
        ),
      )
    } catch (error) {
      if (!signal.aborted) complain(list, error)
    } finally {
      list.removeAttribute('aria-busy')
    }
  }
}

/** @param {any} schedule */
function showRow({ nodeId, cron, timezone, registered, paused, nextRuns, lastRun, missed, skipped }) {
  const none = paused ? 'Paused' : registered ? 'None' : 'None while inactive'
  return h(
    'tr',
    null,
    cell('Node', h('span', { class: 'name' }, nodeId)),
    cell('Schedule', h('code', null, cron), h('div', { class: 'quiet' }, timezone)),
    cell(
      'Next executions',
      ...(nextRuns.length === 0 || paused
        ? [h('span', { class: 'quiet' }, none)]
        : nextRuns.slice(0, 3).map((/** @type {string} */ at) => h('div', null, showTime(at)))),
    ),
    cell(
      'Last execution',
      ...(lastRun ? [showStatus(lastRun.status), ' ', linkRun(lastRun.executionId)] : ['–']),
    ),
    cell('Missed', `${missed}${skipped > 0 ? `, ${skipped} skipped` : ''}`),
  )
}
