import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

const running = await keep(shareRunning())
const { ask, ended, teamId } = running

const start = { id: 'start', type: 'MANUAL_TRIGGER' }
/** Under the rules 1, `$not` of nothing is nothing; under 2 it is true. */
const set = { id: 'set', type: 'SET', config: { values: { not: '{{ $not($input.missing) }}' } } }
const edges = [{ source: 'start', target: 'set' }]
const graph = { nodes: [start, set], edges }

let count = 0
type Saved = { id: string; version: number; expressions: number; settings: { strict: boolean } }
const create = (more: object = {}) =>
  ask<Saved>('POST', '/api/workflows', { teamId, name: `rules ${++count}`, ...graph, ...more })
const read = (id: string) => ask<Saved>('GET', `/api/workflows/${id}`)
const put = (id: string, json: object) => ask<Saved>('PUT', `/api/workflows/${id}`, json)
const refused = async (method: string, path: string, json: object) => {
  const { status, body } = await running.call(method, path, running.admin, json)
  return { status, details: body.error?.details ?? body }
}

async function execute(id: string, path = 'execute', json: object = { teamId }) {
  const { executionId } = await ask<{ executionId: string }>('POST', `/api/workflows/${id}/${path}`, json)
  return ended(executionId)
}

test('a graph that is created anew has the rules 2, PUT keeps them, and each version keeps its own', async () => {
  const { id } = await create()
  expect(await read(id)).toMatchObject({ version: 1, expressions: 2 })
  expect(nodeOf(await execute(id), 'set').outputData).toEqual({ not: true })
  expect(await put(id, { expressions: 1 })).toMatchObject({ version: 2, expressions: 1 })
  expect(await put(id, { ...graph, nodes: [start, { ...set, name: 'S' }] })).toMatchObject({
    version: 3,
    expressions: 1,
  })
  expect(await put(id, { nodes: [start, set] })).toMatchObject({ version: 4, expressions: 1 })
  expect(await put(id, { expressions: 1 })).toMatchObject({ version: 4, expressions: 1 })
  expect(nodeOf(await execute(id), 'set').outputData).toEqual({ not: null })
  const { content } = await ask<{ content: Saved[] }>('GET', `/api/workflows/${id}/versions`)
  expect(content.map((item) => item.expressions)).toEqual([1, 1, 1, 2])
  expect(await ask('GET', `/api/workflows/${id}/versions/1`)).toMatchObject({ expressions: 2, strict: false })
  const diff = await ask('GET', `/api/workflows/${id}/versions/1/diff/2`)
  expect(diff).toMatchObject({ expressions: { from: 2, to: 1 }, nodes: { changed: [] } })
  expect(diff).not.toHaveProperty('strict')
  const restored = await ask('POST', `/api/workflows/${id}/versions/1/restore`)
  expect(restored).toMatchObject({ version: 5, expressions: 2 })
})

test('rules other than 1 and 2 are refused together with all else that is wrong', async () => {
  const { id } = await create()
  for (const expressions of [3, '2', null]) {
    const json = { expressions, nodes: [{ ...start, type: 'NO_SUCH' }], edges: [] }
    for (const [method, path, more] of [
      ['POST', '/api/workflows', { teamId, name: 'x' }],
      ['PUT', `/api/workflows/${id}`, {}],
    ] as const) {
      const { status, details } = await refused(method, path, { ...json, ...more })
      expect(status).toBe(400)
      expect(JSON.stringify(details)).toContain('expressions')
      expect(JSON.stringify(details)).toContain('NO_SUCH')
    }
  }
})

test('an activity, a single node, a retry, and an export use the rules of their version', async () => {
  const alone = { ...set, timeoutMs: 5_000 }
  const flaky = {
    id: 'stop',
    type: 'STOP_AND_ERROR',
    config: { message: '{{ $string($not($input.missing)) }}' },
  }
  const more = {
    nodes: [start, alone, flaky],
    edges: [...edges, { source: 'set', target: 'stop' }],
    expressions: 1,
  }
  const { id } = await create(more)
  const first = await execute(id)
  expect(nodeOf(first, 'set').outputData).toEqual({ not: null })
  expect(first.errorMessage).not.toContain('true')
  await put(id, { expressions: 2 })
  expect(nodeOf(await execute(id, 'nodes/set/run', { input: {} }), 'set').outputData).toEqual({
    not: true,
  })
  const old = await execute(id, 'nodes/set/run', { input: {}, version: 1 })
  expect(nodeOf(old, 'set').outputData).toEqual({ not: null })
  const retry = async (version: string) => {
    const path = `/api/executions/${first.id}/retry`
    const { executionId } = await ask<{ executionId: string }>('POST', path, { version })
    return (await ended(executionId)).errorMessage
  }
  expect(await retry('same')).not.toContain('true')
  expect(await retry('current')).toContain('true')
  const document = await ask<object>('GET', `/api/workflows/${id}/export`)
  expect(document).toMatchObject({ expressions: 2 })
  const copy = async (workflow: object) =>
    (await ask<Saved>('POST', '/api/workflows/import', { teamId, name: `copy ${++count}`, workflow })).id
  expect(await read(await copy(document))).toMatchObject({ expressions: 2 })
  expect(await read(await copy({ ...document, expressions: 1 }))).toMatchObject({ expressions: 1 })
  const { expressions: _, ...older } = document as { expressions: number }
  expect(await read(await copy(older))).toMatchObject({ expressions: 1 })
})

test('settings.strict is kept with the version: changing it makes a new one, and a restore brings it back', async () => {
  const { id } = await create({ settings: { strict: true } })
  expect(await read(id)).toMatchObject({ version: 1, settings: { strict: true, timeoutMs: null } })
  const changed = await put(id, { settings: { strict: false, timeoutMs: 5_000 } })
  expect(changed).toMatchObject({ version: 2, settings: { strict: false, timeoutMs: 5_000 } })
  expect(await put(id, { settings: { timeoutMs: 6_000 } })).toMatchObject({ version: 2 })
  expect(await ask('GET', `/api/workflows/${id}/versions/1`)).toMatchObject({ strict: true })
  expect(await ask('GET', `/api/workflows/${id}/versions/1/diff/2`)).toMatchObject({
    strict: { from: true, to: false },
  })
  const restored = await ask('POST', `/api/workflows/${id}/versions/1/restore`)
  expect(restored).toMatchObject({ version: 3, settings: { strict: true, timeoutMs: 6_000 } })
  const document = await ask<object>('GET', `/api/workflows/${id}/export`)
  expect(document).toMatchObject({ settings: { strict: true } })
  const copy = await ask<Saved>('POST', '/api/workflows/import', {
    teamId,
    name: 'strict',
    workflow: document,
  })
  expect(await read(copy.id)).toMatchObject({ settings: { strict: true } })
})
