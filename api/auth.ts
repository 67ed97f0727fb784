import { Hono } from 'hono'
import * as v from 'valibot'
import { Fault } from '../db/fault.ts'
import { createSession, endSession, refreshSession } from '../db/sessions.ts'
import { signIn } from '../db/signin.ts'
import { readUser } from '../db/users.ts'
import { accept, text } from './accept.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { clearCookie, readBearer, readSession, writeCookie } from './session.ts'

const Login = v.object({
  email: text(320),
  password: v.pipe(
    v.string('must be a text'),
    v.minLength(1, 'must not be empty'),
    v.maxBytes(1024, 'must have at most 1024 bytes'),
  ),
})

/** Sign in, prolong, sign out. The session is a row; the cookie only names it. */
export function createAuthRoutes(deps: ApiDeps) {
  const { store } = deps
  return new Hono<AppEnv>()
    .post('/api/auth/login', accept({ summary: 'Sign in', role: 'public', json: Login }), async (c) => {
      const { email, password } = c.req.valid('json')
      const { id } = await signIn(store, { email, password, ip: c.get('ip') })
      const user = await readUser(store, id)
      await writeCookie(deps, c, await createSession(store, id))
      return c.json(user)
    })
    .post('/api/auth/refresh', accept({ summary: 'Prolong the session', role: 'public' }), async (c) => {
      if (readBearer(c) !== undefined)
        throw new Fault('UNAUTHENTICATED', 'An SDK token has no session to refresh')
      const old = await readSession(store, c)
      const session = old && (await refreshSession(store, old.id))
      if (!session) throw new Fault('UNAUTHENTICATED', 'The session has ended; sign in again')
      await writeCookie(deps, c, session)
      return c.json({ message: 'Session refreshed' })
    })
    .post('/api/auth/logout', accept({ summary: 'Sign out', role: 'public' }), async (c) => {
      const session = await readSession(store, c)
      if (session) await endSession(store, session.id)
      clearCookie(deps, c)
      return c.json({ message: 'Signed out' })
    })
}
