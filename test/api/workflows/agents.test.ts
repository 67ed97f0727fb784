import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const credential = async (type: string, data: object) => {
  const json = { teamId: service.teamId, name: `${type} ${Math.random()}`, type, data }
  const response = await service.request('/api/credentials', { method: 'POST', as: service.admin, json })
  return ((await response.json()) as { id: string }).id
}
const demo = await credential('DEMO', {})
const bearer = await credential('HTTP_BEARER', { token: 'some-token-of-mine' })

const told = { description: 'Does it', parameters: { type: 'object' } }
const code = (more: object = {}) => ({ type: 'CODE', name: 'work', ...told, code: 'return 1', ...more })

/** What is wrong with an agent, by path within its config; [] if it can be saved. */
async function faults(tools: unknown, config: object = {}): Promise<string[]> {
  const nodes = [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'load', type: 'NO_OP', config: {} },
    {
      id: 'agent',
      type: 'AI_AGENT',
      config: { credentialId: demo, model: 'demo', instructions: 'Help.', tools, ...config },
    },
    { id: 'later', type: 'NO_OP', config: {} },
  ]
  const edges = [
    { source: 'start', target: 'load' },
    { source: 'load', target: 'agent' },
    { source: 'agent', target: 'later' },
  ]
  const json = { name: `w ${Math.random()}`, teamId: service.teamId, nodes, edges, expressions: 2 }
  const response = await service.request('/api/workflows', { method: 'POST', as: service.admin, json })
  if (response.status === 201) return []
  const { errors } = (await response.json()) as { errors: { path: string; message: string }[] }
  return errors.map(({ path, message }) => `${path.replace('nodes[2].config.', '')}: ${message}`)
}

test('an agent with tools of every kind can be saved', async () => {
  const http = {
    type: 'HTTP',
    name: 'get',
    ...told,
    url: 'https://example.com/{{ $args.id }}',
    method: 'GET',
  }
  const sql = {
    type: 'DATABASE_QUERY',
    name: 'find',
    ...told,
    query: 'select $1::text',
    params: ['{{ $args.id }}'],
  }
  const database = await credential('DATABASE', { url: 'postgres://u:p@127.0.0.1/x' }).catch(() => '')
  const mcp = { type: 'MCP', name: 'office', url: 'https://example.com/mcp', include: ['a'] }
  const run = { type: 'RUN', nodes: ['start', 'load'] }
  const all = [http, mcp, run, code({ code: 'return $args.id' })]
  expect(await faults(database ? [...all, { ...sql, credentialId: database }] : all)).toEqual([])
  expect(await faults([], { maxCost: 0.5, maxTokens: 1000, maxSteps: 500, temperature: 0 })).toEqual([])
})

test('everything that is wrong with tools is named at once, with its place', async () => {
  const found = await faults([
    { type: 'HTTP', name: 'get it', ...told, url: 'https://example.com' },
    { type: 'HTTP', name: 'get', description: 'x', parameters: { type: 'string' }, method: 'FETCH' },
    code({ parameters: { type: 'object', properties: { a: { type: 'no-type' } } } }),
    { type: 'SHELL', name: 'rm' },
    { type: 'MCP', name: 'office' },
    { type: 'RUN', nodes: [] },
  ])
  expect(found).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^tools\[0\]\.name: must be 1 to 64 letters/),
      expect.stringMatching(/^tools\[1\]\.url: is required/),
      expect.stringMatching(/^tools\[1\]\.parameters: must be a JSON Schema with the type object/),
      expect.stringMatching(/^tools\[1\]\.method: must be one of GET/),
      expect.stringMatching(/^tools\[2\]\.parameters.*no-type|^tools\[2\]\.parameters.*is no JSON Schema/),
      expect.stringMatching(
        /^tools\[3\]\.type: must be one of HTTP, SUB_WORKFLOW, CODE, DATABASE_QUERY, DATA_TABLE, CONNECTOR, MCP, RUN/,
      ),
      expect.stringMatching(/^tools\[4\]\.url: is required/),
      expect.stringMatching(/^tools\[5\]\.nodes: must not be empty/),
    ]),
  )
})

test('each tool has a name of its own', async () => {
  expect(await faults([code(), code({ name: 'other' }), code()])).toEqual([
    'tools[2].name: repeats the name of tools[0]',
  ])
})

