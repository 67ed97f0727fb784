import { describe, expect, test } from 'vitest'
import { connectMcp, type McpEra, textOf } from '../../support/agents/mcpclient.ts'
import type { Graph } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const running = await keep(shareRunning())
const origin = await running.listen()
const token = await running.token('OPERATOR')

const SCHEMA = {
  type: 'object',
  properties: { n: { type: 'integer', minimum: 1 }, who: { type: 'string', pattern: '^[a-z]+$' } },
  required: ['n'],
  additionalProperties: false,
}

let made = 0

/** An active workflow whose tool doubles a number. */
async function publish({
  name = `tool_${made++}`,
  values = {},
  active = true,
  nodes = [],
  links = [],
}: {
  name?: string
  values?: object
  active?: boolean
  nodes?: Graph['nodes']
  links?: string[]
} = {}) {
  const config = { name, description: 'Doubles a number', inputSchema: SCHEMA }
  const id = await running.create({
    nodes: [
      { id: 'call', type: 'MCP_TRIGGER', config },
      { id: 'double', type: 'SET', config: { values: { twice: '{{ $input.n * 2 }}', ...values } } },
      ...nodes,
    ],
    edges: edges('call -> double', ...links),
  })
  if (active) await running.ask('PUT', `/api/workflows/${id}`, { active: true })
  return { id, name }
}

async function listRuns(workflowId: string) {
  const page = await running.ask<{ content: { id: string; triggerType: string }[] }>(
    'GET',
    `/api/executions?workflowId=${workflowId}&size=100`,
  )
  return page.content
}

describe.each<McpEra>(['2025', '2026'])('the tool of a workflow, by the protocol of %s', (era) => {
  test('is listed, executed and answered', async () => {
    const { id, name } = await publish()
    const client = await connectMcp(origin, token, era)
    const { tools } = await client.listTools()
    expect(tools.find((tool) => tool.name === name)).toMatchObject({
      description: 'Doubles a number',
      inputSchema: SCHEMA,
    })
    const result = await client.callTool({ name, arguments: { n: 21 } })
    const [run, ...more] = await listRuns(id)
    expect(more).toEqual([])
    expect(run!.triggerType).toBe('MCP')
    expect(result.isError ?? false).toBe(false)
    expect(result.structuredContent).toEqual({
      executionId: run!.id,
      status: 'SUCCESS',
      output: { twice: 42 },
    })
    expect(JSON.parse(textOf(result))).toEqual(result.structuredContent)
    await client.close()
  })
})

test('a failed execution is an error with its message, and its call is not made again', async () => {
  const { id, name } = await publish({
    nodes: [{ id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'no {{ $input.twice }} left' } }],
    links: ['double -> stop'],
  })
  const client = await connectMcp(origin, token)
  const result = await client.callTool({ name, arguments: { n: 2 } })
  const [run, ...more] = await listRuns(id)
  expect(more).toEqual([])
  expect(result.isError).toBe(true)
  expect(textOf(result)).toBe(`The execution ${run!.id} ended FAILED: no 4 left`)
  await client.close()
})

test('the outputs of an execution that keeps none are answered once', async () => {
  const { id, name } = await publish()
  await running.ask('PUT', `/api/workflows/${id}`, { settings: { saveData: { outputs: false } } })
  const client = await connectMcp(origin, token)
  const result = await client.callTool({ name, arguments: { n: 5 } })
  expect(result.structuredContent).toMatchObject({ status: 'SUCCESS', output: { twice: 10 } })
  await client.close()
})
