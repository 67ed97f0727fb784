import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Agents, startAgents, takes } from '../../support/agents/agents.ts'

let agents: Agents
beforeAll(async () => {
  agents = await startAgents()
})
afterAll(() => agents.stop())

const httpTool = (more: object = {}) => ({
  type: 'HTTP',
  name: 'fetch_page',
  description: 'Fetches a page',
  parameters: takes('page'),
  url: `${agents.site.origin}/pages/{{ $args.page }}`,
  method: 'GET',
  ...more,
})

test('answers with the text of its model when that calls no tool', async () => {
  const { run, agent, steps } = await agents.runAgent([], { text: 'Hello there.' })
  expect(run.status, JSON.stringify(run, null, 1)).toBe('SUCCESS')
  expect(agent.outputData).toEqual({ text: 'Hello there.', steps: 1 })
  expect(steps).toMatchObject([
    { step: 1, tool: null, status: 'SUCCESS', outputData: { text: 'Hello there.' } },
  ])
  expect(steps[0]!.inputData).toMatchObject({
    model: 'gpt-test',
    messages: [
      { role: 'system', content: 'Help.' },
      { role: 'user', content: 'Go.' },
    ],
  })
})

test('does the calls of one turn in their order, tells the model what came of each, and records every step', {
  tags: 'long',
}, async () => {
  const { run, agent, steps } = await agents.runAgent(
    [
      httpTool(),
      {
        type: 'CODE',
        name: 'double',
        description: 'x',
        parameters: takes('n'),
        code: 'return { n: 2 * $args.n }',
      },
    ],
    [
      {
        text: 'I look.',
        tools: [
          { name: 'fetch_page', args: { page: 'a b/c?d' } },
          { name: 'double', args: { n: '21' } },
        ],
      },
      { text: 'It is 42.' },
    ],
  )
  expect(run.status, JSON.stringify(run, null, 1)).toBe('SUCCESS')
  expect(agent.outputData).toEqual({ text: 'It is 42.', steps: 4 })
  expect(steps.map(({ step, tool, status }) => [step, tool, status])).toEqual([
    [1, null, 'SUCCESS'],
    [2, 'fetch_page', 'SUCCESS'],
    [3, 'double', 'SUCCESS'],
    [4, null, 'SUCCESS'],
  ])
  expect(agents.site.calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /pages/a%20b%2Fc%3Fd',
  ])
  expect(agents.toldIn(1)).toEqual([
    { status: 200, body: { path: '/pages/a%20b%2Fc%3Fd', body: '' } },
    { n: 42 },
  ])
  expect(steps[1]!.inputData).toEqual({ page: 'a b/c?d' })
  expect(steps[2]!.outputData).toEqual({ n: 42 })
})

const step = (name: string, args: Record<string, unknown> | string = {}, id?: string) => ({
  tools: [{ ...(id ? { id } : {}), name, args }],
})
const double = {
  type: 'CODE',
  name: 'double',
  description: 'Doubles a number',
  parameters: {
    type: 'object',
    properties: { n: { type: 'integer' } },
    required: ['n'],
    additionalProperties: false,
  },
  code: 'return { n: 2 * $args.n }',
}

test('tells the model at once of tools that there are not and of arguments that do not fit, without a step', async () => {
  const { agent, steps } = await agents.runAgent(
    [double],
    [
      {
        tools: [
          { name: 'delete_all', args: {} },
          { name: 'double', args: { n: 'two', m: 1 } },
          { name: 'double', args: '[1' },
          { name: 'double', args: { n: 4 } },
        ],
      },
      { text: 'Eight.' },
    ],
  )
  expect(agent.outputData).toEqual({ text: 'Eight.', steps: 3 })
  expect(steps.map(({ tool }) => tool)).toEqual([null, 'double', null])
  const told = agents.toldIn(1)
  expect(told).toEqual([
    { error: expect.stringMatching(/there is no tool "delete_all"; there are double/) },
    { error: expect.stringMatching(/do not fit the parameters: .*n: must be integer, not a string/) },
    { error: 'the arguments must be a JSON object' },
    { n: 8 },
  ])
  expect(steps[0]!.outputData).toMatchObject({
    toolCalls: [
      { name: 'delete_all', fault: expect.any(String) },
      { fault: expect.any(String) },
      {},
      { name: 'double' },
    ],
  })
})

