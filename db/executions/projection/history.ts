import type { AttemptResult, RunInput } from '../../../workflows/run/messages.ts'
import type { NodeError, NodeNotes, NodeRecord } from '../../../workflows/run/records.ts'
import { RUN_TIMED_OUT, STUCK_ENDED, STUCK_REASON } from '../../../workflows/run/records.ts'
import type { ExecutionStatus } from '../status.ts'

/**
 * The part of a Temporal history event that the projection reads; times are in milliseconds since 1970. A run without
 * `input` was not started by this service.
 */
export type HistoryEvent = { id: number; time: number } & (
  | { kind: 'started'; input: RunInput | null; continuedFrom: string | null }
  | { kind: 'records'; records: NodeRecord[] }
  | { kind: 'scheduled'; activityId: string }
  | { kind: 'attempt'; scheduledId: number; attempt: number }
  /** `returned` attempts have only returned their slot to the worker, and do not count. */
  | { kind: 'completed'; scheduledId: number; result: AttemptResult; returned?: number }
  | { kind: 'failed'; scheduledId: number; error: NodeError; returned?: number; notes?: NodeNotes }
  | { kind: 'canceled'; scheduledId: number }
  | { kind: 'timer'; timerId: string; key: string }
  | { kind: 'fired' | 'stopped'; timerId: string }
  | ({ kind: 'closed' } & Close)
  | { kind: 'other' }
)

/** How a run closed. `next`: the id of the run that goes on after CONTINUED_AS_NEW. */
export type Close = { how: CloseKind; message: string | null; type: string | null; next?: string | null }

export type CloseKind = 'COMPLETED' | 'FAILED' | 'CANCELED' | 'TERMINATED' | 'TIMED_OUT' | 'CONTINUED_AS_NEW'

/** The history, or the next part of it, of one run in an execution's continue-as-new chain. */
export type RunHistory = { runId: string; events: HistoryEvent[] }

export function closeStatus({ how, type, message }: Close): ExecutionStatus {
  if (how === 'COMPLETED') return 'SUCCESS'
  if (how === 'FAILED') return type === RUN_TIMED_OUT ? 'CANCELLED' : 'FAILED'
  return how === 'TERMINATED' && message?.startsWith(STUCK_REASON) ? 'FAILED' : 'CANCELLED'
}

export function closeMessage({ how, message }: Close): string | null {
  if (message?.startsWith(STUCK_REASON) || message?.startsWith(STUCK_ENDED)) return message
  if (how === 'COMPLETED') return null
  if (how === 'CANCELED') return 'The execution was cancelled'
  if (how === 'TERMINATED') return `The execution was terminated in Temporal${message ? `: ${message}` : ''}`
  if (how === 'TIMED_OUT') return 'The execution timed out in Temporal'
  return message
}

/** The notes of an event, to be spread into a record: none leave those that it has. */
export function notedIn({ notes }: { notes?: NodeNotes | undefined }): { notes?: NodeNotes } {
  return notes ? { notes } : {}
}
