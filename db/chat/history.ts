import { sql } from 'kysely'
import type { Db } from '../connection.ts'

/** One earlier message, as a model is told it. */
export type ChatTurn = { role: 'user' | 'assistant'; content: string }

/** At most this many messages are looked at. */
const MOST_TURNS = 400

/**
 * Estimates the tokens of a text without a vendor's tokenizer: four characters of ASCII for one, and one for each other
 * character, which is too many rather than too few.
 */
export function estimateTokens(text: string): number {
  let others = 0
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) others++
  return Math.ceil((text.length - others) / 4) + others
}

/**
 * The newest messages of a session that take at most `tokens` together, oldest first, beginning with one of the user's;
 * `last` is the number of its newest message in any state, and 0 without messages; `isStreaming` says whether that is a
 * reply which is not saved yet. Failed replies are left out, stopped ones are as they were cut. `after` and `before`
 * bound the messages by number.
 */
export async function readHistory(
  db: Db,
  sessionId: string,
  { tokens, after = 0, before }: { tokens: number; after?: number; before?: number },
): Promise<{ turns: (ChatTurn & { seq: number })[]; last: number; isStreaming: boolean }> {
  // First: what is saved after it is among the turns.
  const newest = await sql<{ seq: number; isStreaming: boolean }>`
    select seq, status = 'STREAMING' as is_streaming from agent_chat_messages
    where session_id = ${sessionId} order by seq desc limit 1`.execute(db)
  // A character is at most one token and at least a quarter of one: what cannot fit is not fetched.
  const { rows } = await sql<ChatTurn & { seq: number; last: number }>`
    with newest as (
      select role, content, seq, sum(length(content)) over (order by seq desc) as length from (
        select * from agent_chat_messages where session_id = ${sessionId} and seq > ${after}
          and (${before ?? null}::bigint is null or seq < ${before ?? null})
          and status in ('COMPLETE', 'STOPPED') and content <> ''
        order by seq desc limit ${MOST_TURNS}) m)
    select role, content, seq from newest where length <= ${tokens * 4} order by seq desc`.execute(db)
  const turns: (ChatTurn & { seq: number })[] = []
  let left = tokens
  for (const { role, content, seq } of rows) {
    left -= estimateTokens(content)
    if (left < 0) break
    turns.unshift({ role, content, seq })
  }
  while (turns[0]?.role === 'assistant') turns.shift()
  const { seq: last = 0, isStreaming = false } = newest.rows[0] ?? {}
  return { turns, last, isStreaming }
}
