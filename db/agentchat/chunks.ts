import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'

/**
 * A piece of the text of a reply. `position` is where in the text of its step it begins, and all lengths are in
 * characters (code points), as PostgreSQL counts them.
 */
export type ReplyPiece = {
  /** The turn of the node that replies, from 1. */
  step: number
  /** Only the text of the last attempt counts. */
  attempt: number
  /** The turn before it; 0 for the first one. */
  after: number
  position: number
  text: string
  /** The step has no more text. */
  isLast: boolean
}

/** A piece as it is stored: `seq` counts those of its attempt. */
export type ReplyChunk = ReplyPiece & { executionId: string; seq: number }

/** Up to where somebody knows the text of a reply. */
export type ReplyPlace = { executionId: string; step: number; attempt: number; position: number }

const TELL = 'reply:'

/** As many ids as fit into the 8,000 bytes of a notification. */
const IDS_A_NOTIFICATION = 200

/** How many chunks of a reply are read at once. */
export const CHUNKS_A_READ = 16

/**
 * Stores chunks of any number of replies in one transaction, and notifies the processes that follow them, other than
 * `watcher`. Those of a reply that is saved, or gone, are not stored any more. It may be repeated with the same chunks,
 * to which more may have been added.
 */
export async function saveChunks(
  store: Pick<Store, 'db'>,
  watcher: string,
  chunks: ReplyChunk[],
): Promise<void> {
  const column = <T>(read: (chunk: ReplyChunk) => T) => chunks.map(read)
  await write(store, (tx) =>
    sql`with given as (
      select * from unnest(
        ${column(({ executionId }) => executionId)}::uuid[], ${column(({ step }) => step)}::int[],
        ${column(({ attempt }) => attempt)}::int[], ${column(({ seq }) => seq)}::int[],
        ${column(({ position }) => position)}::int[], ${column(({ after }) => after)}::int[],
        ${column(({ text }) => text)}::text[], ${column(({ isLast }) => isLast)}::boolean[]
      ) as c (execution_id, step, attempt, seq, position, after, text, is_last)
    ), open as (
      select distinct m.execution_id from agent_chat_messages m
      where m.status = 'STREAMING' and m.execution_id in (select execution_id from given)
    ), saved as (
      insert into agent_chat_chunks (execution_id, step, attempt, seq, position, after, text, is_last)
      select g.* from given g join open using (execution_id)
      on conflict (execution_id, step, attempt, position, seq) do update
        set text = excluded.text, is_last = excluded.is_last
    ), followed as (
      select execution_id, (row_number() over () - 1) / ${IDS_A_NOTIFICATION}::int as page from open
      where exists (select from watches w where w.execution_id = open.execution_id and w.watcher <> ${watcher}::uuid)
    )
    select pg_notify('processes', ${TELL}::text || string_agg(execution_id::text, ',')) from followed group by page`.execute(
      tx,
    ),
  )
}

/** The executions of whose replies a notification tells; undefined if it is about something else. */
export function readTold(text: string): string[] | undefined {
  return text.startsWith(TELL) ? text.slice(TELL.length).split(',') : undefined
}

/**
 * The chunks of replies from these places on, in their order: at most CHUNKS_A_READ of each reply. The first one may
 * begin before its place.
 */
export async function readReplyChunks(store: Store, places: ReplyPlace[]): Promise<ReplyChunk[]> {
  const column = <T>(read: (place: ReplyPlace) => T) => places.map(read)
  const { rows } = await sql<ReplyChunk>`
    select c.execution_id, c.step, c.attempt, c.seq, c.position, c.after, c.text, c.is_last
    from unnest(
      ${column(({ executionId }) => executionId)}::uuid[], ${column(({ step }) => step)}::int[],
      ${column(({ attempt }) => attempt)}::int[], ${column(({ position }) => position)}::int[]
    ) as f (execution_id, step, attempt, position)
    cross join lateral (
      select * from agent_chat_chunks c
      where c.execution_id = f.execution_id and (c.step, c.attempt, c.position) >= (f.step, f.attempt, coalesce((
        select max(b.position) from agent_chat_chunks b
        where b.execution_id = f.execution_id and b.step = f.step and b.attempt = f.attempt
          and b.position <= f.position), 0))
      order by c.step, c.attempt, c.position, c.seq
      limit ${CHUNKS_A_READ}
    ) as c
    order by c.execution_id, c.step, c.attempt, c.position, c.seq`.execute(store.db)
  return rows
}

