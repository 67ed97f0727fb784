import type { CSSProperties } from 'react'
import { Button } from '../kit/controls/button.tsx'
import { Icon } from '../kit/controls/icon.tsx'
import { Checkbox, NumberInput } from '../kit/controls/input.tsx'
import { Empty } from '../kit/states.tsx'
import { isOpen, nameStatus, Pill, StatusSign } from '../kit/status.tsx'
import { Windowed } from '../kit/tables/windowed.tsx'
import { formatDuration, formatLeft, formatTime, Time } from '../kit/time.tsx'
import type { NodeRecord, RecordState } from './records.ts'
import { ALL, type Pick, type Row } from './rows.ts'
import './steps.css'
import { describeRecord, type LoopCount, nameRecord, placeOf, tellLoop } from './tree.ts'

const ROW = 46

export type ListProps = {
  rows: readonly Row[]
  chosen: string | undefined
  onChoose: (record: RecordState) => void
  onFold: (key: string, open: boolean) => void
  countOf: (loop: RecordState) => LoopCount
  now: number
}

type StepsProps = ListProps & {
  picks: ReadonlyMap<string, Pick>
  onPick: (place: string, pick: Pick) => void
  known: ReadonlyMap<string, NodeRecord>
  failedOnly: boolean
}

/** The records of an execution as a list that draws what is seen. */
export function Steps({ rows, chosen, picks, onPick, known, failedOnly, ...rest }: StepsProps) {
  if (rows.length === 0) {
    return failedOnly ? (
      <Empty title="Nothing failed" />
    ) : (
      <Empty title="No records yet" text="A node has one once it has started." />
    )
  }
  const at = rows.findIndex(({ key }) => key === chosen)
  return (
    <div className="steps">
      <Windowed
        label="Node records"
        rows={rows}
        keyOf={({ key }) => key}
        height={ROW}
        shown={at < 0 ? undefined : at}
      >
        {(row) => {
          if (row.kind === 'tools')
            return <LoopTools row={row} pick={picks.get(row.place) ?? ALL} onPick={onPick} />
          if (row.kind === 'iteration') return <IterationRow row={row} {...rest} />
          return <RecordRow row={row} chosen={row.key === chosen} known={known.get(row.key)} {...rest} />
        }}
      </Windowed>
    </div>
  )
}

type Of<Kind extends Row['kind']> = Extract<Row, { kind: Kind }>
type Acts = Omit<ListProps, 'rows' | 'chosen'>

function depthOf({ depth }: Row): CSSProperties {
  return { '--depth': depth } as CSSProperties
}

type RecordProps = Acts & { row: Of<'record'>; chosen: boolean; known: NodeRecord | undefined }

