import { Hono } from 'hono'
import * as v from 'valibot'
import { Fault } from '../db/fault.ts'
import { createSession, endSession, refreshSession } from '../db/sessions.ts'
import { signIn } from '../db/signin.ts'
import { readUser } from '../db/users.ts'
import { accept, text } from './accept.ts'
import { memberships, password, person } from './accounts.ts'
import { said } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { clearCookie, readBearer, readSession, writeCookie } from './session.ts'

const Login = v.object({ email: text(320), password })
const UserAnswer = v.pipe(v.object({ ...person, teams: memberships }), v.title('User'))
const COOKIE_SET = { 'Set-Cookie': 'The session, httpOnly, for 12 hours' }

/** Sign in, prolong, sign out. The session is a row; the cookie only names it. */
export function createAuthRoutes(deps: ApiDeps) {
  const { store } = deps
  return new Hono<AppEnv>()
    .post(
      '/api/auth/login',
      accept({
        id: 'signIn',
        tag: 'Authentication',
        summary: 'Sign in',
        description: 'Wrong passwords are throttled by address and account (429).',
        role: 'public',
        json: Login,
        example: { email: 'ada@example.com', password: 'correct horse battery staple' },
        responses: { 200: { description: 'The user, signed in', schema: UserAnswer, headers: COOKIE_SET } },
        faults: [401],
      }),
      async (c) => {
        const { email, password } = c.req.valid('json')
        const { id } = await signIn(store, { email, password, ip: c.get('ip') })
        const user = await readUser(store, id)
        await writeCookie(deps, c, await createSession(store, id))
        return c.json(user)
      },
    )
    .post(
      '/api/auth/refresh',
      accept({
        id: 'refreshSession',
        tag: 'Authentication',
        summary: 'Prolong the session',
        description: 'Replaces the session by one of another 12 hours. An SDK token has none: 401.',
        role: 'session',
        responses: { 200: { ...said('Session refreshed'), headers: COOKIE_SET } },
      }),
      async (c) => {
        if (readBearer(c) !== undefined)
          throw new Fault('UNAUTHENTICATED', 'An SDK token has no session to refresh')
        const old = await readSession(store, c)
        const session = old && (await refreshSession(store, old.id))
        if (!session) throw new Fault('UNAUTHENTICATED', 'The session has ended; sign in again')
        await writeCookie(deps, c, session)
        return c.json({ message: 'Session refreshed' })
      },
    )
    .post(
      '/api/auth/logout',
      accept({
        id: 'signOut',
        tag: 'Authentication',
        summary: 'Sign out',
        description: 'Ends the session, if there is one, and clears the cookie.',
        role: 'public',
        responses: { 200: { ...said('Signed out'), headers: { 'Set-Cookie': 'Clears the cookie' } } },
      }),
      async (c) => {
        const session = await readSession(store, c)
        if (session) await endSession(store, session.id)
        clearCookie(deps, c)
        return c.json({ message: 'Signed out' })
      },
    )
}
