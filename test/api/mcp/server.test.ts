import { describe, expect, test } from 'vitest'
import { createEvaluator } from '../../../activities/expressions/evaluator.ts'
import { connectMcp, textOf } from '../../support/agents/mcpclient.ts'
import { addApi } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

// There is no engine: executions are accepted, and begin when there is one.
const service = await keep(startService({ rateLimits: false, mcp: { waitMs: 400, progressMs: 50 } }))
const origin = await service.listen()
const { teamId, admin } = service
const tokens = {
  VIEWER: await service.token('VIEWER'),
  OPERATOR: await service.token('OPERATOR'),
  BUILDER: await service.token('BUILDER'),
}

const SCHEMA = {
  type: 'object',
  properties: { n: { type: 'integer', minimum: 1 }, who: { type: 'string', pattern: '^[a-z]+$' } },
  required: ['n'],
  additionalProperties: false,
}

const graphOf = (...names: string[]) => ({
  nodes: names.map((name, at) => ({
    id: `call${at}`,
    type: 'MCP_TRIGGER',
    config: { name, description: `Does ${name}`, inputSchema: SCHEMA },
  })),
  edges: [],
})

let made = 0

async function publish(...names: string[]): Promise<string> {
  const json = { teamId, name: `Workflow ${made++}`, ...graphOf(...names) }
  const { body } = await service.call('POST', '/api/workflows', admin, json)
  const { status } = await service.call('PUT', `/api/workflows/${body.id}`, admin, { active: true })
  expect(status).toBe(200)
  return body.id
}

const listRuns = async (workflowId: string): Promise<{ id: string; triggerType: string }[]> =>
  (await service.call('GET', `/api/executions?workflowId=${workflowId}`, admin)).body.content

