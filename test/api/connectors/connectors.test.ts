import { describe, expect, test } from 'vitest'
import { useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)

/** A service of pets, as its document of OpenAPI 3.0 says. */
const PETS = (url: string) => ({
  openapi: '3.0.3',
  info: { title: 'Pets', version: '1', description: 'All of our pets.\nMore.' },
  servers: [{ url: `${url}/{stage}`, variables: { stage: { default: 'v1' } } }],
  components: {
    securitySchemes: { token: { type: 'http', scheme: 'bearer' }, cert: { type: 'mutualTLS' } },
    schemas: {
      Pet: {
        type: 'object',
        required: ['name'],
        properties: {
          // No pattern of JSON Schema: it is left out.
          name: { type: 'string', nullable: true, example: 'Rex', pattern: '^[A-Za-z\\-{} ]+\\Z' },
          tags: { type: 'array', items: { type: 'string' } },
          parent: { $ref: '#/components/schemas/Pet' },
        },
      },
    },
    parameters: { petId: { name: 'petId', in: 'path', required: true, schema: { type: 'integer' } } },
  },
  paths: {
    '/pets': {
      get: {
        operationId: 'listPets',
        parameters: [
          { name: 'tags', in: 'query', explode: false, schema: { type: 'array', items: { type: 'string' } } },
          { name: 'where', in: 'query', style: 'deepObject', explode: true, schema: { type: 'object' } },
          { name: 'X-Trace', in: 'header', schema: { type: 'string' } },
        ],
        responses: {
          200: {
            description: 'All',
            content: {
              'application/json': { schema: { type: 'array', items: { $ref: '#/components/schemas/Pet' } } },
            },
          },
        },
      },
      post: {
        operationId: 'addPet',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
        },
        responses: { 201: { description: 'Added' } },
      },
    },
    '/pets/{petId}': {
      parameters: [{ $ref: '#/components/parameters/petId' }],
      get: { summary: 'Read a pet', responses: { 200: { description: 'A pet' } } },
      delete: { operationId: 'pets/delete', responses: { 204: { description: 'Gone' } } },
    },
    '/broken': { get: { parameters: [{ $ref: '#/nowhere' }], responses: {} } },
  },
})

type Connector = {
  id: string
  version: number
  // biome-ignore lint/suspicious/noExplicitAny: answers are what a service says
  actions: { id: string; safety: string; input: any }[]
  // biome-ignore lint/suspicious/noExplicitAny: answers are what a service says
} & Record<string, any>
const add = (body: object) => host.ask<Connector>('POST', '/api/connectors', { teamId: host.teamId, ...body })
const refuse = async (path: string, method: string, body?: object) =>
  // biome-ignore lint/suspicious/noExplicitAny: answers are what a service says
  (await host.call(method, path, host.user.cookie, body)) as { status: number; body: any }

