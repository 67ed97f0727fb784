import { sql } from 'kysely'
import { v4 as uuid } from 'uuid'
import type { Role } from './acts.ts'
import { record, type Store, type Tx } from './scope.ts'

const LIFETIME_MS = 12 * 3_600_000

export type Session = { id: string; userId: string; expiresAt: Date }

/** Opens a session of 12 hours. */
export async function createSession(store: Store, userId: string): Promise<Session> {
  return record(store, (tx) => addSession(tx, userId))
}

/** Ends the session and opens another of 12 hours; null where it has ended already (of two at once, one gets it). */
export async function refreshSession(store: Store, sessionId: string): Promise<Session | null> {
  return record(store, async (tx) => {
    const old = await tx
      .deleteFrom('sessions')
      .where('id', '=', sessionId)
      .where('expiresAt', '>', sql<Date>`now()`)
      .returning('userId')
      .executeTakeFirst()
    return old ? addSession(tx, old.userId) : null
  })
}

/** Ends the session; ending it again does nothing. */
export async function endSession(store: Store, sessionId: string): Promise<void> {
  await record(store, (tx) => tx.deleteFrom('sessions').where('id', '=', sessionId).execute())
}

/** Ends the user's sessions, all but `keep`: in the transaction that gave them a new password. */
export async function endSessions(tx: Tx, userId: string, keep: string | null): Promise<void> {
  await tx
    .deleteFrom('sessions')
    .where('userId', '=', userId)
    .$if(keep !== null, (query) => query.where('id', '<>', keep))
    .execute()
}

export type SessionCaller = {
  userId: string
  firstName: string
  lastName: string
  email: string
  instanceAdmin: boolean
  memberships: { teamId: string; role: Role }[]
}

/** Who a living session belongs to and their roles, in one query; null where it has ended or expired. */
export async function findSession(store: Store, sessionId: string): Promise<SessionCaller | null> {
  const found = await sql<SessionCaller>`
    select u.id as user_id, u.first_name, u.last_name, u.email, u.instance_admin,
      coalesce((select json_agg(json_build_object('teamId', m.team_id, 'role', m.role))
        from members m where m.user_id = u.id), '[]') as memberships
    from sessions s join users u on u.id = s.user_id
    where s.id = ${sessionId} and s.expires_at > now()`.execute(store.db)
  return found.rows[0] ?? null
}

/** Removes what has expired: sessions, and failed sign-ins and sign-ups of a day ago. Housekeeping, hourly. */
export async function purgeSessions(store: Store): Promise<void> {
  await record(store, async (tx) => {
    await sql`delete from sessions where expires_at <= now()`.execute(tx)
    await sql`delete from signin_failures where updated_at < now() - interval '1 day'`.execute(tx)
  })
}

async function addSession(tx: Tx, userId: string): Promise<Session> {
  // A random id: a v7 one would tell when the session began.
  const session = { id: uuid(), userId, expiresAt: new Date(Date.now() + LIFETIME_MS) }
  await tx.insertInto('sessions').values(session).execute()
  return session
}
