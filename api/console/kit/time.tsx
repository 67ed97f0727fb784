import { serverNow } from '../data/clock.ts'

const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const SHORT = new Intl.DateTimeFormat(undefined, {
  ...{ month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
})
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'narrow' })
const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** The zone that times are shown in. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone

type Instant = string | null | undefined

/** An instant as people read it, with its year if that is another; the exact one in UTC on hover. */
export function Time({ at }: { at: Instant }) {
  if (!at) return <span className="quiet">–</span>
  return (
    <time dateTime={at} title={at}>
      {formatTime(at)}
    </time>
  )
}

export function formatTime(at: string): string {
  const date = new Date(at)
  return (date.getFullYear() === new Date().getFullYear() ? SHORT : FULL).format(date)
}

/** How long ago, or in how long. */
export function Age({ at }: { at: Instant }) {
  if (!at) return <span className="quiet">–</span>
  return (
    <time dateTime={at} title={`${FULL.format(new Date(at))} (${at})`}>
      {formatAge(at)}
    </time>
  )
}

/** An instant to come, and how long it is until then; `now` makes it count down. */
export function Until({ at, now }: { at: string; now: number }) {
  return (
    <>
      <Time at={at} /> <span className="quiet countdown">({formatLeft(at, now)})</span>
    </>
  )
}

/** "in 12 s", in whole seconds; "now" from then on. */
export function formatLeft(at: string, now: number): string {
  const seconds = Math.ceil((Date.parse(at) - now) / 1_000)
  return seconds > 0 ? `in ${seconds < 60 ? `${seconds} s` : formatDuration(seconds * 1_000)}` : 'now'
}

export function formatAge(at: string): string {
  const seconds = (Date.parse(at) - serverNow()) / 1_000
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size)
  return unit ? RELATIVE.format(Math.trunc(seconds / unit[1]), unit[0]) : 'just now'
}

/** 12 ms, 3.4 s, 2 min 5 s, 3 h 12 min, 2 d 4 h. */
export function formatDuration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = ms / 1_000
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`
}

/** Of durations that are kept in classes, each 25 % wider than the one before: about 3.4 s. */
export function formatAbout(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? formatDuration(ms) : `about ${formatDuration(ms)}`
}

/** $12.30; small amounts keep the digits that say something. */
export function formatMoney(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return '–'
  const digits = amount !== 0 && Math.abs(amount) < 0.01 ? 6 : 2
  return `$${amount.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: digits })}`
}

/** The value of a datetime-local input for an instant, in the browser's own zone. */
export function toLocal(iso: string | undefined): string {
  if (!iso) return ''
  const date = new Date(iso)
  if (Number.isNaN(date.getTime())) return ''
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

export function fromLocal(local: string): string | undefined {
  return local === '' ? undefined : new Date(local).toISOString()
}

/** A fraction as a percentage. */
export function formatRate(rate: number | null): string {
  if (rate === null) return '–'
  return rate.toLocaleString(undefined, { style: 'percent', maximumFractionDigits: rate < 0.1 ? 1 : 0 })
}
