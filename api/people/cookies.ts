import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import type { JWTPayload } from 'jose'
import type { Keys } from '../../db/seal.ts'
import type { ApiDeps } from '../env.ts'
import { makeSigned, openSigned, type Purpose, type Signed } from './signed.ts'

/** The claims of a cookie that this service has signed for the purpose; null if it is missing or not valid. */
export async function openCookie(
  keys: Keys,
  c: Context,
  name: string,
  purpose: Purpose,
): Promise<JWTPayload | null> {
  const cookie = getCookie(c, name)
  return cookie ? openSigned(keys, cookie, purpose) : null
}

/** Sets a cookie with signed claims, for everything below `path`. */
export async function putCookie(
  deps: ApiDeps,
  c: Context,
  name: string,
  cookie: Signed & { path?: string },
): Promise<void> {
  const { path = '/', ...claims } = cookie
  const token = await makeSigned(deps.store.keys, claims)
  setCookie(c, name, token, { ...optionsOf(deps), path, expires: cookie.expiresAt })
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
