import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
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

/** The place in the text of a reply up to which a reader knows it. */
export type ReplyPlace = { executionId: string; step: number; attempt: number; position: number }

const TELL = 'reply:'

/** As many ids as fit into the 8,000 bytes of a notification. */
const IDS_A_NOTIFICATION = 200

/** How many chunks of a reply are read at once. */
export const CHUNKS_A_READ = 16

/**
 * Whether the text of a reply was stored. `held`: a process is about to save, delete or claim the reply; try again.
 * `over`: it is saved, or gone, and nothing more is stored of it.
 */
export type Stored = 'stored' | 'held' | 'over'

/** The replies of executions that may still be written, held so that none is saved before this is committed. */
const OPEN = sql`open as materialized (
      select m.execution_id from agent_chat_messages m
      where m.role = 'assistant' and m.status = 'STREAMING' and m.execution_id in (select execution_id from given)
      for share skip locked
    )`

const STORED = sql`case when open.execution_id is not null then 'stored'
        when exists (select from agent_chat_messages m where m.execution_id = g.execution_id
          and m.role = 'assistant' and m.status = 'STREAMING') then 'held'
        else 'over' end`

/**
 * Notes that texts begin, before any reader sees them: until the last chunk of such a text is stored, a process that
 * saves a stopped reply knows that more of it may come. Returns the result for each execution.
 */
export async function openTexts(
  store: Pick<Store, 'db'>,
  texts: Pick<ReplyChunk, 'executionId' | 'step' | 'attempt' | 'after'>[],
): Promise<Map<string, Stored>> {
  const column = <T>(read: (text: (typeof texts)[number]) => T) => texts.map(read)
  const { rows } = await write(store, (tx) =>
    sql<{ executionId: string; stored: Stored }>`with given as (
      select * from unnest(
        ${column(({ executionId }) => executionId)}::uuid[], ${column(({ step }) => step)}::int[],
        ${column(({ attempt }) => attempt)}::int[], ${column(({ after }) => after)}::int[]
      ) as c (execution_id, step, attempt, after)
    ), ${OPEN}, saved as (
      insert into agent_chat_chunks (execution_id, step, attempt, seq, position, after, text, is_last)
      select g.execution_id, g.step, g.attempt, 0, 0, g.after, '', false from given g join open using (execution_id)
      on conflict do nothing
    )
    select distinct g.execution_id, ${STORED} as stored from given g left join open using (execution_id)`.execute(
      tx,
    ),
  )
  return new Map(rows.map(({ executionId, stored }) => [executionId, stored]))
}

/**
 * Stores chunks of any number of replies in one transaction, and notifies the processes that follow them, other than
 * `watcher`. Chunks of a reply that is saved, or gone, are left out. It may be repeated with the same chunks, to which
 * more may have been added. Returns the result for each execution.
 */
export async function saveChunks(
  store: Pick<Store, 'db'>,
  watcher: string,
  chunks: ReplyChunk[],
): Promise<Map<string, Stored>> {
  const column = <T>(read: (chunk: ReplyChunk) => T) => chunks.map(read)
  const { rows } = await write(store, (tx) =>
    sql<{ executionId: string; stored: Stored }>`with given as (
      select * from unnest(
        ${column(({ executionId }) => executionId)}::uuid[], ${column(({ step }) => step)}::int[],
        ${column(({ attempt }) => attempt)}::int[], ${column(({ seq }) => seq)}::int[],
        ${column(({ position }) => position)}::int[], ${column(({ after }) => after)}::int[],
        ${column(({ text }) => text)}::text[], ${column(({ isLast }) => isLast)}::boolean[]
      ) as c (execution_id, step, attempt, seq, position, after, text, is_last)
    ), ${OPEN}, saved as (
      insert into agent_chat_chunks (execution_id, step, attempt, seq, position, after, text, is_last)
      select g.* from given g join open using (execution_id)
      on conflict (execution_id, step, attempt, position, seq) do update
        set text = excluded.text, is_last = excluded.is_last
    ), followed as (
      select execution_id, (row_number() over () - 1) / ${IDS_A_NOTIFICATION}::int as page from open
      where exists (select from watches w where w.execution_id = open.execution_id and w.watcher <> ${watcher}::uuid)
    ), told as materialized (
      select pg_notify('processes', ${TELL}::text || string_agg(execution_id::text, ','))::text as told
      from followed group by page
    )
    select distinct g.execution_id, ${STORED} as stored, (select count(told) from told) as told
    from given g left join open using (execution_id)`.execute(tx),
  )
  return new Map(rows.map(({ executionId, stored }) => [executionId, stored]))
}

const CUT = 'cut reply:'

/** Tells all processes that the text of an execution's reply is to end where it is, and to be stored. */
export function writeCut(executionId: string): string {
  return CUT + executionId
}

/** The execution whose reply is to be cut; undefined if a notification is about something else. */
export function readCut(text: string): string | undefined {
  return text.startsWith(CUT) ? text.slice(CUT.length) : undefined
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
export async function readStoredText({ db }: { db: Db | Tx }, executionId: string): Promise<string> {
  const { rows } = await sql<
    Pick<ReplyChunk, 'step' | 'after' | 'position' | 'text' | 'isLast'> & { size: number }
  >`
    select step, after, position, text, is_last, char_length(text) as size from agent_chat_chunks c
    where execution_id = ${executionId} and attempt = (
      select max(attempt) from agent_chat_chunks b where b.execution_id = c.execution_id and b.step = c.step)
    order by step, position, seq`.execute(db)
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

/** Whether a text of a reply has begun whose last chunk is not stored. Its writer may be gone. */
export async function hasOpenText(tx: Tx, executionId: string): Promise<boolean> {
  const { rows } = await sql<{ isOpen: boolean }>`
    select exists (
      select from (select step, max(attempt) as attempt from agent_chat_chunks
        where execution_id = ${executionId} group by step) as newest
      where not exists (select from agent_chat_chunks c where c.execution_id = ${executionId}
        and c.step = newest.step and c.attempt = newest.attempt and c.is_last)) as is_open`.execute(tx)
  return rows[0]!.isOpen
}

/** The state of a reply: `length` is that of its saved text in characters. */
export type ReplyState = {
  executionId: string
  status: 'STREAMING' | 'COMPLETE' | 'FAILED' | 'STOPPED'
  length: number
  /** Why there is no reply. */
  error: string | null
  inputTokens: number | null
  outputTokens: number | null
  /** Whether vendors have reported what all of its calls to models took. */
  isUsageKnown: boolean
}

/** The replies of these executions. One that is gone is left out. */
export async function readReplyStates(store: Store, executionIds: string[]): Promise<ReplyState[]> {
  const { rows } = await sql<ReplyState>`
    select m.execution_id, m.status, m.error,
      case when m.status = 'STREAMING' then 0 else char_length(m.content) end as length,
      m.input_tokens, m.output_tokens, case when m.status = 'STREAMING' then false else not exists (
        select from model_calls c where c.execution_id = m.execution_id and c.input_tokens is null) end as is_usage_known
    from agent_chat_messages m
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
