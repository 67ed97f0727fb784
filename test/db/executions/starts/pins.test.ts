import { beforeAll, describe, expect, test } from 'vitest'
import type { ExecutionBody } from '../../../support/client.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { nodeOf, shareRunning } from '../../../support/running.ts'
import { startTarget } from '../../../support/servers/target.ts'

const target = await keep(startTarget())
const host = await keep(shareRunning())
const operator = await host.token('OPERATOR')

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const callsTo = (path: string) => target.calls.filter((call) => call.path === path).length
const pinnedOf = (run: ExecutionBody) =>
  Object.fromEntries(
    run.nodeExecutions.map((node) => [node.nodeId, (node as unknown as { pinned: boolean }).pinned]),
  )

async function post(path: string, json: unknown, as = host.admin, headers = {}) {
  const answer = await host.request(path, { method: 'POST', as, json, headers })
  return {
    status: answer.status,
    body: (await answer.json()) as Record<string, never> & { executionId: string },
  }
}

describe('pinned outputs', () => {
  const graph = () => ({
    nodes: [
      start,
      { id: 'fetch', type: 'HTTP_REQUEST', config: { url: `${target.url}/pinned` } },
      { id: 'if', type: 'IF_ELSE', config: { condition: '$input.ok' } },
      { id: 'each', type: 'FOR_EACH', config: { items: '{{ $nodes.fetch.list }}' } },
      { id: 'send', parentId: 'each', type: 'HTTP_REQUEST', config: { url: `${target.url}/pinned` } },
      {
        id: 'sum',
        type: 'SET',
        config: { values: { n: '{{ $sum($nodes.each.items.n) }}', $: '{{ $input }}' } },
      },
      { id: 'no', type: 'SET', config: { values: { no: true } } },
    ],
    edges: edges('start -> fetch', 'fetch -> if', 'if:true -> each', 'if:false -> no', 'each -> sum'),
  })

  test('replace the execution of their nodes, in loops too', async () => {
    const id = await host.create(graph())
    const text = 'x'.repeat(400_000)
    const json = {
      teamId: host.teamId,
      pinned: {
        fetch: { output: { list: [1, 2, 3], text } },
        if: { output: { passed: 'on' }, handle: 'true' },
        send: { output: { n: 5 } },
      },
    }
    const answer = await post(`/api/workflows/${id}/execute`, json, host.admin, { 'idempotency-key': 'k' })
    expect(answer.status).toBe(202)
    const run = await host.ended(answer.body.executionId)
    expect(run.errorMessage).toBeNull()
    expect(run.outputData).toEqual({ n: 15, $: { items: [{ n: 5 }, { n: 5 }, { n: 5 }] } })
    expect(callsTo('/pinned')).toBe(0)
    expect(nodeOf(run, 'fetch').outputData).toEqual({ list: [1, 2, 3], text })
    expect(nodeOf(run, 'if').inputData).toEqual({ list: [1, 2, 3], text })
    expect(pinnedOf(run)).toEqual({
      start: false,
      fetch: true,
      if: true,
      each: false,
      send: true,
      sum: false,
    })

    const again = await post(`/api/workflows/${id}/execute`, json, host.admin, { 'idempotency-key': 'k' })
    expect(again.body.executionId).toBe(run.id)
    const other = { ...json, pinned: { ...json.pinned, send: { output: { n: 6 } } } }
    const clash = await post(`/api/workflows/${id}/execute`, other, host.admin, { 'idempotency-key': 'k' })
    expect(clash.status).toBe(409)

    // A rerun has the same pinned outputs.
    const rerun = await post(`/api/executions/${run.id}/rerun`, {})
    const second = await host.ended(rerun.body.executionId)
    expect(second.outputData).toEqual(run.outputData)
    expect(pinnedOf(second)).toEqual(pinnedOf(run))
    expect(callsTo('/pinned')).toBe(0)
    expect((await post(`/api/executions/${run.id}/rerun`, {}, operator)).status).toBe(403)
  })

  test('are checked against the graph, and need a BUILDER because they skip approvals', async () => {
    const id = await host.create(graph())
    const path = `/api/workflows/${id}/execute`
    const json = {
      teamId: host.teamId,
      pinned: {
        start: { output: {} },
        nobody: { output: 1 },
        if: { output: {} },
        fetch: { output: {}, handle: 'true' },
        constructor: { output: {} },
      },
    }
    const { status, body } = await post(path, json)
    expect(status).toBe(400)
    const errors = (body as unknown as { errors: { path: string; message: string }[] }).errors
    expect(Object.fromEntries(errors.map(({ path, message }) => [path, message]))).toEqual({
      'pinned.start': 'cannot be pinned: it is a trigger, and its output is `data`',
      'pinned.nobody': 'cannot be pinned: there is no such node',
      'pinned.constructor': 'cannot be pinned: there is no such node',
      'pinned.if.handle': 'must be one of true, false',
      'pinned.fetch.handle': 'must be one of null (the main one)',
    })
    const shapes = await post(path, { pinned: { a: 1, b: {}, c: { output: null, handle: 3 } } })
    const paths = (shapes.body as unknown as { errors: { path: string }[] }).errors.map((error) => error.path)
    expect(paths).toEqual(['teamId', 'pinned.a', 'pinned.b.output', 'pinned.c.handle'])
    const mild = { teamId: host.teamId, pinned: { fetch: { output: null } } }
    expect((await post(path, mild, operator)).status).toBe(403)
    expect((await post(path, { teamId: host.teamId, pinned: {} }, operator)).status).toBe(202)
  })
})

