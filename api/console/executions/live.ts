import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { queries } from '../data/client.ts'
import { isOpen } from '../kit/status.tsx'
import { useStream } from '../kit/stream.ts'
import { type Execution, useExecution } from './data.ts'
import type { NodeRecord, RecordState } from './records.ts'

type Head = Pick<Execution, 'status' | 'startedAt' | 'completedAt' | 'durationMs' | 'errorMessage'>
type Change = Head & { id: string; cancelRequested: boolean }
type Live = {
  head: Change | null
  states: ReadonlyMap<string, RecordState>
}

export type Run = Execution & {
  cancelRequested: boolean
  /** All records without their values, as they started; `nodeExecutions` has the values of those that are shown. */
  records: readonly RecordState[]
}

const NOTHING: Live = { head: null, states: new Map() }
const BURST_MS = 200

/** How often values are read again while the execution goes on, by how much there is to read. */
const READ_MS = { few: 700, many: 4_000 }
const FEW = 200

/**
 * An execution that is followed until it has ended. The stream tells of all its records, however many, without their
 * values; values are read beside it, less often.
 */
export function useRun(id: string) {
  const query = useExecution(id)
  const [live, setLive] = useState(NOTHING)
  const arrived = useRef<{ name: string; data: string }[]>([])
  const reading = useRef<ReturnType<typeof setTimeout>>(undefined)
  const { data } = query
  const whole = data !== undefined && data.nodeExecutionsTotal <= data.nodeExecutions.length
  const over = data !== undefined && !isOpen(data.status) && whole
  const pause = (data?.nodeExecutionsTotal ?? 0) > FEW ? READ_MS.many : READ_MS.few

  const readAgain = useCallback(
    (ms: number) => {
      reading.current ??= setTimeout(() => {
        reading.current = undefined
        void queries.invalidateQueries({ queryKey: ['executions', 'one', id] })
        void queries.invalidateQueries({ queryKey: ['executions', 'waits', id] })
        void queries.invalidateQueries({ queryKey: ['approvals'] })
      }, ms)
    },
    [id],
  )
  useEffect(() => () => clearTimeout(reading.current), [])
  useStream(data === undefined || over ? null : `/api/executions/${id}/events`, {
    events: ['execution', 'node', 'end'],
    end: 'end',
    burstMs: BURST_MS,
    onEvent: (name, data) => arrived.current.push({ name, data }),
    onNews: () => {
      const news = arrived.current
      arrived.current = []
      if (news.length > 0) setLive((before) => apply(before, news))
      const ended = news.some(({ name }) => name === 'end')
      if (ended) {
        clearTimeout(reading.current)
        reading.current = undefined
      }
      // For an execution that had ended before, the stream only tells of the records that were not shown.
      if (data && isOpen(data.status)) readAgain(ended ? 0 : pause)
    },
  })

  const run = useMemo((): Run | undefined => {
    if (!data) return undefined
    const { head, states } = live
    const use = head && further(head, data)
    const shown = use
      ? {
          status: head.status as Run['status'],
          startedAt: head.startedAt,
          completedAt: head.completedAt,
          durationMs: head.durationMs,
          errorMessage: head.errorMessage,
        }
      : {}
    const records = mergeRecords(data.nodeExecutions, states)
    return { ...data, ...shown, cancelRequested: head?.cancelRequested ?? false, records }
  }, [data, live])
  return { ...query, data: run }
}

function apply(before: Live, news: readonly { name: string; data: string }[]): Live {
  let { head } = before
  const states = new Map(before.states)
  for (const { name, data } of news) {
    if (name === 'execution') head = JSON.parse(data) as Change
    if (name !== 'node') continue
    const state = JSON.parse(data) as RecordState
    states.set(state.id, state)
  }
  return { head, states }
}

/** Chooses between two states of one thing: the one that came later in its life; `a` if they are alike. */
function further(
  a: { status: string; retryCount?: number },
  b: { status: string; retryCount?: number },
): boolean {
  if (isOpen(a.status) !== isOpen(b.status)) return !isOpen(a.status)
  if (a.status === 'PENDING' && b.status === 'RUNNING') return false
  return (a.retryCount ?? 0) >= (b.retryCount ?? 0)
}

function mergeRecords(shown: readonly NodeRecord[], states: ReadonlyMap<string, RecordState>): RecordState[] {
  const merged = new Map<string, RecordState>(shown.map((record) => [record.id, record]))
  for (const [id, state] of states) {
    const known = merged.get(id)
    if (!known) merged.set(id, state)
    else if (further(state, known)) merged.set(id, { ...known, ...state })
  }
  return [...merged.values()].sort((a, b) =>
    a.startedAt < b.startedAt ? -1 : a.startedAt > b.startedAt ? 1 : (a.step ?? 0) - (b.step ?? 0),
  )
}