describe('the list of tools', () => {
  test('has what the role may call, and goes on page by page', async () => {
    const names = Array.from({ length: 60 }, (_, at) => `many_${String(at).padStart(2, '0')}`)
    const id = await publish(...names)
    const listed = async (token: string) => {
      const client = await connectMcp(origin, token)
      const { tools } = await client.listTools()
      await client.close()
      return tools.map(({ name }) => name)
    }
    const all = await listed(tokens.BUILDER)
    expect(all).toEqual(
      expect.arrayContaining([...names, 'perdure_create_workflow', 'perdure_read_execution']),
    )
    expect(new Set(all).size).toBe(all.length)
    const own = all.filter((name) => name.startsWith('perdure_'))
    expect(await listed(tokens.OPERATOR)).toEqual(
      all.filter((name) => !/^perdure_(create|validate|update|publish)_/.test(name)),
    )
    expect(await listed(tokens.VIEWER)).toEqual(own.filter((name) => /_(list|read)_/.test(name)))
    const other = await service.otherTeam()
    const foreign = await service.token('ADMIN', other.cookie, other.teamId)
    expect(await listed(foreign)).toEqual(own)
    await service.call('PUT', `/api/workflows/${id}`, admin, { active: false })
    expect(await listed(tokens.BUILDER)).toEqual(own)
    await service.call('DELETE', `/api/workflows/${id}`, admin)
  })

  test('has a name once: a second active workflow with it is refused, and the first one named', async () => {
    const first = await publish('once', 'beside')
    const json = { teamId, name: 'Second', ...graphOf('beside', 'once', 'free') }
    const { body: second } = await service.call('POST', '/api/workflows', admin, json)
    const path = `/api/workflows/${second.id}`
    const refused = await service.call('PUT', path, admin, { active: true })
    expect(refused.status).toBe(409)
    expect(refused.body.message).toMatch(/"beside" \(in "Workflow \d+"\), "once" \(in/)
    expect((await service.call('GET', path, admin)).body.active).toBe(false)
    await service.call('PUT', `/api/workflows/${first}`, admin, { active: false })
    expect((await service.call('PUT', path, admin, { active: true })).status).toBe(200)
    // Another graph has other tools at once.
    expect((await service.call('PUT', path, admin, graphOf('third'))).status).toBe(200)
    expect((await service.call('PUT', `/api/workflows/${first}`, admin, { active: true })).status).toBe(200)
    const both = await service.call('POST', '/api/workflows', admin, {
      ...json,
      name: 'B',
      ...graphOf('a', 'a'),
    })
    expect(both.body.errors).toMatchObject([{ path: 'nodes[1].config.name' }])
    const own = await service.call('POST', '/api/workflows', admin, {
      ...json,
      name: 'C',
      ...graphOf('perdure_x'),
    })
    expect(own.body.errors).toMatchObject([{ path: 'nodes[0].config.name' }])
  })
})

describe('a call of a workflow', () => {
  test('is told how it goes on, and after the time the id, while there is no engine', async () => {
    const id = await publish('waits')
    const client = await connectMcp(origin, tokens.OPERATOR)
    const told: number[] = []
    const result = await client.callTool(
      { name: 'waits', arguments: { n: 1 } },
      { onprogress: ({ progress }) => told.push(progress) },
    )
    const [run, ...more] = await listRuns(id)
    expect(more).toEqual([])
    expect(run!.triggerType).toBe('MCP')
    expect(result.isError ?? false).toBe(false)
    expect(result.structuredContent).toMatchObject({ executionId: run!.id, status: 'PENDING' })
    expect(textOf(result)).toContain('perdure_read_execution')
    expect(told.length).toBeGreaterThan(1)
    expect(told).toEqual([...told].sort((a, b) => a - b))
    const { structuredContent } = await client.callTool({
      name: 'perdure_read_execution',
      arguments: { id: run!.id },
    })
    expect(structuredContent).toMatchObject({ id: run!.id, trigger: 'MCP', inputData: { n: 1 } })
    await client.close()
  })

  test('that is repeated with its key starts one execution, by whichever process', async () => {
    const id = await publish('repeated')
    const evaluator = createEvaluator({ processes: 1 })
    const second = await addApi(service, { evaluator, mcp: { waitMs: 200 } })
    const clients = await Promise.all([origin, second.url].map((at) => connectMcp(at, tokens.OPERATOR)))
    // The check of arguments may have no process yet: then nothing has started, and the client is told to repeat.
    const call = async (at: number, n: number) => {
      const request = { name: 'repeated', arguments: { n }, _meta: { idempotencyKey: 'order 7' } }
      for (;;) {
        const result = await clients[at]!.callTool(request)
        if (!result.isError || !textOf(result).includes('try again')) return result
      }
    }
    const all = await Promise.all([call(0, 7), call(1, 7), call(0, 7), call(1, 7)])
    const ids = all.map(({ structuredContent }) => (structuredContent as { executionId: string }).executionId)
    expect(new Set(ids).size).toBe(1)
    expect(await listRuns(id)).toHaveLength(1)
    expect(textOf(await call(1, 8))).toContain('with another body')
    expect(await listRuns(id)).toHaveLength(1)
    for (const client of clients) await client.close()
    await second.stop()
    await evaluator.close()
  })

  test('that does not fit names every fault, and starts nothing', async () => {
    const id = await publish('fits')
    const client = await connectMcp(origin, tokens.OPERATOR)
    const result = await client.callTool({ name: 'fits', arguments: { n: 0, who: 'A1', more: true } })
    expect(result.isError).toBe(true)
    for (const name of ['n', 'who', 'more']) expect(textOf(result)).toContain(name)
    const unknown = client.callTool({ name: 'fit', arguments: {} })
    await expect(unknown).rejects.toMatchObject({ code: -32_602, message: expect.stringContaining('"fit"') })
    await service.call('PUT', `/api/workflows/${id}`, admin, { active: false })
    await expect(client.callTool({ name: 'fits', arguments: { n: 1 } })).rejects.toMatchObject({
      code: -32_602,
    })
    expect(await listRuns(id)).toEqual([])
    await client.close()
  })

  test("needs the role OPERATOR, and a token of the workflow's team", async () => {
    const id = await publish('guarded')
    const viewer = await connectMcp(origin, tokens.VIEWER)
    const refused = await viewer.callTool({ name: 'guarded', arguments: { n: 1 } })
    expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringContaining('OPERATOR')])
    const other = await service.otherTeam()
    const stranger = await connectMcp(origin, await service.token('ADMIN', other.cookie, other.teamId))
    await expect(stranger.callTool({ name: 'guarded', arguments: { n: 1 } })).rejects.toMatchObject({
      code: -32_602,
    })
    const read = await stranger.callTool({ name: 'perdure_read_workflow', arguments: { id } })
    expect([read.isError, textOf(read).includes('guarded')]).toEqual([true, false])
    expect(await listRuns(id)).toEqual([])
    for (const client of [viewer, stranger]) await client.close()
  })
})

