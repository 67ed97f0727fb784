import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { DEFAULT_SETTINGS } from '../../../db/workflows/settings.ts'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const other = await service.otherTeam()
const builder = (await service.signUp('BUILDER')).cookie
const operator = (await service.signUp('OPERATOR')).cookie
const viewer = await service.token('VIEWER')

const NOBODY = '00000000-0000-4000-8000-000000000000'
const nodes = [
  { id: 'start', type: 'MANUAL_TRIGGER' },
  { id: 'set', type: 'SET', config: { values: { x: 1 } } },
]
const edges = [{ source: 'start', target: 'set' }]

let count = 0
async function create(more: object = {}, as = builder): Promise<Body> {
  const json = { teamId: service.teamId, name: `workflow ${++count}`, nodes, edges, ...more }
  const { status, body } = await service.call('POST', '/api/workflows', as, json)
  expect(status, JSON.stringify(body)).toBe(201)
  return body
}

const audit = async (id: string) =>
  (
    await service.store.db
      .selectFrom('auditEntries')
      .select(['action', 'details'])
      .where('resourceId', '=', id)
      .orderBy('seq')
      .execute()
  ).map(({ action, details }) => ({ action, details }))

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

test('a created workflow is inactive, has seven fields and a Location, and says what was not read', async () => {
  const name = `Orders ${crypto.randomUUID()}`
  const json = {
    teamId: service.teamId,
    name: `  ${name}  `,
    description: 'd',
    nodes,
    edges,
    active: true,
    id: NOBODY,
  }
  const { status, body, headers } = await service.call('POST', '/api/workflows', builder, json)
  expect(status).toBe(201)
  expect(body).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
    name,
    description: 'd',
    active: false,
    teamId: service.teamId,
    createdAt: TIME,
    updatedAt: TIME,
    warnings: [
      { path: 'active', message: expect.stringContaining('"active" is unknown here and was not read') },
    ],
  })
  expect(body.id).not.toBe(NOBODY)
  expect(headers.get('location')).toBe(`/api/workflows/${body.id}`)
  expect(await audit(body.id)).toEqual([{ action: 'WORKFLOW_CREATED', details: { name, nodeCount: 2 } }])
})

test('nodes, edges and description may be left out', async () => {
  const { body } = await service.call('POST', '/api/workflows', builder, {
    teamId: service.teamId,
    name: `empty ${crypto.randomUUID()}`,
  })
  expect(body.description).toBeNull()
  const read = await service.call('GET', `/api/workflows/${body.id}`, viewer)
  expect(read.body).toEqual({
    ...body,
    nodes: [],
    edges: [],
    expressions: 2,
    settings: DEFAULT_SETTINGS,
    version: 1,
    publishedVersion: 1,
    draftVersion: null,
    draftBase: null,
  })
})

test('a read returns the graph in its stored form, with settings and version', async () => {
  const made = await create({ settings: { timeoutMs: 5_000 } })
  const { status, body } = await service.call('GET', `/api/workflows/${made.id}`, viewer)
  expect(status).toBe(200)
  expect(body).toEqual({
    ...made,
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', name: 'Manual trigger 1', config: {}, onError: 'FAIL' },
      { id: 'set', type: 'SET', name: 'Set 1', config: { values: { x: 1 } }, onError: 'FAIL' },
    ],
    edges: [{ source: 'start', target: 'set', sourceHandle: null }],
    expressions: 2,
    settings: { ...DEFAULT_SETTINGS, timeoutMs: 5_000 },
    version: 1,
    publishedVersion: 1,
    draftVersion: null,
    draftBase: null,
  })
})

