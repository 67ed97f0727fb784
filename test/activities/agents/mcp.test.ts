import { afterEach, describe, expect, test } from 'vitest'
import { startAgents } from '../../support/agents/agents.ts'
import type { Graph } from '../../support/client.ts'
import { keep } from '../../support/keep.ts'
import { type McpManner, type McpTool, startMcp } from '../../support/servers/mcp.ts'

const agents = await keep(startAgents())

const opened: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0)) await one.stop()
})

async function serve(manner: McpManner, tools: McpTool[]) {
  const server = await startMcp(manner, tools)
  opened.push(server)
  return server
}

const weather = (more: Partial<McpTool> = {}): McpTool => ({
  name: 'weather',
  description: 'Tells the weather',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  call: ({ city }) => ({ content: [{ type: 'text', text: `Rain in ${city}` }] }),
  ...more,
})
const tool = (url: string, more: object = {}) => ({ type: 'MCP', name: 'office', url, ...more })
const asked = (city = 'Oslo', name = 'weather') => ({ tools: [{ name, args: { city } }] })
const quick = { node: { retry: { maxAttempts: 1 } } }
/** The names of the tools that the model was offered. */
const offered = (call = 0) =>
  (agents.vendor.calls[call]!.body.tools as { function: { name: string } }[]).map((one) => one.function.name)

describe.each<McpManner>(['json', 'sse', 'modern'])('a server that answers as %s', (manner) => {
  test('its tools are offered and called, with the credential, and no session is left', async () => {
    const server = await serve(manner, [weather()])
    const credentialId = await agents.keep('HTTP_BEARER', {
      token: 'mcp-key-123',
      allowedHosts: ['127.0.0.1'],
    })
    const { run, agent, steps } = await agents.runAgent(
      [tool(server.url, { credentialId })],
      [asked(), { text: 'It rains.' }],
      quick,
    )
    expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
    expect(offered()).toEqual(['weather'])
    expect(agents.toldIn(1)).toEqual(['Rain in Oslo'])
    expect(steps.map((one) => one.tool)).toEqual([null, 'weather', null])
    expect(server.requests.every(({ headers }) => headers.authorization === 'Bearer mcp-key-123')).toBe(true)
    expect(server.requests.filter(({ method }) => method === 'GET')).toEqual([])
    expect(server.sessions.size).toBe(0)
    expect(JSON.stringify(run)).not.toContain('mcp-key-123')
  })
})

test.each<McpManner>(['json', 'sse', 'modern'])(
  'large integers of a result keep their digits: %s',
  async (manner) => {
    const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }
    const digits = '12345678901234567890'
    // The schema's own limit stays a number.
    const inputSchema = { type: 'object' as const, properties: { n: { type: 'integer', maximum: 2 ** 64 } } }
    const call = () => ({
      content: [],
      structuredContent: { id: rawJSON(digits), small: 7, text: `"${digits}` },
    })
    const server = await serve(manner, [weather({ inputSchema, call })])
    const script = [{ tools: [{ name: 'weather', args: {} }] }, { text: 'ok' }]
    const { run, agent, steps } = await agents.runAgent([tool(server.url)], script, quick)
    expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
    expect(steps[1]).toMatchObject({
      outputData: { id: digits, small: 7, text: `"${digits}` },
      warnings: [{ message: expect.stringMatching(/^1 number is too large/) }],
    })
  },
)

test('what its tool in the graph is described as comes before what the server says of its own', async () => {
  const server = await serve('json', [weather(), weather({ name: 'bare', description: '' })])
  const { run, agent } = await agents.runAgent(
    [tool(server.url, { description: 'The office in Oslo' })],
    [{ text: 'ok' }],
  )
  expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
  const { tools } = agents.vendor.calls[0]!.body as { tools: { function: { description: string } }[] }
  expect(tools.map((one) => one.function.description)).toEqual([
    'The office in Oslo\nTells the weather',
    'The office in Oslo',
  ])
})

test('the secret of a server is not told to the model in what the server says of its tools', async () => {
  const token = 'mcp-key-0123456789-of-a-server-that-tells-it'
  const inputSchema = {
    type: 'object' as const,
    properties: { [token]: { type: 'string' } },
    required: [token],
  }
  // The description is cut within the secret.
  const server = await serve('json', [
    weather({ description: `${'d'.repeat(3_980)}${token}`, inputSchema }),
    weather({ name: `of ${token}` }),
  ])
  const credentialId = await agents.keep('HTTP_BEARER', { token, allowedHosts: ['127.0.0.1'] })
  const { run, agent } = await agents.runAgent(
    [tool(server.url, { credentialId })],
    [asked(), { text: 'ok' }],
  )
  expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
  expect(offered()).toEqual(['weather', 'of__redacted_'])
  expect(agents.toldIn(1)).toEqual([
    { error: expect.stringContaining('must have the property "[redacted]"') },
  ])
  for (const { body } of agents.vendor.calls) expect(JSON.stringify(body)).not.toContain('mcp-key')
  expect(JSON.stringify(run)).not.toContain('mcp-key')
})

