import proto from '@temporalio/proto'
import type { CloseKind, HistoryEvent } from '../../db/executions/projection/history.ts'
import {
  type AttemptResult,
  isRefused,
  type RunInput,
  readActivityError,
} from '../../workflows/run/messages.ts'
import type { NodeRecord } from '../../workflows/run/records.ts'
import { RUN_REFUSED, WORKER_LOST } from '../../workflows/run/records.ts'
import { type Opener, readPayload } from './codec.ts'

const { EventType, RetryState } = proto.temporal.api.enums.v1
export type RawEvent = proto.temporal.api.history.v1.IHistoryEvent
type RawFailure = proto.temporal.api.failure.v1.IFailure
type RawPayload = proto.temporal.api.common.v1.IPayload

const SEGMENT_MARKER = 'core_local_activity'

/** Reads a raw event of a live or recorded history. Its `time` is epoch milliseconds. */
export async function readEvent(open: Opener, event: RawEvent): Promise<HistoryEvent> {
  const id = Number(event.eventId)
  const { seconds, nanos } = event.eventTime ?? {}
  const time = Number(seconds ?? 0) * 1_000 + Math.floor((nanos ?? 0) / 1e6)
  return { id, time, ...(await readDetail(open, event)) }
}

type Detail = HistoryEvent extends infer E ? (E extends HistoryEvent ? Omit<E, 'id' | 'time'> : never) : never

async function readDetail(open: Opener, event: RawEvent): Promise<Detail> {
  const payload = (from: RawPayload | null | undefined) => readPayload(open, from as never)
  switch (event.eventType) {
    case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: {
      const start = event.workflowExecutionStartedEventAttributes!
      const given = await payload(start.input?.payloads?.[0])
      const input = isRefused(given) ? null : (given as RunInput)
      return { kind: 'started', input, continuedFrom: start.continuedExecutionRunId || null }
    }
    case EventType.EVENT_TYPE_MARKER_RECORDED: {
      const { markerName, details } = event.markerRecordedEventAttributes!
      const result = details?.result?.payloads?.[0]
      if (markerName !== SEGMENT_MARKER || !result) return { kind: 'other' }
      const records = await payload(result)
      return { kind: 'records', records: isRefused(records) ? [] : (records as NodeRecord[]) }
    }
    case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
      return { kind: 'scheduled', activityId: event.activityTaskScheduledEventAttributes!.activityId ?? '' }
    case EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED: {
      const { scheduledEventId, attempt } = event.activityTaskStartedEventAttributes!
      return { kind: 'attempt', scheduledId: Number(scheduledEventId), attempt: attempt ?? 1 }
    }
    case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: {
      const { scheduledEventId, result } = event.activityTaskCompletedEventAttributes!
      const value = await payload(result?.payloads?.[0])
      if (isRefused(value)) {
        const error = { message: value.message, type: RUN_REFUSED }
        return { kind: 'failed', scheduledId: Number(scheduledEventId), error }
      }
      const { returned = 0, ...settled } = value as AttemptResult
      return { kind: 'completed', scheduledId: Number(scheduledEventId), result: settled, returned }
    }
    case EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: {
      const { scheduledEventId, failure } = event.activityTaskFailedEventAttributes!
      const { message, type, hidden } = await readFailure(open, failure)
      const error = failure?.applicationFailureInfo ? readActivityError(message, type, hidden) : WORKER_LOST
      const details = await payload(failure?.applicationFailureInfo?.details?.payloads?.[0])
      const { returned = 0, notes } = (isRefused(details) ? {} : (details ?? {})) as Partial<AttemptResult>
      return {
        kind: 'failed',
        scheduledId: Number(scheduledEventId),
        error,
        returned,
        ...(notes ? { notes } : {}),
      }
    }
    case EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: {
      const { scheduledEventId, failure, retryState } = event.activityTaskTimedOutEventAttributes!
      const gaveUp = retryState !== RetryState.RETRY_STATE_IN_PROGRESS
      const error = gaveUp ? WORKER_LOST : await readFailure(open, failure)
      return { kind: 'failed', scheduledId: Number(scheduledEventId), error }
    }
    // The run learns at once that the activity is cancelled and goes on without waiting for its end.
    case EventType.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED: {
      const { scheduledEventId } = event.activityTaskCancelRequestedEventAttributes!
      return { kind: 'canceled', scheduledId: Number(scheduledEventId) }
    }
    case EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
      return {
        kind: 'canceled',
        scheduledId: Number(event.activityTaskCanceledEventAttributes!.scheduledEventId),
      }
    case EventType.EVENT_TYPE_TIMER_STARTED: {
      const key = await payload(event.userMetadata?.summary)
      const timerId = event.timerStartedEventAttributes!.timerId ?? ''
      return { kind: 'timer', timerId, key: typeof key === 'string' ? key : '' }
    }
    case EventType.EVENT_TYPE_TIMER_FIRED:
      return { kind: 'fired', timerId: event.timerFiredEventAttributes!.timerId ?? '' }
    case EventType.EVENT_TYPE_TIMER_CANCELED:
      return { kind: 'stopped', timerId: event.timerCanceledEventAttributes!.timerId ?? '' }
    default:
      return (await readClose(open, event)) ?? { kind: 'other' }
  }
}

async function readClose(open: Opener, event: RawEvent): Promise<Detail | undefined> {
  const close = (how: CloseKind, message: string | null = null, type: string | null = null): Detail => ({
    kind: 'closed',
    how,
    message,
    type,
  })
  switch (event.eventType) {
    case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
      return close('COMPLETED')
    case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: {
      const error = await readFailure(open, event.workflowExecutionFailedEventAttributes!.failure)
      return close('FAILED', error.message, error.type)
    }
    case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
      return close('CANCELED')
    case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
      return close('TERMINATED', event.workflowExecutionTerminatedEventAttributes!.reason || null)
    case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
      return close('TIMED_OUT')
    case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
      return {
        ...close('CONTINUED_AS_NEW'),
        next: event.workflowExecutionContinuedAsNewEventAttributes!.newExecutionRunId || null,
      } as Detail
    default:
      return undefined
  }
}

/** The message and type of a failure, and what the sealed payload has in which the message is kept. */
async function readFailure(open: Opener, failure: RawFailure | null | undefined) {
  const hidden = (await readPayload(open, failure?.encodedAttributes as never)) as { message?: string }
  const message = hidden?.message ?? failure?.message ?? 'Unknown failure'
  return { message, type: failure?.applicationFailureInfo?.type || 'Error', hidden }
}
