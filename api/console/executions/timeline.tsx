import { type CSSProperties, useRef, useState, type WheelEvent } from 'react'
import { type RecordState, useRequests } from '../data/records.ts'
import { Button } from '../kit/button.tsx'
import { Empty } from '../kit/states.tsx'
import { isOpen, nameStatus, StatusSign } from '../kit/status.tsx'
import { formatDuration } from '../kit/time.tsx'
import { Windowed } from '../kit/windowed.tsx'
import type { Run } from './live.ts'
import type { Row } from './rows.ts'
import { Fold, type ListProps, lengthOf, tellError } from './steps.tsx'
import './timeline.css'
import { nameRecord, placeOf, tellLoop } from './tree.ts'

const ROW = 32
const ZOOM = 1.6
const TICKS = 5
const WAITS = new Set(['APPROVAL', 'WAIT', 'WAIT_FOR_EVENT', 'SUB_WORKFLOW'])

/** The part of the execution's time that is shown, in milliseconds since its start. */
type Span = { from: number; to: number }

type TimelineProps = ListProps & { run: Run }

/** A bar a record, over the execution's time: attempts, waits, and retries to come. */
export function Timeline({ run, rows, chosen, now, ...acts }: TimelineProps) {
  const begin = Date.parse(run.startedAt ?? run.createdAt)
  const next = Math.max(
    0,
    ...run.records.map(({ status, nextAttemptAt }) =>
      nextAttemptAt && isOpen(status) ? Date.parse(nextAttemptAt) : 0,
    ),
  )
  const end = run.completedAt ? Date.parse(run.completedAt) : Math.max(now, next)
  const whole: Span = { from: 0, to: Math.max(1, end - begin) }
  const [zoomed, setZoomed] = useState<Span | null>(null)
  const span = zoomed ?? whole
  const area = useRef<HTMLDivElement>(null)
  const zoom = (by: number, around = 0.5) => {
    const length = Math.max(1, (span.to - span.from) / by)
    if (length >= whole.to) return setZoomed(null)
    const at = span.from + (span.to - span.from) * around
    const from = Math.min(Math.max(0, at - length * around), whole.to - length)
    setZoomed({ from, to: from + length })
  }
  const pan = (by: number) => {
    const length = span.to - span.from
    const from = Math.min(Math.max(0, span.from + length * by), whole.to - length)
    setZoomed({ from, to: from + length })
  }
  const wheel = (event: WheelEvent) => {
    const track = area.current?.querySelector('.axis .track')?.getBoundingClientRect()
    if (!track || !event.altKey) return
    const around = Math.min(1, Math.max(0, (event.clientX - track.left) / track.width))
    zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM, around)
  }
  if (rows.length === 0) return <Empty title="No records yet" text="A node has one once it has started." />
  const at = rows.findIndex(({ key }) => key === chosen)
  return (
    <div className="timeline" ref={area} onWheel={wheel}>
      <div className="axis">
        <div className="bar-name row">
          <Button small aria-label="Zoom out" onClick={() => zoom(1 / ZOOM)} disabled={zoomed === null}>
            −
          </Button>
          <Button small aria-label="Zoom in" onClick={() => zoom(ZOOM)}>
            +
          </Button>
          {zoomed && (
            <>
              <Button small icon="back" aria-label="Earlier" onClick={() => pan(-0.5)} />
              <Button small icon="right" aria-label="Later" onClick={() => pan(0.5)} />
              <Button small onClick={() => setZoomed(null)}>
                Fit
              </Button>
            </>
          )}
        </div>
        <div className="track" aria-hidden="true">
          {listTicks(span).map((tick) => (
            <span key={tick} className="tick" style={{ left: percent(tick, span) }}>
              {formatDuration(tick)}
            </span>
          ))}
        </div>
      </div>
      <Windowed
        label="Timeline"
        rows={rows}
        keyOf={({ key }) => key}
        height={ROW}
        shown={at < 0 ? undefined : at}
      >
        {(row) => (
          <Line
            row={row}
            run={run}
            begin={begin}
            span={span}
            now={now}
            chosen={row.key === chosen}
            {...acts}
          />
        )}
      </Windowed>
      <p className="legend quiet">
        <span>
          <i className="gantt-bar success" /> work
        </span>
        <span>
          <i className="gantt-bar wait running" /> waits for somebody or a time
        </span>
        <span>
          <i className="gantt-mark" /> a failed attempt
        </span>
        <span>
          <i className="gantt-next" /> until the next attempt
        </span>
        <span>Alt and wheel zoom</span>
      </p>
    </div>
  )
}

