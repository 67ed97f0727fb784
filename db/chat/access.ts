import { sql } from 'kysely'
import { covers } from '../acts.ts'
import type { Db, Tx } from '../connection.ts'
import { Fault, missing } from '../fault.ts'
import { demand, type Scope } from '../scope.ts'

export type ChatSession = {
  id: string
  workflowId: string
  teamId: string
  title: string
  createdAt: Date
  updatedAt: Date
}

/** The owners of a session. A VISITOR uses a page with a widget of the team, and has no account. */
export const CHAT_OWNERS = ['USER', 'SDK_TOKEN', 'VISITOR'] as const
type ChatOwner = (typeof CHAT_OWNERS)[number]

/** `name` of the owner is null once they are gone; that of a visitor is the e-mail address they gave, if any. */
export type ChatSessionItem = ChatSession & {
  messageCount: number
  lastMessageAt: Date | null
  owner: { kind: ChatOwner; id: string; name: string | null }
}

/** Locks a session until the transaction ends, so that no message is posted to it. Throws NOT_FOUND. */
export async function holdChatSession(tx: Tx, id: string) {
  const row = await tx
    .selectFrom('agentChatSessions')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw missing('chat session')
  return row
}

/**
 * A session that the caller may use. Throws NOT_FOUND, and FORBIDDEN for a session of another owner, which an ADMIN may
 * `read` and `delete`.
 */
export async function openChatSession(
  scope: Scope,
  id: string,
  use: 'read' | 'delete' | 'own',
): Promise<{ item: ChatSessionItem; row: ChatSessionRow }> {
  const row = await findChatSession(scope.store.db, id)
  if (!row) throw missing('chat session')
  demand(scope, row.teamId, 'OPERATOR')
  const owner = ownerOf(scope)
  const isOwn = row.ownerKind === owner.kind && row.ownerId === owner.id
  const isAdmin = covers(scope.roles.get(row.teamId)!, 'ADMIN')
  if (!isOwn && (use === 'own' || !isAdmin))
    throw new Fault('FORBIDDEN', 'This chat session belongs to somebody else')
  return { item: showChatSession(row), row }
}

/** Whose sessions the caller's are: the user's, or the SDK token's itself. */
export function ownerOf({ actor }: Scope): { kind: 'USER' | 'SDK_TOKEN'; id: string } {
  const { kind, id } = actor
  if ((kind !== 'USER' && kind !== 'SDK_TOKEN') || id === null)
    throw new Fault('FORBIDDEN', 'Only a user or an SDK token has chat sessions')
  return { kind, id }
}

export type ChatSessionRow = ChatSession & {
  ownerKind: ChatOwner
  ownerId: string
  ownerName: string | null
  /** The widget whose visitor it belongs to, and the address they gave. */
  widgetId: string | null
  visitorEmail: string | null
  messageCount: number
  lastMessageAt: Date | null
}

/** The columns that showChatSession needs of a session `s`. */
export const CHAT_SESSION_COLUMNS = sql`s.id, s.workflow_id, s.team_id, s.title, s.created_at, s.updated_at, s.owner_kind, s.owner_id,
  s.message_count, s.last_message_at, s.widget_id, s.visitor_email, case s.owner_kind
    when 'USER' then (select u.first_name || ' ' || u.last_name from users u where u.id = s.owner_id)
    when 'VISITOR' then s.visitor_email
    else (select t.name from sdk_tokens t where t.id = s.owner_id) end as owner_name`

/** Reads a session without checking any right. */
export async function findChatSession(db: Db, id: string): Promise<ChatSessionRow | undefined> {
  const { rows } =
    await sql<ChatSessionRow>`select ${CHAT_SESSION_COLUMNS} from agent_chat_sessions s where id = ${id}`.execute(
      db,
    )
  return rows[0]
}

/** A session as lists show it. */
export function showChatSession({
  ownerKind: kind,
  ownerId,
  ownerName: name,
  widgetId: _widgetId,
  visitorEmail: _visitorEmail,
  ...item
}: ChatSessionRow): ChatSessionItem {
  return { ...item, owner: { kind, id: ownerId, name } }
}
