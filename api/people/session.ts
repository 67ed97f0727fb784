import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { type JWTHeaderParameters, jwtVerify, SignJWT } from 'jose'
import { validate as isUuid } from 'uuid'
import { lesserRole, type Role } from '../../db/acts.ts'
import { Fault } from '../../db/fault.ts'
import { findSession, type Session } from '../../db/people/sessions.ts'
import { findToken } from '../../db/people/tokens.ts'
import type { Scope, Store } from '../../db/scope.ts'
import { type Keys, purposeKey } from '../../db/seal.ts'
import type { ApiDeps, AppEnv } from '../env.ts'

export const SESSION_COOKIE = 'perdure_session'

const ISSUER = 'perdure'
const AUDIENCE = 'perdure-api'
const PURPOSE = 'session'

/**
 * Finds the caller of a request and their roles: by the SDK token if one is sent (the session cookie is then
 * ignored), else by the session cookie. Throws UNAUTHENTICATED.
 */
export async function authenticate(deps: ApiDeps, c: Context<AppEnv>): Promise<Scope> {
  const { store } = deps
  const request = { store, requestId: c.get('requestId'), ip: c.get('ip') }
  const bearer = readBearer(c)
  if (bearer !== undefined) {
    const caller = await findToken(store, bearer)
    if (!caller) throw new Fault('UNAUTHENTICATED', 'The SDK token is not valid')
    const role = caller.makerRole && lesserRole(caller.role, caller.makerRole)
    return {
      ...request,
      actor: { kind: 'SDK_TOKEN', id: caller.id, name: caller.name },
      userId: caller.userId,
      instanceAdmin: false,
      credential: { kind: 'SDK_TOKEN', id: caller.id },
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
      name: `${caller.firstName} ${caller.lastName}`.trim() || caller.email,
    },
    userId: caller.userId,
    instanceAdmin: caller.instanceAdmin,
    credential: { kind: 'SESSION', id: session.id },
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
  const cookie = getCookie(c, SESSION_COOKIE)
  if (!cookie) return null
  try {
    const findKey = (header: JWTHeaderParameters) => purposeKey(store.keys, PURPOSE, header.kid ?? '')
    const { payload } = await jwtVerify(cookie, findKey, {
      algorithms: ['HS256'],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: 'JWT',
      requiredClaims: ['exp', 'iat', 'sub', 'sid'],
    })
    if (typeof payload.sid !== 'string' || !isUuid(payload.sid) || payload.sub === undefined) return null
    return { id: payload.sid, userId: payload.sub }
  } catch {
    return null
  }
}

export async function writeCookie(deps: ApiDeps, c: Context, session: Session): Promise<void> {
  const token = await signToken(deps.store.keys, session)
  setCookie(c, SESSION_COOKIE, token, { ...cookieOptions(deps), expires: session.expiresAt })
}

export function clearCookie(deps: ApiDeps, c: Context): void {
  deleteCookie(c, SESSION_COOKIE, cookieOptions(deps))
}

function signToken(keys: Keys, session: Session): Promise<string> {
  return new SignJWT({ sid: session.id })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: keys.current })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(session.userId)
    .setIssuedAt()
    .setExpirationTime(session.expiresAt)
    .sign(purposeKey(keys, PURPOSE))
}

function cookieOptions(deps: ApiDeps) {
  return { httpOnly: true, sameSite: 'Lax', path: '/', secure: deps.publicUrl.startsWith('https:') } as const
}
