import { describe, expect, test } from 'vitest'
import { makeResumeToken } from '../../../../db/executions/waits/events.ts'
import { nodeOf } from '../../../support/client.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'
import { until } from '../../../support/until.ts'

type Wait = {
  id: string
  kind: string
  nodeId: string
  iteration: string | null
  name: string
  resumeUrl: string
}

const running = await keep(shareRunning())

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const wait = (config: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
  id: 'paid',
  type: 'WAIT_FOR_EVENT',
  config: { name: 'paid', ...config },
  ...more,
})
const after = { id: 'after', type: 'SET', config: { values: { got: '{{ $input }}' } } }

/** The open pauses of an execution, once there are at least `count`. */
async function waitFor(executionId: string, count = 1): Promise<Wait[]> {
  const path = `/api/executions/${executionId}/waits?size=100`
  return until(async () => (await running.ask<{ content: Wait[] }>('GET', path)).content, {
    holds: (found) => found.length >= count,
    explain: () => running.read(executionId),
  })
}

async function post(path: string, json?: unknown, as?: string) {
  const answer = await running.request(path, { method: 'POST', json, ...(as ? { as } : {}) })
  return { status: answer.status, body: (await answer.json()) as { resumed: number; message: string } }
}

const send = (id: string, name: string, json?: unknown, as = running.admin) =>
  post(`/api/executions/${id}/events/${name}`, json, as)
const pathOf = (url: string) => new URL(url).pathname

describe('an event', () => {
  test('goes to all nodes that wait for its name; their output is its data, or else the body', async () => {
    const graph = {
      nodes: [
        start,
        wait({ name: 'order-{{ $input.order }}' }),
        wait({ name: 'order-{{ $input.order }}' }, { id: 'too' }),
        wait({ name: 'other' }, { id: 'other' }),
        { id: 'join', type: 'MERGE', config: { mode: 'append' } },
      ],
      edges: edges('start -> paid', 'start -> too', 'start -> other', 'paid too other -> join'),
    }
    const id = await running.execute(await running.create(graph), { order: 17 })
    expect((await waitFor(id, 3)).map(({ name }) => name).sort()).toEqual(['order-17', 'order-17', 'other'])
    const none = await send(id, 'unknown', {})
    expect(none).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining('none of its nodes waits') },
    })
    const token = await running.token('OPERATOR')
    expect(await send(id, 'order-17', { amount: 5, by: 'bank' }, token)).toEqual({
      status: 200,
      body: { resumed: 2 },
    })
    expect((await send(id, 'order-17', {})).status).toBe(409)
    expect(await send(id, 'other', { data: [1, 2] })).toEqual({ status: 200, body: { resumed: 1 } })
    const run = await running.ended(id)
    expect(run.outputData!.value).toEqual([{ amount: 5, by: 'bank' }, { amount: 5, by: 'bank' }, 1, 2])
    const over = await send(id, 'other', {})
    expect(over).toMatchObject({ status: 409, body: { message: 'The execution has ended: SUCCESS' } })
    // Who sent which event to which nodes, but not its data; what was refused is no act.
    const acts = await running.store.db
      .selectFrom('auditEntries')
      .select(['details', 'actorKind'])
      .where('action', '=', 'EVENT_SENT')
      .where('resourceId', '=', id)
      .orderBy('seq')
      .execute()
    expect(acts.map(({ actorKind, details }) => [actorKind, details])).toEqual([
      ['SDK_TOKEN', { name: 'order-17', nodes: expect.toSatisfy((ids) => ids.sort().join() === 'paid,too') }],
      ['USER', { name: 'other', nodes: ['other'] }],
    ])
  })

  test('that does not come in time lets the node pass its input on by the handle timeout', async () => {
    const run = await running.run(
      {
        nodes: [start, wait({ timeoutMs: 50 }), after],
        edges: edges('start -> paid', 'paid:timeout -> after'),
      },
      { order: 1 },
    )
    expect(run.outputData).toEqual({ got: { order: 1 } })
  })

  test('that does not come in time ends a branch without a timeout edge, as the record shows', async () => {
    const graph = {
      nodes: [start, wait({ timeoutMs: 50 }), after],
      edges: edges('start -> paid', 'paid -> after'),
    }
    const run = await running.run(graph, { order: 1 })
    expect([run.status, run.nodeExecutions.map(({ nodeId, handle }) => [nodeId, handle])]).toEqual([
      'SUCCESS',
      [
        ['start', null],
        ['paid', 'timeout'],
      ],
    ])
    const { content } = await running.ask<{ content: unknown[] }>('GET', `/api/executions/${run.id}/nodes`)
    expect(content).toEqual(run.nodeExecutions)
  })

  test('cannot be sent by viewers or strangers', async () => {
    const id = await running.execute(
      await running.create({ nodes: [start, wait()], edges: edges('start -> paid') }),
      {},
    )
    await waitFor(id)
    const [viewer, stranger] = [await running.token('VIEWER'), await running.otherTeam()]
    expect((await send(id, 'paid', {}, viewer)).status).toBe(403)
    expect((await send(id, 'paid', {}, stranger.cookie)).status).toBe(403)
    expect((await send(crypto.randomUUID(), 'paid', {})).status).toBe(404)
    expect((await send(id, 'not a name', {})).status).toBe(400)
    await running.ask('POST', `/api/executions/${id}/cancel`)
  })
})