test('does at most 50 calls of a turn, however many the model asks for', { tags: 'long' }, async () => {
  const tools = Array.from({ length: 300 }, (_, n) => ({ id: `c${n}`, name: 'double', args: { n } }))
  const { agent, steps } = await agents.runAgent([double], [{ tools }, { text: 'Enough.' }], {
    config: { maxSteps: 100 },
  })
  expect(agent.outputData).toEqual({ text: 'Enough.', steps: 52 })
  expect(steps.filter(({ tool }) => tool === 'double')).toHaveLength(50)
  const told = agents.toldIn(1)
  expect(told[49]).toEqual({ n: 98 })
  expect(told[50]).toEqual({ error: expect.stringMatching(/at most 50 calls are done at once/) })
})

test('a tool that fails is told to the model, and does not end the agent', async () => {
  const fails = { ...double, name: 'breaks', code: 'throw new Error("the moon is full")' }
  const { run, agent, steps } = await agents.runAgent(
    [fails],
    [step('breaks', { n: 1 }), { text: 'It broke.' }],
  )
  expect(run.status).toBe('SUCCESS')
  expect(agent.outputData).toEqual({ text: 'It broke.', steps: 3 })
  expect(steps[1]).toMatchObject({
    tool: 'breaks',
    status: 'FAILED',
    errorMessage: expect.stringMatching(/moon/),
  })
  expect(agents.toldIn(1)).toEqual([{ error: expect.stringMatching(/the moon is full/) }])
})

test('fails once its steps are used up, before tools are called whose outcome nobody would see', async () => {
  const { run, agent, steps } = await agents.runAgent(
    [double],
    { ...step('double', { n: 1 }), text: 'Still at it' },
    {
      config: { maxSteps: 6 },
    },
  )
  expect(run.status).toBe('FAILED')
  expect(agent.errorMessage).toMatch(/not done after 6 steps.*still wanted to call double.*Still at it/)
  expect(steps.map(({ tool, status }) => [tool, status])).toEqual([
    [null, 'SUCCESS'],
    ['double', 'SUCCESS'],
    [null, 'SUCCESS'],
    ['double', 'SUCCESS'],
    [null, 'SUCCESS'],
    [null, 'FAILED'],
  ])
  expect(agents.vendor.calls).toHaveLength(3)
  const least = await agents.runAgent([double], step('double', { n: 1 }), { config: { maxSteps: 1 } })
  expect(least.agent.errorMessage).toMatch(/^The agent was not done after 1 step \(maxSteps\)/)
})

test('fails before a call to the model once its tokens are used up; its error can be gone on with', async () => {
  // The vendor reports 120 tokens for each call, 5 of them reasoning that is not sent again; the third would take more.
  const { run, agent } = await agents.runAgent([double], step('double', { n: 1 }), {
    config: { maxTokens: 300 },
    node: { onError: 'CONTINUE' },
  })
  expect(run.status).toBe('SUCCESS')
  expect(agent.outputData).toMatchObject({
    error: {
      type: 'BudgetExceeded',
      message:
        'The agent has used 240 tokens, and its next call takes about 117 before its answer; maxTokens is 300',
    },
  })
  expect(agents.vendor.calls).toHaveLength(2)
})

test('with maxCost, a model without a known price is never called; one that costs is stopped in time', async () => {
  const unpriced = await agents.runAgent(
    [],
    { text: 'Hi' },
    { config: { model: 'nobody-knows-it', maxCost: 1 } },
  )
  expect(unpriced.agent.errorMessage).toMatch(/maxCost needs the price of the model nobody-knows-it/)
  expect(agents.vendor.calls).toHaveLength(0)
})

test('its prompt is the text of its input, if it has none of its own, and texts have their expressions', async () => {
  const { steps } = await agents.runAgent(
    [],
    { text: 'ok' },
    {
      config: { prompt: undefined, instructions: 'You help {{ $trigger.name }}.' },
      data: { name: 'Ada', wants: ['tea'] },
    },
  )
  expect(steps[0]!.inputData.messages).toEqual([
    { role: 'system', content: 'You help Ada.' },
    { role: 'user', content: '{"name":"Ada","wants":["tea"]}' },
  ])
})

