import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import { validate as isUuid } from 'uuid'
import { lesserRole, type Role } from '../../db/acts.ts'
import { Fault } from '../../db/fault.ts'
import { findSession, type Session } from '../../db/people/sessions.ts'
import { admitToken, findToken } from '../../db/people/tokencallers.ts'
import { nameOf } from '../../db/people/users.ts'
import type { Origin, Scope, Store } from '../../db/scope.ts'
import { cleanText } from '../../db/text.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { isSecure, openCookie, putCookie, removeCookie } from './cookies.ts'

export const SESSION_COOKIE = 'perdure_session'

/** Its name over https. Browsers take it only from this very host, over https, for all paths. */
export const HOST_COOKIE = `__Host-${SESSION_COOKIE}`

const PURPOSE = 'session'

const MAX_USER_AGENT = 500

/**
 * Finds the caller of a request and their roles: by the SDK token if one is sent (the session cookie is then
 * ignored), else by the session cookie. With `counts`, a request with a token is counted against its team in the same
 * statement, and the count is noted in the context. Throws UNAUTHENTICATED.
 */
export async function authenticate(
  deps: ApiDeps,
  c: Context<AppEnv>,
  { counts }: { counts: boolean },
): Promise<Scope> {
  const { store } = deps
  const request = { store, ...readOrigin(c) }
  const bearer = readBearer(c)
  if (bearer !== undefined) {
    const admitted = counts ? await admitToken(store, bearer) : null
    if (admitted?.count) c.set('counted', admitted.count)
    const caller = counts ? admitted?.caller : await findToken(store, bearer)
    if (!caller) throw new Fault('UNAUTHENTICATED', 'The SDK token is not valid')
    const role = caller.makerRole && lesserRole(caller.role, caller.makerRole)
    return {
      ...request,
      actor: { kind: 'SDK_TOKEN', id: caller.id, name: caller.name },
      userId: caller.userId,
      instanceAdmin: false,
      access: { kind: 'SDK_TOKEN', id: caller.id, endsAt: caller.endsAt },
      roles: new Map(role ? [[caller.teamId, role]] : []),
    }
  }
  const session = await readSession(store, c)
  if (!session) throw new Fault('UNAUTHENTICATED', 'Sign in, or send an SDK token')
  const caller = await findSession(store, session.id)
  if (!caller || caller.userId !== session.userId) {
    throw new Fault('UNAUTHENTICATED', 'The session has ended; sign in again')
  }
  return {
    ...request,
    actor: {
      kind: 'USER',
      id: caller.userId,
      name: nameOf(caller),
    },
    userId: caller.userId,
    instanceAdmin: caller.instanceAdmin,
    access: { kind: 'SESSION', id: session.id, endsAt: caller.endsAt },
    roles: new Map<string, Role>(caller.memberships.map(({ teamId, role }) => [teamId, role])),
  }
}

/** The token of the `Authorization: Bearer` header: undefined without this header, '' if it is malformed. */
export function readBearer(c: Context): string | undefined {
  const header = c.req.header('authorization')
  if (header === undefined || !/^bearer(\s|$)/i.test(header)) return undefined
  return /^bearer +([^\s,]+)$/i.exec(header)?.[1] ?? ''
}

/**
 * The session that the cookie names, or null if the cookie is missing, forged or expired. Does not check
 * whether the session still exists in the database.
 */
export async function readSession(store: Store, c: Context): Promise<Pick<Session, 'id' | 'userId'> | null> {
  const hasHostCookie = getCookie(c, HOST_COOKIE) !== undefined
  const claims = await openCookie(store.keys, c, hasHostCookie ? HOST_COOKIE : SESSION_COOKIE, PURPOSE)
  if (typeof claims?.sid !== 'string' || !isUuid(claims.sid) || claims.sub === undefined) return null
  // Sessions of before go on in the plain cookie, which any host of the same domain can set. So it takes none
  // that was opened since.
  if (claims.host === true && !hasHostCookie) return null
  return { id: claims.sid, userId: claims.sub }
}

/** The origin of a request, for the audit of acts before the sign-in. */
export function readOrigin(c: Context<AppEnv>): Origin & { ip: string } {
  const userAgent = c.req.header('user-agent')
  return {
    ip: c.get('ip'),
    requestId: c.get('requestId'),
    userAgent: userAgent === undefined ? null : cleanText(userAgent, MAX_USER_AGENT),
  }
}

export async function writeCookie(deps: ApiDeps, c: Context, session: Session): Promise<void> {
  const { id, userId, expiresAt } = session
  const secure = isSecure(deps)
  const claims = secure ? { sid: id, host: true } : { sid: id }
  const cookie = { purpose: PURPOSE, subject: userId, claims, expiresAt } as const
  await putCookie(deps, c, secure ? HOST_COOKIE : SESSION_COOKIE, cookie)
  if (secure) forgetPlain(deps, c)
}

export function clearCookie(deps: ApiDeps, c: Context): void {
  if (isSecure(deps)) {
    removeCookie(deps, c, HOST_COOKIE)
    forgetPlain(deps, c)
  } else removeCookie(deps, c, SESSION_COOKIE)
}

function forgetPlain(deps: ApiDeps, c: Context): void {
  if (getCookie(c, SESSION_COOKIE) !== undefined) removeCookie(deps, c, SESSION_COOKIE)
}
