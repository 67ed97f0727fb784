import { sql } from 'kysely'
import { missing } from '../fault.ts'
import { makePage, type Page, type PageRequest } from '../page.ts'
import type { Scope, Store } from '../scope.ts'
import { openChatSession } from './access.ts'

export const CHAT_ROLES = ['user', 'assistant'] as const

/**
 * A user's message is COMPLETE, or FAILED if its execution has failed. A reply is STREAMING until its text is saved;
 * one that was STOPPED has the text up to there.
 */
export const CHAT_STATUSES = ['STREAMING', 'COMPLETE', 'FAILED', 'STOPPED'] as const

export type AgentChatMessage = {
  id: string
  role: (typeof CHAT_ROLES)[number]
  status: (typeof CHAT_STATUSES)[number]
  content: string
  /** The content is left out: with it, the texts of the response would be too long. */
  omitted: boolean
  /** Why it has failed. */
  error: string | null
  createdAt: Date
  /** The execution that replies. */
  executionId: string
  /** For a reply: the tokens that all calls to models of its execution took together; null while it is STREAMING. */
  tokenUsage?: { input: number; output: number } | null
}

/** One response shows texts of up to this many characters. */
const SHOWN_LENGTH = 32_000_000

/** A reply that has failed has no text, unless its node says something instead: what was asked says so. */
const shown = sql<boolean>`not (role = 'assistant' and status = 'FAILED' and content = '')`

/** A page of a session's messages, newest first: for its owner, and for an ADMIN. Throws NOT_FOUND. */
export async function listChatMessages(
  scope: Scope,
  sessionId: string,
  query: PageRequest,
): Promise<Page<AgentChatMessage>> {
  await openChatSession(scope, sessionId, 'read')
  const { db } = scope.store
  const { rows } = await sql<{ total: number }>`select count(*) as total from agent_chat_messages
    where session_id = ${sessionId} and ${shown}`.execute(db)
  const { total } = rows[0]!
  const { page, size } = query
  const content =
    page * size < total ? await readMessages(scope.store, sessionId, { size, offset: page * size }) : []
  return makePage(content, total, query)
}

/** A message of a session, also a reply that has failed. Throws NOT_FOUND. */
export async function readChatMessage(
  scope: Scope,
  sessionId: string,
  id: string,
): Promise<AgentChatMessage> {
  await openChatSession(scope, sessionId, 'read')
  const { rows } = await sql<MessageRow>`select ${COLUMNS}, content, false as omitted from agent_chat_messages
    where id = ${id} and session_id = ${sessionId}`.execute(scope.store.db)
  if (!rows[0]) throw missing('message')
  return showMessage(rows[0])
}

/**
 * Messages of a session, newest first. The content of those that would make the response longer than it may be, counted
 * from the newest, is left out.
 */
export async function readMessages(
  { db }: Pick<Store, 'db'>,
  sessionId: string,
  { size, offset }: { size: number; offset: number },
): Promise<AgentChatMessage[]> {
  const { rows } = await sql<MessageRow>`
    select ${COLUMNS}, case when length <= ${SHOWN_LENGTH} then content else '' end as content,
      length > ${SHOWN_LENGTH} as omitted
    from (
      select *, sum(length(content)) over (order by seq desc) as length
      from (select * from agent_chat_messages where session_id = ${sessionId} and ${shown}
        order by seq desc limit ${size} offset ${offset}) page) measured
    order by seq desc`.execute(db)
  return rows.map(showMessage)
}

const COLUMNS = sql`id, role, status, error, created_at, execution_id, input_tokens, output_tokens`

type MessageRow = Omit<AgentChatMessage, 'tokenUsage'> & {
  inputTokens: number | null
  outputTokens: number | null
}

function showMessage({
  id,
  role,
  status,
  content,
  omitted,
  error,
  createdAt,
  executionId,
  ...tokens
}: MessageRow): AgentChatMessage {
  const message = { id, role, status, content, omitted, error, createdAt, executionId }
  if (role === 'user') return message
  const { inputTokens, outputTokens } = tokens
  const isKnown = inputTokens !== null && outputTokens !== null
  return { ...message, tokenUsage: isKnown ? { input: inputTokens, output: outputTokens } : null }
}
