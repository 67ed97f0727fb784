import { ApplicationFailure } from '@temporalio/common'
import type { HistoryEvent } from '../../db/executions/projection/history.ts'
import type { AttemptResult } from '../../workflows/run/messages.ts'
import type { Worker } from './activities.ts'
import type { Sample } from './graphs.ts'
import { failed, payload, resolve, settle } from './jobs.ts'
import type { Random } from './random.ts'
import type { Job } from './sandbox.ts'
import type { Timeline } from './timeline.ts'
import type { World } from './world.ts'

const HEARTBEAT_TIMEOUT_MS = 10_000

/** An event of a history, before it has its number and time. */
export type Detail = HistoryEvent extends infer E
  ? E extends HistoryEvent
    ? Omit<E, 'id' | 'time'>
    : never
  : never

/** An activity that Temporal has accepted: `eventId` is that of its scheduling. */
export type Activity = {
  activityId: string
  input: unknown
  eventId: number
  attempt: number
  notes: unknown
}

type Surroundings = { sample: Sample; world: World; worker: Worker; timeline: Timeline }
type History = { note(detail: Detail): void; happen(job: Job, detail: Detail): void }

/**
 * Has activities attempted until one attempt ends them, as Temporal does: whose worker is lost comes again, and so
 * does what may be tried again. What is taken out of `activities` is not heard of any more.
 */
export function createAttempts(
  { sample, world, worker, timeline }: Surroundings,
  random: Random,
  activities: Map<number, Activity>,
  { note, happen }: History,
) {
  function startActivity(seq: number, activity: Activity): void {
    activities.set(seq, activity)
    timeline.after(random.delay(), () => attemptActivity(seq, activity))
  }

  async function attemptActivity(seq: number, activity: Activity): Promise<void> {
    const isOpen = () => activities.get(seq) === activity
    if (!isOpen()) return
    const lost = random.chance(sample.trouble.lostAttempt)
    const attempt = ++activity.attempt
    // A worker that is lost in the middle of a call has not counted what the call came to.
    const onNotes = (notes: unknown) => {
      if (!lost) activity.notes = structuredClone(notes)
    }
    const { signal } = new AbortController()
    world.forgetAttempt = lost
    const ended = await settle(
      worker.node(structuredClone(activity.input), { ...activity, attempt, onNotes, signal }),
    )
    world.forgetAttempt = false
    if (lost) {
      timeline.after(HEARTBEAT_TIMEOUT_MS, () => attemptActivity(seq, activity))
      return
    }
    const { error } = ended
    if (error instanceof ApplicationFailure && !error.nonRetryable) {
      const delay = Number(error.nextRetryDelay ?? 1_000)
      timeline.after(delay, () => attemptActivity(seq, activity))
      return
    }
    timeline.after(random.delay(), () => {
      if (!isOpen()) return
      activities.delete(seq)
      const scheduledId = activity.eventId
      note({ kind: 'attempt', scheduledId, attempt: activity.attempt })
      if (error) {
        const { message, type } = error as ApplicationFailure
        const [{ returned = 0 } = {}] = ((error as ApplicationFailure).details ?? []) as {
          returned?: number
        }[]
        const told = { message, type: type ?? 'Error' }
        happen(resolve(seq, failed(activity, error)), { kind: 'failed', scheduledId, error: told, returned })
      } else {
        const { returned = 0, ...result } = ended.value as AttemptResult
        const completed = { completed: { result: payload(ended.value) } }
        happen(resolve(seq, completed), { kind: 'completed', scheduledId, result, returned })
      }
    })
  }

  return { start: startActivity }
}
