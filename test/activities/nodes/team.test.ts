import { expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const NOBODY = '01a2242b-19b9-7363-9c1e-000000000000'

/** Executes one node, and returns what became of it. */
async function read(config: object, data: object = {}, more: object = {}) {
  const run = await host.run(
    {
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'read', type: 'TEAM_READ', config, retry: { maxAttempts: 1 }, ...more },
      ],
      edges: edges('start -> read'),
    } as never,
    data as never,
  )
  const { status, errorMessage: error, outputData } = nodeOf(run, 'read')
  // biome-ignore lint/suspicious/noExplicitAny: outputs are read field by field
  return { status, error, output: outputData as any, run }
}

test('workflows are listed and read as the team has them, with the secrets in their nodes hidden', async () => {
  const secret = 'a-secret-of-the-request-4711'
  const secretHeader = { name: 'x-key', value: secret }
  const made = await host.ask<{ id: string }>('POST', '/api/workflows', {
    ...{ teamId: host.teamId, name: 'Read by a node 4711' },
    nodes: [{ id: 'call', type: 'WEBHOOK_TRIGGER', config: { path: 'n4711', secretHeader } }],
    edges: [],
  })
  const { output } = await read({ operation: 'listWorkflows', search: 'BY A NODE 4711' })
  expect(output).toMatchObject({
    count: 1,
    total: 1,
    workflows: [{ id: made.id, active: false, nodeCount: 1 }],
  })
  const one = await read({ operation: 'getWorkflow', id: '={{ $json.id }}' }, { id: made.id })
  expect(one.output).toMatchObject({
    id: made.id,
    version: 1,
    nodes: [{ id: 'call', type: 'WEBHOOK_TRIGGER' }],
  })
  expect(one.output.createdAt).toMatch(/Z$/)
  const whole = await read({ ...{ operation: 'listWorkflows', search: '4711', whole: true }, output: 'list' })
  expect(whole.output.value).toEqual([one.output])
  expect(JSON.stringify([one.output, whole.output])).not.toContain(secret)
  expect((await read({ operation: 'listWorkflows', active: true, search: '4711' })).output.count).toBe(0)
})

test('executions are listed by workflow and status, and read with their nodes', async () => {
  const failing = {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'No more {{ $input.what }}' } },
    ],
    edges: edges('start -> stop'),
  }
  const workflowId = await host.create(failing as never)
  const id = await host.execute(workflowId, { what: 'tea' })
  await host.ended(id)
  const list = await read({ operation: 'listExecutions', workflowId, status: 'FAILED' })
  expect(list.output).toMatchObject({ count: 1, total: 1, executions: [{ id, errorMessage: 'No more tea' }] })
  expect((await read({ operation: 'listExecutions', workflowId, status: 'SUCCESS' })).output.count).toBe(0)
  const brief = await read({ operation: 'getExecution', id })
  expect(brief.output).toMatchObject({ id, status: 'FAILED', hidden: false })
  expect(brief.output.nodes).toBeUndefined()
  const { output } = await read({ operation: 'getExecution', id, whole: true })
  expect(output).toMatchObject({ inputData: { what: 'tea' }, outputData: null })
  expect(output.nodes).toMatchObject([{ nodeId: 'start' }, { nodeId: 'stop', errorMessage: 'No more tea' }])
  const own = await read({ operation: 'getExecution', id: '{{ $execution.id }}' })
  expect(own.output).toMatchObject({ id: own.run.id, status: 'RUNNING' })
})

test('the values of a chat are hidden, also from the workflows of the team', async () => {
  const graph = { nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }], edges: [] }
  const { id } = await host.run(graph as never, { said: 'between us' } as never)
  await host.store.db.updateTable('executions').set({ trigger: 'CHAT' }).where('id', '=', id).execute()
  const { output } = await read({ operation: 'getExecution', id, whole: true })
  expect(output).toMatchObject({ id, hidden: true, inputData: {} })
  expect(JSON.stringify(output)).not.toContain('between us')
})

test('what belongs to another team, or is not there, is as if it were not', async () => {
  const other = await host.otherTeam()
  const graph = { teamId: other.teamId, name: 'Theirs 4712', nodes: [], edges: [] }
  const { id } = await host.ask<{ id: string }>('POST', '/api/workflows', graph, other.cookie)
  for (const strange of [id, NOBODY]) {
    const { status, error } = await read({ operation: 'getWorkflow', id: strange })
    expect([status, error]).toEqual(['FAILED', 'id: the team has no such workflow'])
  }
  expect((await read({ operation: 'listWorkflows', search: '4712' })).output.count).toBe(0)
  expect((await read({ operation: 'listExecutions', workflowId: id })).output.count).toBe(0)
  const { error } = await read({ operation: 'getExecution', id: '{{ $input.id }}' }, { id: 'x' })
  expect(error).toBe('id must be an id, not "x"')
})

test('a config with keys that its operation does not have is refused, every one of them', async () => {
  const nodes = [
    { id: 'a', type: 'TEAM_READ', config: { operation: 'getWorkflow', limit: 5, search: 'x' } },
    { id: 'b', type: 'TEAM_READ', config: { operation: 'listWorkflows', id: NOBODY, limit: 0 } },
    { id: 'c', type: 'TEAM_READ', config: { operation: 'deleteWorkflow' } },
  ]
  const graph = { teamId: host.teamId, name: 'Refused', nodes, edges: [] }
  const { status, body } = await host.call('POST', '/api/workflows', host.admin, graph)
  expect(status).toBe(400)
  const { errors } = body as { errors: { path: string }[] }
  expect(errors.map(({ path }) => path).sort()).toEqual([
    'nodes[0].config.id',
    'nodes[0].config.limit',
    'nodes[0].config.search',
    'nodes[1].config.id',
    'nodes[1].config.limit',
    'nodes[2].config.operation',
  ])
})
