import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { openBus } from '../../../db/bus.ts'
import { changePlan } from '../../../db/people/teams.ts'
import { serviceScope } from '../../../db/scope.ts'
import { addApi } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startFreezer } from '../../support/servers/freezer.ts'
import { startService } from '../../support/service.ts'
import { listStatements } from '../../support/statements.ts'
import { until } from '../../support/until.ts'

/** A second, on a machine that others use too. What is remembered would be used for a minute. */
const SOON_MS = 4_000

const service = await keep(startService({ rateLimits: false }))
const freezer = await keep(startFreezer(service.database.url))
const bus = openBus(freezer.url, { name: 'frozen' })
afterAll(() => bus.stop())
const another = await keep(addApi(service, { bus }))
const { db } = service.store
const { teamId, admin } = service

type Api = { app: { request(path: string, init?: RequestInit): Response | Promise<Response> } }

type Ask = { path: string; as?: string; method?: string; headers?: Record<string, string> }

async function ask(api: Api, { path, as = '', method = 'GET', headers = {} }: Ask) {
  const shown: Record<string, string> = as.startsWith('sdk_')
    ? { authorization: `Bearer ${as}` }
    : { cookie: as }
  return api.app.request(path, { method, headers: { ...shown, ...headers } })
}

const status = async (api: Api, one: Ask) => (await ask(api, one)).status

const LOOKUP = /from sdk_tokens|from sessions|from "workflows"/

/** Asks both processes until they know the caller from memory, or the webhook. */
async function warm(one: Ask): Promise<void> {
  for (const [api, pool] of [
    [service, 'test'],
    [another, 'another'],
  ] as const)
    await until(async () => {
      const sent = await listStatements(pool, () => ask(api, one))
      return !sent.some((text) => LOOKUP.test(text))
    })
}

async function post(path: string, json: object): Promise<{ id: string }> {
  const { status, body } = await service.call('POST', path, admin, json)
  expect([path, status]).toEqual([path, 201])
  return body
}

const team = { path: `/api/teams/${teamId}` }
const members = `/api/teams/${teamId}/members`