test('config keys that a node type does not know are dropped and listed in X-Unknown-Fields', async () => {
  const items = [1, 2, 3]
  const nodes = [
    { id: 'limit', type: 'LIMIT', config: { items, count: 1, ofset: 3, keep: 'first', none: null } },
    { id: 'switch', type: 'SWITCH', config: { cases: [{ handle: 'a', condition: 'true', naïve: 1 }] } },
    { id: 'any', type: 'SET', data: { values: { any: { thing: 1 } }, mode: 'x' } },
    {
      id: 'ask',
      type: 'APPROVAL',
      config: { message: 'm', form: { properties: { a: { type: 'string' } } } },
    },
  ]
  const paths = ['nodes[0].config.ofset', 'nodes[1].config.cases[0].naïve', 'nodes[2].data.mode']
  const told = ({ headers }: { headers: Headers }) => headers.get('x-unknown-fields')
  const made = await service.call('POST', '/api/workflows', builder, {
    teamId: service.teamId,
    name: crypto.randomUUID(),
    nodes,
  })
  expect(made.status).toBe(201)
  expect(told(made)).toMatch(/^[ -~]+$/)
  expect(JSON.parse(told(made)!)).toEqual(paths)
  const path = `/api/workflows/${made.body.id}`
  expect(JSON.parse(told(await service.call('PUT', path, builder, { nodes }))!)).toEqual(paths)
  const { body } = await service.call('GET', path, builder)
  expect(body.nodes[0].config).toEqual({ items, count: 1, offset: 0, keep: 'first' })
  expect(told(await service.call('PUT', path, builder, body))).toBeNull()
  const many = Array.from({ length: 500 }, (_, at) => ({
    id: `n${at}`,
    type: 'NO_OP',
    config: { ['ï'.repeat(900)]: 1 },
  }))
  const long = told(await service.call('PUT', path, builder, { nodes: many, edges: [] }))!
  expect([JSON.parse(long).length, long.length < 8_000]).toEqual([10, true])
})

test('the name of a workflow is unique in its team', async () => {
  const { name } = await create()
  const again = await service.call('POST', '/api/workflows', builder, { teamId: service.teamId, name })
  expect(again.status).toBe(409)
  expect(again.body).toEqual({
    status: 409,
    error: 'Conflict',
    message: `The team already has a workflow named "${name}"`,
    timestamp: TIME,
    path: '/api/workflows',
  })
  const elsewhere = await service.call('POST', '/api/workflows', other.cookie, { teamId: other.teamId, name })
  expect(elsewhere.status).toBe(201)
  const { id } = await create()
  expect((await service.call('PUT', `/api/workflows/${id}`, builder, { name })).status).toBe(409)
  const raced = `race ${crypto.randomUUID()}`
  const racing = Array.from({ length: 10 }, () =>
    service.call('POST', '/api/workflows', builder, { teamId: service.teamId, name: raced }),
  )
  const statuses = (await Promise.all(racing)).map(({ status }) => status).sort()
  expect(statuses).toEqual([201, ...Array(9).fill(409)])
})

test('every problem of a bad body is reported with its path', async () => {
  const { status, body } = await service.call('POST', '/api/workflows', builder, {
    teamId: 'x',
    name: ' ',
    description: 5,
    settings: { timeoutMs: 0 },
    nodes: [{ id: 'a', type: 'SET' }, 5, { id: 'b', type: 'NONE' }],
    edges: 'none',
  })
  expect(status).toBe(400)
  expect(body.errors.map((problem: Body) => problem.path)).toEqual([
    'teamId',
    'name',
    'description',
    'settings.timeoutMs',
    'edges',
    'nodes[0].config',
    'nodes[1]',
    'nodes[2].type',
  ])
  // The message is not cut although it is long: a cut list would look complete.
  expect(body.errors.at(-1).message).toMatch(
    /^must be one of MANUAL_TRIGGER, .*, HTTP_REQUEST, .*\w, not "NONE"$/,
  )
  expect((await service.call('POST', '/api/workflows', builder, {})).body.errors).toEqual([
    { path: 'teamId', message: 'is required' },
    { path: 'name', message: 'is required' },
  ])
  for (const settings of [null, 'x', { timeoutMs: 1.5e12 }, { timeoutMs: '5000' }, { timeoutMs: 1000.5 }]) {
    expect(
      (await service.call('POST', '/api/workflows', builder, { teamId: service.teamId, name: 'n', settings }))
        .status,
    ).toBe(400)
  }
  for (const json of [[], 'x', 7, null]) {
    expect((await service.call('POST', '/api/workflows', builder, json)).status).toBe(400)
  }
})

