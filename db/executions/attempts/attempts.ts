import { sql } from 'kysely'
import { demandValues } from '../../chat/privacy.ts'
import { missing } from '../../fault.ts'
import { makePage, type Page, type PageRequest } from '../../page.ts'
import { type RedactionRules, redact } from '../../redaction/redact.ts'
import { readRecentRules } from '../../redaction/rules.ts'
import type { Scope } from '../../scope.ts'

/**
 * LOST: its worker was lost before it could note the end. UNKNOWN: nothing was noted of it, because its execution had
 * too many attempts already, or is of a release before.
 */
export const ATTEMPT_STATUSES = ['RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED', 'LOST', 'UNKNOWN'] as const

/** One attempt of a node. `startedAt` and `endedAt` are null if they are not known, or are yet to come. */
export type NodeAttempt = {
  /** From 1. */
  attempt: number
  status: (typeof ATTEMPT_STATUSES)[number]
  startedAt: Date | null
  endedAt: Date | null
  durationMs: number | null
  /** Why it failed. The type is null if only the node's record tells of it. */
  error: { type: string | null; message: string } | null
  /** Whether it counts against the node's maxAttempts: not if a worker or the database was to blame. */
  counted: boolean
}

type RecordRow = {
  status: 'RUNNING' | 'SUCCESS' | 'FAILED' | 'CANCELLED'
  startedAt: Date
  completedAt: Date | null
  retryCount: number
  isWaiting: boolean
  errorMessage: string | null
  isGiven: boolean
  lastNoted: number
}

type NoteRow = {
  attempt: number
  startedAt: Date | null
  endedAt: Date | null
  errorType: string | null
  errorMessage: string | null
  counted: boolean
}

/**
 * The attempts of a node's record so far, in their order, with the one that is under way (VIEWER). A record whose
 * output was given has none. Throws NOT_FOUND, and FORBIDDEN for another owner's chat.
 */
export async function listNodeAttempts(
  scope: Scope,
  { id, recordId }: { id: string; recordId: string },
  query: PageRequest,
): Promise<Page<NodeAttempt>> {
  await demandValues(scope, id)
  const { db } = scope.store
  const ofRecord = sql`execution_id = ${id} and record_id = ${recordId}`
  const found = await sql<RecordRow>`
    select status, started_at, completed_at, retry_count, error_message, given_by is not null as is_given,
      status = 'RUNNING' and next_attempt_at is not null as is_waiting,
      -- The record may be told of a new attempt a moment later.
      (select coalesce(max(attempt), 0) from node_attempts where ${ofRecord}) as last_noted
    from node_executions where id = ${recordId} and execution_id = ${id}`.execute(db)
  const record = found.rows[0]
  if (!record) throw missing('record of a node')
  const total = record.isGiven ? 0 : Math.max(record.retryCount + 1, record.lastNoted)
  const first = query.page * query.size + 1
  const last = Math.min(total, first + query.size - 1)
  const notes = await sql<NoteRow>`
    select attempt, started_at, ended_at, error_type, error_message, counted from node_attempts
    where ${ofRecord} and attempt between ${first} and ${last}`.execute(db)
  const noted = new Map(notes.rows.map((note) => [note.attempt, note]))
  const rules = await readRecentRules(db, db)
  const shown: NodeAttempt[] = []
  for (let attempt = first; attempt <= last; attempt++)
    shown.push(showAttempt(attempt, noted.get(attempt), { record, isLast: attempt === total, rules }))
  return makePage(shown, total, query)
}

function showAttempt(
  attempt: number,
  note: NoteRow | undefined,
  { record, isLast, rules }: { record: RecordRow; isLast: boolean; rules: RedactionRules },
): NodeAttempt {
  const status = judgeStatus(note, record, isLast)
  const startedAt = note?.startedAt ?? (attempt === 1 ? record.startedAt : null)
  const endedAt = note?.endedAt ?? (isLast ? record.completedAt : null)
  const message = note?.errorMessage ?? record.errorMessage
  return {
    attempt,
    status,
    startedAt,
    endedAt,
    durationMs: startedAt && endedAt ? Math.max(0, endedAt.getTime() - startedAt.getTime()) : null,
    error:
      status === 'FAILED'
        ? { type: note?.errorType ?? null, message: redact(message ?? '', { rules }) }
        : null,
    counted: status === 'FAILED' && (note?.errorType == null || note.counted),
  }
}

/** Only failures are noted: how the last attempt ends otherwise, the record says. */
function judgeStatus(
  note: NoteRow | undefined,
  { status, isWaiting }: RecordRow,
  isLast: boolean,
): NodeAttempt['status'] {
  if (note?.errorType != null) return 'FAILED'
  if (!isLast) return note ? 'LOST' : 'UNKNOWN'
  return isWaiting ? 'FAILED' : status
}
