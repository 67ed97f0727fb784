import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { change } from '../change.ts'
import { readStartable } from '../executions/starts/startable.ts'
import { Fault, missing } from '../fault.ts'
import { containing, makePage, type Page, type PageRequest } from '../page.ts'
import { demandTeam, type Scope } from '../scope.ts'
import {
  CHAT_SESSION_COLUMNS,
  type ChatSession,
  type ChatSessionItem,
  type ChatSessionRow,
  holdChatSession,
  openChatSession,
  ownerOf,
  showChatSession,
} from './access.ts'
import { demandAgent } from './agents.ts'
import { type AgentChatMessage, readMessages } from './messages.ts'
import { purgeLastRuns, purgeSessionRuns } from './purge.ts'
import { cutTitlesAnew, NO_TITLE } from './titles.ts'

export type ChatSessionDetail = ChatSessionItem & { messages: AgentChatMessage[] }

/** A session shows this many messages itself: the newest. */
const SHOWN_MESSAGES = 1_000

/**
 * Opens a chat with an AI agent workflow of the team (OPERATOR); it belongs to the caller. Throws NOT_FOUND, and
 * UNPROCESSABLE if the workflow is inactive or no agent.
 */
export async function createChatSession(
  scope: Scope,
  input: { teamId: string; workflowId: string; title?: string | undefined },
): Promise<ChatSession & { messages: [] }> {
  const { teamId, workflowId, title } = input
  await demandTeam(scope, teamId, 'OPERATOR')
  const workflow = await readStartable(scope.store, workflowId, (owner) => owner === teamId)
  if (!workflow) throw new Fault('NOT_FOUND', 'The team has no such workflow')
  demandAgent(workflow)
  const owner = ownerOf(scope)
  return change(scope, 'AGENT_CHAT_SESSION_CREATED', teamId, async (tx) => {
    const row = await tx
      .insertInto('agentChatSessions')
      .values({
        id: uuid(),
        teamId,
        workflowId,
        ownerKind: owner.kind,
        ownerId: owner.id,
        title: title ?? NO_TITLE,
        untitled: title === undefined,
      })
      .returning(['id', 'workflowId', 'teamId', 'title', 'createdAt', 'updatedAt'])
      .executeTakeFirstOrThrow()
      .catch((error) => {
        throw (error as { code?: string }).code === '23503' ? missing('workflow') : error
      })
    return { result: { ...row, messages: [] }, resourceId: row.id, details: { workflowId } }
  })
}

export type ChatSessionQuery = PageRequest & {
  teamId: string
  workflowId?: string | undefined
  search?: string | undefined
  /** The sessions of all members of the team, without visitors: only for its ADMINs. */
  all: boolean
  /** Those of the visitors of this widget: only for ADMINs. */
  widgetId?: string | undefined
}

/**
 * The caller's sessions in a team, those of all members, or those of a widget's visitors, those with the newest
 * messages first (OPERATOR). `search` matches any part of a title or of a message, ignoring case.
 */
export async function listChatSessions(
  scope: Scope,
  query: ChatSessionQuery,
): Promise<Page<ChatSessionItem>> {
  const { teamId, workflowId, search, all, widgetId, page, size } = query
  const isOthers = all || widgetId !== undefined
  await demandTeam(scope, teamId, isOthers ? 'ADMIN' : 'OPERATOR')
  // The session of a message says whether it is a visitor's.
  const spoken = isOthers
    ? sql`team_id = ${teamId}`
    : sql`team_id = ${teamId} and owner_id = ${ownerOf(scope).id}`
  const of = widgetId === undefined ? sql`widget_id is null` : sql`widget_id = ${widgetId}`
  const owned = sql`${spoken} and ${of}`
  const pattern = search && containing(search)
  // Each half has an index of its own. A session is left out if none of its texts match.
  const matching = pattern
    ? sql`and id in (
        select id from agent_chat_sessions where ${owned} and title ilike ${pattern}
        union all select session_id from agent_chat_messages where ${spoken} and content ilike ${pattern})`
    : sql``
  const found = sql`agent_chat_sessions where ${owned}
    and (${workflowId ?? null}::uuid is null or workflow_id = ${workflowId ?? null}) ${matching}`
  const { db } = scope.store
  const counted = await sql<{ total: number }>`select count(*) as total from ${found}`.execute(db)
  const total = counted.rows[0]!.total
  if (page * size >= total) return makePage([], total, query)
  const { rows } = await sql<ChatSessionRow>`
    select ${CHAT_SESSION_COLUMNS} from (select * from ${found} order by active_at desc, id desc
      limit ${size} offset ${page * size}) s
    order by active_at desc, id desc`.execute(db)
  return makePage(rows.map(showChatSession), total, query)
}

/** A session with its newest 1,000 messages, oldest first: its owner's, or any for an ADMIN. Throws NOT_FOUND. */
export async function readChatSession(scope: Scope, id: string): Promise<ChatSessionDetail> {
  const { item } = await openChatSession(scope, id, 'read')
  const messages = await readMessages(scope.store, id, { size: SHOWN_MESSAGES, offset: 0 })
  return { ...item, messages: messages.reverse() }
}

/** Names a session anew: only its owner may. Throws NOT_FOUND. */
export async function renameChatSession(
  scope: Scope,
  id: string,
  title: string,
): Promise<Pick<ChatSession, 'id' | 'title' | 'updatedAt'>> {
  const { item } = await openChatSession(scope, id, 'own')
  return change(scope, 'AGENT_CHAT_SESSION_UPDATED', item.teamId, async (tx) => {
    const row = await tx
      .updateTable('agentChatSessions')
      .set({ title, untitled: false, updatedAt: sql<Date>`now()` })
      .where('id', '=', id)
      .returning(['id', 'title', 'updatedAt'])
      .executeTakeFirst()
    if (!row) throw missing('chat session')
    // The title is private, as the messages are.
    return { result: row, resourceId: id, details: { workflowId: item.workflowId, changed: ['title'] } }
  })
}

/**
 * Removes a session, or with `keep` only its messages, with all executions of it: their values, files and records, and
 * what Temporal knows of them. Its owner may, and an ADMIN may delete it. What its calls to models took stays. Throws
 * NOT_FOUND.
 */
export async function deleteChatSession(
  scope: Scope,
  id: string,
  { keep }: { keep: boolean },
): Promise<void> {
  const { item } = await openChatSession(scope, id, keep ? 'own' : 'delete')
  const { store } = scope
  await change(
    scope,
    keep ? 'AGENT_CHAT_SESSION_CLEARED' : 'AGENT_CHAT_SESSION_DELETED',
    item.teamId,
    async (tx, held) => {
      await holdChatSession(tx, id)
      // The caller may have ceased to be an ADMIN.
      await openChatSession({ ...held, store: { ...store, db: tx } }, id, keep ? 'own' : 'delete')
      if (keep) {
        await tx.deleteFrom('agentChatMessages').where('sessionId', '=', id).execute()
        await tx
          .updateTable('agentChatSessions')
          .set({ messageCount: 0, lastMessageAt: null, summary: null, summaryUntil: 0 })
          .set({ updatedAt: sql<Date>`now()` })
          .where('id', '=', id)
          .execute()
        await cutTitlesAnew(tx, [id])
        await purgeLastRuns(tx, id)
      } else await tx.deleteFrom('agentChatSessions').where('id', '=', id).execute()
      return { result: undefined, resourceId: id, details: { workflowId: item.workflowId } }
    },
  )
  // Not before there is an entry. If this process dies, the housekeeping goes on: the session's end is noted.
  if (!keep) await purgeSessionRuns(store, id)
}
