import { linkWith, readPage } from './address.js'
import { ask, poll } from './ask.js'
import { nameApproval, showDecide } from './decide.js'
import { fill, h } from './dom.js'
import { cell, linkRun, showHeading, showPager, showTable } from './lists.js'
import { notifyError, showEmpty } from './notices.js'
import { showAge, showTime } from './time.js'

const FRESH_MS = 5_000
const STATUSES = ['OPEN', 'APPROVED', 'REJECTED', 'EXPIRED', 'ABANDONED']
/** @type {Record<string, string>} */
const LOOKS = { APPROVED: 'success', REJECTED: 'failed', EXPIRED: 'cancelled', ABANDONED: 'cancelled' }

/** What the team's runs wait for people to decide, and what was decided. @param {import('./main.js').Page} page */
export async function showApprovals({ main, query, signal, frame }) {
  const { teamId } = frame
  if (!teamId)
    return fill(main, showHeading('Approvals'), showEmpty('No team yet', 'Ask an ADMIN to add you to one.'))
  const asked = query.get('status') ?? ''
  const status = STATUSES.includes(asked) ? asked : 'OPEN'
  const number = readPage(query.get('page'))
  const list = h('div')
  /** @type {string | undefined} */
  let seen
  await load()
  const choice = h(
    'select',
    { id: 'status', onchange: () => go(choice.value) },
    ...STATUSES.map((one) => h('option', { value: one, selected: one === status }, one)),
  )
  fill(
    main,
    showHeading('Approvals'),
    h('div', { class: 'filters' }, h('div', null, h('label', { for: 'status' }, 'Status'), choice)),
    list,
  )
  const follow = async () => {
    await load()
    return true
  }
  void poll(signal, FRESH_MS, follow, notifyError)

  /** @param {string} chosen */
  function go(chosen) {
    location.hash = linkWith('/approvals', { status: chosen === 'OPEN' ? '' : chosen })
  }

  async function load() {
    const found = await ask('GET', '/api/approvals', { query: { teamId, status, page: number }, signal })
    const text = JSON.stringify(found)
    // Rows that did not change stay, and with them focus and selection.
    if (text === seen || signal.aborted) return
    if (seen !== undefined) frame.count()
    seen = text
    const key = document.activeElement?.getAttribute('data-key')
    if (found.totalElements === 0) {
      return fill(
        list,
        status === 'OPEN'
          ? showEmpty('Nothing to decide', 'An execution that reaches an APPROVAL node waits here.')
          : showEmpty('Nothing found', 'No approval has this status.'),
      )
    }
    const last = status === 'OPEN' ? 'Decide' : 'Decision'
    fill(
      list,
      showTable(
        'Approvals',
        ['Request', 'Workflow', 'Execution', 'Since', 'Deadline', last],
        found.content.map(showRow),
      ),
      showPager(found, (page) => linkWith('/approvals', { status: status === 'OPEN' ? '' : status, page })),
    )
    const again = key && list.querySelector(`[data-key="${CSS.escape(key)}"]`)
    if (again instanceof HTMLElement) again.focus({ preventScroll: true })
  }

  /** @param {any} approval */
  function showRow(approval) {
    const { workflowId, workflowName, executionId, message } = approval
    return h(
      'tr',
      { 'data-approval': approval.id },
      cell(
        'Request',
        h('div', { class: 'name said' }, message ?? nameApproval(approval)),
        message && h('div', { class: 'quiet' }, nameApproval(approval)),
      ),
      cell('Workflow', h('a', { href: `#/workflows/${workflowId}` }, workflowName)),
      cell('Execution', linkRun(executionId)),
      cell('Since', showAge(approval.createdAt)),
      cell('Deadline', showTime(approval.deadline)),
      approval.status === 'OPEN'
        ? cell('Decide', showDecide(approval, load))
        : cell('Decision', ...showSettled(approval)),
    )
  }
}

/** @param {any} approval */
function showSettled({ status, decisions, settledAt }) {
  return [
    h('span', { class: `pill plain ${LOOKS[status] ?? ''}` }, status),
    ' ',
    showAge(settledAt),
    ...decisions.map((/** @type {any} */ one) =>
      h(
        'div',
        { class: 'quiet' },
        `${one.by.name}: ${one.decision}${one.comment ? `, “${one.comment}”` : ''}`,
      ),
    ),
  ]
}
