import { linkWith, readAddress, readPage } from './address.js'
import { ask, poll } from './ask.js'
import { chooseWorkflow } from './choice.js'
import { fill, h } from './dom.js'
import { cell, linkRun, showHeading, showPager, showTable } from './lists.js'
import { notifyError, showEmpty } from './notices.js'
import { STATUSES, showStatus } from './status.js'
import { formatDuration, fromLocal, showTime, toLocal } from './time.js'

const FRESH_MS = 5_000

/** The team's executions: filters and the page stand in the address; the first page keeps itself fresh. @param {import('./main.js').Page} page */
export async function showExecutions({ main, query, signal, frame }) {
  const { teamId } = frame
  if (!teamId)
    return fill(main, showHeading('Executions'), showEmpty('No team yet', 'Ask an ADMIN to add you to one.'))
  const wanted = {
    status: query.get('status') ?? '',
    workflowId: query.get('workflowId') ?? '',
    from: query.get('from') ?? '',
    to: query.get('to') ?? '',
  }
  const number = readPage(query.get('page'))
  const list = h('div')
  /** @type {string | undefined} */
  let seen
  const workflow = await chooseWorkflow(teamId, wanted.workflowId, signal, (workflowId) => go({ workflowId }))
  await load()
  fill(main, showHeading('Executions'), showFilters(), list)
  if (number === 0) {
    void poll(
      signal,
      FRESH_MS,
      async () => {
        await load()
        return true
      },
      notifyError,
    )
  }

  async function load() {
    const found = await ask('GET', `/api/executions/team/${teamId}`, {
      query: { ...wanted, page: number },
      signal,
    })
    const text = JSON.stringify(found)
    // Rows that did not change stay, and with them focus and selection.
    if (text === seen || signal.aborted) return
    seen = text
    const focused = document.activeElement?.getAttribute('href')
    if (found.totalElements === 0) {
      const filtered = Object.values(wanted).some(Boolean)
      return fill(
        list,
        showEmpty(
          filtered ? 'Nothing found' : 'No executions yet',
          filtered ? 'No execution fits these filters.' : 'Execute a workflow, or call its webhook.',
        ),
      )
    }
    fill(
      list,
      showRuns(found.content, true),
      showPager(found, (page) => linkWith('/executions', { ...wanted, page })),
    )
    if (
      focused &&
      list.contains(document.activeElement) === false &&
      document.activeElement === document.body
    ) {
      ;[...list.querySelectorAll('a')].find((one) => one.getAttribute('href') === focused)?.focus()
    }
  }

  /** @param {Partial<typeof wanted>} change */
  function go(change) {
    // Onto what the address says now: while the next page loads, this one's fields can still be used.
    const now = Object.fromEntries(readAddress().query)
    location.hash = linkWith('/executions', { ...now, page: undefined, ...change })
  }

  function showFilters() {
    const status = h(
      'select',
      { id: 'status', onchange: () => go({ status: status.value }) },
      h('option', { value: '' }, 'Any status'),
      ...STATUSES.map((one) => h('option', { value: one, selected: one === wanted.status }, one)),
    )
    const from = time('from', wanted.from)
    const to = time('to', wanted.to)
    const some = Object.values(wanted).some(Boolean)
    return h(
      'div',
      { class: 'filters' },
      h('div', null, h('label', { for: 'status' }, 'Status'), status),
      h('div', null, h('label', { for: 'workflow' }, 'Workflow'), workflow),
      h('div', null, h('label', { for: 'from' }, 'From'), from),
      h('div', null, h('label', { for: 'to' }, 'Before'), to),
      some && h('a', { class: 'button small', href: '#/executions' }, 'Clear'),
    )
  }

  /** @param {'from' | 'to'} id @param {string} iso */
  function time(id, iso) {
    // Every step of the arrow keys is a change: the filter goes when the field is left, or on Enter.
    const apply = () => {
      if (field.value !== toLocal(iso)) go({ [id]: fromLocal(field.value) ?? '' })
    }
    const field = h('input', {
      id,
      type: 'datetime-local',
      onblur: apply,
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && apply(),
    })
    field.value = toLocal(iso)
    return field
  }
}

/** The rows of a list of executions. @param {any[]} runs @param {boolean} named whether each says its workflow */
export function showRuns(runs, named) {
  const headings = ['Status', ...(named ? ['Workflow'] : []), 'Execution', 'Trigger', 'Started', 'Duration']
  return showTable(
    'Executions',
    headings,
    runs.map((run) =>
      h(
        'tr',
        null,
        cell('Status', showStatus(run.status)),
        named && cell('Workflow', h('a', { href: `#/workflows/${run.workflowId}` }, run.workflowName)),
        cell(
          'Execution',
          linkRun(run.id),
          run.errorMessage && h('div', { class: 'quiet line', title: run.errorMessage }, run.errorMessage),
        ),
        cell('Trigger', run.triggerType),
        cell('Started', showTime(run.startedAt)),
        cell('Duration', formatDuration(run.durationMs)),
      ),
    ),
  )
}
