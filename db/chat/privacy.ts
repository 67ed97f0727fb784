import { type RawBuilder, sql } from 'kysely'
import { covers } from '../acts.ts'
import { Fault, missing } from '../fault.ts'
import { demand, type Scope } from '../scope.ts'

/**
 * The chat that an execution belongs to: null if it belongs to none. `ownerId` is null if the chat is gone, or has lost
 * its owner.
 */
export type ChatPrivacy = { ownerId: string | null } | null

/** Reads the ChatPrivacy of a row of `executions`, or of a table that is named so in the query. */
export function chatPrivacyOf(table = 'executions'): RawBuilder<ChatPrivacy> {
  const session = sql.ref(`${table}.chat_session_id`)
  return sql<ChatPrivacy>`case when ${session} is not null or ${sql.ref(`${table}.trigger`)} = 'CHAT' then
    json_build_object('ownerId', (select s.owner_id from agent_chat_sessions s where s.id = ${session})) end`
}

/**
 * Whether the values of an execution are hidden from the caller: what went into its nodes and came out of them, their
 * steps, errors, requests and files. Those of a chat are for its owner and the team's ADMINs only; others see status and
 * times, and what its calls to models took. Only this file decides it.
 */
export function isHiddenFrom({ roles, actor }: Scope, teamId: string, privacy: ChatPrivacy): boolean {
  if (privacy === null) return false
  const role = roles.get(teamId)
  const isAdmin = role !== undefined && covers(role, 'ADMIN')
  return !isAdmin && (privacy.ownerId === null || privacy.ownerId !== actor.id)
}

/** The same in SQL: whether an execution of the table that is named so is not hidden from the caller. */
export function isShownTo({ roles, actor }: Scope, teamId: string, table: string): RawBuilder<boolean> {
  const role = roles.get(teamId)
  if (role !== undefined && covers(role, 'ADMIN')) return sql<boolean>`true`
  const [session, trigger] = [sql.ref(`${table}.chat_session_id`), sql.ref(`${table}.trigger`)]
  return sql<boolean>`((${session} is null and ${trigger} <> 'CHAT') or exists (
    select from agent_chat_sessions s where s.id = ${session} and s.owner_id = ${actor.id}::uuid))`
}

/**
 * The team of an execution that the caller may follow (VIEWER), and whether its values are hidden from them. Throws
 * NOT_FOUND and FORBIDDEN.
 */
export async function openExecution(scope: Scope, id: string): Promise<{ teamId: string; hidden: boolean }> {
  const row = await scope.store.db
    .selectFrom('executions')
    .select('teamId')
    .select(chatPrivacyOf().as('privacy'))
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('execution')
  const { teamId, privacy } = row
  demand(scope, teamId, 'VIEWER')
  return { teamId, hidden: isHiddenFrom(scope, teamId, privacy) }
}

/** The team of an execution whose values the caller may read (VIEWER). Throws NOT_FOUND and FORBIDDEN. */
export async function demandValues(scope: Scope, id: string): Promise<string> {
  const { teamId, hidden } = await openExecution(scope, id)
  if (hidden) throw isPrivate()
  return teamId
}

/** The fault for a caller who asks for an execution that is part of another owner's chat. */
export function isPrivate(): Fault {
  return new Fault(
    'FORBIDDEN',
    'The execution is part of a private chat: only its owner and ADMINs may read it',
  )
}