function RecordRow({ row, chosen, known, onChoose, onFold, countOf, now }: RecordProps) {
  const { record, loop, steps, open } = row
  const name = nameRecord(record)
  const count = loop ? tellLoop(countOf(record)) : steps > 0 ? `${steps} steps` : ''
  const error = tellRecordError(record)
  return (
    <div className="step" style={depthOf(row)} data-node={record.nodeId} data-chosen={chosen || undefined}>
      <Fold name={name} open={open} onFold={(next) => onFold(placeOf(record), next)} />
      <button type="button" className="step-open" aria-pressed={chosen} onClick={() => onChoose(record)}>
        <StatusSign status={record.status} />
        <span className="hidden">{nameStatus(record.status)}</span>
        <span className="step-name">
          <span className="name">
            {name}
            {record.iteration !== null && <span className="quiet"> #{record.iteration}</span>}
          </span>
          {error ? (
            <span className="failure" title={error}>
              {error}
            </span>
          ) : (
            <span className="quiet">
              {describeRecord(record)}
              {count && `: ${count}`}
              {tellWait(record, now)}
            </span>
          )}
        </span>
        <Marks record={record} known={known} />
        <span className="step-time">
          <Time at={record.startedAt} />
        </span>
        <span className="step-duration">{formatDuration(lengthOf(record, now))}</span>
      </button>
    </div>
  )
}

function IterationRow({ row, onFold, now }: Acts & { row: Of<'iteration'> }) {
  const { iteration, key, open } = row
  const { number, status, records } = iteration
  return (
    <div className="step iteration" style={depthOf(row)} data-iteration={number}>
      <Fold name={`Iteration ${number}`} open={open} onFold={(next) => onFold(key, next)} />
      <button type="button" className="step-open" onClick={() => onFold(key, !open)} tabIndex={-1}>
        <StatusSign status={status} />
        <span className="hidden">{nameStatus(status)}</span>
        <span className="step-name">
          <span className="name">Iteration {number}</span>
          <span className="quiet">
            {records.length} {records.length === 1 ? 'record' : 'records'}
          </span>
        </span>
        <span className="step-time">
          <Time at={iteration.startedAt} />
        </span>
        <span className="step-duration">{formatDuration(lengthOf(iteration, now))}</span>
      </button>
    </div>
  )
}

type ToolsProps = {
  row: Of<'tools'>
  pick: Pick
  onPick: (place: string, pick: Pick) => void
}

/** Which iterations of a loop are shown. */
function LoopTools({ row, pick, onPick }: ToolsProps) {
  const { place, loop } = row
  const numbers = loop.map(({ number }) => number)
  const failed = loop.filter(({ status }) => status === 'FAILED').length
  const stand = pick.at === null ? -1 : numbers.indexOf(pick.at)
  const step = (by: number) => {
    const next = numbers[stand < 0 ? (by > 0 ? 0 : numbers.length - 1) : stand + by]
    if (next !== undefined) onPick(place, { ...pick, at: next })
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is laid out in its own way
    <div className="step tools" style={depthOf(row)} role="group" aria-label="Iterations">
      <Button
        small
        look="plain"
        icon="back"
        aria-label="Iteration before"
        onClick={() => step(-1)}
        disabled={stand === 0}
      />
      <span className="tool-field">
        <span className="quiet" aria-hidden="true">
          Iteration
        </span>
        <NumberInput
          aria-label="Iteration"
          placeholder="all"
          min={0}
          max={numbers.at(-1) ?? 0}
          value={pick.at ?? undefined}
          onChange={(at) => onPick(place, { ...pick, at: at ?? null })}
        />
      </span>
      <Button
        small
        look="plain"
        icon="right"
        aria-label="Next iteration"
        onClick={() => step(1)}
        disabled={stand === numbers.length - 1}
      />
      {pick.at !== null && (
        <Button small look="plain" onClick={() => onPick(place, { ...pick, at: null })}>
          All
        </Button>
      )}
      {(failed > 0 || pick.failed) && (
        <Checkbox checked={pick.failed} onChange={(on) => onPick(place, { at: null, failed: on })}>
          Failed only ({failed})
        </Checkbox>
      )}
    </div>
  )
}

type FoldProps = { name: string; open: boolean | null; onFold: (open: boolean) => void }

export function Fold({ name, open, onFold }: FoldProps) {
  if (open === null) return <i className="fold" />
  return (
    <button
      type="button"
      className="fold"
      aria-expanded={open}
      aria-label={`${open ? 'Close' : 'Open'} ${name}`}
      onClick={() => onFold(!open)}
    >
      <Icon name="right" size={12} />
    </button>
  )
}

/** Where it went on, what did not run here, and what ran elsewhere. */
export function Marks({ record, known }: { record: RecordState; known: NodeRecord | undefined }) {
  const { retryCount, handle, handles = [] } = record
  return (
    <span className="step-marks">
      {retryCount > 0 && (
        <Pill tone={isOpen(record.status) ? 'warn' : undefined} title="Attempts so far">
          {retryCount + 1} attempts
        </Pill>
      )}
      {known?.warnings && (
        <Pill tone="warn" title="What it read that is not there">
          Warnings
        </Pill>
      )}
      {handle && <Pill title="The handle it left by">{handle}</Pill>}
      {handles.map((one) => (
        <Pill key={one ?? ''} title="A handle that items left by">
          {one ?? 'main'}
        </Pill>
      ))}
      {known?.pinned && <Pill title="Its output was given with the start">Pinned</Pill>}
      {known?.takenFrom && (
        <Pill title="Its output was taken over from an earlier execution">Taken over</Pill>
      )}
      {known?.childExecutionId && <Pill title="It started another execution">Sub workflow</Pill>}
    </span>
  )
}

/** Until when it waits, and how long that is: ", until Nov 27, 10:00:00 (in 12 s)"; empty if it does not. */
function tellWait({ status, waitingUntil }: RecordState, now: number): string {
  if (status !== 'RUNNING' || !waitingUntil) return ''
  return `, until ${formatTime(waitingUntil)} (${formatLeft(waitingUntil, now)})`
}

/** Why it failed, or why its last attempt did and when the next one comes. */
export function tellRecordError({ status, errorMessage, retryCount, nextAttemptAt }: RecordState): string {
  if (!errorMessage || status !== 'RUNNING') return errorMessage ?? ''
  if (!nextAttemptAt) return `Attempt ${retryCount + 1} is under way, after: ${errorMessage}`
  const next = new Date(nextAttemptAt).toLocaleTimeString()
  return `Attempt ${retryCount + 1} failed, the next one comes at ${next}: ${errorMessage}`
}

/** How long it took, or takes until now. */
export function lengthOf(
  { startedAt, completedAt }: { startedAt: string; completedAt: string | null },
  now: number,
): number {
  return Math.max(0, (completedAt ? Date.parse(completedAt) : now) - Date.parse(startedAt))
}
