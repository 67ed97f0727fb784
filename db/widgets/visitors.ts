import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { record } from '../change.ts'
import { type ChatSessionRow, findChatSession } from '../chat/access.ts'
import { isChat } from '../chat/agents.ts'
import { readMessages } from '../chat/messages.ts'
import { BUSY, KEY_USED, type PostedMessage, postToSession } from '../chat/post.ts'
import { NO_TITLE } from '../chat/titles.ts'
import type { Tx } from '../connection.ts'
import type { TraceContext } from '../executions/starts/origins.ts'
import { Fault, missing } from '../fault.ts'
import type { Store } from '../scope.ts'
import { readVersion } from '../workflows/versions.ts'
import { countToday, hashAddress } from './caps.ts'
import { showWidget, WIDGET_KEY, type Widget } from './widgets.ts'

/** A widget that visitors may use now: it is enabled, and its workflow active and one to chat with. */
export type OpenWidget = Pick<
  Widget,
  'id' | 'teamId' | 'key' | 'allowedOrigins' | 'theme' | 'limits' | 'collectEmail'
> & { workflowId: string }

/** The number of sessions that may be opened from one address in a day, for each widget. */
const SESSIONS_OF_ADDRESS = 100

/** An address may send as many messages a day as this many visitors, because several people may share it. */
const VISITORS_OF_ADDRESS = 10

/** The number of newest messages that are shown to a visitor. */
const SHOWN_TO_VISITOR = 100

/** What a visitor may know of a message. */
export type VisitorMessage = {
  role: 'user' | 'assistant'
  status: 'STREAMING' | 'COMPLETE' | 'FAILED' | 'STOPPED'
  content: string
  createdAt: Date
}

/** The widget with this key, if visitors may use it now. */
export async function findOpenWidget(store: Store, key: string): Promise<OpenWidget | undefined> {
  const found = await findWidget(store, key)
  return found?.open
}

/** The origins of the widget with this key, and the widget itself if visitors may use it now. */
export async function findWidget(
  store: Store,
  key: string,
): Promise<{ id: string; allowedOrigins: string[]; open: OpenWidget | undefined } | undefined> {
  if (!WIDGET_KEY.test(key)) return undefined
  const row = await store.db
    .selectFrom('widgets')
    .leftJoin('workflows', 'workflows.id', 'widgets.workflowId')
    .selectAll('widgets')
    .select(['workflows.active', 'workflows.version'])
    .where('widgets.key', '=', key)
    .executeTakeFirst()
  if (!row) return undefined
  const { id, allowedOrigins, workflowId } = row
  const closed = { id, allowedOrigins, open: undefined }
  if (!row.enabled || !row.active || workflowId === null || row.version === null) return closed
  // Who changes the graph may take the chat out of it.
  if (!isChat(await readVersion(store, workflowId, row.version))) return closed
  return { ...closed, open: { ...showWidget(row), workflowId } }
}

/** Opens a session for a visitor who is at this address. Returns its id. Throws THROTTLED above the cap of a day. */
export async function openVisitorSession(
  store: Store,
  widget: OpenWidget,
  { email, network }: { email: string | null; network: string },
): Promise<string> {
  const { id: widgetId, teamId, workflowId } = widget
  const sessionId = uuid()
  await record(store, async (tx) => {
    await holdWidget(tx, widget)
    const address = `opened ${hashAddress(store.keys, network)}`
    await countToday(tx, widgetId, address, SESSIONS_OF_ADDRESS)
    await tx
      .insertInto('agentChatSessions')
      .values({
        ...{ id: sessionId, teamId, workflowId, widgetId },
        ...{ ownerKind: 'VISITOR', ownerId: sessionId, visitorEmail: email },
        ...{ title: NO_TITLE, untitled: true },
      })
      .execute()
  })
  return sessionId
}

/**
 * The session of a visitor of this widget. Undefined if it is gone, or belongs to the workflow that the widget had
 * before.
 */
export async function findVisitorSession(
  { db }: Store,
  { id, workflowId }: OpenWidget,
  sessionId: string,
): Promise<ChatSessionRow | undefined> {
  const row = await findChatSession(db, sessionId)
  return row?.widgetId === id && row.workflowId === workflowId ? row : undefined
}

/**
 * Posts a visitor's message, as postChatMessage does for people of the team. Throws CONFLICT while a reply is being
 * written, THROTTLED above a cap of the day or if the workflow takes no more at the moment, and NOT_FOUND if the widget
 * is closed. No message says anything of the team.
 */
export async function postVisitorMessage(
  store: Store,
  widget: OpenWidget,
  session: ChatSessionRow,
  {
    network,
    ...message
  }: { content: string; idempotencyKey?: string | undefined; network: string } & TraceContext,
): Promise<PostedMessage> {
  const { id: widgetId, limits } = widget
  const take = async (tx: Tx) => {
    await holdWidget(tx, widget)
    await countToday(tx, widgetId, session.id, limits.perVisitor)
    const address = hashAddress(store.keys, network)
    await countToday(tx, widgetId, address, VISITORS_OF_ADDRESS * limits.perVisitor)
    await countToday(tx, widgetId, '', limits.perDay)
  }
  try {
    return await postToSession(store, session, message, {
      by: { kind: 'SYSTEM', id: null, name: 'widget' },
      data: { visitor: { email: session.visitorEmail } },
      take,
    })
  } catch (error) {
    throw hideTeam(error)
  }
}

/** What a visitor has said and was told, the oldest first: the newest messages. */
export async function listVisitorMessages(store: Store, sessionId: string): Promise<VisitorMessage[]> {
  const messages = await readMessages(store, sessionId, { size: SHOWN_TO_VISITOR, offset: 0 })
  return messages
    .reverse()
    .map(({ role, status, content, createdAt }) => ({ role, status, content, createdAt }))
}

/** Holds a widget as it is until the transaction ends. Throws NOT_FOUND if it is open no more. */
async function holdWidget(tx: Tx, { id, key, workflowId }: OpenWidget): Promise<void> {
  const { rows } = await sql`select from widgets
    where id = ${id} and key = ${key} and enabled and workflow_id = ${workflowId} for share`.execute(tx)
  if (rows.length === 0) throw missing('widget')
}

function hideTeam(error: unknown): unknown {
  if (!(error instanceof Fault)) return error
  const { code, message } = error
  if (code === 'THROTTLED' || [BUSY, KEY_USED].includes(message)) return error
  if (code === 'NOT_FOUND' || code === 'UNPROCESSABLE') return missing('widget')
  if (code === 'UNAVAILABLE') return new Fault(code, 'Try again in a moment', { retryAfter: 1 })
  return new Fault('THROTTLED', 'Too many are chatting at the moment. Try again later', { retryAfter: 10 })
}