describe("the service's own tools", () => {
  test('do what the HTTP API does, with its rights, faults and audit entries', async () => {
    const builder = await connectMcp(origin, tokens.BUILDER)
    const graph = { nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }], edges: [] }
    const wrong = {
      nodes: [
        { id: 'a', type: 'NOPE' },
        { id: 'b', type: 'SET', config: {} },
      ],
      edges: [],
    }
    const faults = await builder.callTool({ name: 'perdure_validate_workflow', arguments: wrong })
    expect(faults.isError).toBe(true)
    expect(textOf(faults)).toMatch(/nodes\[0\]\.type[\s\S]*nodes\[1\]\.config/)
    const fine = await builder.callTool({ name: 'perdure_validate_workflow', arguments: graph })
    expect(fine.structuredContent).toEqual({ activation: [] })
    const made = await builder.callTool({
      name: 'perdure_create_workflow',
      arguments: { name: 'By a model', ...graph },
    })
    const { id } = made.structuredContent as { id: string }
    const { body } = await service.call('GET', `/api/audit/team/${teamId}?action=WORKFLOW_CREATED`, admin)
    expect(body.content.find((entry: { resourceId: string }) => entry.resourceId === id)).toMatchObject({
      actor: { kind: 'SDK_TOKEN' },
    })
    const more = await builder.callTool({ name: 'perdure_read_workflow', arguments: { id, teamId, x: 1 } })
    expect([more.isError, textOf(more)]).toEqual([true, expect.stringMatching(/teamId: [\s\S]*x: /)])
    const viewer = await connectMcp(origin, tokens.VIEWER)
    const refused = await viewer.callTool({
      name: 'perdure_update_workflow',
      arguments: { id, name: 'Mine' },
    })
    expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringContaining('BUILDER')])
    const listed = await viewer.callTool({
      name: 'perdure_list_workflows',
      arguments: { search: 'By a model' },
    })
    expect(listed.structuredContent).toMatchObject({
      totalElements: 1,
      content: [{ id, name: 'By a model' }],
    })
    const operator = await connectMcp(origin, tokens.OPERATOR)
    const begin = () =>
      operator.callTool({
        name: 'perdure_execute_workflow',
        arguments: { id, data: { a: 1 } },
        _meta: { idempotencyKey: 'k' },
      })
    const both = [await begin(), await begin()].map(
      ({ structuredContent }) => (structuredContent as { executionId: string }).executionId,
    )
    expect(both[1]).toBe(both[0])
    const ended = await operator.callTool({ name: 'perdure_cancel_execution', arguments: { id: both[0]! } })
    expect(ended.structuredContent).toEqual({ done: true })
    for (const client of [builder, viewer, operator]) await client.close()
  })
})

describe('what is no call', () => {
  const ask = (json: unknown, headers = {}, as: string | undefined = tokens.VIEWER) =>
    service.call('POST', '/api/mcp', as, json, { accept: 'application/json, text/event-stream', ...headers })
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

  test('is refused: without a token, of another origin, as a batch, as garbage', async () => {
    expect((await ask(list, {}, '')).status).toBe(401)
    expect((await ask(list, {}, admin)).status).toBe(401)
    expect((await ask(list, { origin: 'https://evil.example' })).status).toBe(403)
    expect((await service.request('/api/mcp', { as: tokens.VIEWER })).status).toBe(405)
    const batch = await ask([list, list])
    expect([batch.status, batch.body.error.code]).toEqual([400, -32_600])
    const stream = await ask({ ...list, method: 'subscriptions/listen' })
    expect([stream.status, stream.body.error.code]).toEqual([400, -32_601])
    const raw = (body: string, type = 'application/json') =>
      service.request('/api/mcp', {
        method: 'POST',
        as: tokens.VIEWER,
        body,
        headers: { 'content-type': type, accept: 'application/json, text/event-stream' },
      })
    expect((await raw('{"jsonrpc"')).status).toBe(400)
    expect((await raw('x', 'text/plain')).status).toBe(415)
    expect((await raw(`{"a":"${'x'.repeat(1_600_000)}"}`)).status).toBe(413)
    expect((await raw('['.repeat(5_000))).status).toBe(400)
    for (const body of [
      'null',
      '7',
      '{}',
      '{"jsonrpc":"2.0"}',
      '{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
    ])
      expect([body, (await raw(body)).status]).toEqual([body, 400])
  })
})
