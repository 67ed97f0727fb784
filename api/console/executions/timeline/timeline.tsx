import { type CSSProperties, useRef, useState, type WheelEvent } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { Empty } from '../../kit/states.tsx'
import { isOpen, nameStatus, StatusSign } from '../../kit/status.tsx'
import { Windowed } from '../../kit/tables/windowed.tsx'
import { formatDuration, formatLeft } from '../../kit/time.tsx'
import type { Run } from '../live.ts'
import type { RecordState } from '../records.ts'
import type { Row } from '../rows.ts'
import { Fold, type ListProps, lengthOf, tellRecordError } from '../steps.tsx'
import { Bar, Bars, percent, planOf, type Span } from './bars.tsx'
import './timeline.css'
import { nameRecord, placeOf, tellLoop } from '../tree.ts'

const ROW = 32
const ZOOM = 1.6
const TICKS = 5

/** A planned time is in the picture if it comes within as long again as the execution has taken, or within this time. */
const SOON_MS = 60_000

const WAITS = new Set(['APPROVAL', 'FORM', 'WAIT', 'WAIT_FOR_EVENT', 'SUB_WORKFLOW'])

type TimelineProps = ListProps & { run: Run }

/** A bar a record, over the execution's time: attempts, waits, and retries to come. */
export function Timeline({ run, rows, chosen, now, ...acts }: TimelineProps) {
  const begin = Date.parse(run.startedAt ?? run.createdAt)
  const end = run.completedAt ? Date.parse(run.completedAt) : Math.max(now, findPlanned(run, begin, now))
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
          <i className="gantt-bar failed" /> a failed attempt
        </span>
        <span>
          <i className="gantt-next" /> until the next attempt, or the end of a wait
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
            <span className="hidden">{`: ${nameStatus(record.status)}, ${length}${tries}${tellNext(record, now)}`}</span>
          </span>
        </button>
      </span>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the name beside it is the button */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the name beside it is the button */}
      <span className="track" title={tellRecordError(record) || undefined} onClick={() => onChoose(record)}>
        <Bars
          record={record}
          run={run}
          {...{ begin, span, now }}
          kind={WAITS.has(record.nodeType) ? 'wait' : loop ? 'loop' : ''}
          text={`${length}${tries}${tellNext(record, now)}`}
        />
      </span>
    </div>
  )
}

/** The last instant that nodes wait for and that the picture has room for; those later lie beyond its edge. */
function findPlanned({ records }: Run, begin: number, now: number): number {
  const most = now + Math.max(SOON_MS, now - begin)
  let last = 0
  for (const record of records) {
    const at = planOf(record)
    if (at !== null && at <= most) last = Math.max(last, at)
  }
  return last
}

/** ", next in 12 s" for an attempt, or ", ends in 59 min" for a wait. */
function tellNext({ status, nextAttemptAt, waitingUntil }: RecordState, now: number): string {
  if (!isOpen(status)) return ''
  if (nextAttemptAt) return `, next ${formatLeft(nextAttemptAt, now)}`
  return waitingUntil ? `, ends ${formatLeft(waitingUntil, now)}` : ''
}

/** Round times within the span. */
function listTicks({ from, to }: Span): number[] {
  const rough = (to - from) / TICKS
  const size = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((by) => by * size).find((one) => one >= rough) ?? rough
  const first = Math.ceil(from / step) * step
  return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, at) => first + at * step)
}
