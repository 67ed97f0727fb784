import { sql } from 'kysely'
import { write } from '../../change.ts'
import type { Store } from '../../scope.ts'
import { cleanText } from '../../text.ts'

/** The note of one attempt of a node: that it began, or that it failed. With neither, that it is over. */
export type AttemptNote = {
  executionId: string
  recordId: string
  /** Counted from 1. */
  attempt: number
  startedAt?: Date
  failure?: {
    at: Date
    type: string
    message: string
    /** Whether it counts against the node's maxAttempts. */
    counted: boolean
  }
}

/** About how many attempts of one execution are noted: a loop over 10,000 items may fail five times for each. */
export const MAX_NOTED = 5_000

const MAX_MESSAGE = 2_000

/**
 * Writes notes in one statement; what is known of an attempt already is kept. Those of executions that are deleted, or
 * have MAX_NOTED already, are left out.
 */
export async function saveAttemptNotes(store: Store, notes: readonly AttemptNote[]): Promise<void> {
  if (notes.length === 0) return
  const known = new Map<string, AttemptNote>()
  for (const note of notes) {
    const key = `${note.recordId} ${note.attempt}`
    known.set(key, { ...known.get(key), ...note })
  }
  const rows = [...known.values()]
  const of = <T>(read: (note: AttemptNote) => T) => rows.map(read)
  await write(store, (tx) =>
    sql`
    with held as materialized (
      select id, (select count(*) from (
          select from node_attempts known where known.execution_id = e.id limit ${MAX_NOTED}) few) < ${MAX_NOTED} as room
      from executions e where id = any(${[...new Set(of(({ executionId }) => executionId))]}::uuid[])
      order by id for key share)
    insert into node_attempts as n
      (execution_id, record_id, attempt, started_at, ended_at, error_type, error_message, counted)
    select r.execution_id, r.record_id, r.attempt, r.started_at, r.ended_at, r.error_type, r.error_message, r.counted
    from held join unnest(
      ${of(({ executionId }) => executionId)}::uuid[], ${of(({ recordId }) => recordId)}::uuid[],
      ${of(({ attempt }) => attempt)}::int[], ${of(({ startedAt }) => startedAt?.toISOString() ?? null)}::timestamptz[],
      ${of(({ failure }) => failure?.at.toISOString() ?? null)}::timestamptz[],
      ${of(({ failure }) => failure?.type ?? null)}::text[],
      ${of(({ failure }) => (failure ? cleanText(failure.message, MAX_MESSAGE) : null))}::text[],
      ${of(({ failure }) => failure?.counted ?? false)}::boolean[])
      as r(execution_id, record_id, attempt, started_at, ended_at, error_type, error_message, counted)
      on r.execution_id = held.id
    where room or exists (select from node_attempts known
      where (known.execution_id, known.record_id, known.attempt) = (r.execution_id, r.record_id, r.attempt))
    order by r.execution_id, r.record_id, r.attempt
    on conflict (execution_id, record_id, attempt) do update set
      -- One that has returned its slot begins again under the same number.
      started_at = coalesce(excluded.started_at, n.started_at), ended_at = coalesce(excluded.ended_at, n.ended_at),
      error_type = coalesce(excluded.error_type, n.error_type),
      error_message = coalesce(excluded.error_message, n.error_message), counted = excluded.counted or n.counted
    where excluded.started_at is not null or excluded.ended_at is not null`.execute(tx),
  )
}