describe('a node that is executed alone', () => {
  const graph = () => ({
    nodes: [
      start,
      { id: 'fetch', type: 'HTTP_REQUEST', config: { url: `${target.url}/before` } },
      {
        id: 'call',
        type: 'HTTP_REQUEST',
        retry: { maxAttempts: 1 },
        config: { url: `${target.url}/ok?key={{ $nodes.fetch.body.id }}-{{ $input.n }}-{{ $trigger.day }}` },
      },
      { id: 'each', type: 'FOR_EACH', config: { items: '{{ $input.list }}' } },
      {
        id: 'add',
        parentId: 'each',
        type: 'SET',
        config: { values: { n: '{{ $item + $nodes.fetch.plus }}', i: '{{ $index }}', $: '{{ $input }}' } },
      },
      { id: 'after', type: 'STOP_AND_ERROR', config: { message: 'too far' } },
      { id: 'off', type: 'NO_OP', config: {}, disabled: true },
    ],
    edges: edges('start -> fetch', 'fetch -> call', 'call -> each', 'each -> after', 'after -> off'),
  })
  let id: string
  beforeAll(async () => {
    id = await host.create(graph())
  })
  const alone = async (nodeId: string, json: unknown) => {
    const { status, body } = await post(`/api/workflows/${id}/nodes/${nodeId}/run`, json)
    expect(status).toBe(202)
    const run = await host.ended(body.executionId)
    expect(run.errorMessage).toBeNull()
    return run
  }

  test('gets the input, the other outputs and the trigger that the request names', async () => {
    const nodes = { fetch: { body: { id: 'f' } }, start: { day: 'monday' } }
    const run = await alone('call', { input: { n: 1 }, nodes })
    expect(run.outputData).toMatchObject({ body: { key: 'f-1-monday' } })
    expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).toEqual(['call'])
    expect(nodeOf(run, 'call').inputData).toEqual({ n: 1 })
    expect(run).toMatchObject({ status: 'SUCCESS', onlyNode: 'call', trigger: 'MANUAL', inputData: { n: 1 } })
    expect(callsTo('/before')).toBe(0)
    const once = async (json: unknown) =>
      post(`/api/workflows/${id}/nodes/call/run`, json, host.admin, { 'idempotency-key': 'one' })
    const [one, two] = [await once({ input: { n: 3 }, nodes }), await once({ nodes, input: { n: 3 } })]
    expect(two.body.executionId).toBe(one.body.executionId)
    expect((await once({ input: { n: 3 }, nodes, version: 1 })).status).toBe(409)
    await host.ended(one.body.executionId)
    const bare = await alone('call', { input: { n: 2, day: 'x'.repeat(30) } })
    expect(bare.outputData).toMatchObject({ body: { key: `-2-${'x'.repeat(30)}` } })
    const rerun = await post(`/api/executions/${run.id}/rerun`, {})
    expect((await host.ended(rerun.body.executionId)).outputData).toMatchObject({
      body: { key: 'f-1-monday' },
    })
  })

  test('is executed with its body if it is a loop, and with an item if it is in a body', async () => {
    const nodes = { fetch: { plus: 10, big: 'x'.repeat(300_000) } }
    const loop = await alone('each', { input: { list: [1, 2] }, nodes })
    expect(loop.outputData).toEqual({
      items: [
        { n: 11, i: 0, $: 1 },
        { n: 12, i: 1, $: 2 },
      ],
    })
    expect(loop.nodeExecutions.map(({ nodeId, iteration }) => [nodeId, iteration])).toEqual([
      ['each', null],
      ['add', '0'],
      ['add', '1'],
    ])
    const node = await alone('add', { item: 5, nodes })
    expect(node.outputData).toEqual({ n: 15, i: 0, $: 5 })
    expect(nodeOf(node, 'add').inputData).toEqual({ value: 5 })
    const both = await alone('add', { item: 5, input: [1], nodes })
    expect(both.outputData).toEqual({ n: 15, i: 0, $: [1] })
  })

  test('is retried or rerun in another version only if that version has the node', async () => {
    const draft = await host.create(graph())
    const started = await post(`/api/workflows/${draft}/nodes/after/run`, {})
    expect((await host.ended(started.body.executionId)).status).toBe('FAILED')
    await host.ask('PUT', `/api/workflows/${draft}`, { nodes: [start], edges: [] })
    for (const how of ['retry', 'rerun']) {
      const path = `/api/executions/${started.body.executionId}/${how}`
      const { status, body } = await post(path, { version: 'current' })
      expect([status, body.message]).toEqual([409, 'Version 2 has no node "after" to execute'])
    }
  })

  test('must be an enabled node that is not a trigger, and the caller a BUILDER', async () => {
    const path = (nodeId: string) => `/api/workflows/${id}/nodes/${nodeId}/run`
    expect((await post(path('nobody'), {})).status).toBe(404)
    expect((await post(path('start'), {})).status).toBe(409)
    expect((await post(path('off'), {})).status).toBe(409)
    expect((await post(path('call'), { version: 9 })).status).toBe(404)
    expect((await post(path('call'), {}, operator)).status).toBe(403)
    const { body } = await post(path('each'), { nodes: { nobody: 1, add: 2, each: 3 } })
    expect((body as unknown as { errors: unknown }).errors).toEqual([
      { path: 'nodes.nobody', message: 'there is no such node' },
      { path: 'nodes.add', message: 'must not be the executed node or inside it' },
      { path: 'nodes.each', message: 'must not be the executed node or inside it' },
    ])
  })
})
