import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { startAgents, takes } from '../../support/agents/agents.ts'
import type { Graph } from '../../support/client.ts'
import { plantCredential } from '../../support/credentials.ts'
import { useApprovals } from '../../support/engine/approvals.ts'
import { keep } from '../../support/keep.ts'
import { startPostgres } from '../../support/servers/clusters.ts'
import { type Answer, startWorld } from '../../support/servers/world.ts'
import { until } from '../../support/until.ts'

const agents = await keep(startAgents())
const approvals = useApprovals(agents)

const post = (more: object = {}) => ({
  type: 'HTTP',
  name: 'order',
  description: 'Orders something',
  parameters: takes('what'),
  url: `${agents.site.origin}/orders`,
  method: 'POST',
  body: { what: '{{ $args.what }}', by: '{{ $trigger.who }}' },
  ...more,
})
const call = (name: string, args: Record<string, unknown> = {}) => ({ tools: [{ name, args }] })
const orders = call('order', { what: 'tea' })

function redirectTo(response: import('node:http').ServerResponse, status: number, location: string) {
  response.writeHead(status, { location }).end()
}

/** Runs an agent that calls one tool and then answers; what the model was told of that. */
async function tell(
  tool: object,
  args: Record<string, unknown>,
  more: Parameters<typeof agents.runAgent>[2] = {},
) {
  const { name } = tool as { name: string }
  const done = await agents.runAgent([tool as never], [call(name, args), { text: 'Done.' }], more)
  expect(done.run.status, JSON.stringify(done.run.nodeExecutions, null, 1)).toBe('SUCCESS')
  return { ...done, told: agents.toldIn(1)[0] }
}

