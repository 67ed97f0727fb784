import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Agents, startAgents, takes } from '../../support/agents.ts'

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

test('does the calls of one turn in their order, tells the model what came of each, and records every step', async () => {
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
          { name: 'fetch_page', args: { page: 'a b/../c?d' } },
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
    'GET /pages/a%20b%2F..%2Fc%3Fd',
  ])
  expect(agents.toldIn(1)).toEqual([
    { status: 200, body: { path: '/pages/a%20b%2F..%2Fc%3Fd', body: '' } },
    { n: 42 },
  ])
  expect(steps[1]!.inputData).toEqual({ page: 'a b/../c?d' })
  expect(steps[2]!.outputData).toEqual({ n: 42 })
})
