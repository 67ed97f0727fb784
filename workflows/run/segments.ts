import { demandOurs, walkSegment } from './commands.ts'
import { type Task, taskKey } from './loops.ts'
import type { SegmentInput } from './messages.ts'
import type { NodeRecord } from './records.ts'
import { sliceState } from './slice.ts'
import { afterDelay } from './timers.ts'
import { beginWork, noteRecord, type Run, wake } from './work.ts'

/**
 * The results of segments travel in one message with the worker's next response, and Temporal accepts
 * messages of up to 4 MB. Above this many bytes we make the worker respond before the next segment starts.
 */
const MAX_UNSENT_BYTES = 750_000

/** Starts a segment with tasks that are all pure. `drains`: the run is about to continue as new. */
export function startSegment(run: Run, tasks: Task[], drains: boolean): void {
  const { root, context } = run
  const { plan, input } = run.input
  const segment: SegmentInput = {
    ...{ plan, context, input },
    root: sliceState(plan, root, tasks),
    busy: [...run.busy],
    ...(drains ? { drains } : {}),
  }
  const keys = tasks.map(taskKey)
  for (const key of keys) run.walking.add(key)
  const done = (records: NodeRecord[]) => {
    demandOurs(records)
    for (const key of keys) run.walking.delete(key)
    run.unsent += new TextEncoder().encode(JSON.stringify(records)).length
    for (const record of records) {
      run.inVain = record.status === 'AWAY' ? run.inVain + 1 : 0
      if (record.status === 'AWAY') restAway(run, Math.max(record.forMs, restBetween(run.inVain)))
      else noteRecord(run, record)
    }
  }
  beginWork(run, { within: run.scopes.whole, keys, work: () => walkSegment(segment), done })
}

/** Starts no segment for a while, so that the run holds no slot of a worker meanwhile. */
export function restAway(run: Run, ms: number): void {
  run.away++
  run.awayUntil = Math.max(run.awayUntil, Date.now() + ms)
  afterDelay(run.scopes.whole, ms, 'waits for its turn', () => {
    run.away--
    wake(run)
  })
}

/** Makes the worker respond if it has much to say, as it does without a segment: only then can the timer fire. */
export function sendRecords(run: Run): void {
  if (run.unsent <= MAX_UNSENT_BYTES || run.sending) return
  run.sending = true
  afterDelay(run.scopes.whole, 1, 'records are sent', () => {
    run.unsent = 0
    run.sending = false
    wake(run)
  })
}

/**
 * How long a run rests at least, in milliseconds, after `inVain` segments in a row that gave their slot back:
 * each of them makes the history longer.
 */
function restBetween(inVain: number): number {
  return Math.min(1_000, 50 * 2 ** (inVain - 1))
}
