import { sql } from 'kysely'
import { record, write } from '../change.ts'
import { isEnded } from '../executions/status.ts'
import { readReportedTokens } from '../monitoring/usage/usage.ts'
import { claim, isDue, postpone, type Queue, selectFree } from '../queue.ts'
import type { Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import { hasOpenText, readStoredText } from './chunks.ts'
import { readFinishedText, readReplyText } from './replytext.ts'

/** A reply whose execution has ended, or is gone. `attempts` counts this one too. */
export type DueReply = { id: string; executionId: string; attempts: number }

/** More than the longest reply, and what PostgreSQL takes without trouble. */
const MAX_TEXT = 16_000_000

/** After so many attempts a reply that cannot be read is given up. */
const MAX_ATTEMPTS = 20

/** Claims up to `limit` replies that are due, for `leaseMs`: if the process dies, they are due again after that. */
export async function claimReplies(store: Store, limit: number, leaseMs: number): Promise<DueReply[]> {
  const chosen = selectFree('agent_chat_messages', {
    which: sql`q.status = 'STREAMING' and ${isDue(sql`q.due_at`)}`,
    order: sql`q.due_at`,
    limit,
  })
  const returning = sql`id, execution_id, attempts`
  return write(store, (tx) => claim<DueReply>(tx, REPLIES, { chosen, leaseMs, returning }))
}

const REPLIES: Queue = {
  table: 'agent_chat_messages',
  id: 'id',
  open: sql`q.status = 'STREAMING'`,
  due: 'due_at',
  tries: 'attempts',
}

/** Makes a reply that could not be saved due again after `delayMs`. */
export async function postponeReply(store: Store, id: string, delayMs: number): Promise<void> {
  await write(store, (tx) => postpone(tx, REPLIES, { id }, delayMs))
}

/**
 * Whether some reply is about to be saved: its execution has ended, or all of its text so far was stored to its end a
 * moment ago, so that the execution may go on to its end without another call.
 */
export async function isAnyReplyEnding({ db }: Store): Promise<boolean> {
  const { rows } = await sql<{ ending: boolean }>`
    select exists (
      select from agent_chat_messages m where m.status = 'STREAMING' and (m.due_at is not null or exists (
        select from (select distinct on (step) is_last, created_at from agent_chat_chunks c
          where c.execution_id = m.execution_id order by step, attempt desc, position desc, seq desc) as newest
        having bool_and(is_last) and max(created_at) > now() - interval '10 seconds'))) as ending`.execute(db)
  return rows[0]!.ending
}

/**
 * The outcome of a reply. A stopped one has at least the text of `content`, see readFinishedText. A failed one has the
 * refusal of the node that replies, if it has one.
 */
type Outcome =
  | { status: 'COMPLETE' | 'STOPPED'; content: string }
  | { status: 'FAILED'; content: string; error: string }

/**
 * Saves a reply whose execution has ended: its whole text if it succeeded, what there is of it if it was stopped, and
 * otherwise that the message has failed. Safe to repeat and to race: only one of several callers saves it. Nothing
 * changes it later, whatever becomes of the execution's records.
 *
 * 'open': it was stopped, and is not saved, because a text of it is not stored to its end, of which readers may have
 * seen more; with `isLate`, it is saved as it is stored.
 */
export async function settleReply(
  store: Store,
  reply: DueReply,
  { isLate = false } = {},
): Promise<'settled' | 'open'> {
  const outcome = await readOutcome(store, reply)
  if (!outcome) return 'settled'
  const { inputTokens, outputTokens } = await readReportedTokens(store, reply.executionId)
  return record(store, async (tx) => {
    // The session is locked first, as by those who post to it or clear it.
    const session = await sql<{ id: string }>`select id from agent_chat_sessions
      where id = (select session_id from agent_chat_messages where id = ${reply.id}) for update`.execute(tx)
    const { id: sessionId } = session.rows[0] ?? {}
    if (sessionId === undefined) return 'settled'
    const { status } = outcome
    let { content } = outcome
    if (status === 'STOPPED') {
      // From here on nothing more of it is stored, see saveChunks.
      await sql`select id from agent_chat_messages where id = ${reply.id} for update`.execute(tx)
      if (!isLate && (await hasOpenText(tx, reply.executionId))) return 'open'
      const stored = await readStoredText({ db: tx }, reply.executionId)
      if (stored.startsWith(content)) content = cut(stored)
    }
    const error = outcome.status === 'FAILED' ? cleanText(outcome.error) : null
    const saved = await tx
      .updateTable('agentChatMessages')
      .set({ status, content, error, inputTokens, outputTokens, dueAt: null })
      .where('id', '=', reply.id)
      .where('status', '=', 'STREAMING')
      .returning('id')
      .executeTakeFirst()
    if (!saved) return 'settled'
    const failed = status === 'FAILED'
    if (failed)
      await tx
        .updateTable('agentChatMessages')
        .set({ status, error })
        .where('executionId', '=', reply.executionId)
        .where('role', '=', 'user')
        .execute()
    const now = sql<Date>`now()`
    await tx
      .updateTable('agentChatSessions')
      .set({ lastMessageAt: now, activeAt: now, updatedAt: now })
      // A reply that has failed is not shown, unless something is said instead.
      .$if(failed && content === '', (update) => update.set({ messageCount: sql<number>`message_count - 1` }))
      .where('id', '=', sessionId)
      .execute()
    return 'settled'
  })
}

async function readOutcome(store: Store, { executionId, attempts }: DueReply): Promise<Outcome | undefined> {
  const run = await store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowVersion', 'status', 'triggerNodeId', 'onlyNode'])
    .select(['errorMessage', 'cancelRequestedAt'])
    .where('id', '=', executionId)
    .executeTakeFirst()
  if (!run) return fail('The execution was deleted')
  // The bell has rung too early: the end of the execution rings it again.
  if (!isEnded(run.status)) return undefined
  const isStopped = run.status === 'CANCELLED' && run.cancelRequestedAt !== null
  if (run.status !== 'SUCCESS' && !isStopped) return fail(run.errorMessage ?? 'The execution failed')
  try {
    if (isStopped) return { status: 'STOPPED', content: cut(await readFinishedText(store, run)) }
    const { text, reason, refusal = '' } = await readReplyText(store, run)
    if (refusal !== '') return { status: 'FAILED', content: cut(refusal), error: refusal }
    return text === '' ? fail(reason) : { status: 'COMPLETE', content: cut(text) }
  } catch (error) {
    if (attempts < MAX_ATTEMPTS) throw error
    return isStopped ? { status: 'STOPPED', content: '' } : fail('The reply could not be read')
  }
}

function fail(error: string): Outcome {
  return { status: 'FAILED', content: '', error }
}

function cut(text: string): string {
  return cleanText(text, MAX_TEXT)
}