test('structured results and errors are told as they are, and what is no text is named', async () => {
  const server = await serve('json', [
    weather({ call: () => ({ content: [], structuredContent: { rain: true } }) }),
    weather({
      name: 'broken',
      call: () => ({ isError: true, content: [{ type: 'text', text: 'No station' }] }),
    }),
    weather({
      name: 'photo',
      call: () => ({ content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }] }),
    }),
    weather({
      name: 'gone',
      call: () => {
        throw new Error('out of order')
      },
    }),
  ])
  const names = ['weather', 'broken', 'photo', 'gone']
  await agents.runAgent(
    [tool(server.url)],
    [{ tools: names.map((name) => ({ name, args: { city: 'x' } })) }, { text: 'ok' }],
  )
  expect(agents.toldIn(1)).toEqual([
    { rain: true },
    { error: 'No station' },
    '[image (image/png): not shown]',
    { error: expect.stringMatching(/The server office: .*out of order/) },
  ])
})

test('the tools of the first turn stay those of the run, whatever the server offers later', async () => {
  const server = await serve('json', [weather()])
  const { run } = await agents.runAgent([tool(server.url)], (_call, number) => {
    if (number > 0) return { text: 'ok' }
    server.offer([weather({ name: 'other' })])
    return asked()
  })
  expect(run.status).toBe('SUCCESS')
  expect(offered(1)).toEqual(['weather'])
  expect(agents.toldIn(1)).toEqual([{ error: expect.stringMatching(/Unknown tool: weather/) }])
})

test('names that clash get that of their server, and strange ones are made plain; include chooses', async () => {
  const one = await serve('json', [weather(), weather({ name: 'a b/c' }), weather({ name: 'left_out' })])
  const two = await serve('json', [weather()])
  const code = {
    type: 'CODE',
    name: 'weather',
    description: 'x',
    parameters: { type: 'object' },
    code: 'return 1',
  }
  await agents.runAgent(
    [code, tool(one.url, { include: ['weather', 'a b/c'] }), tool(two.url, { name: 'second' })],
    [{ tools: [{ name: 'second_weather', args: { city: 'Rome' } }] }, { text: 'ok' }],
  )
  expect(offered()).toEqual(['weather', 'office_weather', 'a_b_c', 'second_weather'])
  expect(agents.toldIn(1)).toEqual(['Rain in Rome'])
  expect(two.requests.some(({ asks }) => asks === 'tools/call')).toBe(true)
  const missing = await agents.runAgent([tool(one.url, { include: ['weather', 'snow'] })], { text: 'ok' })
  expect(missing.agent.errorMessage).toBe('The server office has no tool snow (include)')
})

test('a tool whose schema cannot be used is left out, with a warning', async () => {
  const bad = weather({
    name: 'bad',
    inputSchema: { type: 'object', properties: { a: { type: 'no-type' } } },
  })
  const server = await serve('json', [weather(), bad])
  const { steps } = await agents.runAgent([tool(server.url)], { text: 'ok' })
  expect(offered()).toEqual(['weather'])
  expect(steps[0]!.warnings).toMatchObject([
    { message: expect.stringMatching(/the tool bad of the server was left out/) },
  ])
})

describe('a server that does not do as it should fails the agent clearly, and is never waited for without an end', () => {
  const fails = async (
    before: Parameters<Awaited<ReturnType<typeof serve>>['before']>[0],
    more: object = {},
  ) => {
    const server = await serve('json', [weather()])
    server.before(before)
    const { agent } = await agents.runAgent([tool(server.url, more)], { text: 'ok' }, quick)
    expect(agents.vendor.calls).toHaveLength(0)
    return agent.errorMessage
  }

  test('nobody there', async () => {
    const { agent } = await agents.runAgent([tool('http://127.0.0.1:1/')], { text: 'ok' }, quick)
    expect(agent.errorMessage).toMatch(/The server office failed: .*connection refused/)
  })

  test('it hangs', async () => {
    expect(await fails(() => true, { timeoutMs: 1_000 })).toMatch(/The server office .*(?:1000 ms|in time)/)
  })

  test('it answers garbage', async () => {
    const garbage = await fails((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc": "2.0", "id"')
      return true
    })
    expect(garbage).toMatch(/^The server office/)
  })

  test('it answers with a page, and with a refusal', async () => {
    const page = await fails((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello</h1>')
      return true
    })
    expect(page).toMatch(/^The server office/)
    const refused = await fails((_, response) => {
      response.writeHead(403, { 'content-type': 'text/plain' }).end('Go away')
      return true
    })
    expect(refused).toMatch(/The server office responded with 403: /)
  })

  test('it answers 8 MB', async () => {
    const large = await fails(({ asks }, response) => {
      if (asks !== 'tools/list') return false
      response.writeHead(200, { 'content-type': 'application/json' }).end(`{"x":"${'x'.repeat(8_000_000)}"}`)
      return true
    })
    expect(large).toMatch(/more than 2097152 bytes/)
  })

  test('it leads elsewhere', async () => {
    const elsewhere = await serve('json', [weather()])
    const led = await fails((_, response) => {
      response.writeHead(307, { location: elsewhere.url }).end()
      return true
    })
    expect(led).toMatch(/^The server office/)
    expect(elsewhere.requests).toHaveLength(0)
  })
})

