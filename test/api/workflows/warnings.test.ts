import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const builder = (await service.signUp('BUILDER')).cookie

type Node = Record<string, unknown>

const start = { id: 'start', type: 'MANUAL_TRIGGER' }
const set = (text: unknown, more: Node = {}): Node => ({
  id: 'set',
  type: 'SET',
  config: { values: { text } },
  ...more,
})
const edge = { source: 'start', target: 'set' }

async function post(nodes: unknown, more: Node = {}, query = '') {
  return service.call('POST', `/api/workflows${query}`, builder, {
    teamId: service.teamId,
    name: `w ${crypto.randomUUID()}`,
    nodes,
    ...more,
  })
}

test('an expression in JavaScript is refused with what to write instead and a caret at the place', async () => {
  const { status, body } = await post([start, set('Dear {{ $input.kind === "person" }}')], { edges: [edge] })
  expect(status).toBe(400)
  expect(body.errors).toEqual([
    {
      path: 'nodes[1].config.values.text',
      message: 'write "=" instead of "===" (character 13 of {{ $input.kind === "person" }})',
      line: 1,
      column: 21,
      excerpt: ['Dear {{ $input.kind === "person" }}', '                    ^^^'],
    },
  ])
  expect(body.message).toContain('write "=" instead of "==="')
})

test.each([
  ['{{ $input.a && !$input.b }}', ['write "and" instead of "&&"', 'write $not(value) instead of !value']],
  ['{{ $input.a || "none" }}', ['write "or" instead of "||"']],
  ['{{ $input?.a }}', ['write "." instead of "?."']],
  ['{{ $input.name.toUpperCase() }}', ['there is no method toUpperCase: write $uppercase(text)']],
  ['{{ $input.first + " " }}', ['write "&" instead of "+"']],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what users write
  ['{{ `Hello ${$input.name}` }}', ['join texts and values with "&": "Hello " & $input.name']],
  ['{{ $json.name }}', ["unknown variable $json; write $input, the node's input"]],
  ['{{ $inptu.name }}', ['unknown variable $inptu; did you mean $input?']],
  ['{{ $toUpperCase($input.name) }}', ['unknown variable $toUpperCase; write $uppercase(text)']],
  ['{{ $node["Fetch"].json }}', ['write .Fetch for a field', 'unknown variable $node; write $nodes.<id>']],
  ['{{ $nodes["start"].a }}', ['write $nodes.start']],
  ['{{ $input.a', ['has no closing }}']],
  ['{{ $input.a }', ['has no closing }}']],
])('%s is refused', async (text, messages) => {
  const { status, body } = await post([start, set(text)], { edges: [edge] })
  expect(status).toBe(400)
  expect(body.errors).toEqual(
    messages.map((message) => expect.objectContaining({ message: expect.stringContaining(message) })),
  )
})

test('what may be meant is saved, with a warning', async () => {
  const texts = {
    count: '{{ $input.length }}',
    bare: '{{ input.name }}',
    hyphen: '{{ $input.first-name }}',
    brace: 'Hello { $input.name }!',
    path: '$input.name',
    fine: '{{ $input.total - $input.fee }} for {{ $input.`first name` }} { $5 }',
  }
  const { status, body } = await post([start, { id: 'set', type: 'SET', config: { values: texts } }])
  expect(status).toBe(201)
  expect(body.warnings.map(({ path }: { path: string }) => path.split('.').at(-1))).toEqual([
    'count',
    'bare',
    'hyphen',
    'brace',
    'path',
  ])
  expect(body.warnings[2]).toEqual({
    path: 'nodes[1].config.values.hyphen',
    message: expect.stringContaining('"first-name" is a subtraction; quote a name that has a hyphen'),
    line: 1,
    column: 11,
    excerpt: ['{{ $input.first-name }}', '          ^^^^^^^^^^'],
  })
  expect(body.warnings[3].message).toBe(
    '{ $input.name } is text here; an expression stands in double braces: {{ $input.name }}',
  )
  expect(body.warnings[4].message).toBe(
    'is the text "$input.name"; an expression stands in double braces: {{ $input.name }}',
  )
})

test('under the rules 1 nothing new is refused, but the messages are better', async () => {
  const failing = set('{{ $input.name.toUpperCase() }}')
  const { status, body } = await post([start, failing], { expressions: 1 })
  expect(status).toBe(201)
  expect(body.warnings).toEqual([
    expect.objectContaining({ message: expect.stringContaining('write $uppercase(text)'), column: 15 }),
  ])
  const broken = await post([start, set('{{ $input.a === 1 }}')], { expressions: 1 })
  expect(broken.status).toBe(400)
  expect(broken.body.errors[0].message).toContain('write "=" instead of "==="')
})

