import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Db, Tx } from '../connection.ts'
import { cancelExecution } from '../executions/cancel.ts'
import { addExecution } from '../executions/starts/add.ts'
import type { TraceContext } from '../executions/starts/origins.ts'
import { readStartable } from '../executions/starts/startable.ts'
import { Fault, missing } from '../fault.ts'
import type { Right } from '../people/rights.ts'
import type { Actor, Scope, Store } from '../scope.ts'
import { type ChatSessionRow, holdChatSession, openChatSession } from './access.ts'
import { demandAgent } from './agents.ts'
import { readHistory } from './history.ts'
import { cutTitle } from './titles.ts'

/**
 * A message and the reply to it, which its execution writes. `fresh` is false if an earlier request with the same key
 * has posted it; `queued` is true while the execution waits at its workflow's limit.
 */
export type PostedMessage = {
  userMessageId: string
  replyId: string
  executionId: string
  fresh: boolean
  queued: boolean
}

export type NewChatMessage = { content: string; idempotencyKey?: string | undefined } & TraceContext

/** Why a message is refused with CONFLICT, as far as it is about the chat alone. */
export const BUSY = 'The reply to the message before is still being written'
export const KEY_USED = 'This Idempotency-Key was used with another body'

/**
 * Posts a message to a chat of the caller (OPERATOR): writes it, its reply as STREAMING, and the execution that
 * replies, in one transaction. Throws NOT_FOUND, FORBIDDEN for another owner's chat, UNPROCESSABLE if the workflow is
 * inactive or no agent, and CONFLICT while a reply is STREAMING, if the key was used with another message, or if the
 * workflow's limit turns the execution away.
 */
export async function postChatMessage(
  scope: Scope,
  sessionId: string,
  message: NewChatMessage,
): Promise<PostedMessage> {
  const { row } = await openChatSession(scope, sessionId, 'own')
  return postToSession(scope.store, row, message, { by: scope.actor, right: { scope, least: 'OPERATOR' } })
}

/**
 * Posts a message to a session whose owner the caller has checked. `data` is given to the execution besides the
 * message; `take` is called in the transaction that writes it, and may refuse it. Throws as postChatMessage.
 */
export async function postToSession(
  store: Store,
  row: ChatSessionRow,
  { content, idempotencyKey, ...trace }: NewChatMessage,
  {
    by,
    right,
    data = {},
    take,
  }: { by: Actor; right?: Right; data?: Record<string, unknown>; take?: (tx: Tx) => Promise<void> },
): Promise<PostedMessage> {
  const sessionId = row.id
  const earlier = await findPosted(store.db, sessionId, { content, idempotencyKey })
  if (earlier) return earlier
  const workflow = await readStartable(store, row.workflowId, (teamId) => teamId === row.teamId)
  if (!workflow) throw missing('workflow')
  const node = demandAgent(workflow)
  const tokens = workflow.settings.chatHistoryTokens
  const { turns, last, isStreaming } = await readHistory(store.db, sessionId, { tokens })
  // Also if it is saved by the time the message is written: the history does not have it.
  if (isStreaming) {
    const other = await findPosted(store.db, sessionId, { content, idempotencyKey })
    if (other) return other
    throw busy()
  }
  const history = turns.map(({ role, content }) => ({ role, content }))
  const posted = { executionId: uuid(), userMessageId: uuid(), replyId: uuid() }
  try {
    const { queued } = await addExecution(store, workflow, {
      ...trace,
      origin: 'CHAT',
      id: posted.executionId,
      node,
      trigger: 'CHAT',
      chatSessionId: sessionId,
      data: { message: content, sessionId, history, ...data },
      by,
      ...(right ? { right } : {}),
      adopt: async (tx) => {
        await take?.(tx)
        await insertMessages(tx, row, posted, { content, idempotencyKey, last })
      },
    })
    return { ...posted, fresh: true, queued }
  } catch (error) {
    const { constraint } = error as { constraint?: string }
    if (constraint === 'agent_chat_messages_idempotency') {
      const other = await findPosted(store.db, sessionId, { content, idempotencyKey })
      if (other) return other
    }
    if (constraint === 'agent_chat_messages_streaming') throw busy()
    throw error
  }
}