describe('a one-time URL', () => {
  test('is known before the node waits, resumes it once, and cannot be forged', async () => {
    const graph = {
      nodes: [
        start,
        // Stands for a node that sends the URL outside, from where it may be called before the node waits.
        { id: 'tell', type: 'SET', config: { values: { url: '{{ $execution.resumeUrls.paid }}' } } },
        wait(),
        after,
      ],
      edges: edges('start -> tell', 'tell -> paid', 'paid -> after'),
    }
    const id = await running.execute(await running.create(graph), {})
    const [{ resumeUrl }] = (await waitFor(id)) as [Wait]
    const path = pathOf(resumeUrl)
    const [head, mac] = path.slice('/resume/'.length).split('.') as [string, string]
    const other = Buffer.from(Buffer.from(head, 'base64url').toString().replace('paid', 'tell')).toString(
      'base64url',
    )
    for (const forged of [`${head}.${mac.slice(1)}x`, `${other}.${mac}`, head, 'x', `${head}.`]) {
      expect((await post(`/resume/${forged}`, {})).status).toBe(404)
    }
    expect(await post(path, { ok: true })).toEqual({ status: 200, body: { resumed: 1 } })
    expect((await post(path, { ok: false })).status).toBe(409)
    const run = await running.ended(id)
    expect(nodeOf(run, 'tell').outputData).toEqual({ url: resumeUrl })
    expect(run.outputData).toEqual({ got: { ok: true } })
    expect((await post(path, {})).status).toBe(409)
  })

  test('can be called once before the node waits: the data is kept for it', async () => {
    const graph = {
      nodes: [
        start,
        { id: 'tell', type: 'SET', config: { values: { url: '{{ $execution.resumeUrls.paid }}' } } },
        wait({ name: 'first' }, { id: 'first' }),
        wait({ timeoutMs: 60_000 }),
        after,
      ],
      edges: edges('start -> tell', 'tell -> first', 'first -> paid', 'paid -> after'),
    }
    const id = await running.execute(await running.create(graph), {})
    await waitFor(id)
    const told = await running.until(id, (run) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'tell'))
    const path = pathOf(String(nodeOf(told, 'tell').outputData!.url))
    expect(await post(path, { early: true })).toEqual({ status: 200, body: { resumed: 0 } })
    expect((await post(path, { early: false })).status).toBe(409)
    await send(id, 'first', {})
    expect((await running.ended(id)).outputData).toEqual({ got: { early: true } })
  })

  test('works whenever it is called, even at the moment when the node begins to wait', async () => {
    const workflow = await running.create({
      nodes: [start, wait({ timeoutMs: 20_000 }), after],
      edges: edges('start -> paid', 'paid -> after'),
    })
    const races = Array.from({ length: 10 }, async (_, at) => {
      const id = await running.execute(workflow, {})
      await new Promise((resolve) => setTimeout(resolve, at * 8))
      const place = { executionId: id, nodeId: 'paid', iteration: '' }
      const called = await post(`/resume/${makeResumeToken(running.store.keys, place)}`, { at })
      return { at, status: called.status, output: (await running.ended(id)).outputData }
    })
    for (const { at, status, output } of await Promise.all(races)) {
      expect({ status, output }).toEqual({ status: 200, output: { got: { at } } })
    }
  })

  test('differs in each iteration, where the URLs of nodes around the loop can be read too', async () => {
    const graph = {
      nodes: [
        start,
        wait({}, { id: 'outer' }),
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1, 2] }}', concurrency: 2 } },
        {
          id: 'urls',
          parentId: 'each',
          type: 'SET',
          config: { values: { urls: '{{ $execution.resumeUrls }}', i: '{{ $index }}' } },
        },
        wait({ name: 'inner' }, { id: 'inner', parentId: 'each' }),
        { id: 'all', type: 'SET', config: { values: { urls: '{{ $execution.resumeUrls }}' } } },
      ],
      edges: edges('start -> outer', 'start -> each', 'urls -> inner', 'start -> all'),
    }
    const id = await running.execute(await running.create(graph), {})
    const waits = await waitFor(id, 3)
    const urlOf = (nodeId: string, iteration: string | null) =>
      waits.find((one) => one.nodeId === nodeId && one.iteration === iteration)!.resumeUrl
    for (const [nodeId, iteration] of [
      ['inner', '1'],
      ['outer', null],
      ['inner', '0'],
    ] as const) {
      expect((await post(pathOf(urlOf(nodeId, iteration)), { at: iteration })).status).toBe(200)
    }
    const run = await running.ended(id)
    expect(run.outputData).toMatchObject({ outer: { at: null }, each: { items: [{ at: '0' }, { at: '1' }] } })
    const seen = run.nodeExecutions
      .filter(({ nodeId }) => nodeId === 'urls')
      .map(({ outputData }) => outputData)
    expect(seen).toEqual([
      { urls: { outer: urlOf('outer', null), inner: urlOf('inner', '0') }, i: 0 },
      { urls: { outer: urlOf('outer', null), inner: urlOf('inner', '1') }, i: 1 },
    ])
    expect(nodeOf(run, 'all').outputData).toEqual({ urls: { outer: urlOf('outer', null) } })
  })

  test('is refused once the execution is cancelled or has ended', async () => {
    const graph = { nodes: [start, wait()], edges: edges('start -> paid') }
    const id = await running.execute(await running.create(graph), {})
    const [{ resumeUrl }] = (await waitFor(id)) as [Wait]
    await running.ask('POST', `/api/executions/${id}/cancel`)
    expect((await post(pathOf(resumeUrl), {})).status).toBe(409)
    await running.ended(id)
    expect((await post(pathOf(resumeUrl), {})).status).toBe(409)
    expect(await waitFor(id, 0)).toEqual([])
  })
})