test('an element that is the same as in the stored version is never refused', async () => {
  const failing = set('{{ $input.name.toUpperCase() }}')
  const made = await post([start, failing], { expressions: 1, edges: [edge] })
  const path = `/api/workflows/${made.body.id}`
  const stored = (await service.call('GET', path, builder)).body
  // The rules change, the node does not: it is only moved and renamed.
  const moved = stored.nodes.map((node: Node) => ({ ...node, name: 'Moved', position: { x: 1, y: 2 } }))
  const put = await service.call('PUT', path, builder, {
    expressions: 2,
    nodes: [...moved, { id: 'more', type: 'NO_OP' }],
    edges: stored.edges,
  })
  expect(put.status).toBe(200)
  expect(put.body.warnings).toEqual([
    expect.objectContaining({
      path: 'nodes[1].config.values.text',
      message: expect.stringContaining('write $uppercase(text)'),
    }),
  ])
  // Without the edges the stored ones are kept; without both, only the rules change.
  const nodes = put.body.nodes
  expect((await service.call('PUT', path, builder, { nodes })).status).toBe(200)
  expect((await service.call('PUT', path, builder, { expressions: 1 })).status).toBe(200)
  expect((await service.call('PUT', path, builder, { expressions: 2 })).status).toBe(200)
  expect((await service.call('POST', `${path}/versions/1/restore`, builder)).status).toBe(200)
  await service.call('PUT', path, builder, { expressions: 2 })
  // Any change of the node itself is refused, and so is a second one like it.
  const changed = nodes.map((node: Node) => (node.id === 'set' ? { ...node, onError: 'CONTINUE' } : node))
  expect((await service.call('PUT', path, builder, { nodes: changed })).status).toBe(400)
  const second = [...nodes, { ...failing, id: 'second' }]
  const refused = await service.call('PUT', path, builder, { nodes: second })
  expect(refused.body.errors).toEqual([expect.objectContaining({ path: 'nodes[3].config.values.text' })])
})

test('a workflow that is saved as it was read gets no warnings and no new version', async () => {
  const made = await post([start, set('{{ $input.a }}')], { edges: [edge] })
  const path = `/api/workflows/${made.body.id}`
  const { body } = await service.call('GET', path, builder)
  const put = await service.call('PUT', `${path}?unknownKeys=refuse`, builder, body)
  expect([put.status, put.body.version, put.body.warnings]).toEqual([200, 1, undefined])
})

test('similar names are suggested for types, keys, handles and ids', async () => {
  const { body } = await post(
    [
      start,
      { id: 'fetch-user', type: 'HTTP_REQEST', config: { url: 'http://a.example' } },
      { id: 'call', type: 'HTTP_REQUEST', config: { ulr: 'http://a.example' } },
      { id: 'check', name: 'Check it', type: 'IF_ELSE', config: { condition: 'true' } },
      {
        id: 'read',
        type: 'SET',
        config: { values: { a: '{{ $nodes.fetch-user.b }}', b: '{{ $nodes.chek.b }}' } },
      },
      { id: 'loop', type: 'LOOP', config: {} },
    ],
    {
      edges: [
        { source: 'start', target: 'fetch-user' },
        { source: 'fetch-user', target: 'call' },
        { source: 'call', target: 'Check it' },
        { source: 'check', target: 'read', sourceHandle: 'else' },
        { source: 'check', target: 'reed', sourceHandle: 'True' },
      ],
    },
  )
  const lines = body.errors.map(
    ({ path, message }: { path: string; message: string }) => `${path}: ${message}`,
  )
  expect(lines).toEqual([
    'nodes[1].type: there is no type "HTTP_REQEST"; did you mean "HTTP_REQUEST"?',
    'nodes[2].config.url: is required; did you mean it by "ulr"?',
    'nodes[5].type: there is no type "LOOP"; did you mean "FOR_EACH"?',
    'edges[2].target: there is no node "Check it"; the node "Check it" has the id "check"',
    'edges[3].sourceHandle: the node "check" leaves by true, false; did you mean "false"?',
    'edges[4].target: there is no node "reed"; did you mean "read"?',
    'edges[4].sourceHandle: the node "check" leaves by true, false; did you mean "true"?',
    'nodes[4].config.values.a: names the node "fetch", which is not in this graph; quote an id that has a hyphen: ' +
      '$nodes.`fetch-user`',
    'nodes[4].config.values.b: names the node "chek", which is not in this graph; did you mean "check"?',
  ])
})

