import { type NodeAttempt, type RecordState, useAttempts } from '../data/records.ts'
import { isOpen } from '../kit/status.tsx'
import type { Run } from './live.ts'
import { lengthOf } from './steps.tsx'

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
      <Bar of={record} kind={apart ? 'pauses' : kind} {...{ begin, span, now, text }} />
      {apart && attempts.map((one) => <OneAttempt key={one.attempt} of={one} {...{ begin, span, now }} />)}
      {plan !== null && <Planned at={plan} {...{ begin, span, now }} />}
    </>
  )
}

function OneAttempt({ of, begin, span, now }: Omit<BarProps, 'of' | 'kind'> & { of: NodeAttempt }) {
  const { attempt, status, endedAt, error } = of
  const from = Date.parse(of.startedAt!) - begin
  // Nobody noted when a lost one ended.
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
      className="gantt-next"
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
}

export function Bar({ of, begin, span, now, kind, text }: BarProps) {
  const from = Date.parse(of.startedAt) - begin
  const to = from + lengthOf(of, now)
  if (to < span.from || from > span.to) return null
  const left = Math.max(from, span.from)
  const width = Math.min(to, span.to) - left
  const share = width / (span.to - span.from)
  // Where the bar leaves no room behind it, its length stands before it, or in it.
  const start = (left - span.from) / (span.to - span.from)
  const late = start + share > 0.82
  const side = !late ? '' : start > 0.35 ? 'before' : 'inside'
  const end = late && side === 'before' ? left : left + width
  // What is striped or thin has no room for a text.
  const told = text && !(side === 'inside' && kind !== '')
  return (
    <>
      <i
        className={`gantt-bar ${of.status.toLowerCase()} ${kind}`}
        style={{ left: percent(left, span), width: `max(3px, ${(share * 100).toFixed(3)}%)` }}
      />
      {told && (
        <span
          className={`bar-length ${side}`}
          style={
            late
              ? { right: `calc(100% - ${percent(end, span)} + 6px)` }
              : { left: `calc(${percent(end, span)} + 8px)` }
          }
        >
          {text}
        </span>
      )}
    </>
  )
}

export function percent(at: number, { from, to }: Span): string {
  return `${(((at - from) / (to - from)) * 100).toFixed(3)}%`
}
