import { createHmac } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { openTeamCredential } from '../../../db/credentials/open.ts'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { teamId } = service
const builder = (await service.signUp('BUILDER')).cookie

let count = 0
const post = (nodes: object[], more: object = {}) =>
  service.call('POST', '/api/workflows', builder, {
    teamId,
    name: `literals ${++count}`,
    nodes,
    edges: [],
    ...more,
  })
const put = (id: string, json: object, headers = {}) =>
  service.call('PUT', `/api/workflows/${id}`, builder, json, headers)
const read = async (id: string): Promise<Body> =>
  (await service.call('GET', `/api/workflows/${id}`, builder)).body
const request = (config: object, id = 'call') => ({
  id,
  type: 'HTTP_REQUEST',
  config: { url: 'https://api.example/', ...config },
})
const open = async (id: string) => (await openTeamCredential(service.store, teamId, id)).data
const countCredentials = async () =>
  (await service.call('GET', `/api/credentials?teamId=${teamId}`, builder)).body.length

const errorsOf = ({ body }: Body): string[] => (body.errors ?? []).map(({ path }: Body) => path)

test('secrets that are written into a request are refused, all at once, with the way out and without the value', async () => {
  const answer = await post([
    request({
      url: 'https://ada:pa55word@api.example/v1?api_key=wJalrXUtnFEMI&page=2&key=short',
      headers: {
        Authorization: 'Bearer hunter2hunter2',
        'x-api-key': 12345678,
        Cookie: 'session=abc',
        Accept: 'application/json',
      },
      query: { token: 's3cr3t', page: 1, key: 'AIzaSyD-1234567890abcdef', secret: true },
    }),
    request({ url: 'https://a-token-of-16-chars@api.example' }, 'other'),
  ])
  expect(answer.status).toBe(400)
  expect(errorsOf(answer).sort()).toEqual(
    [
      'nodes[0].config.headers.Authorization',
      'nodes[0].config.headers.x-api-key',
      'nodes[0].config.headers.Cookie',
      'nodes[0].config.url',
      'nodes[0].config.url',
      'nodes[0].config.query.token',
      'nodes[0].config.query.key',
      'nodes[1].config.url',
    ].sort(),
  )
  expect(answer.body.errors[0].message).toBe(
    'the secret in the header Authorization must not be written into the graph: put it into a credential ' +
      '(POST /api/credentials) and name that by credentialId',
  )
  for (const secret of ['hunter2', 'pa55word', 'wJalr', 'session=abc', 's3cr3t', '12345678'])
    expect(answer.text).not.toContain(secret)
})

test('what names where a secret comes from is not refused, under either rules', async () => {
  const config = {
    url: 'https://{{ $vars.user }}:{{ $vars.password }}@api.example/?api_key={{ $vars.key }}&a=1',
    headers: {
      Authorization: 'Bearer {{ $vars.token }}',
      'X-Api-Key': '=Bearer {{ $vars.token }}',
      'X-Token': '',
    },
    query: { token: '{{ $nodes.login.output.body.token }}', max_tokens: 5, page_token: '{{ $input.next }}' },
  }
  const nodes = [{ id: 'login', type: 'MANUAL_TRIGGER' }, request(config)]
  const edges = [{ source: 'login', target: 'call' }]
  const answer = await post(nodes, { edges })
  expect(answer.body.errors).toBeUndefined()
  expect([answer.status, answer.body.warnings]).toEqual([201, undefined])
  expect((await post(nodes, { edges, expressions: 1 })).status).toBe(201)
  // Under the rules 2 such a text is a constant.
  const constant = await post([request({ headers: { 'X-Api-Key': '=abcdefgh' } })], { expressions: 2 })
  expect(errorsOf(constant)).toEqual(['nodes[0].config.headers.X-Api-Key'])
})

