import { expect, test } from 'vitest'
import { createCollector } from '../../../../activities/monitoring/telemetry/collect.ts'
import { readJsonSpans } from '../../../../activities/monitoring/telemetry/json.ts'
import { readProtobufSpans } from '../../../../activities/monitoring/telemetry/protobuf.ts'
import { keep } from '../../../support/keep.ts'
import { CHAT, toJson, toProtobuf } from '../../../support/monitoring/usage/spans.ts'
import { shareService } from '../../../support/service.ts'

const service = await keep(shareService())
const token = await service.token('OPERATOR')
const MOST_BYTES = 4 * 1024 * 1024

const send = (type: string, body: Uint8Array<ArrayBuffer>) =>
  service.request('/api/telemetry/v1/traces', {
    method: 'POST',
    as: token,
    body,
    headers: { 'content-type': type },
  })

/** A generator of numbers below `n` that are the same in each try. */
function createRandom(seed: number) {
  let state = seed
  return (n: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * n)
  }
}

test.each(['application/json', 'application/x-protobuf'])(
  'garbage of the type %s is taken in or refused, never an error of the service',
  async (type) => {
    const random = createRandom(17)
    const spans = [
      {},
      { attributes: { ...CHAT, 'a text': 'x'.repeat(300), 'a flag': true, 'a number': 1.5 } },
    ]
    const valid = type === 'application/json' ? Buffer.from(JSON.stringify(toJson(spans))) : toProtobuf(spans)
    const statuses = new Map<number, number>()
    for (let n = 0; n < 400; n++) {
      const bytes = new Uint8Array(
        n % 8 === 0 ? Buffer.from(Array.from({ length: random(60) }, () => random(256))) : valid,
      )
      for (let flips = random(4); flips >= 0 && bytes.length > 0; flips--)
        bytes[random(bytes.length)] = random(256)
      const cut = random(3) === 0 ? bytes.slice(0, random(bytes.length + 1)) : bytes
      const { status } = await send(type, cut)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    expect([...statuses.keys()].sort()).toEqual([200, 400])
  },
)

test('what is as deep or as many as 4 MB allow is read in turns, and refused', { tags: 'long' }, async () => {
  const open = Buffer.from('{"resourceSpans":[{"x":')
  const deep = Buffer.concat([open, Buffer.alloc(MOST_BYTES - open.length, '[')])
  const many = `{"resourceSpans":[{"scopeSpans":[{"spans":[${'{},'.repeat(1_390_000)}{}]}]}]}`
  const empty = Buffer.alloc(2 * 1_000_000, Buffer.from([0x12, 0]))
  // One scope with a million empty spans, in one resource.
  const writer = (inner: Buffer, tag: number) => {
    const length: number[] = []
    for (let left = inner.length; ; left = Math.floor(left / 128)) {
      length.push(left < 128 ? left : (left % 128) + 128)
      if (left < 128) break
    }
    return Buffer.concat([Buffer.from([tag, ...length]), inner])
  }
  const spans = writer(writer(empty, 18), 10)
  const deeply = await send('application/json', new Uint8Array(deep))
  expect(deeply.status).toBe(400)
  for (const [type, body] of [
    ['application/json', Buffer.from(many)],
    ['application/x-protobuf', spans],
  ] as const) {
    const answer = await send(type, new Uint8Array(body))
    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('the trace id must have 16 bytes')
  }
  // A turn is 20,000 units. Whatever the batch, it is read in many pieces, each far below that.
  const collector = createCollector(Date.now())
  for (const work of [readJsonSpans(many, collector), readProtobufSpans(spans, collector)]) {
    const pieces = [...work]
    expect(pieces.length).toBeGreaterThan(500)
    expect(Math.max(...pieces)).toBeLessThan(500)
    expect(pieces.reduce((sum, units) => sum + units, 0)).toBeGreaterThan(100_000)
  }
})

test('a batch keeps at most 10,000 spans of models', async () => {
  const spans = Array.from({ length: 10_050 }, () => ({
    attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 1 },
  }))
  const answer = await send('application/x-protobuf', new Uint8Array(toProtobuf(spans)))
  expect(answer.status).toBe(200)
  expect(await answer.text()).toContain('50 x the batch has more than 10000 spans')
  const { body } = await service.call(
    'GET',
    `/api/monitoring/teams/${service.teamId}/telemetry?from=0001-01-02T00:00:00Z&to=0001-01-03T00:00:00Z`,
    service.admin,
  )
  expect(body.total).toMatchObject({ calls: 0, p95Ms: null })
  const total = (
    await service.call('GET', `/api/monitoring/teams/${service.teamId}/telemetry`, service.admin)
  ).body.total
  expect(total.calls).toBeGreaterThanOrEqual(10_000)
})
