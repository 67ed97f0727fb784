import { ask, Refusal } from './ask.js'
import { openDialog } from './dialog.js'
import { h, newId } from './dom.js'
import { createFields } from './fields.js'
import { showFacts } from './lists.js'
import { notify } from './notices.js'
import { showAge, showTime } from './time.js'

/**
 * The buttons that decide an approval, where the caller may; else why there are none. `onDone` is called once it is
 * decided, and when it turns out to be so already.
 * @param {any} approval
 * @param {() => Promise<unknown>} onDone
 */
export function showDecide(approval, onDone) {
  if (!approval.mayDecide) return h('span', { class: 'quiet' }, 'Others decide')
  /** @param {'approved' | 'rejected'} decision @param {string} label @param {string} look */
  const button = (decision, label, look) =>
    h(
      'button',
      {
        type: 'button',
        class: `button ${look}`,
        'data-key': `${approval.id} ${decision}`,
        'aria-label': `${label}: ${approval.message ?? nameApproval(approval)}`,
        onclick: () => openDecision(approval, decision, onDone),
      },
      label,
    )
  return h(
    'div',
    { class: 'actions' },
    button('approved', 'Approve', 'primary small'),
    button('rejected', 'Reject', 'danger small'),
  )
}

/** @param {any} approval @param {'approved' | 'rejected'} decision @param {() => Promise<unknown>} onDone */
function openDecision(approval, decision, onDone) {
  const approves = decision === 'approved'
  const id = newId('comment')
  const comment = h('textarea', { id, rows: 3, maxlength: 2_000 })
  // A rejection needs no form.
  const fields = approves && approval.form ? createFields(approval.form) : undefined
  openDialog({
    title: approves ? 'Approve?' : 'Reject?',
    label: approves ? 'Approve' : 'Reject',
    danger: !approves,
    wide: fields !== undefined,
    body: [
      h('p', { class: 'said' }, approval.message ?? nameApproval(approval)),
      ...(fields ? [fields.element] : []),
      h('label', { for: id }, 'Comment'),
      comment,
    ],
    submit: async () => {
      const json = { decision, comment: comment.value || null, ...(fields ? { form: fields.read() } : {}) }
      try {
        const settled = await ask('POST', `/api/approvals/${approval.id}`, { json })
        const open = settled.status === 'OPEN' && settled.required - settled.decisions.length
        notify(approves ? (open ? `Approved; ${open} more must` : 'Approved') : 'Rejected')
      } catch (error) {
        // What is behind the dialog is out of date then.
        if (error instanceof Refusal && error.status === 409) await onDone().catch(() => {})
        throw error
      }
      await onDone()
    },
  })
}

/** An open approval as the page of its run shows it. @param {any} approval @param {() => Promise<unknown>} onDone */
export function showApproval(approval, onDone) {
  const { required, decisions, deadline, approvers, hidden } = approval
  const names = approvers.length > 0 ? approvers.join(', ') : 'OPERATOR'
  return h(
    'section',
    { class: 'asked', 'aria-label': `Approval ${nameApproval(approval)}` },
    h('h2', null, 'Waits for an approval'),
    approval.message && h('p', { class: 'said' }, approval.message),
    showFacts([
      ['Node', nameApproval(approval)],
      ['Since', showAge(approval.createdAt)],
      ['Deadline', showTime(deadline)],
      hidden ? ['Asked', 'Part of a private chat'] : ['Approvers', names],
      hidden ? ['Approved', '-'] : ['Approved', `${decisions.length} of ${required}`],
    ]),
    showDecide(approval, onDone),
  )
}

/** The node that asks, with its iteration. @param {{ nodeId: string, nodeName: string, iteration: string | null }} approval */
export function nameApproval({ nodeId, nodeName, iteration }) {
  const name = nodeName && nodeName !== 'APPROVAL' ? nodeName : nodeId
  return iteration === null ? name : `${name} #${iteration}`
}