test('what only looks like a secret is a warning', async () => {
  const nodes = [
    request({
      method: 'POST',
      headers: { 'X-Note': 'posts as xoxb-123456789012-abcdef' },
      body: { client_secret: 's3cr3t', grant_type: 'client_credentials' },
    }),
    { id: 'code', type: 'CODE', config: { code: 'return fetch("x", "ghp_abcdefghijklmnopqrstuvwxyz0123")' } },
    {
      id: 'set',
      type: 'SET',
      config: { values: { a: { b: 'Bearer abcdefgh12345678' }, password: 'plain' } },
    },
  ]
  const { status, body } = await post(nodes)
  expect(status).toBe(201)
  const told = body.warnings.filter(({ message }: Body) => message.startsWith('looks like a secret'))
  expect(told.map(({ path }: Body) => path).sort()).toEqual([
    'nodes[0].config.body.client_secret',
    'nodes[0].config.headers.X-Note',
    'nodes[1].config.code',
    'nodes[2].config.values.a.b',
  ])
})

/** Gives the node `call` a header with a secret, as a release stored it that did not refuse it. */
async function storeLiteral(id: string): Promise<void> {
  await sql`update workflow_versions set nodes = replace(nodes::text, '"X-Plain":"a"', '"X-Api-Key":"abcdefgh"')::json
    where workflow_id = ${id}`.execute(service.store.db)
}

test('a stored workflow with a secret in it stays savable, with a warning; another secret is refused', async () => {
  const { body } = await post([request({ headers: { 'X-Plain': 'a' } })])
  await storeLiteral(body.id)
  const { nodes } = await read(body.id)
  expect(nodes[0].config.headers).toEqual({ 'X-Api-Key': 'abcdefgh' })
  const renamed = await put(body.id, { nodes: [{ ...nodes[0], name: 'Renamed' }], edges: [] })
  expect([renamed.status, renamed.body.nodes[0].name]).toEqual([200, 'Renamed'])
  expect(renamed.body.warnings.map(({ path }: Body) => path)).toEqual(['nodes[0].config.headers.X-Api-Key'])
  expect(renamed.body.warnings[0].message).toContain('POST /api/credentials/extract')
  const changed = { ...nodes[0], config: { ...nodes[0].config, method: 'PUT' } }
  expect((await put(body.id, { nodes: [changed], edges: [] })).status).toBe(200)
  const other = { ...changed, config: { ...changed.config, headers: { 'X-Api-Key': 'another one' } } }
  expect(errorsOf(await put(body.id, { nodes: [other], edges: [] }))).toEqual([
    'nodes[0].config.headers.X-Api-Key',
  ])
  const moved = { ...changed, id: 'elsewhere' }
  expect((await put(body.id, { nodes: [moved], edges: [] })).status).toBe(400)
})

const hook = (more: object, id = 'in') => ({ id, type: 'WEBHOOK_TRIGGER', config: { path: id, ...more } })
const HOOKS = [
  hook({ signature: { header: 'X-Sig', secret: 'signing secret' } }),
  hook({ secretHeader: { name: 'X-Key', value: 'shared secret' } }, 'keyed'),
  {
    id: 'sign',
    type: 'CRYPTO',
    name: 'Sign it',
    config: { operation: 'hmac', value: '{{ $input }}', secret: 'shared secret' },
  },
  {
    id: 'free',
    type: 'CRYPTO',
    config: { operation: 'hmac', value: 'x', secret: '{{ $vars.secret }}' },
  },
]