test('every problem of a bad graph is reported with its path', async () => {
  const { status, body } = await service.call('POST', '/api/workflows', builder, {
    teamId: service.teamId,
    name: 'bad',
    nodes: [...nodes, { id: 'a', type: 'HTTP_REQUEST', config: {} }, { id: 'constructor', type: 'X' }],
    edges: [
      { source: 'set', target: 'a' },
      { source: 'a', target: 'set' },
      { source: 'a', target: 'gone' },
    ],
  })
  expect(status).toBe(400)
  expect(body.errors.map((problem: Body) => problem.path)).toEqual([
    'nodes[2].config.url',
    'nodes[3].id',
    'nodes[3].type',
    'edges[2].target',
    'edges[1]',
  ])
  expect(body.message).toBe('nodes[2].config.url: is required (and 4 more)')
})

test.each([
  ['501 nodes', { nodes: Array.from({ length: 501 }, (_, at) => ({ id: `n${at}`, type: 'NO_OP' })) }],
  ['nodes that are not an array', { nodes: { 0: {} } }],
  ['edges without nodes', { edges: [{ source: 'a', target: 'b' }] }],
  [
    'a graph of over 1 MB',
    { nodes: [{ id: 'a', type: 'SET', config: { values: { t: 'x'.repeat(1_000_100) } } }] },
  ],
])('refuses %s', async (_what, graph) => {
  const json = { teamId: service.teamId, name: 'refused', ...graph }
  expect((await service.call('POST', '/api/workflows', builder, json)).status).toBe(400)
})

test('refuses prototype keys, deep nesting, broken JSON and big bodies', async () => {
  const send = async (body: string) =>
    (
      await service.request('/api/workflows', {
        method: 'POST',
        as: builder,
        headers: { 'content-type': 'application/json' },
        body,
      })
    ).status
  const wrap = (values: string) =>
    `{"teamId":"${service.teamId}","name":"p","nodes":[{"id":"a","type":"SET","config":{"values":${values}}}]}`
  expect(await send(wrap('{"__proto__":{"x":1}}'))).toBe(400)
  expect(await send(wrap('['.repeat(100) + ']'.repeat(100)))).toBe(400)
  expect(await send('{"teamId":')).toBe(400)
  expect(await send(wrap(`"${'x'.repeat(2_000_000)}"`))).toBe(413)
})

test('responds 401 without credentials, 403 to lower roles and other teams, 404 if missing', async () => {
  const { id } = await create()
  const routes: [string, string, string | undefined, unknown?][] = [
    ['GET', `/api/workflows?teamId=${service.teamId}`, viewer],
    ['GET', `/api/workflows/${id}`, viewer],
    ['POST', '/api/workflows', undefined, { teamId: service.teamId, name: 'mine' }],
    ['PUT', `/api/workflows/${id}`, undefined, { description: 'x' }],
    ['DELETE', `/api/workflows/${id}`, undefined],
  ]
  for (const [method, path, reader, json] of routes) {
    expect((await service.call(method, path, undefined, json)).status, `${method} ${path}`).toBe(401)
    expect((await service.call(method, path, other.cookie, json)).status, `${method} ${path}`).toBe(403)
    if (reader) expect((await service.call(method, path, reader, json)).status).toBe(200)
    else
      for (const as of [viewer, operator])
        expect((await service.call(method, path, as, json)).status).toBe(403)
  }
  for (const [method, json] of [['GET'], ['PUT', {}], ['DELETE']] as const) {
    expect((await service.call(method, `/api/workflows/${NOBODY}`, builder, json)).status).toBe(404)
    expect((await service.call(method, '/api/workflows/none', builder, json)).status).toBe(400)
  }
  expect((await service.call('GET', `/api/workflows?teamId=${NOBODY}`, builder)).status).toBe(404)
  expect((await service.call('POST', '/api/workflows', builder, { teamId: NOBODY, name: 'x' })).status).toBe(
    404,
  )
  const token = await service.token('BUILDER')
  await create({}, token)
})