test('$args is known in the settings of tools only, and what a model is told has no expressions', async () => {
  const get = { type: 'HTTP', name: 'get', ...told, method: 'GET' }
  expect(await faults([], { instructions: 'Do {{ $args.x }}' })).toEqual([
    expect.stringMatching(/^instructions: unknown variable \$args: only the settings of a tool/),
  ])
  expect(await faults([], { prompt: '={{ $args.x }}' })).toEqual([expect.stringMatching(/^prompt: .*\$args/)])
  expect(await faults([{ ...get, url: '=https://example.com/{{ $args.x }}' }])).toEqual([])
  expect(await faults([{ ...get, url: 'https://example.com', description: 'For {{ $vars.x }}' }])).toEqual([
    expect.stringMatching(/^tools\[0\]\.description: must be a text without/),
  ])
  // A schema stands as it is: nothing in it is an expression.
  const braces = { type: 'object', properties: { x: { type: 'string', description: 'such as {{ x }' } } }
  expect(await faults([code({ parameters: braces })])).toEqual([])
})

test('the structure of a body does not come from within a text', async () => {
  const http = { type: 'HTTP', name: 'send', ...told, url: 'https://example.com', method: 'POST' }
  expect(await faults([{ ...http, body: '{"q": "{{ $args.q }}"}' }])).toEqual([
    expect.stringMatching(/^tools\[0\]\.body: must not have expressions within a text/),
  ])
  expect(await faults([{ ...http, body: '{{ $args }}' }])).toEqual([])
  expect(await faults([{ ...http, bodyType: 'text', body: 'q is {{ $args.q }}' }])).toEqual([])
})

test('credentials, sub-workflows and nodes that tools name are checked as those of nodes are', async () => {
  const http = { type: 'HTTP', name: 'get', ...told, url: 'https://example.com', method: 'GET' }
  const nobody = '00000000-0000-4000-8000-000000000000'
  expect(await faults([{ ...http, credentialId: demo }])).toEqual([
    expect.stringMatching(/^tools\[0\]\.credentialId: must be a credential of the type/),
  ])
  expect(await faults([{ ...http, credentialId: nobody }])).toEqual([
    'tools[0].credentialId: must be a credential of this team',
  ])
  expect(await faults([{ ...http, url: '{{ $args.at }}', credentialId: bearer }])).toEqual([
    expect.stringMatching(/^tools\[0\]\.url: must have its host written in it/),
  ])
  expect(await faults([{ ...http, headers: { authorization: 'x' }, credentialId: bearer }])).toEqual(
    expect.arrayContaining([expect.stringMatching(/^tools\[0\]\.headers\.authorization: /)]),
  )
  expect(await faults([{ type: 'SUB_WORKFLOW', name: 'sub', ...told, workflowId: nobody }])).toEqual([
    'tools[0].workflowId: must be a workflow of this team',
  ])
  const run = await faults([{ type: 'RUN', nodes: ['load', 'nowhere', 'later'] }])
  expect(run).toEqual([
    expect.stringMatching(/^tools\[0\]\.nodes\[1\]: names the node "nowhere", which is not in this graph/),
    expect.stringMatching(
      /^tools\[0\]\.nodes\[2\]: names the node "later", which does not come before "agent"/,
    ),
  ])
})

test('a secret in a tool is refused, also in an import', async () => {
  const http = { type: 'HTTP', name: 'get', ...told, url: 'https://example.com', method: 'GET' }
  const secret = { ...http, headers: { authorization: 'Bearer abcdefgh12345678' } }
  expect(await faults([secret])).toEqual([
    expect.stringMatching(
      /^tools\[0\]\.headers\.authorization: the secret .*must not be written into the graph/,
    ),
  ])
})

test('the credentials of tools are among those that a workflow uses, and an export keeps their ids', async () => {
  const id = await credential('HTTP_BEARER', { token: 'another-token-of-mine' })
  const http = {
    type: 'HTTP',
    name: 'get',
    ...told,
    url: 'https://example.com',
    method: 'GET',
    credentialId: id,
  }
  expect(await faults([code(), http])).toEqual([])
  const usage = await service.request(`/api/credentials/${id}/usage`, { as: service.admin })
  expect(((await usage.json()) as { content: unknown[] }).content).toMatchObject([
    { nodes: [{ id: 'agent' }] },
  ])
})