test('a save moves the secrets of webhooks and CRYPTO into credentials, and says which', async () => {
  const { body, text } = await post(HOOKS, { name: 'Shop' })
  expect(text).not.toContain('signing secret')
  const [first, second] = body.credentials
  expect(body.credentials).toEqual([
    {
      id: first.id,
      name: 'Shop: Webhook trigger 1',
      type: 'SIGNATURE',
      paths: ['nodes[0].config.signature.secret'],
    },
    {
      id: second.id,
      name: 'Shop: Webhook trigger 2',
      type: 'SIGNATURE',
      paths: ['nodes[1].config.secretHeader.value', 'nodes[2].config.secret'],
    },
  ])
  expect(await open(first.id)).toEqual({ secret: 'signing secret' })
  expect(await open(second.id)).toEqual({ secret: 'shared secret' })
  const { nodes, version } = await read(body.id)
  expect(nodes[0].config.signature).toEqual({
    header: 'X-Sig',
    credentialId: first.id,
    algorithm: 'sha256',
    encoding: 'hex',
  })
  expect(nodes[1].config.secretHeader).toEqual({ name: 'X-Key', credentialId: second.id })
  expect(nodes[2].config).not.toHaveProperty('secret')
  expect(nodes[2].config.credentialId).toBe(second.id)
  expect(nodes[3].config.secret).toBe('{{ $vars.secret }}')
  const usage = await service.call('GET', `/api/credentials/${second.id}/usage`, builder)
  expect(usage.body.content[0].nodes.map(({ id }: Body) => id)).toEqual(['keyed', 'sign'])
  const audit = await sql<{ action: string; details: Body }>`select action, details from audit_entries
    where resource_id in (${first.id}, ${second.id}, ${body.id}) order by seq`.execute(service.store.db)
  expect(audit.rows.map(({ action }) => action)).toEqual([
    'CREDENTIAL_CREATED',
    'CREDENTIAL_CREATED',
    'WORKFLOW_CREATED',
  ])
  expect(JSON.stringify(audit.rows)).not.toMatch(/signing secret|shared secret/)
  const stored = await sql<{ nodes: string }>`select nodes::text as nodes from workflow_versions
    where workflow_id = ${body.id}`.execute(service.store.db)
  expect(stored.rows[0]!.nodes).not.toMatch(/signing secret|shared secret/)

  // The same secrets again are the same workflow, and so is what was read.
  const before = await countCredentials()
  const same = await put(body.id, { nodes: HOOKS, edges: [] })
  expect([same.status, same.body.version, same.body.credentials]).toEqual([200, version, undefined])
  expect((await put(body.id, { nodes, edges: [] })).body.version).toBe(version)
  expect(await countCredentials()).toBe(before)

  // A [hidden] that was read of an older state keeps the credential.
  const hidden = {
    ...nodes[1],
    config: { ...nodes[1].config, secretHeader: { name: 'X-Key', value: '[hidden]' } },
  }
  const restored = await put(body.id, { nodes: [nodes[0], hidden, ...nodes.slice(2)], edges: [] })
  expect([restored.status, restored.body.version]).toEqual([200, version])

  // Another secret is another credential, also if the one before is still named: older versions go on with theirs.
  const signature = { ...nodes[0].config.signature, secret: 'a new secret' }
  const changed = { ...nodes[0], config: { ...nodes[0].config, signature } }
  const next = await put(body.id, { nodes: [changed, ...nodes.slice(1)], edges: [] })
  expect(next.body.version).toBe(version + 1)
  const { credentialId } = next.body.nodes[0].config.signature
  expect(next.body.credentials).toMatchObject([{ id: credentialId, name: 'Shop: Webhook trigger 1 2' }])
  expect(await open(credentialId)).toEqual({ secret: 'a new secret' })
  const back = await service.call(
    'POST',
    `/api/workflows/${body.id}/versions/${version}/restore`,
    builder,
    {},
  )
  expect(back.body.nodes[0].config.signature.credentialId).toBe(first.id)
})

test('a credential must be one of the team and of the type SIGNATURE, and one of the two must be given', async () => {
  const other = await service.otherTeam()
  const make = (as: string, team: string, type: string, data: object) =>
    service.call('POST', '/api/credentials', as, { teamId: team, name: `c ${++count}`, type, data })
  const theirs = (await make(other.cookie, other.teamId, 'SIGNATURE', { secret: 'theirs' })).body.id
  const bearer = (await make(builder, teamId, 'HTTP_BEARER', { token: 'abc' })).body.id
  const own = (await make(builder, teamId, 'SIGNATURE', { secret: 'ours' })).body.id
  const signature = (credentialId: string) => ({ signature: { header: 'X', credentialId } })
  const refused = await post([
    hook(signature(theirs)),
    hook({ secretHeader: { name: 'X', credentialId: bearer } }, 'b'),
    { id: 'c', type: 'CRYPTO', config: { operation: 'hmac', value: 'x', credentialId: theirs } },
  ])
  expect([refused.status, errorsOf(refused)]).toEqual([
    400,
    [
      'nodes[0].config.signature.credentialId',
      'nodes[1].config.secretHeader.credentialId',
      'nodes[2].config.credentialId',
    ],
  ])
  const none = await post([
    hook({ signature: { header: 'X' }, secretHeader: { name: 'X' } }),
    { id: 'c', type: 'CRYPTO', config: { operation: 'hmac', value: 'x' } },
  ])
  expect(errorsOf(none).sort()).toEqual([
    'nodes[0].config.secretHeader.value',
    'nodes[0].config.signature.secret',
    'nodes[1].config.secret',
  ])
  // A guess at another team's secret tells nobody whether it is right.
  const guess = await post([hook({ signature: { header: 'X', secret: 'theirs', credentialId: theirs } })])
  expect(guess.body.credentials).toHaveLength(1)
  expect(guess.body.credentials[0].id).not.toBe(theirs)
  expect((await post([hook(signature(own))])).status).toBe(201)
})

