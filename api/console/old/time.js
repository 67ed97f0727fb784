import { h } from './dom.js'

const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const SHORT = new Intl.DateTimeFormat(undefined, {
  ...{ month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
})
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'narrow' })

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]

/** An instant as people read it, with its year if that is another; the exact one in UTC on hover. @param {string | null} iso */
export function showTime(iso) {
  if (!iso) return h('span', { class: 'quiet' }, '–')
  const date = new Date(iso)
  const format = date.getFullYear() === new Date().getFullYear() ? SHORT : FULL
  return h('time', { datetime: iso, title: iso }, format.format(date))
}

/** How long ago. @param {string | null} iso */
export function showAge(iso) {
  if (!iso) return h('span', { class: 'quiet' }, '–')
  const seconds = (Date.parse(iso) - Date.now()) / 1_000
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size)
  const text = unit ? RELATIVE.format(Math.trunc(seconds / unit[1]), unit[0]) : 'just now'
  return h('time', { datetime: iso, title: `${FULL.format(new Date(iso))} (${iso})` }, text)
}

/** 12 ms, 3.4 s, 2 min 5 s, 3 h 12 min, 2 d 4 h. @param {number | null | undefined} ms */
export function formatDuration(ms) {
  if (ms === null || ms === undefined) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = ms / 1_000
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`
}

/** The value of a datetime-local input for an instant, in the browser's own zone. @param {string | undefined} iso */
export function toLocal(iso) {
  if (!iso) return ''
  const date = new Date(iso)
  if (Number.isNaN(date.getTime())) return ''
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** @param {string} local */
export function fromLocal(local) {
  return local === '' ? undefined : new Date(local).toISOString()
}
