import { h, s } from './dom.js'

/** @type {Record<string, { text: string, path: string }>} */
const LOOKS = {
  PENDING: { text: 'Pending', path: 'M6 3.2V6l1.8 1.2' },
  RUNNING: { text: 'Running', path: 'M6 2a4 4 0 1 1-4 4' },
  SUCCESS: { text: 'Success', path: 'M3.2 6.2 5.2 8.2 8.8 4.2' },
  FAILED: { text: 'Failed', path: 'M4 4l4 4m0-4L4 8' },
  CANCELLED: { text: 'Cancelled', path: 'M3.5 6h5' },
}

export const STATUSES = Object.keys(LOOKS)

/** @param {string} status */
export function isOpen(status) {
  return status === 'PENDING' || status === 'RUNNING'
}

/** A status by shape, word and colour. @param {string | null} status */
export function showStatus(status) {
  if (!status) return h('span', { class: 'quiet' }, 'Never ran')
  const look = LOOKS[status]
  return h(
    'span',
    { class: `pill ${look ? status.toLowerCase() : ''}`, 'data-status': status },
    s('svg', { viewBox: '0 0 12 12', 'aria-hidden': 'true' }, s('path', { d: look?.path ?? '' })),
    look?.text ?? status,
  )
}

/** Whether webhooks and schedules reach a workflow. @param {boolean} active */
export function showActive(active) {
  return h('span', { class: active ? 'pill success plain' : 'pill plain' }, active ? 'Active' : 'Inactive')
}
