import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { createReplies } from '../../activities/chat/replies.ts'
import { createEvaluator } from '../../activities/expressions/evaluator.ts'
import { createAskModel } from '../../activities/guardrails/model/ask.ts'
import { createDetectorPool } from '../../activities/guardrails/pool.ts'
import { createSemanticPool } from '../../activities/guardrails/semantic/similar.ts'
import { createApp } from '../../api/app.ts'
import type { ApiDeps } from '../../api/env.ts'
import { HOST_COOKIE, SESSION_COOKIE } from '../../api/people/session.ts'
import type { Role } from '../../db/acts.ts'
import { createPrefixChecker } from '../../db/audit/verify/prefixes.ts'
import { createChainVerifier } from '../../db/audit/verify/verifier.ts'
import { openBus } from '../../db/bus.ts'
import { changeAccount } from '../../db/change.ts'
import { type Database, openDatabase } from '../../db/connection.ts'
import { createExposure, isExposureDecided } from '../../db/operation/exposure.ts'
import { hashPassword } from '../../db/people/passwords.ts'
import { createTeam } from '../../db/people/teams.ts'
import { addUser, createFirstAdmin } from '../../db/people/users.ts'
import { type Store, serviceScope } from '../../db/scope.ts'
import type { Keys } from '../../db/seal.ts'
import { startListener } from '../../worker/service/listener.ts'
import { checkResponse } from './contract.ts'
import { cloneDatabase } from './database.ts'

export const PASSWORD = 'correct horse battery staple'

/** A request. `as` is an SDK token or a cookie header; `json` becomes the body. */
export type Ask = RequestInit & { as?: string; json?: unknown }

// biome-ignore lint/suspicious/noExplicitAny: tests read responses field by field
export type Body = any

type ServiceOptions = Partial<ApiDeps> & Pick<Store, 'emailProof' | 'mailDomains'>

let pools: ReturnType<typeof startPools> | undefined

/** The pools that all services of this process use. They end with it: starting them takes longer than most tests. */
const findPools = () => (pools ??= startPools())

const startPools = () => ({
  evaluator: createEvaluator({ processes: 2 }),
  pool: createDetectorPool({ threads: 2 }),
  semantic: createSemanticPool({ threads: 1 }),
})

/**
 * Starts the API on a database of its own, without an engine. `admin` is the cookie of the ADMIN of `teamId`.
 */
export async function startService({ emailProof, mailDomains = 'any', ...options }: ServiceOptions = {}) {
  const database = await cloneDatabase()
  const { db, close } = openDatabase(database.url, { max: 10, name: 'test' })
  // The full Database type, because tests write rows that the service itself never would.
  const store: Store & { db: Database } = { db, keys: makeKeys(), emailProof, mailDomains }
  const bus = openBus(database.url, { name: 'test' })
  const exposure = createExposure({ bus, isDecided: () => isExposureDecided({ db }), onChange: () => {} })
  const { evaluator, pool, semantic } = findPools()
  const log = pino({ level: process.env.TEST_LOG ?? 'silent' })
  const replies = createReplies({ store, bus, log })
  const { outside, log: heard = log } = options
  const askModel = createAskModel({ store, outside, log: heard })
  const app = createApp({
    store,
    bus,
    exposure,
    replies,
    log,
    publicUrl: 'http://127.0.0.1:3000',
    isReady: async () => ({ database: true, temporal: true, worker: true, models: true, account: true }),
    carryOut: async () => false,
    evaluator,
    guardrails: { pool, semantic, evaluator, askModel, onError: 'closed' },
    verify: createChainVerifier({ url: database.url }),
    checkPrefix: createPrefixChecker({ url: database.url }),
    ...options,
  })
  const closing: (() => Promise<unknown>)[] = []

  /** Sends a request, and checks the response against the OpenAPI document. */
  const request = async (path: string, init: Ask = {}) => {
    const response = await app.request(path, toInit(init))
    await checkResponse(app.routes, { method: init.method ?? 'GET', path }, response)
    return response
  }

  /** Does the same, and reads the response: `body` is the parsed JSON, or null if there is no body. */
  async function call(method: string, path: string, as?: string, json?: unknown, headers = {}) {
    const response = await request(path, { method, json, headers, ...(as ? { as } : {}) })
    const text = await response.text()
    const body: Body = text === '' ? null : JSON.parse(text)
    return { status: response.status, headers: response.headers, body, text }
  }

  /** Also serves the API over real HTTP, on a free loopback port; returns its URL. */
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
  const { teamId, user } = first
  const admin = await signIn(request, user.email)
  const people = createPeople({ store, request, teamId, admin })
  return {
    app,
    store,
    bus,
    exposure,
    replies,
    database,
    request,
    call,
    ...people,
    listen,
    stop,
    teamId,
    admin,
    user,
  }
}