/** The text of a reply that is stored so far: up to the first chunk that is missing. */
export async function readStoredText(store: Store, executionId: string): Promise<string> {
  const { rows } = await sql<
    Pick<ReplyChunk, 'step' | 'after' | 'position' | 'text' | 'isLast'> & { size: number }
  >`
    select step, after, position, text, is_last, char_length(text) as size from agent_chat_chunks c
    where execution_id = ${executionId} and attempt = (
      select max(attempt) from agent_chat_chunks b where b.execution_id = c.execution_id and b.step = c.step)
    order by step, position, seq`.execute(store.db)
  let known = { step: 0, length: 0, isOver: true }
  const parts: string[] = []
  for (const { step, after, position, text, isLast, size } of rows) {
    if (step !== known.step) {
      if (!known.isOver || after !== known.step) break
      known = { step, length: 0, isOver: false }
    }
    if (position !== known.length) break
    known = { step, length: position + size, isOver: isLast }
    parts.push(text)
  }
  return parts.join('')
}

/** What is known of a reply: `length` is that of its saved text in characters. */
export type ReplyState = {
  executionId: string
  status: 'STREAMING' | 'COMPLETE' | 'FAILED' | 'STOPPED'
  /** Its execution is to end before the reply is whole. */
  isStopping: boolean
  length: number
  /** Why there is no reply. */
  error: string | null
  inputTokens: number | null
  outputTokens: number | null
}

/** The replies of these executions. One that is gone is left out. */
export async function readReplyStates(store: Store, executionIds: string[]): Promise<ReplyState[]> {
  const { rows } = await sql<ReplyState>`
    select m.execution_id, m.status, e.cancel_requested_at is not null as is_stopping, m.error,
      case when m.status = 'STREAMING' then 0 else char_length(m.content) end as length,
      m.input_tokens, m.output_tokens
    from agent_chat_messages m left join executions e on e.id = m.execution_id
    where m.execution_id = any(${executionIds}::uuid[]) and m.role = 'assistant'`.execute(store.db)
  return rows
}

/**
 * Up to `count` characters of a saved reply from `at` on; null if it is gone. `fits` says whether the text before has
 * this hash: the first 16 digits of its SHA-256.
 */
export async function readSavedReply(
  store: Store,
  executionId: string,
  { at, count, hash }: { at: number; count: number; hash: string | null },
): Promise<{ text: string; fits: boolean } | null> {
  const { rows } = await sql<{ text: string; fits: boolean }>`
    select substr(content, ${at + 1}::int, ${count}::int) as text,
      case when ${hash}::text is null then true
        else left(encode(sha256(convert_to(substr(content, 1, ${at}::int), 'UTF8')), 'hex'), 16) = ${hash}::text
      end as fits
    from agent_chat_messages where execution_id = ${executionId} and role = 'assistant'`.execute(store.db)
  return rows[0] ?? null
}

/** Removes the chunks that have stayed behind: a process wrote them when their reply was already saved, or gone. */
export async function purgeChunks(store: Store): Promise<void> {
  await write(store, (tx) =>
    sql`delete from agent_chat_chunks c where created_at < now() - interval '10 minutes' and not exists (
      select from agent_chat_messages m where m.execution_id = c.execution_id and m.status = 'STREAMING')`.execute(
      tx,
    ),
  )
}
