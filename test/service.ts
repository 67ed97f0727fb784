import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { type ApiDeps, createApp } from '../api/app.ts'
import { COOKIE } from '../api/session.ts'
import type { Role } from '../db/acts.ts'
import { openBus } from '../db/bus.ts'
import { openDatabase } from '../db/connection.ts'
import type { Store } from '../db/scope.ts'
import type { Keys } from '../db/seal.ts'
import { createFirstAdmin, createUser } from '../db/users.ts'
import { startListener } from '../worker/listener.ts'
import { checkAnswer } from './contract.ts'
import { cloneDatabase } from './database.ts'

export const PASSWORD = 'correct horse battery staple'

/** `as`: an SDK token or a cookie header. `json` becomes the body. */
export type Ask = RequestInit & { as?: string; json?: unknown }

// biome-ignore lint/suspicious/noExplicitAny: answers are read field by field
export type Body = any

/** The API over a database of its own. `admin` is the cookie of the ADMIN of `teamId`. */
export async function startService(options: Partial<ApiDeps> = {}) {
  const database = await cloneDatabase()
  const { db, close } = openDatabase(database.url, { max: 10, name: 'test' })
  const store: Store = { db, keys: makeKeys() }
  const bus = openBus(database.url, { name: 'test' })
  const app = createApp({
    store,
    bus,
    log: pino({ level: process.env.TEST_LOG ?? 'silent' }),
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: async () => false,
    ...options,
  })
  const closing: (() => Promise<unknown>)[] = []

  /** Every answer is held against the API's own document. */
  const request = async (path: string, ask: Ask = {}) => {
    const answer = await app.request(path, toInit(ask))
    await checkAnswer(app.routes, { method: ask.method ?? 'GET', path }, answer)
    return answer
  }

  /** The same with the whole answer read: of JSON its value, null of no body. */
  async function call(method: string, path: string, as?: string, json?: unknown, headers = {}) {
    const answer = await request(path, { method, json, headers, ...(as ? { as } : {}) })
    const text = await answer.text()
    const body: Body = text === '' ? null : JSON.parse(text)
    return { status: answer.status, headers: answer.headers, body, text }
  }

  /** Signs in and returns the cookie header. */
  async function signIn(email: string, password = PASSWORD): Promise<string> {
    const answer = await request('/api/auth/login', { method: 'POST', json: { email, password } })
    if (answer.status !== 200) throw new Error(`sign-in answered ${answer.status}: ${await answer.text()}`)
    return readCookie(answer)
  }

  /** A new user, with a role in a team if asked for, signed in. */
  async function signUp(role?: Exclude<Role, 'VIEWER'>, team = teamId) {
    const email = `${randomBytes(6).toString('hex')}@example.com`
    const { id } = await createUser(store, { email, password: PASSWORD, firstName: 'Ada', lastName: 'Byron' })
    if (role) await db.insertInto('members').values({ teamId: team, userId: id, role }).execute()
    return { id, email, cookie: await signIn(email) }
  }

  /** A team of its own with its ADMIN, whom nobody else knows. */
  async function otherTeam() {
    const user = await signUp()
    const id = crypto.randomUUID()
    await db
      .insertInto('teams')
      .values({ id, name: `Team ${id.slice(0, 8)}` })
      .execute()
    await db.insertInto('members').values({ teamId: id, userId: user.id, role: 'ADMIN' }).execute()
    return { ...user, teamId: id }
  }

  /** The text of a fresh SDK token of the team, made by `as`. */
  async function token(role: Role, as = admin, team = teamId): Promise<string> {
    const path = `/api/teams/${team}/sdk-tokens`
    const answer = await request(path, { method: 'POST', as, json: { name: `a ${role} token`, role } })
    if (answer.status !== 201)
      throw new Error(`the token was answered ${answer.status}: ${await answer.text()}`)
    return ((await answer.json()) as { token: string }).token
  }

  /** Serves over real HTTP on a free loopback port; returns the address. */
  async function listen(): Promise<string> {
    const listener = await startListener(app.fetch, 0, '127.0.0.1')
    closing.push(() => listener.stop(1_000))
    return `http://127.0.0.1:${listener.port}`
  }

  async function stop(): Promise<void> {
    await bus.stop()
    for (const end of closing.reverse()) await end()
    await close()
    await database.drop()
  }

  const first = await createFirstAdmin(store, {
    email: 'admin@example.com',
    password: PASSWORD,
    firstName: 'Grace',
    lastName: 'Hopper',
    teamName: 'Default',
  })
  if (!first) throw new Error('the cloned database has users already')
  const teamId = first.teamId
  const admin = await signIn('admin@example.com')
  const { user } = first
  return {
    app,
    store,
    bus,
    database,
    request,
    call,
    signIn,
    signUp,
    otherTeam,
    token,
    listen,
    stop,
    teamId,
    admin,
    user,
  }
}

export type Service = Awaited<ReturnType<typeof startService>>

/** One fresh master key. */
export function makeKeys(): Keys {
  return { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) }
}

/** The session cookie of an answer, as the header that sends it back. */
export function readCookie(answer: Response): string {
  const cookie = answer.headers.getSetCookie().find((line) => line.startsWith(`${COOKIE}=`))
  if (!cookie) throw new Error('no session cookie was set')
  return cookie.split(';')[0]!
}

function toInit({ as, json, ...init }: Ask): RequestInit {
  const headers = new Headers(init.headers)
  if (as?.startsWith('sdk_')) headers.set('authorization', `Bearer ${as}`)
  else if (as) headers.set('cookie', as)
  if (json === undefined) return { ...init, headers }
  if (!headers.has('content-type')) headers.set('content-type', 'application/json')
  return { ...init, headers, body: JSON.stringify(json) }
}