async function makeHook() {
  const nodes = (value: string) => [
    { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in', secretHeader: { name: 'X-Key', value } } },
  ]
  const { id } = await post('/api/workflows', {
    teamId,
    name: crypto.randomUUID(),
    nodes: nodes('old'),
    edges: [],
  })
  const change = (json: object) => service.call('PUT', `/api/workflows/${id}`, admin, json)
  await change({ active: true })
  const hook = { path: `/hooks/${id}/in`, method: 'POST', headers: { 'x-key': 'old' } }
  return { id, hook, change, replaceSecret: () => change({ nodes: nodes('new'), edges: [] }) }
}

type Case = {
  one: Ask
  before: unknown
  after: unknown
  lose: () => Promise<unknown>
  look?: (api: Api) => Promise<unknown>
}

/** What is remembered, and how it ends. */
const CASES: Record<string, () => Promise<Case>> = {
  'a revoked token': async () => {
    const { id, token } = (
      await service.call('POST', `/api/teams/${teamId}/sdk-tokens`, admin, { name: 'a', role: 'ADMIN' })
    ).body
    const lose = () => service.call('DELETE', `/api/teams/${teamId}/sdk-tokens/${id}`, admin)
    return { one: { ...team, as: token }, before: 200, after: 401, lose }
  },
  'a removed member': async () => {
    const { id, cookie } = await service.signUp('BUILDER')
    const lose = () => service.call('DELETE', `${members}/${id}`, admin)
    return { one: { ...team, as: cookie }, before: 200, after: 403, lose }
  },
  'a lowered role': async () => {
    const { id, cookie } = await service.signUp('ADMIN')
    const lose = () => service.call('PUT', `${members}/${id}`, admin, { role: 'OPERATOR' })
    return { one: { path: members, as: cookie }, before: 200, after: 403, lose }
  },
  'a new member': async () => {
    const { email, cookie } = await service.signUp()
    const lose = () => post(members, { email, role: 'BUILDER' })
    return { one: { ...team, as: cookie }, before: 403, after: 200, lose }
  },
  'a deleted user': async () => {
    const { id, cookie } = await service.signUp('BUILDER')
    const lose = () => db.deleteFrom('users').where('id', '=', id).execute()
    return { one: { ...team, as: cookie }, before: 200, after: 401, lose }
  },
  'a session that is signed out': async () => {
    const { cookie } = await service.signUp('BUILDER')
    const lose = () => service.call('POST', '/api/auth/logout', cookie)
    return { one: { ...team, as: cookie }, before: 200, after: 401, lose }
  },
  'another secret of a webhook': async () => {
    const { hook, replaceSecret } = await makeHook()
    return { one: hook, before: 202, after: 401, lose: replaceSecret }
  },
  'an inactive workflow': async () => {
    const { hook, change } = await makeHook()
    return { one: hook, before: 202, after: 404, lose: () => change({ active: false }) }
  },
  'another plan': async () => {
    const other = await service.otherTeam()
    const one = {
      path: `/api/teams/${other.teamId}`,
      as: await service.token('VIEWER', other.cookie, other.teamId),
    }
    const look = async (api: Api) => Number((await ask(api, one)).headers.get('x-ratelimit-limit'))
    const operator = serviceScope(service.store, { kind: 'SYSTEM', id: null, name: 'test' }, [
      [other.teamId, 'ADMIN'],
    ])
    return { one, before: 5_000, after: 300, lose: () => changePlan(operator, other.teamId, 'TEAM'), look }
  },
}

const terminate = () =>
  sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'frozen bus'
    and datname = current_database()`.execute(db)

test.each(Object.keys(CASES))(
  '%s is seen at once by the process that did it, and soon by others',
  async (name) => {
    const { one, before, after, lose, look = (api) => status(api, one) } = await CASES[name]!()
    await warm(one)
    expect([await look(service), await look(another)]).toEqual([before, before])
    await lose()
    expect(await look(service)).toBe(after)
    await until(() => look(another), { holds: (found) => found === after, withinMs: SOON_MS })
  },
)

test.each([
  ['is ended', terminate, async () => {}],
  ['stands still', async () => freezer.freeze(), async () => freezer.thaw()],
])('so it is while the connection that listens %s', async (_, hurt, mend) => {
  for (const name of ['a revoked token', 'a removed member', 'an inactive workflow']) {
    const { one, after, lose } = await CASES[name]!()
    await warm(one)
    await hurt()
    await lose()
    await until(() => status(another, one), { holds: (found) => found === after, withinMs: SOON_MS })
    await mend()
  }
})

test('a process that does not hear reads PostgreSQL, and remembers again once it hears', async () => {
  const one = { ...team, as: admin }
  await warm(one)
  freezer.freeze()
  await until(() => performance.now() - bus.heardUntil() > 1_000)
  const sent = await listStatements('another', () => ask(another, one))
  expect(sent.some((text) => LOOKUP.test(text))).toBe(true)
  freezer.thaw()
  await warm(one)
})

test('a call of a webhook that was judged by memory starts nothing if the webhook is another one by then', async () => {
  const { id, hook, change, replaceSecret } = await makeHook()
  await warm(hook)
  freezer.freeze()
  await change({ name: 'renamed' })
  const response = await ask(another, hook)
  expect(response.status).toBe(202)
  const { executionId } = (await response.json()) as { executionId: string }
  const run = await db
    .selectFrom('executions')
    .select('workflowName')
    .where('id', '=', executionId)
    .executeTakeFirst()
  expect(run).toEqual({ workflowName: 'renamed' })
  freezer.thaw()
  await warm(hook)
  freezer.freeze()
  await replaceSecret()
  expect(await status(another, hook)).toBeOneOf([401, 503])
  freezer.thaw()
  await warm(hook)
  freezer.freeze()
  await service.call('DELETE', `/api/workflows/${id}`, admin)
  expect(await status(another, { ...hook, headers: { 'x-key': 'new' } })).toBe(404)
  freezer.thaw()
})

test('what is remembered of one team gives nothing in another', async () => {
  const other = await service.otherTeam()
  const token = await service.token('ADMIN')
  await warm({ ...team, as: token })
  const { id } = await makeHook()
  const foreign = [`/api/teams/${other.teamId}`, `/api/variables?teamId=${other.teamId}`]
  for (const as of [token, admin])
    for (const path of foreign) expect([path, await status(service, { path, as })]).toEqual([path, 403])
  const execute = `/api/workflows/${id}/execute`
  expect((await service.call('POST', execute, other.cookie, { teamId: other.teamId })).status).toBe(403)
})