describe('a connector of an OpenAPI document', () => {
  test('has its operations as actions, and says what it cannot use', async () => {
    const made = await add({ name: 'pets', openapi: JSON.stringify(PETS('http://127.0.0.1:9')) })
    expect(made).toMatchObject({
      ...{ name: 'pets', title: 'Pets', summary: 'All of our pets.', kind: 'OPENAPI', version: 1 },
      ...{ server: 'http://127.0.0.1:9/v1', signIn: ['HTTP_BEARER'], usedBy: [] },
    })
    expect(made.problems).toEqual([
      'the sign-in cert (mutualTLS) is not supported',
      'GET /broken has a parameter that refers to something that the document does not have',
    ])
    const { actions, actionCount } = await host.ask<Connector>('GET', `/api/connectors/${made.id}`)
    expect(actionCount).toBe(4)
    expect(actions.map(({ id, safety }) => `${id} ${safety}`)).toEqual([
      'listPets REPEATABLE',
      'addPet ONCE',
      'get_pets_petId REPEATABLE',
      'pets_delete ONCE',
    ])
    // A schema that refers to itself stays what it is.
    expect(actions[1]!.input).toMatchObject({
      required: ['name'],
      properties: { name: { type: ['string', 'null'] }, parent: { $ref: '#/$defs/Pet' } },
      $defs: { Pet: { properties: { parent: { $ref: '#/$defs/Pet' } } } },
    })
  })

  test('is called by nodes, with each value in its place', async () => {
    const service = await start(({ method }) =>
      method === 'POST' ? { status: 201, json: { id: 7 } } : { json: [{ name: 'Rex' }] },
    )
    await add({ name: 'called', openapi: JSON.stringify(PETS(service.url)) })
    const server = undefined
    const listed = await service.act({
      ...{ connector: 'called', action: 'listPets', server },
      input: { tags: ['a b', '{{ "c,d" }}'], where: { age: 3 }, 'X-Trace': 'x1' },
    })
    expect(listed).toMatchObject({ status: 'SUCCESS', output: { value: [{ name: 'Rex' }] } })
    expect(service.asked[0]).toMatchObject({ method: 'GET', path: '/v1/pets', headers: { 'x-trace': 'x1' } })
    expect(Object.fromEntries(service.asked[0]!.query)).toEqual({ tags: 'a b,c,d', 'where[age]': '3' })
    const added = await service.act({
      ...{ connector: 'called', action: 'addPet', server },
      input: { name: '{{ $trigger.name }}', tags: [], parent: { name: '{{ braces }}' } },
    })
    expect(added.error).toBe('')
    expect(added.output).toEqual({ id: 7 })
    expect(service.asked[1]!.json).toMatchObject({ tags: [] })
    const read = await service.act({
      connector: 'called',
      action: 'get_pets_petId',
      server,
      input: { petId: '12' },
    })
    expect(read.status).toBe('SUCCESS')
    expect(service.asked[2]!.path).toBe('/v1/pets/12')
  })

  test('is fetched from an address, and Swagger 2.0 in YAML is read as well', async () => {
    const yaml = `swagger: '2.0'
info: { title: Old, version: '1' }
basePath: /api
securityDefinitions: { key: { type: apiKey, in: header, name: X-Key } }
paths:
  /things:
    post:
      operationId: addThing
      consumes: [application/x-www-form-urlencoded]
      parameters: [{ name: n, in: formData, type: integer, required: true }]
      responses: { '200': { description: ok } }
`
    const service = await start(({ path }) =>
      path === '/old.yaml'
        ? { bytes: Buffer.from(yaml), headers: { 'content-type': 'text/yaml' } }
        : { json: { ok: true } },
    )
    const made = await add({ name: 'old', openapi: `${service.url}/old.yaml` })
    expect(made).toMatchObject({
      server: `${service.url}/api`,
      source: `${service.url}/old.yaml`,
      signIn: ['HTTP_HEADER'],
    })
    const done = await service.act({
      connector: 'old',
      action: 'addThing',
      server: undefined,
      input: { n: 5 },
    })
    expect(done).toMatchObject({ status: 'SUCCESS', output: { ok: true } })
    expect(service.asked.at(-1)).toMatchObject({ path: '/api/things', text: 'n=5' })
  })

  test.each([
    ['no document', 'Hello', /is not an object|neither JSON nor YAML/],
    ['JSON that is cut', '{"openapi":', /neither JSON nor YAML/],
    ['another version', '{"openapi":"4.0","paths":{}}', /no OpenAPI document/],
    ['no operations', '{"openapi":"3.1.0","paths":{}}', /no operations/],
    [
      'a reference to a file',
      '{"openapi":"3.1.0","paths":{"/a":{"$ref":"other.yaml"}}}',
      /refers to another document/,
    ],
    [
      'aliases that double',
      `openapi: 3.1.0\na: &a [x, x]\n${'bcdefghijklm'
        .split('')
        .map((k, i) => `${k}: &${k} [${`*${'abcdefghijklm'[i]}, `.repeat(9)}x]`)
        .join('\n')}\n`,
      /neither JSON nor YAML/,
    ],
  ])('is refused with %s', async (_, openapi, message) => {
    const { status, body } = await refuse('/api/connectors', 'POST', {
      teamId: host.teamId,
      name: 'bad',
      openapi,
    })
    expect(status).toBe(400)
    expect(body.errors).toEqual([{ path: 'openapi', message: expect.stringMatching(message) }])
  })

  test('changes as a new version, which a workflow has only once its node names it', async () => {
    const service = await start(() => ({ json: {} }))
    const document = PETS(service.url)
    const made = await add({ name: 'changing', openapi: JSON.stringify(document) })
    const graph = service.graph({
      connector: 'changing',
      action: 'addPet',
      server: undefined,
      input: { name: 'Rex' },
    })
    const workflowId = await host.create(graph as never)
    const { '/pets': pets, ...rest } = document.paths
    const next = { ...document, paths: { '/animals': pets, ...rest } }
    const put = (body: object) => host.ask<Connector>('PUT', `/api/connectors/${made.id}`, body)
    const changed = await put({ openapi: JSON.stringify(next), name: 'changed' })
    expect(changed).toMatchObject({
      ...{ version: 2, name: 'changed' },
      changes: { added: [], removed: [], changed: ['listPets', 'addPet'] },
      usedBy: [{ id: workflowId, connectorVersion: 1 }],
    })
    // Its node names it by the old name, which is its own all the same.
    expect((await host.ended(await host.execute(workflowId))).status).toBe('SUCCESS')
    expect(service.asked.at(-1)!.path).toBe('/v1/pets')
    const moved = {
      ...graph.nodes[1]!,
      config: { ...graph.nodes[1]!.config, connector: 'changed', version: 2 },
    }
    await host.ask('PUT', `/api/workflows/${workflowId}`, {
      nodes: [graph.nodes[0], moved],
      edges: graph.edges,
    })
    expect((await host.ended(await host.execute(workflowId))).status).toBe('SUCCESS')
    expect(service.asked.at(-1)!.path).toBe('/v1/animals')
    // What may be repeated is a person's to say, and a new version too.
    const revised = await put({ repeatable: ['addPet'] })
    expect(revised).toMatchObject({ version: 3, repeatable: ['addPet'], changes: { changed: ['addPet'] } })
    expect(await refuse(`/api/connectors/${made.id}`, 'DELETE')).toMatchObject({ status: 409 })
    await host.ask('DELETE', `/api/connectors/${made.id}?force=true`)
    const ended = await host.ended(await host.execute(workflowId))
    expect(ended).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringMatching(/must be an action of the connector changed/),
    })
  })
})

