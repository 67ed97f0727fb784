import { sql } from 'kysely'
import { write } from '../change.ts'
import type { Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import { readSettings } from '../workflows/settings.ts'
import { type ChatTurn, readHistory } from './history.ts'

/** The memory of a chat before a message: the messages that `summary` does not cover, oldest first. */
export type ChatMemory = {
  sessionId: string
  /** About how many tokens of earlier messages the execution gets. */
  tokens: number
  summary: string | null
  /** The number of the last message that the summary covers. */
  until: number
  turns: (ChatTurn & { seq: number })[]
}

/** How many times the tokens that an execution gets are looked at: older messages are forgotten. */
const LOOK_BACK = 8

/** What the chat of an execution was before its message; undefined if it belongs to no chat, or that is gone. */
export async function readChatMemory(store: Store, executionId: string): Promise<ChatMemory | undefined> {
  const { rows } = await sql<{
    sessionId: string
    summary: string | null
    until: number
    seq: number
    settings: unknown
  }>`
    select s.id as session_id, s.summary, s.summary_until as until, m.seq, w.settings
    from agent_chat_messages m join agent_chat_sessions s on s.id = m.session_id
    join workflows w on w.id = s.workflow_id
    where m.execution_id = ${executionId} and m.role = 'user'`.execute(store.db)
  const [row] = rows
  if (!row) return undefined
  const { sessionId, summary, until, seq } = row
  const { chatHistoryTokens: tokens } = readSettings(row.settings)
  const bounds = { tokens: tokens * LOOK_BACK, after: until, before: seq }
  const { turns } = await readHistory(store.db, sessionId, bounds)
  return { sessionId, tokens, summary, until, turns }
}

/** Keeps the summary of a chat's messages up to the number `to`, unless another one has been kept meanwhile. */
export async function saveChatSummary(
  store: Store,
  { sessionId, until }: Pick<ChatMemory, 'sessionId' | 'until'>,
  { summary, to }: { summary: string; to: number },
): Promise<void> {
  await write(store, (tx) =>
    tx
      .updateTable('agentChatSessions')
      .set({ summary: cleanText(summary, 100_000), summaryUntil: to })
      .where('id', '=', sessionId)
      .where('summaryUntil', '=', until)
      // It may have been cleared, and then must not remember.
      .where((eb) =>
        eb.exists(
          eb
            .selectFrom('agentChatMessages')
            .select('id')
            .where('sessionId', '=', sessionId)
            .where('seq', '=', to),
        ),
      )
      .execute(),
  )
}
