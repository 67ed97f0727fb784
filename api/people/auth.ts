import { Hono } from 'hono'
import * as v from 'valibot'
import { Fault } from '../../db/fault.ts'
import { endSession, refreshSession } from '../../db/people/sessions.ts'
import { signIn } from '../../db/people/signin.ts'
import { readUser } from '../../db/people/users.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept, SMALL_BODY } from '../http/accept.ts'
import { boundedString } from '../http/fields.ts'
import { messageResponse } from '../http/responses.ts'
import { membershipsSchema, passwordField, personEntries } from './accounts.ts'
import { keepDevice, readDevice } from './device.ts'
import { clearCookie, readBearer, readOrigin, readSession, writeCookie } from './session.ts'

const Login = v.object({
  email: boundedString(320),
  password: passwordField,
  emailToken: v.optional(
    v.pipe(
      boundedString(200),
      v.description('Of a new account: what the link in its mail has after `token=`, which opens it'),
    ),
  ),
})
const UserSchema = v.pipe(v.object({ ...personEntries, teams: membershipsSchema }), v.title('User'))
const COOKIES_SET = {
  'Set-Cookie': 'The session cookie (HttpOnly), valid for 12 hours, and the device cookie, valid for a year',
}
const COOKIE_SET = { 'Set-Cookie': 'The session cookie (HttpOnly), valid for 12 hours' }

/** The routes to sign in, extend the session, and sign out. A session is a row; its cookie only names it. */
export function createAuthRoutes(deps: ApiDeps) {
  const { store } = deps
  return new Hono<AppEnv>()
    .post(
      '/api/auth/login',
      accept({
        id: 'signIn',
        tag: 'Authentication',
        summary: 'Sign in',
        description:
          'Sets the session cookie, and a cookie by which the device is known the next time. Wrong passwords ' +
          'are throttled (429): those from known devices by device, all others by account and by address. Where mail is ' +
          'sent, a new account is opened by the link in its mail (`emailToken`); until then the right password gets a 403.',
        role: 'public',
        json: Login,
        ...SMALL_BODY,
        example: { email: 'ada@example.com', password: 'correct horse battery staple' },
        responses: {
          200: {
            description: 'The signed-in user with their teams',
            schema: UserSchema,
            headers: COOKIES_SET,
          },
        },
        faults: [401, 403, 409],
      }),
      async (c) => {
        const attempt = { ...c.req.valid('json'), ...readOrigin(c), device: await readDevice(store.keys, c) }
        const { session, device } = await signIn(store, attempt)
        const user = await readUser(store, session.userId)
        await writeCookie(deps, c, session)
        await keepDevice(deps, c, device)
        return c.json(user)
      },
    )
    .post(
      '/api/auth/refresh',
      accept({
        id: 'refreshSession',
        tag: 'Authentication',
        summary: 'Extend the session',
        description:
          'Replaces the session with a new one, valid for another 12 hours. An SDK token has no session: 401.',
        role: 'session',
        responses: { 200: { ...messageResponse('Session refreshed'), headers: COOKIE_SET } },
      }),
      async (c) => {
        if (readBearer(c) !== undefined)
          throw new Fault('UNAUTHENTICATED', 'An SDK token has no session to refresh')
        const old = await readSession(store, c)
        const session = old && (await refreshSession(store, old.id, readOrigin(c)))
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
        responses: {
          200: { ...messageResponse('Signed out'), headers: { 'Set-Cookie': 'Clears the cookie' } },
        },
      }),
      async (c) => {
        const session = await readSession(store, c)
        if (session) await endSession(store, session.id, readOrigin(c))
        clearCookie(deps, c)
        return c.json({ message: 'Signed out' })
      },
    )
}