type LineProps = Omit<ListProps, 'rows' | 'chosen'> & {
  row: Row
  run: Run
  begin: number
  span: Span
  chosen: boolean
}

function Line({ row, run, begin, span, now, chosen, onChoose, onFold, countOf }: LineProps) {
  const depth = { '--depth': row.depth } as CSSProperties
  if (row.kind === 'tools') return null
  if (row.kind === 'iteration') {
    const { iteration, key, open } = row
    return (
      <div className="line-row" style={depth}>
        <span className="bar-name">
          <Fold name={`Iteration ${iteration.number}`} open={open} onFold={(next) => onFold(key, next)} />
          <StatusSign status={iteration.status} size={12} />
          <span className="bar-text">Iteration {iteration.number}</span>
        </span>
        <span className="track">
          <Bar of={iteration} begin={begin} span={span} now={now} kind="loop" />
        </span>
      </div>
    )
  }
  const { record, loop, open } = row
  const name = nameRecord(record)
  const count = loop ? ` ${tellLoop(countOf(record))}` : ''
  const length = formatDuration(lengthOf(record, now))
  const tries = record.retryCount > 0 ? `, ${record.retryCount + 1} attempts` : ''
  return (
    <div className="line-row" style={depth} data-node={record.nodeId} data-chosen={chosen || undefined}>
      <span className="bar-name">
        <Fold name={name} open={open} onFold={(next) => onFold(placeOf(record), next)} />
        <button type="button" className="bar-open" aria-pressed={chosen} onClick={() => onChoose(record)}>
          <StatusSign status={record.status} size={12} />
          <span className="bar-text">
            {record.step === null ? name : (record.tool ?? `Turn ${record.step}`)}
            <span className="quiet">
              {record.iteration !== null && ` #${record.iteration}`}
              {count}
            </span>
            <span className="hidden">{`: ${nameStatus(record.status)}, ${length}${tries}`}</span>
          </span>
        </button>
      </span>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the name beside it is the button */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the name beside it is the button */}
      <span className="track" title={tellError(record) || undefined} onClick={() => onChoose(record)}>
        <Bar
          of={record}
          begin={begin}
          span={span}
          now={now}
          kind={WAITS.has(record.nodeType) ? 'wait' : loop ? 'loop' : ''}
          text={`${length}${tries}`}
        />
        <Attempts record={record} run={run} begin={begin} span={span} now={now} />
      </span>
    </div>
  )
}

type BarProps = {
  of: { startedAt: string; completedAt: string | null; status: string }
  begin: number
  span: Span
  now: number
  kind: string
  text?: string
}

function Bar({ of, begin, span, now, kind, text }: BarProps) {
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

type AttemptProps = { record: RecordState; run: Run; begin: number; span: Span; now: number }

/** Where attempts failed, and the wait for the next one. */
function Attempts({ record, run, begin, span, now }: AttemptProps) {
  const { id, nodeType, retryCount, status, nextAttemptAt } = record
  const sends = nodeType === 'HTTP_REQUEST' && retryCount > 0 && !run.hidden
  const { data } = useRequests(run.id, id, { page: 0, enabled: sends })
  const sent = (data?.content ?? []).flatMap(({ attempt, startedAt, durationMs }) =>
    attempt <= retryCount ? [{ attempt, at: Date.parse(startedAt) + (durationMs ?? 0) }] : [],
  )
  const seen = (run.attempts.get(id) ?? []).map(({ attempt, at }) => ({ attempt, at: Date.parse(at) }))
  const marks = sent.length > 0 ? sent : seen
  const next = isOpen(status) && nextAttemptAt ? Date.parse(nextAttemptAt) - begin : null
  const from = Math.max(now - begin, span.from)
  return (
    <>
      {marks.map(({ attempt, at }) => (
        <i
          key={`${attempt} ${at}`}
          className="gantt-mark"
          title={`Attempt ${attempt} failed`}
          style={{ left: percent(at - begin, span) }}
        />
      ))}
      {next !== null && next > from && (
        <i
          className="gantt-next"
          style={{
            left: percent(from, span),
            width: `${(((Math.min(next, span.to) - from) / (span.to - span.from)) * 100).toFixed(3)}%`,
          }}
        />
      )}
    </>
  )
}

function percent(at: number, { from, to }: Span): string {
  return `${(((at - from) / (to - from)) * 100).toFixed(3)}%`
}

/** Round times within the span. */
function listTicks({ from, to }: Span): number[] {
  const rough = (to - from) / TICKS
  const size = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((by) => by * size).find((one) => one >= rough) ?? rough
  const first = Math.ceil(from / step) * step
  return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, at) => first + at * step)
}