test('a list is a page, newest first, and its search ignores case', async () => {
  const team = await service.otherTeam()
  const make = async (name: string) => {
    const { body } = await service.call('POST', '/api/workflows', team.cookie, {
      teamId: team.teamId,
      name,
      nodes,
      edges,
    })
    return body
  }
  const made: Body[] = []
  for (const name of ['alpha', 'Beta 100%', 'beta_200', 'gamma', 'back\\slash']) made.push(await make(name))
  const list = async (query: string) =>
    (await service.call('GET', `/api/workflows?teamId=${team.teamId}${query}`, team.cookie)).body
  const all = await list('')
  expect({ ...all, content: all.content.length }).toEqual({
    content: 5,
    totalElements: 5,
    totalPages: 1,
    number: 0,
    size: 20,
  })
  expect(all.content[1]).toEqual({
    ...made[3],
    nodeCount: 2,
    lastExecutionStatus: null,
    lastExecutionAt: null,
  })
  const names = (page: Body) => page.content.map((item: Body) => item.name)
  expect(names(all)).toEqual(['back\\slash', 'gamma', 'beta_200', 'Beta 100%', 'alpha'])
  const second = await list('&page=1&size=2')
  expect(names(second)).toEqual(['beta_200', 'Beta 100%'])
  expect(second).toMatchObject({ totalElements: 5, totalPages: 3, number: 1, size: 2 })
  expect(names(await list('&page=9'))).toEqual([])
  expect(names(await list('&search=BETA'))).toEqual(['beta_200', 'Beta 100%'])
  expect(names(await list('&search=%25'))).toEqual(['Beta 100%'])
  expect(names(await list('&search=_'))).toEqual(['beta_200'])
  expect(names(await list('&search=%5C'))).toEqual(['back\\slash'])
  expect(names(await list('&search='))).toHaveLength(5)
  expect(names(await list('&active=true'))).toEqual([])
  await service.call('PUT', `/api/workflows/${made[3].id}`, team.cookie, { active: true })
  expect(names(await list('&active=true'))).toEqual(['gamma'])
  expect(names(await list('&active=false&search=beta'))).toEqual(['beta_200', 'Beta 100%'])
  expect((await list('&active=false')).totalElements).toBe(4)
  expect(names(await list('&agent=true'))).toEqual([])
  const demo = { teamId: team.teamId, name: 'Demo', type: 'DEMO', data: {} }
  const { id: credentialId } = (await service.call('POST', '/api/credentials', team.cookie, demo)).body
  const agent = (reached: boolean) => ({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
      {
        id: 'reply',
        type: 'LLM',
        config: { credentialId, model: 'demo', prompt: 'Say {{ $input.message }}' },
      },
    ],
    edges: [{ source: reached ? 'chat' : 'start', target: 'reply' }],
  })
  const path = `/api/workflows/${made[4].id}`
  await service.call('PUT', path, team.cookie, agent(true))
  expect(names(await list('&agent=true'))).toEqual(['back\\slash'])
  expect((await list('&agent=true&size=1')).totalElements).toBe(1)
  expect(names(await list('&agent=false&search=a'))).toEqual(['gamma', 'beta_200', 'Beta 100%', 'alpha'])
  expect(names(await list('&agent=true&active=true'))).toEqual([])
  // Another version is judged anew.
  await service.call('PUT', path, team.cookie, agent(false))
  expect(names(await list('&agent=true'))).toEqual([])

  const { executionId, startedAt } = (
    await service.call('POST', `/api/workflows/${made[0].id}/execute`, team.cookie, { teamId: team.teamId })
  ).body
  expect((await list('&search=alpha')).content[0]).toMatchObject({
    lastExecutionStatus: 'PENDING',
    lastExecutionAt: startedAt,
  })
  await service.store.db
    .updateTable('executions')
    .set({ status: 'FAILED' })
    .where('id', '=', executionId)
    .execute()
  expect((await list('&search=alpha')).content[0].lastExecutionStatus).toBe('FAILED')
})

