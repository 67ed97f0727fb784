import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { type JWTHeaderParameters, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { type Keys, purposeKey } from '../../db/seal.ts'
import type { ApiDeps } from '../env.ts'

/** What a signed cookie is for. Each purpose has a key of its own, so that none passes for another. */
export type Purpose = 'session' | 'device'

const ISSUER = 'perdure'
const AUDIENCE = 'perdure-api'

/** The claims of a cookie that this service has signed for the purpose; null if it is missing or not valid. */
export async function openCookie(
  keys: Keys,
  c: Context,
  name: string,
  purpose: Purpose,
): Promise<JWTPayload | null> {
  const cookie = getCookie(c, name)
  if (!cookie) return null
  try {
    const findKey = (header: JWTHeaderParameters) => purposeKey(keys, purpose, header.kid ?? '')
    const { payload } = await jwtVerify(cookie, findKey, {
      algorithms: ['HS256'],
      issuer: ISSUER,
      audience: AUDIENCE,
      typ: 'JWT',
      requiredClaims: ['exp', 'iat', 'sub'],
    })
    return payload
  } catch {
    return null
  }
}

/** Sets a cookie with signed claims, for everything below `path`. */
export async function putCookie(
  deps: ApiDeps,
  c: Context,
  name: string,
  cookie: { purpose: Purpose; subject: string; claims: JWTPayload; expiresAt: Date; path?: string },
): Promise<void> {
  const { keys } = deps.store
  const { purpose, subject, claims, expiresAt, path = '/' } = cookie
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: keys.current })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(subject)
    .setIssuedAt()
    .setExpirationTime(expiresAt)
    .sign(purposeKey(keys, purpose))
  setCookie(c, name, token, { ...optionsOf(deps), path, expires: expiresAt })
}

export function removeCookie(deps: ApiDeps, c: Context, name: string): void {
  deleteCookie(c, name, { ...optionsOf(deps), path: '/' })
}

/** Whether users reach the service over https, so that cookies are Secure. */
export function isSecure({ publicUrl }: Pick<ApiDeps, 'publicUrl'>): boolean {
  return publicUrl.startsWith('https:')
}

function optionsOf(deps: ApiDeps) {
  return { httpOnly: true, sameSite: 'Lax', secure: isSecure(deps) } as const
}