test('a call that got no answer has an unknown outcome and is not made again, unless the server is idempotent', async () => {
  const server = await serve('json', [weather()])
  const cut: Parameters<typeof server.before>[0] = ({ asks }, response) => {
    if (asks !== 'tools/call') return false
    response.destroy()
    return true
  }
  server.before(cut)
  const retry = { node: { retry: { maxAttempts: 2, initialIntervalMs: 10 } } }
  await agents.runAgent([tool(server.url)], [asked(), { text: 'ok' }], retry)
  expect(agents.toldIn(1)).toEqual([{ error: 'outcome unknown' }])
  expect(server.requests.filter(({ asks }) => asks === 'tools/call')).toHaveLength(1)
  await agents.runAgent([tool(server.url, { idempotent: true })], [asked(), { text: 'ok' }], retry)
  expect(server.requests.filter(({ asks }) => asks === 'tools/call')).toHaveLength(3)
})

type Answer = Parameters<Awaited<ReturnType<typeof startMcp>>['before']>[0]
const json = { 'content-type': 'application/json' }
const events = { 'content-type': 'text/event-stream' }
const answers = (act: (response: import('node:http').ServerResponse) => unknown): Answer => {
  return ({ asks }, response) => {
    if (asks !== 'tools/call') return false
    act(response)
    return true
  }
}

test.each<[string, Answer]>([
  ['broken JSON', answers((to) => to.writeHead(200, json).end('{"jsonrpc": "2.0", "id"'))],
  ['JSON of something else', answers((to) => to.writeHead(200, json).end('{"ok": true}'))],
  ['a page', answers((to) => to.writeHead(200, { 'content-type': 'text/html' }).end('<p>Done!'))],
  ['nothing', answers((to) => to.writeHead(200, json).end())],
  ['too much', answers((to) => to.writeHead(200, json).end(`"${'x'.repeat(3_000_000)}"`))],
  ['events that end too early', answers((to) => to.writeHead(200, events).end(': wait\n\n'))],
  [
    'events that break off',
    answers((to) => to.writeHead(200, events).write('data: {"json', () => to.destroy())),
  ],
  ['502', answers((to) => to.writeHead(502).end('Bad gateway'))],
  ['a redirect', answers((to) => to.writeHead(302, { location: 'http://127.0.0.1:1/' }).end())],
])(
  'a call that is answered with %s may have been made: its outcome is unknown, and it is not made again',
  async (_, answer) => {
    const server = await serve('json', [weather()])
    server.before(answer)
    const { run, steps } = await agents.runAgent(
      [tool(server.url, { timeoutMs: 3_000 })],
      [asked(), { text: 'ok' }],
      { node: { retry: { maxAttempts: 2, initialIntervalMs: 10 } } },
    )
    expect(run.status).toBe('SUCCESS')
    expect(agents.toldIn(1)).toEqual([{ error: 'outcome unknown' }])
    expect(steps[1]).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringMatching(/weather.* may have been sent, but no answer came.*mark the tool/),
    })
    expect(server.requests.filter(({ asks }) => asks === 'tools/call')).toHaveLength(1)
  },
)

test.each<[string, Answer, RegExp]>([
  ['403', answers((to) => to.writeHead(403).end('Not you')), /responded with 403/],
  ['404', answers((to) => to.writeHead(404).end('No such session')), /responded with 404/],
  ['429', answers((to) => to.writeHead(429).end('Slow down')), /responded with 429/],
])('a call that the server refuses with %s is told as an error', async (_, answer, said) => {
  const server = await serve('json', [weather()])
  server.before(answer)
  await agents.runAgent([tool(server.url)], [asked(), { text: 'ok' }], quick)
  expect(agents.toldIn(1)).toEqual([{ error: expect.stringMatching(said) }])
})

test('its address keeps to the egress rules, is no place for arguments, and takes no secret', async () => {
  const denied = await agents.runAgent([tool('http://10.1.2.3/mcp')], { text: 'ok' }, quick)
  expect(denied.agent.errorMessage).toMatch(/10\.1\.2\.3/)
  const create = (more: object) =>
    agents.create(agents.graphOf(agents.agentNode([tool('http://127.0.0.1/x', more)])) as Graph)
  await expect(create({ url: 'http://127.0.0.1/{{ $args.x }}' })).rejects.toThrow(
    /tools\[0\]\.url.*only the settings of a tool of an agent have it/,
  )
  await expect(create({ headers: { 'x-api-key': 'abcdefgh12345678' } })).rejects.toThrow(
    /tools\[0\]\.headers\.x-api-key.*must not be written into the graph/,
  )
})
