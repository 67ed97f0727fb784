import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const builder = (await service.signUp('BUILDER')).cookie
const viewer = await service.token('VIEWER')

const SECRETS = [
  'hunter2hunter2',
  'Zm9vOmJhcmJheg',
  'wJalrXUtnFEMI',
  'pa55word',
  's3cr3t-of-body',
  'xoxb-123456789012-abcdef',
]
const [bearer, basic, key, password, body, slack] = SECRETS

const request = (config: object, id = 'call') => ({
  id,
  type: 'HTTP_REQUEST',
  config: { url: 'https://api.example/', ...config },
})
const CONFIG = {
  url: `https://ada:${password}@api.example/v1?api_key=${key}&page=2`,
  method: 'POST',
  headers: {
    Authorization: `Bearer ${bearer}`,
    'X-Api-Key': key,
    'Proxy-Authorization': `Basic ${basic}`,
    Accept: 'application/json',
    'X-Note': `posts as ${slack}`,
  },
  query: { token: key, page: 3, list: [{ name: 'X-Secret', value: key }] },
  body: { client_secret: body, grant_type: 'client_credentials', max_tokens: 5 },
}

let count = 0
/** Creates a workflow as a release stored it that did not refuse secrets in requests. */
async function create(config: object): Promise<string> {
  const start = { id: 'start', type: 'MANUAL_TRIGGER' }
  const nodes = [start, request({})]
  const edges = [{ source: 'start', target: 'call' }]
  const json = { teamId: service.teamId, name: `secrets ${++count}`, nodes, edges }
  const answer = await service.call('POST', '/api/workflows', builder, json)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  const { id } = answer.body
  await sql`update workflow_versions set secrets_moved = false, nodes = (
    select json_agg(case when node ->> 'id' = 'call'
      then jsonb_set(node, '{config}', node -> 'config' || ${JSON.stringify(request(config).config)}::jsonb) else node end)
    from json_array_elements(nodes) as n(raw), lateral (select raw::jsonb as node) as one)
    where workflow_id = ${id}`.execute(service.store.db)
  return id
}
const read = async (id: string, as: string) => (await service.call('GET', `/api/workflows/${id}`, as)).body
const put = (id: string, json: object) => service.call('PUT', `/api/workflows/${id}`, builder, json)

test('what a request sends as its secrets is shown to BUILDERs only, and in no export', async () => {
  const id = await create(CONFIG)
  expect((await read(id, builder)).nodes[1].config).toMatchObject(CONFIG)
  const seen = await read(id, viewer)
  expect(seen.nodes[1].config).toMatchObject({
    url: 'https://[hidden]@api.example/v1?api_key=[hidden]&page=2',
    headers: {
      Authorization: '[hidden]',
      'X-Api-Key': '[hidden]',
      'Proxy-Authorization': '[hidden]',
      Accept: 'application/json',
      'X-Note': 'posts as [hidden]',
    },
    query: { token: '[hidden]', page: 3, list: [{ name: 'X-Secret', value: '[hidden]' }] },
    body: { client_secret: '[hidden]', grant_type: 'client_credentials', max_tokens: 5 },
  })
  await put(id, { nodes: [seen.nodes[0], request({ ...CONFIG, method: 'GET' })], edges: seen.edges })
  const others = await Promise.all([
    service.request(`/api/workflows/${id}/export`, { as: builder }),
    service.request(`/api/workflows/${id}/versions/1`, { as: viewer }),
    service.request(`/api/workflows/${id}/versions/1/diff/2`, { as: viewer }),
  ])
  const texts = await Promise.all(others.map((answer) => answer.text()))
  for (const text of [JSON.stringify(seen), ...texts]) {
    for (const secret of SECRETS) expect(text).not.toContain(secret)
  }
  expect(JSON.parse(texts[0]!).secrets.sort()).toEqual(
    [
      'url',
      'headers.Authorization',
      'headers.X-Api-Key',
      'headers.Proxy-Authorization',
      'headers.X-Note',
      'query.token',
      'query.list[0].value',
      'body.client_secret',
    ]
      .map((path) => `nodes[1].config.${path}`)
      .sort(),
  )
})

test('a value that only names a variable is no secret', async () => {
  const open = {
    url: 'https://api.example/?api_key={{ $vars.key }}',
    headers: { Authorization: 'Bearer {{ $vars.tokens[0].value }}', 'X-Api-Key': '{{ $vars.key }}' },
    query: {},
  }
  expect((await read(await create(open), viewer)).nodes[1].config).toMatchObject(open)
  for (const Authorization of [
    "Bearer {{ 'abcdefghijkl' }}",
    '{{ $vars.key }}abcdefghijkl',
    "{{ $vars.key ? 'abcdefghijkl' : '' }}",
    '{{ $vars.key',
  ]) {
    const closed = await service.call('POST', '/api/workflows', builder, {
      teamId: service.teamId,
      name: `closed ${++count}`,
      nodes: [request({ headers: { Authorization } })],
      edges: [],
    })
    // An expression without its end is refused when it is saved.
    if (closed.status === 400) continue
    expect((await read(closed.body.id, viewer)).nodes[0].config.headers.Authorization).toBe('[hidden]')
  }
})