describe('HTTP', () => {
  test('arguments are values: never expressions, and never more of the request than their place', async () => {
    const evil = '{{ $trigger.who }}", "admin": true, "x": "\n={{ $vars.key }}'
    const { told } = await tell(
      post({ url: `${agents.site.origin}/orders?for={{ $args.what }}`, headers: { 'x-note': 'n' } }),
      { what: evil },
      { data: { who: 'Ada' } },
    )
    const [sent] = agents.site.calls
    expect(JSON.parse(sent!.body)).toEqual({ what: evil, by: 'Ada' })
    expect(sent!.path).toBe(`/orders?for=${encodeURIComponent(evil)}`)
    expect(told).toMatchObject({ status: 200 })
  })

  test('one that needs a credential and has none fails the agent before its model is asked', async () => {
    const tool = post({ needsCredential: 'the key of the shop' })
    const { run } = await agents.runAgent([tool], [orders, { text: 'Ordered.' }])
    expect(run.status).toBe('FAILED')
    expect(run.errorMessage).toContain('It needs the key of the shop')
    expect([agents.vendor.calls, agents.site.calls]).toEqual([[], []])
  })

  test('a status that says no is an answer like any other, and is not asked for again', async () => {
    agents.site.answer((_call, _request, response) => {
      response.writeHead(422, { 'content-type': 'application/json' }).end('{"missing":["size"]}')
    })
    const { told, steps } = await tell(post(), { what: 'tea' })
    expect(told).toEqual({ status: 422, body: { missing: ['size'] } })
    expect(steps[1]!.status).toBe('SUCCESS')
    expect(agents.site.calls).toHaveLength(1)
    agents.site.answer()
  })

  test('what may be sent again is, under the same key, and what may not is not', async () => {
    const busy = (_call: unknown, _request: unknown, response: import('node:http').ServerResponse) => {
      response
        .writeHead(agents.site.calls.length === 1 ? 503 : 200, { 'content-type': 'text/plain' })
        .end('ok')
    }
    agents.site.answer(busy)
    const again = await tell(
      post({ idempotent: true }),
      { what: 'tea' },
      { node: { retry: { initialIntervalMs: 10 } } },
    )
    expect(again.told).toEqual({ status: 200, body: 'ok' })
    const keys = agents.site.calls.map(({ headers }) => headers['idempotency-key'])
    expect(keys).toEqual([`${again.run.id}:agent!2`, `${again.run.id}:agent!2`])
    expect((await tell(post(), { what: 'tea' })).told).toEqual({ status: 503, body: 'ok' })
    agents.site.answer()
  })

  test('what a cancel broke off, and may be sent again, is sent again by a retry of the execution under its key', async () => {
    let hangs = true
    agents.vendor.calls.length = 0
    agents.site.calls.length = 0
    agents.site.answer((_call, _request, response) => {
      if (!hangs) response.end('ok')
    })
    agents.vendor.say([orders, { text: 'Done.' }] as never)
    const graph = agents.graphOf(agents.agentNode([post({ idempotent: true })])) as never
    const first = await agents.execute(await agents.create(graph), {})
    await until(() => agents.site.calls.length === 1)
    await until(async () => {
      const notes = agents.store.db.selectFrom('nodeExecutions').select('requestKey')
      const found = await notes.where('executionId', '=', first).where('requestKey', 'is not', null).execute()
      return found.length > 0
    })
    await agents.ask('POST', `/api/executions/${first}/cancel`)
    expect((await agents.ended(first)).status).toBe('CANCELLED')
    hangs = false
    const { executionId } = await agents.ask<{ executionId: string }>(
      'POST',
      `/api/executions/${first}/retry`,
      {},
    )
    expect((await agents.ended(executionId)).status).toBe('SUCCESS')
    const keys = agents.site.calls.map(({ headers }) => headers['idempotency-key'])
    expect(keys).toEqual([`${first}:agent!2`, `${first}:agent!2`])
    agents.site.answer()
  })

  test('an argument that is a piece of the host leads nowhere else', async () => {
    const url = `${agents.site.origin}{{ $args.what }}`
    const { told } = await tell(post({ url }), { what: '@127.0.0.2/' })
    expect(told).toEqual({ error: expect.stringMatching(/has an expression within its host/) })
    expect(agents.site.calls).toHaveLength(0)
  })

  test.each(['', ' ', '..', '%2e%2e/x', 'a\u0000'])(
    'an argument that names nothing below a path, as %j, is refused and told',
    async (what) => {
      const url = `${agents.site.origin}/users/{{ $args.what }}`
      const { told, steps } = await tell(post({ url, method: 'DELETE', body: undefined }), { what })
      expect(told).toEqual({ error: expect.stringMatching(/^url has a.* value.* in its path/) })
      expect(steps[1]).toMatchObject({ status: 'FAILED' })
      expect(agents.site.calls).toHaveLength(0)
    },
  )

  test('a request that got no answer has an unknown outcome, and is not sent again', async () => {
    agents.site.answer((_call, request) => void request.socket.destroy())
    const { told, steps } = await tell(
      post(),
      { what: 'tea' },
      { node: { retry: { initialIntervalMs: 10 } } },
    )
    expect(told).toEqual({ error: 'outcome unknown' })
    expect(steps[1]).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringMatching(/may have been sent, but no answer came/),
    })
    expect(agents.site.calls).toHaveLength(1)
    agents.site.answer()
  })

  test.each<[string, object, (response: import('node:http').ServerResponse) => unknown]>([
    ['no JSON, which was asked for', { responseType: 'json' }, (to) => to.end('<p>Ordered!')],
    ['too much', {}, (to) => to.end('x'.repeat(3_000_000))],
    ['a redirect to where nobody is', {}, (to) => redirectTo(to, 303, 'http://127.0.0.1:1/')],
    ['a redirect to where nobody may go', {}, (to) => redirectTo(to, 303, 'http://169.254.169.254/')],
    ['a redirect to no address', {}, (to) => redirectTo(to, 303, 'ftp://x')],
  ])(
    'a request that is answered with %s has an unknown outcome, and is not sent again',
    async (_, more, answer) => {
      agents.site.answer((_call, _request, response) => void answer(response))
      const { told, steps } = await tell(
        post(more),
        { what: 'tea' },
        { node: { retry: { initialIntervalMs: 10 } } },
      )
      agents.site.answer()
      expect(told).toEqual({ error: 'outcome unknown' })
      expect(steps[1]!.errorMessage).toMatch(/may have been sent, but no answer came that says so: /)
      expect(agents.site.calls).toHaveLength(1)
    },
  )

  test('a request that nobody can have got is tried again, and its failure is told as it is', async () => {
    const { told, steps } = await tell(
      post({ url: 'http://127.0.0.1:1/' }),
      { what: 'tea' },
      { node: { retry: { maxAttempts: 2, initialIntervalMs: 10 } } },
    )
    expect(told).toEqual({ error: expect.stringMatching(/connection refused/) })
    expect(steps[1]!.retryCount).toBe(1)
  })

  test('the secret of a tool is in nothing that a run leaves, and not in what the model is told', async () => {
    const secret = 'Cnry-4b1c9d2e8f'
    const credentialId = await agents.keep('HTTP_BEARER', { token: secret, allowedHosts: ['127.0.0.1'] })
    agents.site.answer((sent, _request, response) => {
      response.end(JSON.stringify({ sent, deep: [secret] }))
    })
    const { run } = await tell(post({ credentialId }), { what: 'tea' })
    agents.site.answer()
    expect(agents.site.calls[0]!.headers.authorization).toBe(`Bearer ${secret}`)
    expect(JSON.stringify(run)).not.toContain(secret)
    expect(JSON.stringify(agents.vendor.calls.map(({ body }) => body))).not.toContain(secret)
    const requests = await agents.ask('GET', `/api/executions/${run.id}/nodes/agent/requests`).catch(String)
    expect(JSON.stringify(requests)).not.toContain(secret)
  })

  test('the secret of the model is in nothing that a run leaves, also where what it says is cut or quoted', async () => {
    const secret = 'key-of-the-vendor'
    const fill = 'n'.repeat(90)
    const said = [
      { name: fill + secret, args: {} },
      { name: 'order', args: { what: 'tea', [secret]: 1 } },
    ]
    const { run, steps } = await agents.runAgent([post()], [{ tools: said }, { text: `It is ${secret}` }])
    expect(run.status).toBe('SUCCESS')
    expect(agents.toldIn(1)).toEqual([
      { error: expect.stringContaining(`there is no tool "${fill}[redacted]"`) },
      { error: expect.stringContaining('[redacted]: is a property that the schema does not have') },
    ])
    expect(steps).toHaveLength(2)
    expect(JSON.stringify(run)).not.toContain(secret.slice(0, 8))
    expect(JSON.stringify(agents.vendor.calls[1]!.body)).not.toContain(secret.slice(0, 8))
  })

  test('a host that comes from an argument gets no credential that may go anywhere, and keeps to the egress rules', async () => {
    const anywhere = { ...post({ url: '{{ $args.what }}' }) }
    const credentialId = await agents.keep('HTTP_BEARER', { token: 'a-token-for-anybody' })
    const graph = agents.graphOf(agents.agentNode([{ ...anywhere, credentialId }])) as Graph
    await expect(agents.create(graph)).rejects.toThrow(/tools\[0\]\.url.*must have its host written in it/)
    const { told } = await tell(anywhere, { what: 'http://169.254.169.254/latest' })
    expect(told).toEqual({ error: expect.stringMatching(/169\.254\.169\.254|not allowed|refused/) })
  })
})