async function insertMessages(
  tx: Tx,
  { id: sessionId, teamId, ownerId, ownerKind }: ChatSessionRow,
  { executionId, userMessageId, replyId }: Omit<PostedMessage, 'fresh' | 'queued'>,
  { content, idempotencyKey, last }: { content: string; idempotencyKey: string | undefined; last: number },
): Promise<void> {
  const session = await holdChatSession(tx, sessionId)
  const newest = await tx
    .selectFrom('agentChatMessages')
    .select(['seq', 'status', 'idempotencyKey'])
    .where('sessionId', '=', sessionId)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (newest?.status === 'STREAMING' && idempotencyKey === undefined) throw busy()
  const of = { sessionId, teamId, ownerId, executionId }
  const asked = { ...of, id: userMessageId, role: 'user', status: 'COMPLETE', content }
  await tx
    .insertInto('agentChatMessages')
    .values({ ...asked, idempotencyKey: idempotencyKey ?? null })
    .execute()
  await tx
    .insertInto('agentChatMessages')
    .values({ ...of, id: replyId, role: 'assistant', status: 'STREAMING', content: '' })
    .execute()
  // What the execution is given as history would not have the message that came meanwhile.
  if ((newest?.seq ?? 0) !== last) throw busy()
  await tx
    .updateTable('agentChatSessions')
    .set({
      ...(session.untitled && newest === undefined ? { title: cutTitle(content) } : {}),
      messageCount: sql<number>`message_count + 2`,
      lastMessageAt: sql<Date>`now()`,
      activeAt: sql<Date>`now()`,
      updatedAt: sql<Date>`now()`,
    })
    .where('id', '=', sessionId)
    .where('ownerKind', '=', ownerKind)
    .execute()
}

function busy(): Fault {
  return new Fault('CONFLICT', BUSY)
}

/** The message that the same key has posted. Throws CONFLICT if it is another one. */
async function findPosted(
  db: Db,
  sessionId: string,
  { content, idempotencyKey }: { content: string; idempotencyKey: string | undefined },
): Promise<PostedMessage | undefined> {
  if (idempotencyKey === undefined) return undefined
  const { rows } = await sql<Omit<PostedMessage, 'fresh'> & { same: boolean }>`
    select u.id as user_message_id, r.id as reply_id, u.execution_id, u.content = ${content} as same,
      exists (select from executions e where e.id = u.execution_id and e.queued_at is not null) as queued
    from agent_chat_messages u
    join agent_chat_messages r on r.execution_id = u.execution_id and r.role = 'assistant'
    where u.session_id = ${sessionId} and u.idempotency_key = ${idempotencyKey}`.execute(db)
  if (!rows[0]) return undefined
  const { same, ...posted } = rows[0]
  if (!same) throw new Fault('CONFLICT', KEY_USED)
  return { ...posted, fresh: false }
}

/**
 * Stops the reply that is being written in a chat of the caller, and returns it; null if none is. The text that has
 * come so far is kept. Throws NOT_FOUND and FORBIDDEN.
 */
export async function stopChatReply(
  scope: Scope,
  sessionId: string,
): Promise<{ replyId: string; executionId: string } | null> {
  await openChatSession(scope, sessionId, 'own')
  const reply = await scope.store.db
    .selectFrom('agentChatMessages')
    .select(['id as replyId', 'executionId'])
    .where('sessionId', '=', sessionId)
    .where('status', '=', 'STREAMING')
    .executeTakeFirst()
  if (!reply) return null
  await cancelExecution(scope, reply.executionId).catch((error) => {
    // It has ended, or is being cancelled already: the reply is about to be saved.
    if (!(error instanceof Fault && ['CONFLICT', 'NOT_FOUND'].includes(error.code))) throw error
  })
  return reply
}
