import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createChatting } from '../../support/chat/chatting.ts'
import { createVisiting, PAGE } from '../../support/chat/visiting.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const { simpleAgent } = createChatting(host)
const { addWidget, pathOf, visit, arrive } = createVisiting(host)
const { teamId, admin, call } = host
const builder = await host.signUp('BUILDER')
const operator = await host.signUp('OPERATOR')
const viewer = await host.token('VIEWER')
const workflowId = await simpleAgent()

const NEW = { teamId, name: 'Help desk', workflowId }

describe('a widget', () => {
  test('is made with all that it needs, changed key by key, and read by OPERATORs', async () => {
    const made = await call('POST', '/api/widgets', builder.cookie, { ...NEW, theme: { title: 'Hi' } })
    expect(made.status).toBe(201)
    expect(made.headers.get('location')).toBe(`/api/widgets/${made.body.id}`)
    expect(made.body).toMatchObject({
      key: expect.stringMatching(/^wk_[\w-]{24}$/),
      teamId,
      workflowId,
      allowedOrigins: [],
      enabled: true,
      theme: { title: 'Hi', position: 'bottom-right' },
      limits: { perVisitor: 50, perDay: 1_000 },
      collectEmail: false,
    })
    const path = `/api/widgets/${made.body.id}`
    const changed = await call('PUT', path, builder.cookie, {
      allowedOrigins: ['HTTPS://www.Example.com:443/', PAGE, 'http://127.0.0.1:8080'],
      theme: { colours: { accent: '#AA0000' }, position: 'bottom-left' },
      limits: { perDay: 5 },
      collectEmail: true,
    })
    expect(changed).toMatchObject({
      status: 200,
      body: {
        allowedOrigins: [PAGE, 'http://127.0.0.1:8080'],
        theme: {
          ...made.body.theme,
          position: 'bottom-left',
          colours: { ...made.body.theme.colours, accent: '#aa0000' },
        },
        limits: { perVisitor: 50, perDay: 5 },
        collectEmail: true,
      },
    })
    expect((await call('GET', path, operator.cookie)).body).toEqual(changed.body)
    const list = await call('GET', `/api/widgets?teamId=${teamId}`, operator.cookie)
    expect(list.body).toContainEqual(changed.body)
    for (const [as, status] of [
      [viewer, 403],
      [operator.cookie, 200],
    ] as const)
      expect((await call('GET', path, as)).status).toBe(status)
    for (const [method, at] of [
      ['PUT', path],
      ['DELETE', path],
      ['POST', `${path}/rotate-key`],
    ] as const)
      expect((await call(method, at, operator.cookie, method === 'PUT' ? {} : undefined)).status).toBe(403)
    expect((await call('POST', '/api/widgets', operator.cookie, NEW)).status).toBe(403)
    // What changes nothing leaves no entry.
    await call('PUT', path, builder.cookie, { collectEmail: true })
    await call('POST', `${path}/rotate-key`, builder.cookie)
    await call('DELETE', path, builder.cookie)
    expect((await call('GET', path, builder.cookie)).status).toBe(404)
    const entries = await host.store.db
      .selectFrom('auditEntries')
      .select(['action', 'details'])
      .where('resourceId', '=', made.body.id)
      .where('action', '<>', 'ACCESS_DENIED')
      .orderBy('seq')
      .execute()
    expect(entries.map(({ action }) => action)).toEqual([
      'WIDGET_CREATED',
      'WIDGET_UPDATED',
      'WIDGET_KEY_ROTATED',
      'WIDGET_DELETED',
    ])
    expect(JSON.stringify(entries)).not.toContain(made.body.key)
  })

  test('is refused with all that is wrong about it', async () => {
    const bad = await call('POST', '/api/widgets', admin, {
      ...NEW,
      name: ' ',
      allowedOrigins: [
        'https://a.example.com/path',
        '*',
        'https://*.example.com',
        'javascript:1',
        'https://u@x.y',
        'https://a.example.com;script-src',
        'https://a.example.com%2Cx',
      ],
      theme: { colours: { accent: 'red' }, position: 'top' },
      limits: { perVisitor: 0, perDay: 1.5 },
      enabled: 1,
    })
    expect(bad.status).toBe(400)
    expect(bad.body.errors.map(({ path }: { path: string }) => path).sort()).toEqual(
      [
        ...[0, 1, 2, 3, 4, 5, 6].map((at) => `allowedOrigins[${at}]`),
        ...[
          'enabled',
          'limits.perDay',
          'limits.perVisitor',
          'name',
          'theme.colours.accent',
          'theme.position',
        ],
      ].sort(),
    )
    const stranger = await host.otherTeam()
    const plain = await host.create({
      nodes: [{ id: 'in', type: 'MANUAL_TRIGGER', config: {} }],
      edges: [],
    } as never)
    for (const [json, as, status] of [
      [{ ...NEW, workflowId: plain }, admin, 422],
      [{ ...NEW, workflowId: crypto.randomUUID() }, admin, 404],
      // The workflow of another team is as if there were none.
      [{ ...NEW, teamId: stranger.teamId }, stranger.cookie, 404],
      [NEW, stranger.cookie, 403],
    ] as const)
      expect((await call('POST', '/api/widgets', as, json)).status).toBe(status)
    const { id } = await addWidget()
    expect((await call('PUT', `/api/widgets/${id}`, admin, { workflowId: plain })).status).toBe(422)
    expect((await call('GET', `/api/widgets/${id}`, stranger.cookie)).status).toBe(403)
  })

  test('is one of at most a hundred of a team', async () => {
    const other = await host.otherTeam()
    await sql`insert into widgets (id, team_id, name, key, allowed_origins, enabled, theme, per_visitor, per_day, collect_email)
      select gen_random_uuid(), ${other.teamId}, 'a', 'k' || n, '{}', false, '{}', 1, 1, false
      from generate_series(1, 100) n`.execute(host.store.db)
    const credential = await call('POST', '/api/credentials', other.cookie, {
      ...{ teamId: other.teamId, name: 'demo', type: 'DEMO', data: {} },
    })
    const config = { credentialId: credential.body.id, model: 'demo', prompt: 'x' }
    const made = await call('POST', '/api/workflows', other.cookie, {
      ...{ teamId: other.teamId, name: 'Agent' },
      nodes: [
        { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
        { id: 'llm', type: 'LLM', config },
      ],
      edges: [{ source: 'chat', target: 'llm' }],
    })
    const json = { teamId: other.teamId, name: 'One more', workflowId: made.body.id }
    const refused = await call('POST', '/api/widgets', other.cookie, json)
    expect(refused).toMatchObject({ status: 409, body: { message: expect.stringContaining('100 widgets') } })
  })
})

test('a deleted workflow disables its widgets, which can be given another one', async () => {
  const doomed = await simpleAgent()
  const widget = await addWidget({ workflowId: doomed })
  const path = `/api/widgets/${widget.id}`
  const visitor = await arrive(widget.key)
  await host.ask('DELETE', `/api/workflows/${doomed}`)
  const left = await call('GET', path, admin)
  expect(left.body).toMatchObject({ enabled: false, workflowId: null, name: widget.name })
  for (const [method, rest] of [
    ['GET', ''],
    ['POST', '/sessions'],
    ['GET', '/messages'],
  ] as const) {
    const json = method === 'POST' ? { json: {} } : {}
    const { status } = await visit(method, pathOf(widget.key, rest), { token: visitor.token, ...json })
    expect([method, rest, status]).toEqual([method, rest, 404])
  }
  const entry = await host.store.db
    .selectFrom('auditEntries')
    .select('details')
    .where('resourceId', '=', widget.id)
    .where('action', '=', 'WIDGET_UPDATED')
    .executeTakeFirstOrThrow()
  expect(entry.details).toMatchObject({ changed: ['enabled', 'workflowId'] })
  expect((await call('PUT', path, admin, { enabled: true })).status).toBe(409)
  const again = await call('PUT', path, admin, { enabled: true, workflowId })
  expect(again).toMatchObject({ status: 200, body: { enabled: true, workflowId } })
  expect((await visit('GET', pathOf(widget.key))).status).toBe(200)
})

test('a deleted team takes its widgets along', async () => {
  const other = await host.otherTeam()
  await sql`insert into widgets (id, team_id, name, key, allowed_origins, enabled, theme, per_visitor, per_day, collect_email)
    values (gen_random_uuid(), ${other.teamId}, 'a', 'doomed', '{}', false, '{}', 1, 1, false)`.execute(
    host.store.db,
  )
  expect((await call('DELETE', `/api/teams/${other.teamId}`, other.cookie)).status).toBe(200)
  const left = await host.store.db.selectFrom('widgets').select('id').where('key', '=', 'doomed').execute()
  expect(left).toEqual([])
})