test('keys that do nothing where they stand are warnings', async () => {
  const { status, body } = await post([
    { ...start, retry: { maxAttempts: 3 }, timeoutMs: 5, onError: 'CONTINUE' },
    { id: 'wait', type: 'WAIT', config: { durationMs: 5 }, retry: { maxAttempts: 2 }, timeoutMs: 100 },
    { id: 'nothing', type: 'NO_OP', onError: 'BRANCH' },
    { id: 'set', type: 'SET', config: { values: {} }, retry: { initialIntervalMs: 5 } },
    {
      id: 'call',
      type: 'HTTP_REQUEST',
      config: { url: 'http://a.example' },
      retry: { initialIntervalMs: 5 },
    },
    { id: 'ask', type: 'APPROVAL', config: { onTimeout: 'rejected' } },
  ])
  expect(status).toBe(201)
  expect(body.warnings).toEqual([
    { path: 'nodes[0].retry', message: 'does nothing: a trigger is not tried again' },
    { path: 'nodes[0].timeoutMs', message: 'does nothing: a trigger takes no time' },
    { path: 'nodes[0].onError', message: 'does nothing: a trigger does not fail' },
    { path: 'nodes[1].retry', message: 'does nothing: a wait is not tried again' },
    { path: 'nodes[2].onError', message: 'does nothing: a NO_OP does not fail' },
    {
      path: 'nodes[3].retry',
      message: 'does nothing: unless maxAttempts is set too, there is only one attempt',
    },
    {
      path: 'nodes[5].config.onTimeout',
      message: 'does nothing: without timeoutMs an approval waits for as long as it takes',
    },
  ])
})

test('unknown keys are warnings beside the header, or refused with ?unknownKeys=refuse', async () => {
  const nodes = [
    start,
    {
      id: 'limit',
      type: 'LIMIT',
      config: { items: [], count: 1, ofset: 3 },
      onErorr: 'CONTINUE',
      measured: {},
    },
    { id: 'switch', type: 'SWITCH', config: { cases: [{ handle: 'a', condition: 'true', conditon: 1 }] } },
    { id: 'call', type: 'HTTP_REQUEST', url: 'http://b.example', config: { url: 'http://a.example' } },
  ]
  const edges = [{ source: 'start', target: 'limit', sourceHandel: 'x' }]
  const warnings = [
    {
      path: 'nodes[1].config.ofset',
      message: 'the key "ofset" is unknown here and was left out; did you mean "offset"?',
    },
    {
      path: 'nodes[2].config.cases[0].conditon',
      message: 'the key "conditon" is unknown here and was left out; did you mean "condition"?',
    },
    { path: 'setings', message: '"setings" is unknown here and was not read; did you mean "settings"?' },
    {
      path: 'nodes[1].onErorr',
      message: 'the key "onErorr" is unknown here and was left out; did you mean "onError"?',
    },
    {
      path: 'nodes[3].url',
      message: 'the key "url" is unknown here and was left out; it belongs into config',
    },
    {
      path: 'edges[0].sourceHandel',
      message: 'the key "sourceHandel" is unknown here and was left out; did you mean "sourceHandle"?',
    },
  ]
  const body = { edges, setings: {} }
  const made = await post(nodes, body)
  expect([made.status, made.body.warnings]).toEqual([201, warnings])
  const told = ['nodes[1].config.ofset', 'nodes[2].config.cases[0].conditon']
  expect(JSON.parse(made.headers.get('x-unknown-fields')!)).toEqual(told)

  const refused = await post(nodes, body, '?unknownKeys=refuse')
  expect(refused.status).toBe(400)
  expect(refused.body.errors).toHaveLength(6)
  expect(refused.body.errors[0]).toEqual({
    path: 'nodes[1].config.ofset',
    message: 'the key "ofset" is unknown here; did you mean "offset"?',
  })
  expect((await post(nodes, body, '?unknownKeys=maybe')).status).toBe(400)
  expect((await post([start], {}, '?unknownKeys=refuse')).body).not.toHaveProperty('warnings')

  const path = `/api/workflows/${made.body.id}`
  const put = await service.call('PUT', path, builder, { nodes })
  expect(put.body.warnings).toEqual(warnings.filter(({ path }) => path.startsWith('nodes')))
  const before = put.body.version
  expect((await service.call('PUT', `${path}?unknownKeys=refuse`, builder, { nodes })).status).toBe(400)
  expect((await service.call('GET', path, builder)).body.version).toBe(before)
})