test.each([
  '',
  '&page=-1',
  '&page=x',
  '&size=0',
  '&size=101',
  '&page=1.5',
  '&page=1&page=2',
  '&active=yes',
  '&agent=1',
])('refuses the list query %j', async (query) => {
  const team = query === '' ? '' : `teamId=${service.teamId}`
  expect((await service.call('GET', `/api/workflows?${team}${query}`, builder)).status).toBe(400)
})

test('an update keeps fields that are not given, and only a changed graph makes a new version', async () => {
  const made = await create({ description: 'old', settings: { timeoutMs: 9_000 } })
  const path = `/api/workflows/${made.id}`
  const put = async (json: object) => (await service.call('PUT', path, builder, json)).body

  const named = await put({ name: `renamed ${made.id}`, description: null, settings: { timeoutMs: null } })
  expect(named).toMatchObject({
    name: `renamed ${made.id}`,
    description: null,
    version: 1,
    expressions: 2,
    settings: DEFAULT_SETTINGS,
  })
  expect(named.nodes).toHaveLength(2)

  const more = await put({ nodes: [...nodes, { id: 'b', type: 'NO_OP' }] })
  expect(more).toMatchObject({ version: 2, edges: [{ source: 'start', target: 'set' }] })
  expect(more.nodes).toHaveLength(3)
  const joined = await put({ edges: [...edges, { source: 'set', target: 'b' }] })
  expect(joined).toMatchObject({ version: 3 })
  expect(joined.nodes).toHaveLength(3)
  expect((await service.call('GET', path, builder)).body).toEqual(joined)

  // The response of a read can be sent back: it changes nothing, and unknown fields are dropped.
  expect(await put(joined)).toEqual(joined)
  expect(await put({})).toEqual(joined)

  const broken = await service.call('PUT', path, builder, { nodes: [nodes[0]] })
  expect(broken.status).toBe(400)
  expect(broken.body.errors.map((problem: Body) => problem.path)).toEqual([
    'edges[0].target',
    'edges[1].source',
    'edges[1].target',
  ])
  const versions = await service.store.db
    .selectFrom('workflowVersions')
    .select(['version', 'nodeCount'])
    .where('workflowId', '=', made.id)
    .orderBy('version')
    .execute()
  expect(versions).toEqual([
    { version: 1, nodeCount: 2 },
    { version: 2, nodeCount: 3 },
    { version: 3, nodeCount: 3 },
  ])
  expect((await audit(made.id)).map(({ details }) => details)).toMatchObject([
    {},
    { changed: ['name', 'description', 'settings'], version: 1 },
    { changed: ['version'], version: 2 },
    { changed: ['version'], version: 3 },
    { changed: [], version: 3 },
    { changed: [], version: 3 },
  ])
})

test.each([
  { active: 1 },
  { active: null },
  { name: null },
  { name: '' },
  { nodes: 'x' },
  { edges: {} },
  { settings: 5 },
  { settings: [] },
])('refuses the update %j', async (json) => {
  const { id } = await create()
  expect((await service.call('PUT', `/api/workflows/${id}`, builder, json)).status).toBe(400)
})

test('refuses an update that is not an object', async () => {
  const { id } = await create()
  for (const json of [[], 'x', 7, null]) {
    expect((await service.call('PUT', `/api/workflows/${id}`, builder, json)).status).toBe(400)
  }
})

test('activating needs triggers that lead to every node; while active, so does every change', async () => {
  const { id } = await create({ edges: [] })
  const put = (json: object) => service.call('PUT', `/api/workflows/${id}`, builder, json)
  const refused = await put({ active: true })
  expect(refused.status).toBe(400)
  expect(refused.body.errors).toEqual([{ path: 'nodes[1]', message: 'no trigger leads to the node "set"' }])
  expect((await put({ active: true, nodes: [nodes[1]] })).status).toBe(400)

  const active = await put({ active: true, edges })
  expect(active.body).toMatchObject({ active: true, version: 2 })
  expect((await put({ edges: [] })).status).toBe(400)
  expect((await put({ description: 'still active' })).body.active).toBe(true)
  expect((await put({ edges: [], active: false })).body).toMatchObject({ active: false, version: 3 })
  expect((await audit(id)).map(({ action }) => action)).toEqual([
    'WORKFLOW_CREATED',
    'WORKFLOW_ACTIVATED',
    'WORKFLOW_UPDATED',
    'WORKFLOW_DEACTIVATED',
  ])
})

