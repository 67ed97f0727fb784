import type { Context } from 'hono'
import { validate as isUuid } from 'uuid'
import type { Device } from '../../db/people/devices.ts'
import type { Keys } from '../../db/seal.ts'
import { isObject } from '../../workflows/json.ts'
import type { ApiDeps } from '../env.ts'
import { openCookie, putCookie } from './cookies.ts'

const DEVICE_COOKIE = 'perdure_device'

/** The only paths to which browsers send the device cookie. */
const PATH = '/api/auth'
const LIFETIME_MS = 365 * 86_400_000

/** The device of the request, as its cookie says; null if the cookie is missing, forged or expired. */
export async function readDevice(keys: Keys, c: Context): Promise<Device | null> {
  const claims = await openCookie(keys, c, DEVICE_COOKIE, 'device')
  if (!claims?.sub || !isUuid(claims.sub) || !isObject(claims.marks)) return null
  return { id: claims.sub, marks: claims.marks as Device['marks'] }
}

/** Lets the browser keep the device for a year after each sign-in, even after the user has signed out. */
export async function keepDevice(deps: ApiDeps, c: Context, { id, marks }: Device): Promise<void> {
  const expiresAt = new Date(Date.now() + LIFETIME_MS)
  const cookie = { purpose: 'device', subject: id, claims: { marks }, expiresAt, path: PATH } as const
  await putCookie(deps, c, DEVICE_COOKIE, cookie)
}