test('an import of an own document has the same warnings, with their place in the document', async () => {
  const document = {
    format: 'perdure.workflow',
    formatVersion: 1,
    expressions: 2,
    nodes: [
      start,
      { id: 'limit', type: 'LIMIT', config: { items: '{{ $input.length }}', count: 1, ofset: 3 } },
    ],
    edges: [],
  }
  const send = (query: string) =>
    service.call('POST', `/api/workflows/import${query}`, builder, {
      teamId: service.teamId,
      name: crypto.randomUUID(),
      workflow: document,
    })
  for (const query of ['', '?dryRun=true']) {
    const { body } = await send(query)
    expect(body.warnings).toEqual([
      expect.objectContaining({ path: 'workflow.nodes[1].config.ofset' }),
      expect.objectContaining({ path: 'workflow.nodes[1].config.items', line: 1, column: 10 }),
    ])
  }
  const refused = await send('?unknownKeys=refuse')
  expect(refused.body.errors).toEqual([
    {
      path: 'workflow.nodes[1].config.ofset',
      message: 'the key "ofset" is unknown here; did you mean "offset"?',
    },
  ])
})

test('nodes without a name are named after their type and number', async () => {
  const named = async (nodes: Node[]) => {
    const made = await post(nodes)
    const { body } = await service.call('GET', `/api/workflows/${made.body.id}`, builder)
    return body.nodes.map(({ name }: { name: string }) => name)
  }
  const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id, type: 'SET', config: { values: {} } }))
  expect(await named([start, a!, b!])).toEqual(['Manual trigger 1', 'Set 1', 'Set 2'])
  expect(await named([{ ...a, name: 'Set 1' }, b!, { ...c, name: 'Set 3' }])).toEqual([
    'Set 1',
    'Set 2',
    'Set 3',
  ])
  const { teamId } = service
  const demo = { teamId, name: 'A demo', type: 'DEMO', data: {} }
  const credentialId = (await service.call('POST', '/api/credentials', builder, demo)).body.id
  const asked = { credentialId, model: 'demo', instructions: 'Help', prompt: 'x' }
  const calls = [
    { id: 'call', type: 'HTTP_REQUEST', config: { url: 'http://a.example' } },
    { id: 'llm', type: 'LLM', config: asked },
    { id: 'agent', type: 'AI_AGENT', config: asked },
  ]
  expect(await named(calls)).toEqual(['HTTP request 1', 'LLM 1', 'AI agent 1'])
})

test('a node without a name keeps the name that it had when the workflow is saved again', async () => {
  const set = (id: string) => ({ id, type: 'SET', config: { values: {} } })
  const made = await post([set('a'), set('b')])
  const path = `/api/workflows/${made.body.id}`
  const put = await service.call('PUT', path, builder, { nodes: [set('b'), set('c')], edges: [] })
  expect(put.body.nodes.map(({ id, name }: Node) => [id, name])).toEqual([
    ['b', 'Set 2'],
    ['c', 'Set 1'],
  ])
})

test('a tool is told the keys that tools of its kind have', async () => {
  const { teamId } = service
  const demo = { teamId, name: 'Another demo', type: 'DEMO', data: {} }
  const credentialId = (await service.call('POST', '/api/credentials', builder, demo)).body.id
  const tools = [
    { type: 'MCP', name: 'mcp', url: 'http://a.example', description: 'x', parameters: {}, idempotnt: true },
    {
      type: 'CODE',
      name: 'code',
      description: 'x',
      parameters: { type: 'object' },
      code: 'return 1',
      url: 'x',
    },
  ]
  const config = { credentialId, model: 'demo', instructions: 'Help', prompt: 'x', tools }
  const { status, body } = await post([{ id: 'agent', type: 'AI_AGENT', config }])
  expect(status).toBe(400)
  const said = (key: string) => `the key "${key}" is unknown here`
  const mcp =
    'type, name, description, url, headers, credentialId, needsCredential, include, timeoutMs, idempotent, approval'
  const code = 'type, name, description, parameters, approval, code, timeoutMs, memoryMb'
  expect(body.errors).toEqual([
    { path: 'nodes[0].config.tools[0].parameters', message: `${said('parameters')}; known are ${mcp}` },
    {
      path: 'nodes[0].config.tools[0].idempotnt',
      message: `${said('idempotnt')}; did you mean "idempotent"?`,
    },
    { path: 'nodes[0].config.tools[1].url', message: `${said('url')}; known are ${code}` },
  ])
})