test('SUB_WORKFLOW: the arguments are the input of an execution, whose result the model is told', async () => {
  const workflowId = await agents.create({
    nodes: [
      { id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
      { id: 'out', type: 'SET', config: { values: { greeting: 'Hello {{ $input.what }}' } } },
    ],
    edges: [{ source: 'in', target: 'out' }],
  } as never)
  const tool = {
    type: 'SUB_WORKFLOW',
    name: 'greet',
    description: 'Greets',
    parameters: takes('what'),
    workflowId,
  }
  const { told, steps } = await tell(tool, { what: '{{ $vars.x }}' })
  expect(told).toMatchObject({ greeting: 'Hello {{ $vars.x }}' })
  expect(steps.map(({ tool }) => tool)).toEqual([null, 'greet', null])
})

test('RUN: shows the outputs of nodes that came before, whole or in parts, and of no others', async () => {
  const before = {
    id: 'load',
    type: 'CODE',
    config: { code: 'return { rows: [{ id: 7 }], text: "y".repeat(50000) }' },
  }
  const edges = [
    { source: 'start', target: 'load' },
    { source: 'load', target: 'agent' },
  ]
  const tool = { type: 'RUN', nodes: ['load'] }
  const { steps } = await agents.runAgent(
    [tool],
    [
      {
        tools: [
          { name: 'run', args: { node: 'load', path: 'rows[0].id' } },
          { name: 'run', args: { node: 'load' } },
          { name: 'run', args: { node: 'load', path: 'nothing' } },
          { name: 'run', args: { node: 'start' } },
        ],
      },
      { text: 'Seven.' },
    ],
    { graph: { nodes: [before], edges } },
  )
  expect(steps.map(({ tool }) => tool)).toEqual([null, 'run', 'run', 'run', null])
  expect(agents.toldIn(1)).toEqual([
    { value: 7 },
    {
      part: expect.stringMatching(/^\{"rows":\[\{"id":7\}\],"text":"yyy/),
      from: 0,
      length: 50_029,
      keys: ['rows', 'text'],
    },
    { error: 'the output of load has no nothing' },
    { error: expect.stringMatching(/node: must be one of \["load"\]/) },
  ])
})

describe('approval', () => {
  const careful = () =>
    agents.graphOf(agents.agentNode([post({ approval: true })], { approvers: ['OPERATOR'] })) as Graph
  async function begin() {
    agents.vendor.calls.length = 0
    agents.site.calls.length = 0
    agents.vendor.say([orders, { text: 'Done.' }])
    return approvals.begin(careful(), { who: 'Ada' })
  }

  test('the tool is called once it is approved, and waits until then', async () => {
    const { id, approval } = await begin()
    expect(approval.message).toMatch(/wants to call order: \{\s+"what": "tea"\s+\}/)
    expect(agents.site.calls).toHaveLength(0)
    await agents.until(id, (run) =>
      agents.readAgent(run).steps.some(({ tool, status }) => tool === 'order' && status === 'RUNNING'),
    )
    await approvals.decide(approval.id, { decision: 'approved' })
    const { run, agent } = agents.readAgent(await agents.ended(id))
    expect([run.status, agent.outputData]).toEqual(['SUCCESS', { text: 'Done.', steps: 3 }])
    expect(agents.site.calls).toHaveLength(1)
  })

  test('the model is told that it was denied, and why', async () => {
    const { id, approval } = await begin()
    await approvals.decide(approval.id, { decision: 'rejected', comment: 'Too dear' })
    const { run } = agents.readAgent(await agents.ended(id))
    expect(run.status).toBe('SUCCESS')
    expect(agents.toldIn(1)).toEqual([{ error: 'denied', comment: 'Too dear' }])
    expect(agents.site.calls).toHaveLength(0)
  })

  test('a cancelled execution abandons what it asks for', async () => {
    const { id, approval } = await begin()
    await agents.ask('POST', `/api/executions/${id}/cancel`)
    expect((await agents.ended(id)).status).toBe('CANCELLED')
    const decided = await approvals.decide(approval.id, { decision: 'approved' })
    expect(decided.status).toBe(409)
    expect(agents.site.calls).toHaveLength(0)
  })
})

describe('DATABASE_QUERY', () => {
  test('arguments are parameters; each write is carried out once, also two of one agent', async () => {
    const server = await startPostgres()
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    try {
      await client.query('create table notes (id serial, note text)')
      const id = await plantCredential(agents.store, agents.teamId, 'DATABASE', {
        ...server.login,
        tls: 'auto',
      })
      const write = {
        type: 'DATABASE_QUERY',
        name: 'note',
        description: 'Notes something',
        parameters: takes('note'),
        credentialId: id,
        query: 'insert into notes (note) values ($1) returning id',
        params: ['{{ $args.note }}'],
      }
      const { steps } = await agents.runAgent(
        [write],
        [
          {
            tools: [
              { name: 'note', args: { note: "'); drop table notes; --" } },
              { name: 'note', args: { note: 'second' } },
            ],
          },
          { text: 'Noted.' },
        ],
      )
      expect(steps.map(({ status, errorMessage }) => [status, errorMessage])).toEqual(
        Array(4).fill(['SUCCESS', null]),
      )
      expect(agents.toldIn(1)).toMatchObject([{ rows: [{ id: 1 }] }, { rows: [{ id: 2 }] }])
      const { rows } = await client.query('select note from notes order by id')
      expect(rows).toEqual([{ note: "'); drop table notes; --" }, { note: 'second' }])
      await tell({ ...write, query: 'insert into nowhere values ($1)' }, { note: 'x' }).then(({ told }) =>
        expect(told).toEqual({ error: expect.stringMatching(/nowhere.*does not exist/) }),
      )
    } finally {
      await client.end()
      await server.stop()
    }
  })
})

describe('DATA_TABLE', () => {
  test('an agent writes and reads rows; its arguments are values', async () => {
    const columns = [
      { name: 'who', type: 'text', unique: true },
      { name: 'note', type: 'text' },
    ]
    const body = { teamId: agents.teamId, name: 'notes of agents', columns }
    const { id: table } = await agents.ask<{ id: string }>('POST', '/api/tables', body)
    const tool = {
      ...{ type: 'DATA_TABLE', name: 'remember', description: 'Remembers a note' },
      ...{ parameters: takes('who', 'note'), table, operation: 'upsert', keys: ['who'] },
      rows: [{ who: '{{ $args.who }}', note: '{{ $args.note }}' }],
    }
    const note = '{{ $vars.secret }}", "who": "Bob'
    const { told } = await tell(tool, { who: 'Ada', note })
    expect(told).toMatchObject({ count: 1, inserted: 1, rows: [{ who: 'Ada', note }] })
    const { told: refused } = await tell({ ...tool, rows: [{ who: 7 }] }, { who: 'Ada', note })
    expect(JSON.stringify(refused)).toContain('rows[0].who must be a text')
    const look = {
      ...{ type: 'DATA_TABLE', name: 'look', description: 'Looks', parameters: takes('who') },
      ...{ table: 'notes of agents', operation: 'select' },
      where: [{ column: 'who', op: 'eq', value: '{{ $args.who }}' }],
    }
    expect((await tell(look, { who: 'Ada' })).told).toMatchObject({ count: 1, rows: [{ note }] })
    expect((await tell(look, { who: 'Bob' })).told).toEqual({ count: 0, rows: [] })
  })
})

describe('CONNECTOR', () => {
  test('an agent carries out an action, whose input is what the author has set and what the model says', async () => {
    const asked: { path: string; body: unknown }[] = []
    const answer: Answer = ({ request, response, body }) => {
      asked.push({ path: request.url!, body: JSON.parse(body) })
      const isTaken = asked.length === 1
      response.writeHead(isTaken ? 200 : 500, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ id: 'rec1' }))
    }
    const world = await startWorld({ '/v0/app1/Peo%2Fple': answer })
    const data = { token: 'canary-of-the-connector' }
    const body = { teamId: agents.teamId, name: 'airtable of agents', type: 'HTTP_BEARER', data }
    const { id: credentialId } = await agents.ask<{ id: string }>('POST', '/api/credentials', body)
    const tool = {
      ...{ type: 'CONNECTOR', name: 'add', description: 'Adds somebody', parameters: takes('table', 'name') },
      ...{ connector: 'airtable', action: 'createRecord', server: world.url, credentialId },
      input: { base: 'app1', table: '{{ $args.table }}', fields: { Name: '{{ $args.name }}' } },
    }
    const name = '{{ $vars.secret }}'
    expect((await tell(tool, { table: 'Peo/ple', name })).told).toEqual({ id: 'rec1' })
    expect(asked).toEqual([{ path: '/v0/app1/Peo%2Fple', body: { fields: { Name: name } } }])
    // It is not known whether it was done: it is not done again.
    const { told } = await tell(tool, { table: 'Peo/ple', name })
    expect(told).toEqual({ error: 'outcome unknown' })
    expect(asked).toHaveLength(2)
    await world.stop()
  })
})
