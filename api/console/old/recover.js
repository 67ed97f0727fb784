import { ask } from './ask.js'
import { openDialog } from './dialog.js'
import { h, newId } from './dom.js'
import { makeKey } from './execute.js'
import { linkRun } from './lists.js'
import { isOpen } from './status.js'

/** What a run that has ended can be taken up by: a retry needs something that failed. @param {{ status: string }} run */
export function canRetry({ status }) {
  return status === 'FAILED' || status === 'CANCELLED'
}

/** The least role that may take a run up: outputs given by hand, and nodes run alone, are a BUILDER's. @param {any} run */
export function roleOf({ onlyNode, nodeExecutions }) {
  const pinned = nodeExecutions.some((/** @type {{ pinned: boolean }} */ one) => one.pinned)
  return onlyNode !== null || pinned ? 'BUILDER' : 'OPERATOR'
}

/**
 * Asks how to take up a run that has ended, and goes to the new one.
 * @param {any} run
 * @param {'retry' | 'rerun'} how
 * @param {number} stands the workflow's newest version
 */
export function openRecover(run, how, stands) {
  const retries = how === 'retry'
  const id = newId('version')
  const version = h(
    'select',
    { id },
    h('option', { value: 'same' }, `Version ${run.workflowVersion}, as this execution`),
    h('option', { value: 'current' }, `Version ${stands}, the newest`),
  )
  // A second try after a broken connection must not start a second run.
  const keys = { same: makeKey(), current: makeKey() }
  openDialog({
    title: retries ? 'Retry from the failed nodes?' : 'Execute again?',
    label: retries ? 'Retry' : 'Execute again',
    body: [
      h(
        'p',
        null,
        retries
          ? 'A new execution with the same input takes over what succeeded, and goes on from what did not.'
          : 'A new execution with the same input does everything again.',
      ),
      ...(stands === run.workflowVersion ? [] : [h('label', { for: id }, 'Graph'), version]),
    ],
    submit: async () => {
      const chosen = version.value === 'current' ? 'current' : 'same'
      const started = await ask('POST', `/api/executions/${run.id}/${how}`, {
        json: { version: chosen },
        headers: { 'Idempotency-Key': keys[chosen] },
      })
      location.hash = `#/executions/${started.executionId}`
    },
  })
}

/** The runs that this one comes from, and that come from it. @param {any} run @returns {[string, import('./dom.js').Child][]} */
export function listRelated(run) {
  const { retriedFrom, recovery, retries, parentExecutionId, parentNodeId, onlyNode, queuedAt, status } = run
  /** @type {[string, import('./dom.js').Child | false][]} */
  const facts = [
    [recovery === 'RERUN' ? 'Again from' : 'Retry of', retriedFrom && linkRun(retriedFrom)],
    ['Taken up by', retries.length > 0 && showLinks(retries)],
    [
      'Started by',
      parentExecutionId && h('span', null, linkRun(parentExecutionId), parentNodeId && ` at ${parentNodeId}`),
    ],
    ['Only node', onlyNode && h('code', null, onlyNode)],
    ['Waits', isOpen(status) && queuedAt && status === 'PENDING' && 'for a place at its limit'],
  ]
  return facts.filter(([, value]) => Boolean(value))
}

/** @param {string[]} ids */
function showLinks(ids) {
  return h('span', { class: 'links' }, ...ids.map(linkRun))
}
