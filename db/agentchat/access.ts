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

/** `owner` is the user or the SDK token whose session it is; its name is null once it is gone. */
export type ChatSessionItem = ChatSession & {
  messageCount: number
  lastMessageAt: Date | null
  owner: { kind: 'USER' | 'SDK_TOKEN'; id: string; name: string | null }
}

/** Locks a session until the transaction ends, so that nobody posts to it. Throws NOT_FOUND. */
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
 * A session that the caller may use. Throws NOT_FOUND, and FORBIDDEN for a session of somebody else, which an ADMIN may
 * `read` and `delete`.
 */
export async function openChatSession(
  scope: Scope,
  id: string,
  use: 'read' | 'delete' | 'own',
): Promise<{ item: ChatSessionItem; row: ChatSessionRow }> {
  const row = await findSession(scope.store.db, id)
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
  ownerKind: 'USER' | 'SDK_TOKEN'
  ownerId: string
  ownerName: string | null
  messageCount: number
  lastMessageAt: Date | null
}

/** What is selected of a session `s`, for showChatSession. */
export const CHAT_SESSION_COLUMNS = sql`s.id, s.workflow_id, s.team_id, s.title, s.created_at, s.updated_at, s.owner_kind, s.owner_id,
  s.message_count, s.last_message_at, case s.owner_kind
    when 'USER' then (select u.first_name || ' ' || u.last_name from users u where u.id = s.owner_id)
    else (select t.name from sdk_tokens t where t.id = s.owner_id) end as owner_name`

async function findSession(db: Db, id: string): Promise<ChatSessionRow | undefined> {
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
  ...item
}: ChatSessionRow): ChatSessionItem {
  return { ...item, owner: { kind, id: ownerId, name } }
}
