import { expect, test } from 'vitest'
import { startAgents, takes } from '../../support/agents/agents.ts'
import { keep } from '../../support/keep.ts'
import type { VendorSpeech } from '../../support/servers/models/vendor.ts'
import { until } from '../../support/until.ts'

// What models answer that no model should.

const agents = await keep(startAgents())

const double = {
  type: 'CODE',
  name: 'double',
  description: 'Doubles a number',
  parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  code: 'return { n: 2 * $args.n }',
}
const call = (n: number, id?: string) => ({
  ...(id === undefined ? {} : { id }),
  name: 'double',
  args: { n },
})

type Sent = { role: string; tool_call_id?: string; tool_calls?: { id: string }[] }
/** The ids in the conversation of a request: of the calls, and of the results. */
function idsIn(request: number) {
  const messages = agents.vendor.calls[request]!.body.messages as Sent[]
  return {
    asked: messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id)),
    told: messages.flatMap(({ tool_call_id: id }) => (id === undefined ? [] : [id])),
  }
}

test('ids of calls that are empty, too long, or repeated in a turn and over turns become ones that are there once', {
  tags: 'long',
}, async () => {
  const ids = ['', '', 'x'.repeat(5_000), 'same', 'same', 'good']
  const turn: VendorSpeech = { tools: ids.map((id, at) => call(at, id)) }
  const { run, agent, steps } = await agents.runAgent([double], [turn, turn, { text: 'Done.' }])
  expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
  expect(steps.map(({ status }) => status)).toEqual(Array(15).fill('SUCCESS'))
  const twice = ids.map((_, n) => ({ n: 2 * n }))
  expect(agents.toldIn(2)).toEqual([...twice, ...twice])
  const { asked, told } = idsIn(2)
  expect(told).toEqual(asked)
  expect(new Set(asked).size).toBe(12)
  expect(asked.every((id) => id.length > 0 && id.length <= 200)).toBe(true)
  // What a vendor gave as it should stays, and what was told once is told in the same way again.
  expect(asked[5]).toBe('good')
  expect(idsIn(1).asked).toEqual(asked.slice(0, 6))
})

test('names that a model invents are told to it, whatever they are', async () => {
  const names = [
    '__proto__',
    'constructor',
    'toString',
    'DOUBLE',
    ' double',
    'doppelt 🌍',
    'n'.repeat(20_000),
  ]
  const { agent, steps } = await agents.runAgent(
    [double],
    [{ tools: names.map((name) => ({ name, args: { n: 1 } })) }, { text: 'Sorry.' }],
  )
  expect(agent.outputData).toEqual({ text: 'Sorry.', steps: 2 })
  expect(steps.map(({ tool }) => tool)).toEqual([null, null])
  const told = agents.toldIn(1) as { error: string }[]
  expect(told).toHaveLength(names.length)
  for (const { error } of told) {
    expect(error).toMatch(/^there is no tool ".*"; there are double$/)
    expect(error.length).toBeLessThan(300)
  }
})

test('arguments that are no JSON, too deep, too long, or meant to break something are told to it', {
  tags: 'long',
}, async () => {
  const deep = `${'{"n":'.repeat(5_000)}1${'}'.repeat(5_000)}`
  const args = ['{"n": 1', 'null', '[]', '"7"', deep, `{"n": 1, "x": "${'y'.repeat(300_000)}"}`]
  args.push(`{"n": "${'z'.repeat(1_500_000)}"}`, '{"__proto__": {"n": 4}}', '{"n": 1e400}', '{"n": 21}')
  const tools = args.map((one) => ({ name: 'double', args: one }))
  const { run, agent } = await agents.runAgent([double], [{ tools }, { text: 'Sorry.' }])
  expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
  const told = agents.toldIn(1)
  const isNone = { error: 'the arguments must be a JSON object' }
  expect(told.slice(0, 5)).toEqual(Array(5).fill(isNone))
  expect(told[5]).toEqual({ error: 'the arguments must have at most 200000 characters of JSON' })
  expect(told[6]).toEqual(isNone)
  expect(told.slice(7)).toEqual([
    { error: expect.stringMatching(/do not fit the parameters: .*n/) },
    { error: expect.stringMatching(/do not fit the parameters: .*n/) },
    { n: 42 },
  ])
})