test('a PUT of what was read keeps the secrets, and a [hidden] that it has made up is a problem', async () => {
  const id = await create(CONFIG)
  const { nodes, edges } = await read(id, viewer)
  const kept = await put(id, { nodes: [nodes[0], { ...nodes[1], name: 'renamed' }], edges })
  expect(kept.body.nodes[1]).toMatchObject({ name: 'renamed', config: CONFIG })
  const { url, headers, ...rest } = nodes[1].config
  const moved = {
    ...nodes[1],
    config: { ...rest, url: `${url}&more=1`, headers: { 'X-Api-Token': '[hidden]' } },
  }
  const refused = await put(id, { nodes: [nodes[0], moved], edges })
  expect(refused.status).toBe(400)
  expect(refused.body.errors.map(({ path }: Body) => path)).toEqual([
    'nodes[1].config.url',
    'nodes[1].config.headers.X-Api-Token',
  ])
  const message = 'must be the secret itself: [hidden] only keeps a secret that this node has here'
  expect(refused.body.errors[0].message).toBe(message)
  const hook = {
    id: 'hook',
    type: 'WEBHOOK_TRIGGER',
    config: { path: 'x', secretHeader: { name: 'X', value: '[hidden]' } },
  }
  const fresh = { teamId: service.teamId, name: `hidden ${++count}`, nodes: [hook, nodes[1]], edges: [] }
  const created = await service.call('POST', '/api/workflows', builder, fresh)
  expect(created.body.errors?.map(({ path }: Body) => path)).toContain('nodes[0].config.secretHeader.value')
  expect((await read(id, builder)).version).toBe(2)
})

test('an import names the secrets that requests lack, and keeps no webhook with a secret that all know', async () => {
  const id = await create(CONFIG)
  const { body: document } = await service.call('GET', `/api/workflows/${id}/export`, builder)
  const bring = (workflow: object) =>
    service.call('POST', '/api/workflows/import', builder, {
      teamId: service.teamId,
      name: `in ${++count}`,
      workflow,
    })
  const { status, body: made } = await bring(document)
  expect(status).toBe(201)
  const lacking = made.report.problems.filter(({ kind }: Body) => kind === 'secret')
  expect(lacking.map(({ path }: Body) => path).sort()).toEqual(document.secrets.sort())
  expect((await read(made.id, builder)).nodes[1].config.headers.Authorization).toBe('[hidden]')
  const hook = {
    id: 'hook',
    type: 'WEBHOOK_TRIGGER',
    config: { path: 'x', secretHeader: { name: 'X', value: '[hidden]' } },
  }
  expect((await bring({ ...document, nodes: [hook], edges: [], secrets: [] })).status).toBe(400)
})

test('names and addresses that are secrets in requests only are hidden too, and so are keys that are secrets', async () => {
  const hook = 'hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnop'
  const id = await create({
    url: `https://${hook}?code=abcd1234efgh`,
    headers: {
      'Ocp-Apim-Subscription-Key': 'abcd1234efgh',
      'X-Functions-Key': 'abcd1234efgh',
      'X-Tenant': 'acme',
    },
    query: { key: 'abcd1234efgh', page: 1 },
    body: { key: 'color', [slack!]: 1 },
  })
  const { nodes, edges } = await read(id, viewer)
  expect(nodes[1].config).toMatchObject({
    url: 'https://hooks.slack.com/services[hidden]?code=[hidden]',
    headers: { 'Ocp-Apim-Subscription-Key': '[hidden]', 'X-Functions-Key': '[hidden]', 'X-Tenant': 'acme' },
    query: { key: '[hidden]', page: 1 },
    body: { key: 'color', '[hidden]': 1 },
  })
  const real = (await read(id, builder)).nodes[1]
  const changed = { ...real, config: { ...real.config, body: { [slack!]: 2 } } }
  expect((await put(id, { nodes: [nodes[0], changed], edges })).status).toBe(200)
  const { text } = await service.call('GET', `/api/workflows/${id}/versions/1/diff/2`, viewer)
  expect(text).not.toContain(slack)
  const refused = await put(id, { nodes, edges })
  expect(refused.body.errors.map(({ path }: Body) => path)).toEqual(['nodes[1].config.body.[hidden]'])
})