test('two saves of new secrets at once: each names its own credential', async () => {
  const { body } = await post(HOOKS.slice(0, 1))
  const save = (secret: string) =>
    put(body.id, { nodes: [hook({ signature: { header: 'X-Sig', secret } })], edges: [] })
  const saved = await Promise.all(['one', 'two', 'three', 'four'].map(save))
  expect(saved.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const secrets = await Promise.all(saved.map((one) => open(one.body.nodes[0].config.signature.credentialId)))
  expect(secrets.map(({ secret }) => secret)).toEqual(['one', 'two', 'three', 'four'])
  expect((await read(body.id)).version).toBe(5)
})

test('webhooks check with the credential as it is at the time of the call', async () => {
  const { body } = await post(HOOKS.slice(0, 2))
  await put(body.id, { active: true })
  const text = '{"a":1}'
  const fire = async (path: string, headers: object) =>
    (
      await service.request(`/hooks/${body.id}/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: text,
      })
    ).status
  const sign = (secret: string) => ({ 'X-Sig': createHmac('sha256', secret).update(text).digest('hex') })
  expect(await fire('in', sign('signing secret'))).toBe(202)
  expect(await fire('in', sign('other'))).toBe(401)
  expect(await fire('in', {})).toBe(401)
  expect(await fire('keyed', { 'X-Key': 'shared secret' })).toBe(202)
  expect(await fire('keyed', { 'X-Key': 'other' })).toBe(401)
  const [signing, shared] = body.credentials
  const changed = await service.call('PUT', `/api/credentials/${signing.id}`, builder, {
    data: { secret: 'rotated' },
  })
  expect(changed.status).toBe(200)
  expect(await fire('in', sign('signing secret'))).toBe(401)
  expect(await fire('in', sign('rotated'))).toBe(202)
  // Without its credential nobody is let in, and the caller may come again.
  const admin = service.admin
  expect((await service.call('DELETE', `/api/credentials/${shared.id}?force=true`, admin)).status).toBe(200)
  expect(await fire('keyed', { 'X-Key': 'shared secret' })).toBe(503)
  expect(await fire('keyed', {})).toBe(503)
})

test('an import moves the secrets that it finds, and its report says so', async () => {
  const format = { format: 'perdure.workflow', formatVersion: 1, name: 'Doc', edges: [] }
  const nodes = [
    request({
      url: 'https://api.example/',
      headers: { Authorization: 'Bearer hunter2hunter2', 'X-Api-Key': 'k2' },
    }),
    request({ url: '{{ $vars.host }}/x', headers: { 'X-Api-Key': 'cannot move' } }, 'open'),
    ...HOOKS.slice(0, 1),
  ]
  const bring = (workflow: object, query = '') =>
    service.call('POST', `/api/workflows/import${query}`, builder, {
      teamId,
      name: `in ${++count}`,
      workflow,
    })
  const dry = await bring({ ...format, nodes }, '?dryRun=true')
  expect(dry.status).toBe(200)
  const before = await countCredentials()
  const { status, body } = await bring({ ...format, nodes })
  expect([status, JSON.stringify(body.errors)]).toEqual([201, undefined])
  expect(await countCredentials()).toBe(before + 2)
  for (const { report } of [dry.body, body]) {
    expect(report.problems.map(({ kind, path, node }: Body) => [kind, path, node])).toEqual([
      ['moved', 'nodes[0].config.headers.Authorization', 'HTTP request 1'],
      ['moved', 'nodes[2].config.signature.secret', 'Webhook trigger 1'],
      ['note', 'nodes[0].config.headers.X-Api-Key', 'HTTP request 1'],
      ['note', 'nodes[1].config.headers.X-Api-Key', 'HTTP request 2'],
    ])
    expect(JSON.stringify(report)).not.toMatch(/hunter2|signing secret|cannot move"/)
  }
  const made = await read(body.id)
  expect(made.nodes[0].config).toMatchObject({
    headers: { 'X-Api-Key': 'k2' },
    credentialId: body.credentials[0].id,
  })
  expect(await open(body.credentials[0].id)).toEqual({
    token: 'hunter2hunter2',
    allowedHosts: ['api.example'],
  })
  const { body: report } = await service.call('GET', `/api/workflows/${body.id}/import-report`, builder)
  expect(report).toEqual(body.report)
  // The document of an export has no secret of a credential, and names what there is to set.
  const exported = await service.call('GET', `/api/workflows/${body.id}/export`, builder)
  expect(exported.text).not.toMatch(/hunter2|signing secret/)
  expect(exported.body.nodes[2].config.signature).toEqual({
    header: 'X-Sig',
    algorithm: 'sha256',
    encoding: 'hex',
  })
  expect(exported.body.secrets).toContain('nodes[2].config.signature.secret')
  const again = await bring(exported.body)
  expect(again.status).toBe(201)
  expect(again.body.report.problems.map(({ kind }: Body) => kind)).not.toContain('moved')
  const copy = await read(again.body.id)
  expect(copy.nodes[0].config.credentialId).toBe(made.nodes[0].config.credentialId)
  expect(copy.nodes[2].config.signature.credentialId).not.toBe(made.nodes[2].config.signature.credentialId)
  // In another team the credential is unknown: the trigger lets nobody in, and the request must get another one.
  const other = await service.otherTeam()
  const named = { ...exported.body, secrets: [], nodes: made.nodes }
  const abroad = await service.call('POST', '/api/workflows/import', other.cookie, {
    teamId: other.teamId,
    workflow: named,
  })
  expect(abroad.status).toBe(201)
  const kinds = abroad.body.report.problems.map(({ kind, path }: Body) => `${kind} ${path}`)
  expect(kinds).toEqual(
    expect.arrayContaining([
      'credential nodes[0].config.credentialId',
      'credential nodes[2].config.signature.credentialId',
    ]),
  )
  const theirs = (await service.call('GET', `/api/workflows/${abroad.body.id}`, other.cookie)).body.nodes
  // The secret that was left in the request does not take its place: nothing is sent without the one that is missing.
  expect(theirs[0].config.headers).toEqual({ 'X-Api-Key': 'k2' })
  expect(theirs[0].config.credentialId).toBeUndefined()
  expect(theirs[0].config.needsCredential).toEqual(expect.any(String))
  expect(theirs[2].config.signature.credentialId).toEqual(expect.any(String))
})

test('an import of n8n moves the secrets of its requests', async () => {
  const node = {
    id: '1',
    name: 'Call',
    type: 'n8n-nodes-base.httpRequest',
    typeVersion: 4.2,
    position: [0, 0],
    parameters: {
      url: 'https://api.example/v1',
      sendHeaders: true,
      headerParameters: { parameters: [{ name: 'Authorization', value: 'Bearer hunter2hunter2' }] },
    },
  }
  const workflow = { nodes: [node], connections: {} }
  const json = { teamId, name: `n8n ${++count}`, workflow }
  const { status, body, text } = await service.call('POST', '/api/workflows/import', builder, json)
  expect(status).toBe(201)
  expect(text).not.toContain('hunter2')
  expect(body.credentials).toMatchObject([
    { type: 'HTTP_BEARER', paths: ['nodes[0].config.headers.Authorization'] },
  ])
  expect(body.report.problems).toMatchObject([{ kind: 'moved', node: 'Call' }])
  expect(body.report.totals).toMatchObject({ works: 1, noted: 0 })
})