test('concurrent updates lose nothing', async () => {
  const { id } = await create()
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      at % 2
        ? service.call('PUT', `/api/workflows/${id}`, builder, { description: `d${at}` })
        : service.call('PUT', `/api/workflows/${id}`, builder, {
            nodes: [...nodes, { id: `n${at}`, type: 'NO_OP' }],
          }),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
  const versions = answers.filter((_, at) => at % 2 === 0).map(({ body }) => body.version)
  expect(versions.sort((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  const { body } = await service.call('GET', `/api/workflows/${id}`, builder)
  expect(body).toMatchObject({ version: 11, description: expect.stringMatching(/^d\d+$/) })
})

test("a webhook's secret is shown to nobody once it is saved", async () => {
  const hook = {
    id: 'hook',
    type: 'WEBHOOK_TRIGGER',
    config: { path: 'in', secretHeader: { name: 'X-Key', value: 'topsecret' } },
  }
  const { id } = await create({ nodes: [hook], edges: [] })
  for (const as of [builder, operator, viewer]) {
    const { body, text } = await service.call('GET', `/api/workflows/${id}`, as)
    expect(body.nodes[0].config.secretHeader).toEqual({ name: 'X-Key', credentialId: expect.any(String) })
    expect(text).not.toContain('topsecret')
  }
})

test('deleting a workflow removes everything and queues its removal from Temporal', async () => {
  const { id } = await create()
  const execute = async () =>
    (await service.call('POST', `/api/workflows/${id}/execute`, operator, { teamId: service.teamId })).body
      .executionId as string
  const [pending, running, done, old] = [await execute(), await execute(), await execute(), await execute()]
  const { db } = service.store
  await db.updateTable('executions').set({ status: 'RUNNING' }).where('id', '=', running).execute()
  await sql`update executions set status = 'SUCCESS', completed_at = now() - interval '1 day' where id = ${done}`.execute(
    db,
  )
  await sql`update executions set status = 'SUCCESS', completed_at = now() - interval '32 days' where id = ${old}`.execute(
    db,
  )

  const { status, body } = await service.call('DELETE', `/api/workflows/${id}`, builder)
  expect(status).toBe(200)
  expect(body).toEqual({ message: 'Workflow deleted' })
  const queued = await db
    .selectFrom('outbox')
    .select(['kind', 'subjectId'])
    .where('subjectId', 'in', [pending, running, done, old])
    .orderBy('subjectId')
    .execute()
  expect(queued).toEqual(
    [
      { kind: 'DELETE', subjectId: pending },
      { kind: 'DELETE', subjectId: running },
      { kind: 'DELETE', subjectId: done },
      { kind: 'START', subjectId: old },
    ].sort((a, b) => (a.subjectId < b.subjectId ? -1 : 1)),
  )
  for (const [method, path] of [
    ['GET', `/api/workflows/${id}`],
    ['DELETE', `/api/workflows/${id}`],
    ['GET', `/api/executions/${done}`],
    ['GET', `/api/executions?workflowId=${id}`],
  ] as const) {
    expect((await service.call(method, path, builder)).status, `${method} ${path}`).toBe(404)
  }
  expect(
    (await service.call('POST', `/api/workflows/${id}/execute`, operator, { teamId: service.teamId })).status,
  ).toBe(404)
  for (const table of ['executions', 'workflowVersions', 'executionCounts'] as const) {
    expect(await db.selectFrom(table).selectAll().where('workflowId', '=', id).execute()).toEqual([])
  }
  expect((await audit(id)).at(-1)).toEqual({
    action: 'WORKFLOW_DELETED',
    details: { name: expect.any(String), openOrRecentExecutions: 3 },
  })
})

test('executions that are started while their workflow is deleted leave nothing behind', async () => {
  const { id } = await create()
  const starts = Array.from({ length: 20 }, () =>
    service.call('POST', `/api/workflows/${id}/execute`, operator, { teamId: service.teamId }),
  )
  const deleted = service.call('DELETE', `/api/workflows/${id}`, builder)
  const statuses = (await Promise.all(starts)).map(({ status }) => status)
  expect((await deleted).status).toBe(200)
  expect([...new Set(statuses)].filter((status) => status !== 202 && status !== 404)).toEqual([])
  const { db } = service.store
  expect(await db.selectFrom('executions').select('id').where('workflowId', '=', id).execute()).toEqual([])
  expect(await db.selectFrom('executionCounts').selectAll().where('workflowId', '=', id).execute()).toEqual(
    [],
  )
})

test('node types are listed with the JSON Schema of their config', async () => {
  const { status, body } = await service.call('GET', '/api/node-types', viewer)
  expect(status).toBe(200)
  expect(body.map((row: Body) => row.type)).toEqual(
    expect.arrayContaining(['MANUAL_TRIGGER', 'HTTP_REQUEST', 'NO_OP']),
  )
  expect(body.find((row: Body) => row.type === 'TEMPLATE')).toEqual({
    type: 'TEMPLATE',
    kind: 'pure',
    credentialUses: [],
    summary: expect.stringMatching(/\w.*\.$/),
    handles: [null],
    retry: { maxAttempts: 1, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 60_000 },
    timeoutMs: 10_000,
    main: ['text'],
    mainBy: null,
    config: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { text: { type: 'string', minLength: 1, description: expect.any(String) } },
      required: ['text'],
    },
  })
  expect(body.find((row: Body) => row.type === 'IF_ELSE').handles).toEqual(['true', 'false'])
  expect((await service.call('GET', '/api/node-types', undefined)).status).toBe(401)

  // Forms and programs say of each setting what the schema says, so none is without words, at any depth.
  const silent = body.flatMap(({ type, config }: Body) => listSilent(config, type))
  expect(silent).toEqual([])
  // What comes first in a form is a setting that there is.
  const strange = body.flatMap(({ type, main, mainBy, config }: Body) => {
    const known = [config, ...(config.anyOf ?? [])].flatMap(({ properties = {} }) => Object.keys(properties))
    expect(main.length === 0, type).toBe(known.length === 0)
    const named = [...main, ...(mainBy ? [mainBy.key, ...Object.values(mainBy.keys).flat()] : [])]
    return named.filter((key) => !known.includes(key)).map((key) => `${type}.${key}`)
  })
  expect(strange).toEqual([])
})

test('what a workflow is made of besides its nodes is described too', async () => {
  const { status, body } = await service.call('GET', '/api/workflow-schema', viewer)
  expect(status).toBe(200)
  expect(body.node.properties.retry.anyOf[0].properties).toHaveProperty('maxAttempts.description')
  expect(body.edge.required).toEqual(['source', 'target'])
  expect(body.settings.properties.saveData.default).toEqual({ inputs: true, outputs: true })
  for (const part of ['node', 'edge', 'settings']) expect(listSilent(body[part], part)).toEqual([])
  // The notes stand on the canvas.
  const { notes: _, ...shown } = body.settings.properties
  expect(body.settingGroups.flatMap(({ keys }: Body) => keys).sort()).toEqual(Object.keys(shown).sort())
  expect((await service.call('GET', '/api/workflow-schema', undefined)).status).toBe(401)
})

/** The properties of a JSON Schema, at every depth, that say nothing about themselves. */
function listSilent(schema: Body, path: string): string[] {
  const { properties = {}, anyOf = [], oneOf = [], items, additionalProperties } = schema
  const own = Object.entries<Body>(properties).flatMap(([key, inner]) => [
    ...(/^\p{Lu}.*\.$/su.test(inner.description ?? '') ? [] : [`${path}.${key}`]),
    ...listSilent(inner, `${path}.${key}`),
  ])
  const parts = [...anyOf, ...oneOf, items, additionalProperties].filter((one) => typeof one === 'object')
  return [...own, ...parts.flatMap((part) => listSilent(part, path))]
}
