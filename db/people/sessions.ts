import { sql } from 'kysely'
import { v4 as uuid } from 'uuid'
import type { Role } from '../acts.ts'
import { changeAccount, record } from '../change.ts'
import type { Tx } from '../connection.ts'
import { createMemory } from '../memory.ts'
import { accountScope, type Origin, type Store } from '../scope.ts'
import { holdPassword, nameOf, type Person } from './users.ts'

const LIFETIME_MS = 12 * 3_600_000

export type Session = { id: string; userId: string; expiresAt: Date }

/**
 * Opens a session of 12 hours for a person who has signed in; null if the password that they have proven has changed
 * since.
 */
export async function createSession(store: Store, person: Person, origin: Origin): Promise<Session | null> {
  const { id, email } = person
  const scope = accountScope(store, { id, name: nameOf(person) }, origin)
  return changeAccount<Session | null>(scope, 'SIGNED_IN', async (tx) => {
    if (!(await holdPassword(tx, person))) return { result: null, unchanged: true }
    return { result: await addSession(tx, id), resourceId: id, details: { email } }
  })
}

/**
 * Ends the session and opens another one of 12 hours. Resolves to null if it has ended or expired already: of
 * two calls at once, only one gets the new session.
 */
export async function refreshSession(
  store: Store,
  sessionId: string,
  origin: Origin,
): Promise<Session | null> {
  const caller = await findSession(store, sessionId)
  if (!caller) return null
  const { userId: id, email } = caller
  const scope = accountScope(store, { id, name: nameOf(caller) }, origin)
  return changeAccount<Session | null>(scope, 'SESSION_REFRESHED', async (tx) => {
    // The user first, as a change of the password does, which ends the new session too if it comes later.
    await sql`select from users where id = (select user_id from sessions where id = ${sessionId})
      for key share`.execute(tx)
    const old = await tx
      .deleteFrom('sessions')
      .where('id', '=', sessionId)
      .where('expiresAt', '>', sql<Date>`now()`)
      .returning('userId')
      .executeTakeFirst()
    if (!old) return { result: null, unchanged: true }
    const next = await addSession(tx, old.userId)
    // A person who is at an authorization server to connect a credential comes back in this session.
    await sql`update credential_connects set session_id = ${next.id} where session_id = ${sessionId}`.execute(
      tx,
    )
    return { result: next, resourceId: id, details: { email } }
  })
}

/** Ends a session at sign-out. Does nothing if it has ended already. */
export async function endSession(store: Store, sessionId: string, origin: Origin): Promise<void> {
  const caller = await findSession(store, sessionId)
  if (!caller) return
  const { userId: id, email } = caller
  await changeAccount(accountScope(store, { id, name: nameOf(caller) }, origin), 'SIGNED_OUT', async (tx) => {
    const ended = await tx.deleteFrom('sessions').where('id', '=', sessionId).executeTakeFirst()
    if (ended.numDeletedRows === 0n) return { result: undefined, unchanged: true }
    return { result: undefined, resourceId: id, details: { email } }
  })
}

/** Ends all sessions of the user except `keep`, in the transaction that changes their password. */
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
  /** When the session ends if nothing ends it before, in performance.now(). */
  endsAt: number
}

const sessionsOf = createMemory<SessionCaller>(10_000)

/**
 * The user of a session and their roles, from memory or in one query; null if the session has ended or expired. What
 * another process has ended a moment ago may still be found: an act reads the right again (db/people/rights.ts).
 */
export async function findSession(store: Store, sessionId: string): Promise<SessionCaller | null> {
  const sessions = sessionsOf(store.db)
  const known = sessions.find(sessionId)
  if (known) return known
  const began = performance.now()
  const remember = sessions.begin()
  const found = await sql<Omit<SessionCaller, 'endsAt'> & { leftMs: number }>`
    select u.id as user_id, u.first_name, u.last_name, u.email, u.instance_admin,
      coalesce((select json_agg(json_build_object('teamId', m.team_id, 'role', m.role))
        from members m where m.user_id = u.id), '[]') as memberships,
      extract(epoch from s.expires_at - now())::float8 * 1000 as left_ms
    from sessions s join users u on u.id = s.user_id
    where s.id = ${sessionId} and s.expires_at > now()`.execute(store.db)
  const row = found.rows[0]
  if (!row) return null
  const { leftMs, ...person } = row
  // Who waits for the end looks again when it has come, so `endsAt` is not too early; the memory ends before.
  const caller = { ...person, endsAt: performance.now() + leftMs }
  remember(sessionId, caller, `rights:${caller.userId}`, began + leftMs)
  return caller
}

/**
 * The owner of the session that a genuine cookie names, if it has ended: the person has signed out, refreshed it or
 * changed their password. Undefined if it goes on, or the person is gone.
 */
export async function findEndedSession(
  { db }: Store,
  { id, userId }: { id: string; userId: string },
): Promise<{ id: string; name: string } | undefined> {
  const person = await db
    .selectFrom('users')
    .select(['id', 'firstName', 'lastName', 'email'])
    .where('id', '=', userId)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('sessions').select('id').where('id', '=', id).where('expiresAt', '>', sql<Date>`now()`),
        ),
      ),
    )
    .executeTakeFirst()
  return person && { id: person.id, name: nameOf(person) }
}

/** Removes expired sessions, and day-old counts of failed sign-ins and of sign-ups. Called hourly. */
export async function purgeSessions(store: Store): Promise<void> {
  await record(store, async (tx) => {
    await sql`delete from sessions where expires_at <= now()`.execute(tx)
    await sql`delete from signin_failures where updated_at < now() - interval '1 day'`.execute(tx)
  })
}

async function addSession(tx: Tx, userId: string): Promise<Session> {
  // A random id (v4): a v7 id would reveal when the session began.
  const session = { id: uuid(), userId, expiresAt: new Date(Date.now() + LIFETIME_MS) }
  await tx.insertInto('sessions').values(session).execute()
  return session
}
