import { isOpen } from '../../kit/status.tsx'
import type { Run } from '../live.ts'
import { type NodeAttempt, type RecordState, useAttempts } from '../records.ts'
import { lengthOf } from '../steps.tsx'

/** The part of the execution's time that is shown, in milliseconds since its start. */
export type Span = { from: number; to: number }

type BarsProps = {
  record: RecordState
  run: Run
  begin: number
  span: Span
  now: number
  kind: string
  text: string
}

/** A record over time: one bar, or one for each attempt of it, and how long it goes on waiting. */
export function Bars({ record, run, begin, span, now, kind, text }: BarsProps) {
  const enabled = !run.hidden && (record.retryCount > 0 || record.nextAttemptAt !== null)
  const { data } = useAttempts(run.id, record, { enabled })
  const attempts = (data?.content ?? []).filter(({ startedAt }) => startedAt !== null)
  const plan = planOf(record)
  const apart = enabled && attempts.length > 0
  return (
    <>
      {plan !== null && <Planned at={plan} {...{ begin, span, now }} />}
      <Bar of={record} kind={apart ? 'pauses' : kind} {...{ begin, span, now, text }} plan={plan} />
      {apart && attempts.map((one) => <OneAttempt key={one.attempt} of={one} {...{ begin, span, now }} />)}
    </>
  )
}

function OneAttempt({ of, begin, span, now }: Omit<BarProps, 'of' | 'kind'> & { of: NodeAttempt }) {
  const { attempt, status, endedAt, error } = of
  const from = Date.parse(of.startedAt!) - begin
  // The end of a lost attempt was never noted.
  const to = endedAt ? Date.parse(endedAt) - begin : status === 'RUNNING' ? now - begin : from
  if (to < span.from || from > span.to) return null
  const left = Math.max(from, span.from)
  const width = (Math.min(to, span.to) - left) / (span.to - span.from)
  return (
    <i
      className={`gantt-bar attempt-bar ${status.toLowerCase()}`}
      title={`Attempt ${attempt}: ${status.toLowerCase()}${error ? `, ${error.message}` : ''}`}
      style={{ left: percent(left, span), width: `max(4px, ${(width * 100).toFixed(3)}%)` }}
    />
  )
}

/** From now until a node goes on. */
function Planned({ at, begin, span, now }: { at: number; begin: number; span: Span; now: number }) {
  const from = Math.max(now - begin, span.from)
  const to = Math.min(at - begin, span.to)
  if (to <= from) return null
  return (
    <i
      className={at - begin > span.to ? 'gantt-next beyond' : 'gantt-next'}
      style={{
        left: percent(from, span),
        width: `${(((to - from) / (span.to - span.from)) * 100).toFixed(3)}%`,
      }}
    />
  )
}

/** When a node goes on that waits for its next attempt, or for a time at the latest; null if it does not. */
export function planOf({ status, nextAttemptAt, waitingUntil }: RecordState): number | null {
  const at = isOpen(status) ? (nextAttemptAt ?? waitingUntil) : null
  return at ? Date.parse(at) : null
}

type BarProps = {
  of: { startedAt: string; completedAt: string | null; status: string }
  begin: number
  span: Span
  now: number
  kind: string
  text?: string
  /** Until when it goes on waiting, in milliseconds since 1970. */
  plan?: number | null
}

/** About which part of a narrow track a character takes. */
const CHARACTER = 0.017

export function Bar({ of, begin, span, now, kind, text = '', plan = null }: BarProps) {
  const from = Date.parse(of.startedAt) - begin
  const to = from + lengthOf(of, now)
  if (to < span.from || from > span.to) return null
  const shareOf = (at: number) => (at - span.from) / (span.to - span.from)
  const start = shareOf(Math.max(from, span.from))
  const end = shareOf(Math.min(to, span.to))
  const last = plan === null ? end : shareOf(Math.min(plan - begin, span.to))
  const place = placeText({ start, end, last, length: text.length, kind })
  return (
    <>
      <i
        className={`gantt-bar ${of.status.toLowerCase()} ${kind}`}
        style={{ left: toPercent(start), width: `max(3px, ${toPercent(end - start)})` }}
      />
      {text && place && (
        <span className={place.className} style={place.style}>
          {text}
        </span>
      )}
    </>
  )
}

type TextPlace = { start: number; end: number; last: number; length: number; kind: string }

/**
 * The place of a bar's text: behind all that is drawn; without room there, before the bar, in it, or over dashes. Null
 * if it would hide attempts.
 */
function placeText({ start, end, last, length, kind }: TextPlace) {
  const room = Math.min(0.8, length * CHARACTER)
  const behind = (at: number) => ({ left: `calc(${toPercent(at)} + 8px)` })
  if (last <= 1 - room) return { className: 'bar-length', style: behind(last) }
  if (start > room) {
    return { className: 'bar-length', style: { right: `calc(${toPercent(1 - start)} + 6px)` } }
  }
  if (end <= 1 - room && (kind === 'pauses' || end - start < room))
    return { className: 'bar-length over', style: behind(end) }
  if (kind === 'pauses') return null
  const over = kind === '' ? '' : 'over'
  return { className: `bar-length inside ${over}`, style: { right: `calc(${toPercent(1 - end)} + 6px)` } }
}

function toPercent(share: number): string {
  return `${(share * 100).toFixed(3)}%`
}

export function percent(at: number, { from, to }: Span): string {
  return toPercent((at - from) / (to - from))
}
