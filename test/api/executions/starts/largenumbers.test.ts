import { expect, test } from 'vitest'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { nodeOf, shareRunning } from '../../../support/running.ts'
import type { Body } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const running = await keep(shareRunning())

const ID = '12345678901234567890'
const said = (outcome = 'is a text of its digits') =>
  `1 number is too large for JavaScript to hold exactly, at the key "id": it ${outcome}`

/** Sends a text of JSON as it is. */
async function send(path: string, text: string, as: string | null = running.admin, method = 'POST') {
  const response = await running.request(path, {
    method,
    ...(as ? { as } : {}),
    headers: { 'content-type': 'application/json' },
    body: text,
  })
  return { status: response.status, body: (await response.json()) as Body }
}

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const hook = (config: object = {}) => ({
  id: 'hook',
  type: 'WEBHOOK_TRIGGER',
  config: { path: 'in', ...config },
})
const set = {
  id: 'set',
  type: 'SET',
  config: { values: { got: '{{ $input.body.id }}', last: '{{ $input.body.list[-1] }}' } },
}

async function fire(config: object, text: string) {
  const id = await running.create({ nodes: [hook(config), set], edges: edges('hook -> set') })
  await running.ask('PUT', `/api/workflows/${id}`, { active: true })
  const { status, body } = await send(`/hooks/${id}/in`, text, null)
  expect(status).toBe(202)
  return running.ended(body.executionId)
}

test.each([
  ['small', 3],
  ['large', 100_000],
])(
  'a webhook keeps the digits of a number, in a %s body, and the record of its trigger says so',
  async (_what, count) => {
    const text = `{"id":${ID},"list":[${Array.from({ length: count }, (_, n) => n).join(',')}]}`
    const kept = await fire({}, text)
    expect(kept.outputData).toEqual({ got: ID, last: count - 1 })
    expect(nodeOf(kept, 'hook')).toMatchObject({ warnings: [{ path: 'input', message: said() }] })
    expect(nodeOf(kept, 'set')).not.toHaveProperty('warnings')
    const rounded = await fire({ largeNumbers: 'number' }, text)
    expect(rounded.outputData).toEqual({ got: Number(ID), last: count - 1 })
    expect(nodeOf(rounded, 'hook')).toMatchObject({
      warnings: [{ path: 'input', message: said('was rounded') }],
    })
    const page = await running.ask<Body>('GET', `/api/executions/${kept.id}/nodes?size=10`)
    expect(page.content[0]).toMatchObject({ nodeId: 'hook', warnings: [{ message: said() }] })
  },
)

test('execute, its repetition and a single node keep the digits, and their answers say so', async () => {
  const node = { id: 'set', type: 'SET', config: { values: { got: '{{ $input.id }}' } } }
  const id = await running.create({ nodes: [start, node], edges: edges('start -> set') })
  const data = `{"teamId":"${running.teamId}","data":{"id":${ID}}}`
  const { status, body } = await send(`/api/workflows/${id}/execute?waitMs=60000`, data)
  expect({ status, got: body.outputData, warnings: body.warnings }).toEqual({
    status: 200,
    got: { got: ID },
    warnings: [{ path: 'body', message: said() }],
  })
  expect(nodeOf(body, 'start')).toMatchObject({ warnings: [{ path: 'input', message: said() }] })
  const again = await send(`/api/executions/${body.executionId}/rerun`, '{}')
  const repeated = await running.ended(again.body.executionId)
  expect(repeated.outputData).toEqual({ got: ID })
  expect(nodeOf(repeated, 'start')).toMatchObject({ warnings: [{ message: said() }] })
  const single = await send(`/api/workflows/${id}/nodes/set/run`, `{"input":{"id":${ID}}}`)
  expect(single.body.warnings).toEqual([{ path: 'body', message: said() }])
  expect((await running.ended(single.body.executionId)).outputData).toEqual({ got: ID })
})

test('a graph keeps the digits in a config, and the answer of its save says so', async () => {
  const text = (value: string) =>
    `{"teamId":"${running.teamId}","name":"digits ${value}","edges":[{"source":"start","target":"set"}],"nodes":[` +
    `{"id":"start","type":"MANUAL_TRIGGER"},{"id":"set","type":"SET","config":{"values":{"id":${value}}}}]}`
  const made = await send('/api/workflows', text(ID))
  expect({ status: made.status, warnings: made.body.warnings }).toEqual({
    status: 201,
    warnings: [{ path: 'body', message: said() }],
  })
  const { outputData } = await running.ended(await running.execute(made.body.id, {}))
  expect(outputData).toEqual({ id: ID })
  const saved = await send(`/api/workflows/${made.body.id}`, text('9007199254740993'), running.admin, 'PUT')
  expect(saved.body.warnings).toEqual([{ path: 'body', message: said() }])
})

test('events and resume URLs keep the digits, also of large bodies, and their answers say so', async () => {
  const wait = { id: 'wait', type: 'WAIT_FOR_EVENT', config: { name: 'go' } }
  const after = {
    id: 'after',
    type: 'SET',
    config: { values: { id: '{{ $input.id }}', last: '{{ $input.list[-1] }}' } },
  }
  const id = await running.create({
    nodes: [start, wait, after],
    edges: edges('start -> wait', 'wait -> after'),
  })
  for (const count of [2, 100_000]) {
    const text = `{"id":${ID},"list":[${Array.from({ length: count }, (_, n) => n).join(',')}]}`
    for (const how of ['event', 'url']) {
      const executionId = await running.execute(id, {})
      const page = await until(() => running.ask<Body>('GET', `/api/executions/${executionId}/waits`), {
        holds: ({ content }) => content.length > 0,
      })
      const { status, body } =
        how === 'event'
          ? await send(`/api/executions/${executionId}/events/go`, `{"data":${text}}`)
          : await send(new URL(page.content[0].resumeUrl).pathname, text, null)
      expect([status, body]).toEqual([200, { resumed: 1, warnings: [{ path: 'body', message: said() }] }])
      expect((await running.ended(executionId)).outputData).toEqual({ id: ID, last: count - 1 })
    }
  }
})

test('nothing of a body is read before its resume URL is known to be one', async () => {
  let asked = 0
  const endless = new ReadableStream({
    pull(controller) {
      asked++
      controller.enqueue(new Uint8Array(16_384))
    },
  })
  const init = {
    method: 'POST',
    body: endless,
    duplex: 'half',
    headers: { 'content-type': 'application/json' },
  }
  const response = await running.request('/resume/bm90aGluZw.forged', init as RequestInit)
  expect(response.status).toBe(404)
  // What a stream takes in before anybody reads it.
  expect(asked).toBeLessThan(3)
})