test('of a hundred calls in one turn fifty are done, and the model can ask for the others', {
  tags: 'long',
}, async () => {
  const many = (from: number) =>
    Array.from({ length: 100 - from }, (_, at) => call(from + at, `c${from + at}`))
  const { run, agent, steps } = await agents.runAgent(
    [double],
    [{ tools: many(0) }, { tools: many(50) }, { text: 'All.' }],
    { config: { maxSteps: 200 } },
  )
  expect(run.status, agent.errorMessage ?? '').toBe('SUCCESS')
  expect(agent.outputData).toEqual({ text: 'All.', steps: 103 })
  expect(steps.filter(({ tool }) => tool === 'double')).toHaveLength(100)
  const told = agents.toldIn(2)
  expect(told.slice(100)).toEqual(Array.from({ length: 50 }, (_, n) => ({ n: 100 + 2 * n })))
})

test.each<[string, VendorSpeech]>([
  ['nothing', {}],
  ['blanks', { text: ' \n ' }],
  ['reasoning alone', { reasoning: 'Hm.' }],
])('a model that answers %s is asked again, and then the agent fails', async (_, speech) => {
  const { run, agent } = await agents.runAgent([double], speech, {
    node: { retry: { maxAttempts: 2, initialIntervalMs: 1 } },
  })
  expect(run.status).toBe('FAILED')
  expect(agent.errorMessage).toMatch(/is empty$/)
  expect(agents.vendor.calls).toHaveLength(2)
})

const child = () =>
  agents.create({
    nodes: [
      { id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
      { id: 'ask', type: 'APPROVAL', config: { message: 'Well?' } },
    ],
    edges: [{ source: 'in', target: 'ask' }],
  } as never)
const starts = (workflowId: string) => ({
  ...{ type: 'SUB_WORKFLOW', name: 'greet', description: 'Greets', parameters: takes('what'), workflowId },
})
const greet = { tools: [{ name: 'greet', args: { what: 'tea' } }] }

test('a sub-workflow that was deleted before it is called is told to the model as an error', async () => {
  const workflowId = await child()
  const { run, steps } = await agents.runAgent([starts(workflowId)], async (_, number) => {
    if (number > 0) return { text: 'It is gone.' }
    await agents.ask('DELETE', `/api/workflows/${workflowId}`)
    return greet
  })
  expect(run.status).toBe('SUCCESS')
  expect(steps[1]).toMatchObject({ tool: 'greet', status: 'FAILED' })
  expect(agents.toldIn(1)).toEqual([{ error: expect.stringMatching(/workflow/i) }])
})

test('a sub-workflow that is deleted while its execution is awaited is told to the model as an error', async () => {
  const workflowId = await child()
  agents.vendor.calls.length = 0
  agents.vendor.say([greet, { text: 'It is gone.' }])
  const graph = agents.graphOf(agents.agentNode([starts(workflowId)])) as never
  const id = await agents.execute(await agents.create(graph), {})
  await until(async () => {
    const of = agents.store.db.selectFrom('executions').select('id').where('workflowId', '=', workflowId)
    return (await of.where('status', '=', 'RUNNING').execute()).length === 1
  })
  await agents.ask('DELETE', `/api/workflows/${workflowId}`)
  const { run, steps } = agents.readAgent(await agents.ended(id, 60_000))
  expect(run.status).toBe('SUCCESS')
  expect(steps.map(({ tool, status }) => [tool, status])).toEqual([
    [null, 'SUCCESS'],
    ['greet', 'FAILED'],
    [null, 'SUCCESS'],
  ])
  expect(agents.toldIn(1)).toEqual([{ error: expect.stringMatching(/deleted|cancelled/i) }])
})