test('a workflow is saved by the version of a connector that it has, not by the newest', async () => {
  const service = await start(() => ({ json: {} }))
  const { '/pets': pets, ...rest } = PETS(service.url).paths
  const made = await add({ name: 'older', openapi: JSON.stringify(PETS(service.url)) })
  const config = { action: 'addPet', server: undefined, input: { name: 'Rex' } }
  const graph = service.graph({ ...config, connector: made.id.toUpperCase() })
  const [trigger, node] = graph.nodes
  const workflowId = await host.create(graph as never)
  // The newest version has neither the action nor the connector's old name.
  const next = { ...PETS(service.url), paths: rest }
  await host.ask('PUT', `/api/connectors/${made.id}`, { openapi: JSON.stringify(next), name: 'younger' })
  const save = (changed: object) =>
    host.call('PUT', `/api/workflows/${workflowId}`, host.user.cookie, {
      nodes: [trigger, { ...node, config: { ...node!.config, ...changed } }],
      edges: graph.edges,
    })
  expect((await save({ input: { name: 'Tom' } })).status).toBe(200)
  expect((await host.ended(await host.execute(workflowId))).status).toBe('SUCCESS')
  expect(service.asked.at(-1)!.path).toBe('/v1/pets')
  expect(await save({ version: 2 })).toMatchObject({
    status: 400,
    body: { errors: [{ path: 'nodes[1].config.action', message: 'must be an action of this version' }] },
  })
  // Named as it is called now, it is the same, and of the same version.
  expect((await save({ connector: 'younger' })).status).toBe(200)
  // An export names it as another team may have it, without the number of a version, which is this team's alone.
  const path = `/api/workflows/${workflowId}/export`
  const { nodes } = await host.ask<{ nodes: { config: object }[] }>('GET', path)
  expect(nodes[1]!.config).toMatchObject({ connector: 'younger', action: 'addPet' })
  expect(nodes[1]!.config).not.toHaveProperty('version')
})

test('a credential does not go to another server that a document names for one operation, unless it may', async () => {
  const service = await start(() => ({ json: { id: 7 } }))
  const stranger = await start(() => ({ json: { id: 8 } }))
  const document = PETS(service.url)
  const { '/pets': pets, ...rest } = document.paths
  const post = { ...pets.post, servers: [{ url: `${stranger.url}/v1` }] }
  const paths = { '/pets': { ...pets, post }, ...rest }
  await add({ name: 'led-astray', openapi: JSON.stringify({ ...document, paths }) })
  const carryOut = async (data: object) => {
    const made = { teamId: host.teamId, name: `astray ${JSON.stringify(data)}`, type: 'HTTP_BEARER' }
    const body = { ...made, data: { token: 'canary-0123456789-secret', ...data } }
    const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', body)
    return service.act({
      ...{ connector: 'led-astray', action: 'addPet', server: undefined, credentialId },
      input: { name: 'Rex' },
    })
  }
  const strangerHost = new URL(stranger.url).host
  expect((await carryOut({})).error).toBe(
    `credentialId must have ${strangerHost} in its allowedHosts: the action is not at ${new URL(service.url).host}`,
  )
  expect(stranger.asked).toEqual([])
  expect(await carryOut({ allowedHosts: [strangerHost] })).toMatchObject({ output: { id: 8 } })
})