test('works on each item by itself with perItem: an agent for each, with steps of its own', async () => {
  const items = [{ id: 'a' }, { id: 'b' }, { id: 'c' }]
  const { run } = await agents.runAgent(
    [double],
    (call) => {
      const messages = call.body.messages as { role: string; content: string }[]
      return messages.some(({ role }) => role === 'tool')
        ? { text: `done ${messages.find(({ role }) => role === 'user')!.content}` }
        : step('double', { n: 3 })
    },
    { config: { prompt: 'item {{ $item.id }}' }, node: { perItem: { concurrency: 2 } }, data: { items } },
  )
  expect(run.status, run.errorMessage ?? '').toBe('SUCCESS')
  expect(run.outputData).toMatchObject({
    items: ['a', 'b', 'c'].map((id) => ({ text: `done item ${id}`, steps: 3 })),
  })
  expect(agents.vendor.calls).toHaveLength(6)
})

test('a cancelled agent stops the call that is under way, and calls nothing more', async () => {
  agents.site.answer(() => {})
  try {
    agents.vendor.calls.length = 0
    agents.vendor.say([step('fetch_page', { page: 'x' }), { text: 'never' }])
    const graph = agents.graphOf(agents.agentNode([httpTool()]))
    const id = await agents.execute(await agents.create(graph as Parameters<typeof agents.create>[0]))
    await agents.until(id, (run) =>
      agents.readAgent(run).steps.some(({ tool, status }) => tool === 'fetch_page' && status === 'RUNNING'),
    )
    await agents.ask('POST', `/api/executions/${id}/cancel`)
    const { run, agent, steps } = agents.readAgent(await agents.ended(id))
    expect(run.status).toBe('CANCELLED')
    expect(agent.status).toBe('CANCELLED')
    expect(steps.at(-1)).toMatchObject({ tool: 'fetch_page', status: 'CANCELLED' })
    expect(agents.vendor.calls).toHaveLength(1)
  } finally {
    agents.site.answer()
  }
})

test('a long result of a tool is cut for the model, and whole in its record', async () => {
  const long = { ...double, name: 'long', code: 'return { text: "x".repeat(200000) }' }
  const { steps } = await agents.runAgent([long], [step('long', { n: 1 }), { text: 'Long.' }])
  const [told] = agents.toldIn(1) as [{ cut: string; note: string }]
  expect(told.cut).toHaveLength(65_536)
  expect(told.note).toMatch(/has 200011 characters/)
  expect((steps[1]!.outputData as { text: string }).text).toHaveLength(200_000)
})

test('calls that come without ids, or with the same one twice, are told apart', async () => {
  const tools = [
    { id: 'same', name: 'double', args: { n: 1 } },
    { id: 'same', name: 'double', args: { n: 2 } },
  ]
  const { agent } = await agents.runAgent([double], [{ tools }, { text: 'Two.' }])
  expect(agent.outputData).toEqual({ text: 'Two.', steps: 4 })
  expect(agents.toldIn(1)).toEqual([{ n: 2 }, { n: 4 }])
})

test('a call at which the answer was cut is not made, and the model is told so', async () => {
  const cut = { tools: [{ name: 'fetch_page', args: '' }], finish: 'length' }
  const { run, steps } = await agents.runAgent(
    [httpTool({ parameters: { type: 'object' }, method: 'POST', url: `${agents.site.origin}/pages/all` })],
    [cut, { text: 'Then not.' }],
  )
  expect(run.status, JSON.stringify(run, null, 1)).toBe('SUCCESS')
  expect(steps.map(({ tool }) => tool)).toEqual([null, null])
  expect(agents.toldIn(1)).toEqual([{ error: 'the arguments must be a JSON object' }])
  expect(agents.site.calls).toEqual([])
})

test('an answer that its vendor ended for a reason of its own has a warning', async () => {
  const { agent, steps } = await agents.runAgent([], { text: 'Half of', finish: 'something_new' })
  expect(agent.outputData).toEqual({ text: 'Half of', steps: 1 })
  expect(JSON.stringify([agent, steps])).toContain('its vendor ended it with \\"something_new\\"')
})