type Request = (path: string, init: Ask) => Promise<Response>

/** Signs in and returns the cookie header. */
async function signIn(request: Request, email: string, password = PASSWORD): Promise<string> {
  const response = await request('/api/auth/login', { method: 'POST', json: { email, password } })
  if (response.status !== 200)
    throw new Error(`the sign-in responded with ${response.status}: ${await response.text()}`)
  return readCookie(response)
}

let hashed: Promise<string> | undefined

/** The hash of PASSWORD for all accounts that tests make in this process. */
const findHash = () => (hashed ??= hashPassword(PASSWORD))

type PeopleOptions = { store: Store & { db: Database }; request: Request; teamId: string; admin: string }

/** People and tokens of a service, of the team `teamId` if no other one is named. `admin` is the cookie of its ADMIN. */
function createPeople({ store, request, teamId, admin }: PeopleOptions) {
  /** Creates a user, adds it to `team` if a role is given, and signs it in. */
  async function signUp(role?: Exclude<Role, 'VIEWER'>, team = teamId) {
    const email = `${randomBytes(6).toString('hex')}@example.com`
    const operator = { kind: 'SYSTEM', id: null, name: 'test' } as const
    const scope = serviceScope(store, operator, [], { instanceAdmin: true })
    const person = { email, firstName: 'Ada', lastName: 'Byron', passwordHash: await findHash() }
    const user = await changeAccount(scope, 'ACCOUNT_CREATED', async (tx) => {
      const added = await addUser(tx, { ...person, instanceAdmin: false, confirmed: true })
      return { result: added, resourceId: added.id, details: { email, instanceAdmin: false } }
    })
    if (role) await store.db.insertInto('members').values({ teamId: team, userId: user.id, role }).execute()
    return { ...user, cookie: await signIn(request, email) }
  }

  /** Creates another team, with a new user as its only ADMIN. */
  async function otherTeam() {
    const user = await signUp()
    const actor = { kind: 'USER', id: user.id, name: 'Ada Byron' } as const
    const scope = serviceScope(store, actor, [], { userId: user.id })
    const team = await createTeam(scope, { name: `Team ${randomBytes(4).toString('hex')}` })
    return { ...user, teamId: team.id }
  }

  /** Creates an SDK token of the team in the name of `as`, and returns it. */
  async function token(role: Role, as = admin, team = teamId): Promise<string> {
    const path = `/api/teams/${team}/sdk-tokens`
    const response = await request(path, { method: 'POST', as, json: { name: `a ${role} token`, role } })
    if (response.status !== 201)
      throw new Error(`creating a token responded with ${response.status}: ${await response.text()}`)
    return ((await response.json()) as { token: string }).token
  }

  return {
    signIn: (email: string, password?: string) => signIn(request, email, password),
    signUp,
    otherTeam,
    token,
  }
}

export type Service = Awaited<ReturnType<typeof startService>>

let shared: Promise<{ service: Service; origin: string }> | undefined

/** The service that files of this process share. It ends with the process, and so does its database. */
const findShared = () =>
  (shared ??= startService({ rateLimits: false }).then(async (service) => ({
    service,
    origin: await service.listen(),
  })))

/**
 * A team of its own, with an ADMIN, on a service without an engine that other files of this process use too, which spares
 * seconds: for files that do not change what is the instance's. Rate limits are off, and `admin` is not the instance's.
 */
export async function shareService() {
  const { service, origin } = await findShared()
  const { owners: _owners, ...own } = await settle(service)
  return { ...service, ...own, listen: async () => origin, stop: async () => {} }
}

/** A new team of a service that several files use, and `owners`: the ADMINs of the teams that a file has made. */
export async function settle({ store, request, otherTeam }: Service) {
  const own = await otherTeam()
  const owners = [own]
  const people = createPeople({ store, request, teamId: own.teamId, admin: own.cookie })
  return {
    ...people,
    async otherTeam() {
      const other = await people.otherTeam()
      owners.push(other)
      return other
    },
    teamId: own.teamId,
    admin: own.cookie,
    user: own,
    owners,
  }
}

/** Makes keys with one new master key. */
export function makeKeys(): Keys {
  return { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) }
}

/** Reads the session cookie of a response, in the form of a Cookie header. */
export function readCookie(response: Response): string {
  const cookie = response.headers
    .getSetCookie()
    .find((line) => [SESSION_COOKIE, HOST_COOKIE].some((name) => line.startsWith(`${name}=`)))
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