test('a restored version has the versions of connectors that it had', async () => {
  const service = await start(() => ({ json: {} }))
  const document = PETS(service.url)
  const { '/pets': pets, ...rest } = document.paths
  const made = await add({ name: 'restored', openapi: JSON.stringify(document) })
  const graph = service.graph({
    ...{ connector: 'restored', action: 'addPet', server: undefined, input: { name: 'Rex' } },
  })
  const [trigger, node] = graph.nodes
  const workflowId = await host.create(graph as never)
  const next = { ...document, paths: { '/animals': pets, ...rest } }
  await host.ask('PUT', `/api/connectors/${made.id}`, { openapi: JSON.stringify(next) })
  const path = `/api/workflows/${workflowId}`
  const newer = { ...node, config: { ...node!.config, version: 2 } }
  await host.ask('PUT', path, { nodes: [trigger, newer], edges: graph.edges })
  const run = async () => {
    expect((await host.ended(await host.execute(workflowId))).status).toBe('SUCCESS')
    return service.asked.at(-1)!.path
  }
  expect(await run()).toBe('/v1/animals')
  await host.ask('POST', `${path}/versions/1/restore`)
  expect(await run()).toBe('/v1/pets')
})

test('a graph names connectors, actions and inputs that there are', async () => {
  await add({ name: 'known', openapi: JSON.stringify(PETS('http://127.0.0.1:9')) })
  const node = (id: string, config: object) => ({ id, type: 'CONNECTOR', config })
  // A graph that no workflow has yet may name the team's connectors too.
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const validate = (config: object) =>
    host.call('POST', '/api/workflows/validate', host.user.cookie, {
      ...{ teamId: host.teamId, nodes: [start, node('a', config)] },
      edges: [{ source: 'start', target: 'a' }],
    })
  const call = { connector: 'known', action: 'addPet', input: { name: 'Rex' } }
  expect(await validate(call)).toMatchObject({ status: 200, body: { activation: [] } })
  expect((await validate({ ...call, action: 'adPet' })).status).toBe(400)
  const { status, body } = await refuse('/api/workflows', 'POST', {
    teamId: host.teamId,
    name: 'wrong',
    nodes: [
      node('a', { connector: 'unknown', action: 'x' }),
      node('b', { connector: 'known', action: 'adPet' }),
      node('c', { connector: 'airtable', action: 'createRecords', input: { base: 7, tabel: 'x' } }),
      node('d', { connector: 'known', action: 'addPet', input: {} }),
      node('e', { connector: 'known', action: 'get_pets_petId', input: { petId: '{{ $input.id }}' } }),
    ],
    edges: [],
  })
  expect(status).toBe(400)
  expect(body.errors.map(({ path, message }: Record<string, string>) => `${path} ${message}`)).toEqual([
    'nodes[0].config.connector must be a connector of this team',
    'nodes[1].config.action must be an action of this connector',
    'nodes[2].config.input.base must be string, not a number',
    'nodes[2].config.input.tabel is nothing that the action takes; did you mean "table"?',
    'nodes[2].config.input.table is required',
    'nodes[2].config.input.records is required',
    'nodes[3].config.input.name is required',
  ])
})

test('there is no connector of a name that no team has', async () => {
  const path = '/api/connectors/unknown-service'
  expect(await refuse(path, 'GET')).toMatchObject({ status: 404 })
  const body = { teamId: host.teamId, action: 'x' }
  expect(await refuse(`${path}/try`, 'POST', body)).toMatchObject({ status: 404 })
})

test('a person tries an action, and chooses from what the service lists', async () => {
  const service = await start(({ path }, count) => {
    if (path === '/v0/meta/bases') return { json: { bases: [{ id: 'app1', name: 'Sales' }] } }
    return count > 3 ? 'cut' : { json: { id: 'rec1', fields: {} } }
  })
  const base = {
    teamId: host.teamId,
    credentialId: service.credentialId,
    server: service.url,
    action: 'createRecord',
  }
  const options = await host.ask('POST', '/api/connectors/airtable/options', { ...base, property: 'base' })
  expect(options).toEqual({ options: [{ value: 'app1', label: 'Sales' }] })
  expect(
    await refuse('/api/connectors/airtable/options', 'POST', { ...base, property: 'table' }),
  ).toMatchObject({
    status: 400,
    body: { errors: [{ path: 'input.base' }] },
  })
  const input = { base: 'app1', table: 'People', fields: { Name: 'Ada' } }
  const tried = await host.ask('POST', '/api/connectors/airtable/try', { ...base, input })
  expect(tried).toMatchObject({
    ...{ status: 'SUCCESS', output: { id: 'rec1' }, error: null },
    requests: [{ method: 'POST', url: `${service.url}/v0/app1/People`, status: 200 }],
  })
  await host.ask('POST', '/api/connectors/airtable/try', { ...base, input })
  const cut = await host.ask('POST', '/api/connectors/airtable/try', { ...base, input })
  expect(cut).toMatchObject({
    status: 'FAILED',
    error: { type: 'HttpNetwork' },
    requests: [{ status: null }],
  })
  expect(service.asked).toHaveLength(4)
  const wrong = await host.ask('POST', '/api/connectors/airtable/try', { ...base, input: { base: 'app1' } })
  expect(wrong).toMatchObject({ status: 'FAILED', error: { type: 'InvalidInput' }, requests: [] })
})
