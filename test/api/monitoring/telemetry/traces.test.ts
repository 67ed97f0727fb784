import { gzipSync } from 'node:zlib'
import protobuf from 'protobufjs/minimal.js'
import { expect, test } from 'vitest'
import { keep } from '../../../support/keep.ts'
import {
  CHAT,
  fillSpan,
  listAttributes,
  newSpanId,
  type SentSpan,
  toJson,
  toProtobuf,
} from '../../../support/monitoring/usage/spans.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const PATH = '/api/telemetry/v1/traces'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A team of its own, with a token that sends its batches. */
async function openTeam() {
  const team = await service.otherTeam()
  const token = await service.token('OPERATOR', team.cookie, team.teamId)
  const send = (json: unknown) => service.call('POST', PATH, token, json)
  const sendProtobuf = async (body: Buffer, headers = {}) => {
    const response = await service.request(PATH, {
      method: 'POST',
      as: token,
      body: new Uint8Array(body),
      headers: { 'content-type': 'application/x-protobuf', ...headers },
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      headers: response.headers,
      bytes,
    }
  }
  const read = async (path: string) =>
    (await service.call('GET', `/api/monitoring/teams/${team.teamId}/${path}`, team.cookie)).body
  const usage = () => read('token-usage?from=2020-01-01T00:00:00Z')
  return { ...team, token, send, sendProtobuf, read, usage }
}

/** Reads a message of protobuf: its numbers and texts by the numbers of their fields. */
function readMessage(bytes: Buffer): Record<number, number | Buffer> {
  const reader = protobuf.Reader.create(bytes)
  const found: Record<number, number | Buffer> = {}
  while (reader.pos < reader.len) {
    const tag = reader.uint32()
    found[tag >>> 3] = (tag & 7) === 2 ? Buffer.from(reader.bytes()) : Number(String(reader.int64()))
  }
  return found
}

test('a call to a model becomes usage with its cost, errors and latency, from JSON and from protobuf', async () => {
  for (const encoding of ['json', 'protobuf']) {
    const team = await openTeam()
    const spans: SentSpan[] = [
      {
        attributes: { ...CHAT, 'gen_ai.response.model': 'gpt-4o-2024-08-06', 'gen_ai.agent.name': 'helper' },
      },
      {
        attributes: {
          ...CHAT,
          'gen_ai.usage.cache_read.input_tokens': 400,
          'gen_ai.usage.reasoning_tokens': 30,
        },
      },
      {
        status: 2,
        attributes: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.provider.name': 'openai',
          'error.type': '429',
        },
      },
      // The sums of its calls, which must not count again.
      { attributes: { ...CHAT, 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'helper' } },
      { attributes: { 'gen_ai.operation.name': 'execute_tool' }, status: 2 },
      { attributes: { 'http.request.method': 'GET' } },
    ]
    if (encoding === 'json') {
      expect(await team.send(toJson(spans, 'bot'))).toMatchObject({ status: 200, body: {} })
    } else {
      const answer = await team.sendProtobuf(toProtobuf(spans, 'bot'))
      expect(answer).toMatchObject({ status: 200, type: 'application/x-protobuf' })
      expect(answer.bytes).toHaveLength(0)
    }
    expect(await team.usage()).toMatchObject({
      totalInputTokens: 2_000,
      totalOutputTokens: 200,
      totalCachedTokens: 400,
      totalReasoningTokens: 30,
      // 2.5, 1.25 and 10 dollars for a million.
      totalCost: 0.0065,
      calls: 3,
      unpricedCalls: 0,
      executionCount: 0,
    })
    const models = (await team.read('token-usage/by-model')).models
    expect(
      models.map(({ model, provider, calls }: Record<string, unknown>) => [model, provider, calls]),
    ).toEqual([
      ['gpt-4o-2024-08-06', 'OPENAI', 1],
      ['gpt-4o', 'OPENAI', 1],
      ['unknown', 'OPENAI', 1],
    ])
    const shown = await team.read('telemetry')
    expect(shown.total).toMatchObject({ calls: 5, errors: 2, inputTokens: 2_000, outputTokens: 200 })
    expect(shown.services).toMatchObject([{ service: 'bot', calls: 5, errors: 2 }])
    expect(shown.agents).toMatchObject([{ agent: 'helper', calls: 2 }])
    expect(
      shown.operations.map(({ operation, calls, errors }: Record<string, unknown>) => [
        operation,
        calls,
        errors,
      ]),
    ).toEqual([
      ['chat', 3, 1],
      ['execute_tool', 1, 1],
      ['invoke_agent', 1, 0],
    ])
    for (const { p50Ms, p95Ms } of [shown.total, ...shown.models]) {
      expect(Math.abs(p50Ms - 250)).toBeLessThan(63)
      expect(Math.abs(p95Ms - 250)).toBeLessThan(63)
    }
  }
})

test('a span counts once, however often and however many at once send it', async () => {
  const team = await openTeam()
  const spans = [
    fillSpan({}),
    fillSpan({ end: Date.now() - 2 * DAY_MS }),
    fillSpan({ end: Date.now() - 5 * HOUR_MS }),
  ]
  const batch = toJson([...spans, spans[0]!])
  const answers = await Promise.all(Array.from({ length: 6 }, () => team.send(batch)))
  expect(answers.map(({ status, body }) => [status, body])).toEqual(answers.map(() => [200, {}]))
  expect((await team.sendProtobuf(toProtobuf([...spans].reverse()))).status).toBe(200)
  expect(await team.usage()).toMatchObject({ calls: 3, totalInputTokens: 3_000 })
  expect((await team.read('telemetry')).total).toMatchObject({ calls: 3, inputTokens: 3_000 })
  // Of another team, it is another span.
  const other = await openTeam()
  await other.send(batch)
  expect(await other.usage()).toMatchObject({ calls: 3 })
})

test('bad spans are rejected with reasons, and the others count', async () => {
  const team = await openTeam()
  const now = Date.now()
  const tokens = (value: string | number) => ({ ...CHAT, 'gen_ai.usage.input_tokens': value })
  const bad: SentSpan[] = [
    { traceId: '0'.repeat(32) },
    { traceId: 'abcd' },
    { spanId: '0'.repeat(16) },
    { spanId: 'ab'.repeat(9) },
    { start: now - 1_000, end: now - 2_000 },
    { end: now - 31 * DAY_MS },
    { end: now + 2 * HOUR_MS },
    { attributes: tokens(-1) },
    { attributes: tokens(1.5) },
    { attributes: tokens('12') },
    { attributes: tokens(1e12) },
  ]
  for (const encoding of ['json', 'protobuf']) {
    const spans = [...bad, {}, { attributes: tokens(0) }]
    let told: { rejectedSpans: string; errorMessage: string }
    if (encoding === 'json') {
      const { status, body } = await team.send(toJson(spans))
      expect(status).toBe(200)
      told = body.partialSuccess
    } else {
      const answer = await team.sendProtobuf(toProtobuf(spans))
      expect(answer).toMatchObject({ status: 200, type: 'application/x-protobuf' })
      const partial = readMessage(readMessage(answer.bytes)[1] as Buffer)
      told = { rejectedSpans: String(partial[1]), errorMessage: String(partial[2]) }
    }
    expect(told.rejectedSpans).toBe(String(bad.length))
    expect(told.errorMessage).toContain('2 x the trace id must have 16 bytes')
    expect(told.errorMessage).toContain('4 x the tokens must be whole numbers')
    expect(told.errorMessage).toMatch(/1 x the span ends before it starts \(span [0-9a-f]{16}\)/)
  }
  expect(await team.usage()).toMatchObject({ calls: 4 })
})

test("JSON's mapping: ids in either case, integers as texts or numbers, statuses as numbers or names, unknown keys", async () => {
  const team = await openTeam()
  const end = Date.now() - 60_000
  const id = newSpanId()
  const values = (input: object) => [
    ...listAttributes({
      'gen_ai.operation.name': 'chat',
      'gen_ai.system': 'openai',
      'gen_ai.request.model': 'gpt-4o',
    }),
    { key: 'gen_ai.usage.input_tokens', value: input },
    {
      key: 'a list',
      value: { arrayValue: { values: [{ stringValue: '"]}' }, { kvlistValue: { values: [] } }] } },
    },
    { value: null },
  ]
  const spans: SentSpan[] = [
    { spanId: id, raw: { attributes: values({ intValue: '7' }) } },
    {
      spanId: id.toUpperCase(),
      raw: {
        attributes: values({ intValue: 7 }),
        status: { code: 'STATUS_CODE_ERROR', message: '\u00e9\n' },
      },
    },
    {
      raw: {
        attributes: values({ doubleValue: 7.0 }),
        startTimeUnixNano: end * 1e6,
        endTimeUnixNano: (end + 5) * 1e6,
      },
    },
    {
      raw: {
        links: [{ traceId: 'x' }],
        events: [{ name: 'x'.repeat(5_000) }],
        attributes: values({ intValue: 7 }),
        toBe: [{}],
      },
    },
  ]
  const batch = toJson(spans) as Record<string, unknown>
  const { status, body } = await team.send({ later: { 'a key': [1, -2.5e3, true, null] }, ...batch })
  expect({ status, body }).toEqual({ status: 200, body: {} })
  expect(await team.usage()).toMatchObject({ calls: 4, totalInputTokens: 28 })
})

test('older names of other libraries are understood, and what encloses their calls is not counted', async () => {
  const team = await openTeam()
  const spans: Record<string, string | number>[] = [
    {
      'openinference.span.kind': 'LLM',
      'llm.model_name': 'gpt-4o',
      'llm.provider': 'openai',
      'llm.token_count.prompt': 10,
      'llm.token_count.completion': 1,
    },
    { 'openinference.span.kind': 'AGENT', 'llm.token_count.prompt': 10 },
    {
      'openinference.span.kind': 'EMBEDDING',
      'embedding.model_name': 'text-embedding-3-small',
      'llm.system': 'openai',
      'llm.token_count.prompt': 10,
    },
    {
      'ai.operationId': 'ai.generateText',
      'ai.model.id': 'gpt-4o',
      'ai.model.provider': 'openai.chat',
      'ai.usage.promptTokens': 10,
      'ai.usage.completionTokens': 1,
    },
    {
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.model.id': 'gpt-4o',
      'ai.model.provider': 'openai.chat',
      'ai.usage.promptTokens': 10,
      'ai.usage.completionTokens': 1,
    },
    { 'ai.operationId': 'ai.toolCall' },
    {
      'gen_ai.system': 'Anthropic',
      'llm.request.type': 'chat',
      'gen_ai.response.model': 'claude-sonnet-4-5',
      'gen_ai.usage.prompt_tokens': 10,
      'gen_ai.usage.completion_tokens': 1,
      'gen_ai.usage.cache_read_input_tokens': 90,
    },
    {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'groq',
      'gen_ai.request.model': 'llama-3.3-70b-versatile',
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 1,
    },
    {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'My own',
      'gen_ai.request.model': 'mine',
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 1,
    },
  ]
  await team.send(toJson(spans.map((attributes) => ({ attributes }))))
  // Anthropic's own count is without what came from the cache.
  expect(await team.usage()).toMatchObject({
    calls: 6,
    totalInputTokens: 150,
    totalOutputTokens: 5,
    totalCachedTokens: 90,
    unpricedCalls: 1,
  })
  const { models } = await team.read('token-usage/by-model')
  expect(models.map(({ provider, model }: Record<string, string>) => `${provider} ${model}`).sort()).toEqual([
    'ANTHROPIC claude-sonnet-4-5',
    'OPENAI gpt-4o',
    'OPENAI text-embedding-3-small',
    'groq llama-3.3-70b-versatile',
    'my own mine',
  ])
})

test('what is refused is a google.rpc.Status in the encoding of the request', async () => {
  const team = await openTeam()
  const viewer = await service.token('VIEWER', team.cookie, team.teamId)
  const bytes = new Uint8Array(toProtobuf([{}]))
  const big = Buffer.alloc(4 * 1024 * 1024 + 1, 32)
  const protobufType = { 'content-type': 'application/x-protobuf' }
  const gz = { 'content-encoding': 'gzip' }
  const bomb = gzipSync(Buffer.alloc(50_000_000))
  const packed = gzipSync(bytes)
  for (const [what, status, code, as, headers, body] of [
    ['no token', 401, 16, undefined, {}, bytes],
    ['a wrong token', 401, 16, 'sdk_wrong', {}, bytes],
    ['a VIEWER', 403, 7, viewer, {}, bytes],
    ['a session without a team', 400, 3, team.cookie, {}, bytes],
    ['garbage', 400, 3, team.token, {}, Buffer.from('not a batch')],
    ['null', 400, 3, team.token, {}, Buffer.from(' null')],
    ['null in a list', 400, 3, team.token, {}, Buffer.from('{"resourceSpans": [null]}')],
    ['cut off', 400, 3, team.token, {}, bytes.subarray(0, -3)],
    ['too long', 413, 3, team.token, {}, big],
    ['a bomb', 413, 3, team.token, gz, bomb],
    ['no gzip', 400, 3, team.token, gz, bytes],
    ['gzip that is cut off', 400, 3, team.token, gz, packed.subarray(0, -4)],
    ['garbage behind gzip', 400, 3, team.token, gz, Buffer.concat([packed, Buffer.from('more')])],
    ['zeros behind gzip', 400, 3, team.token, gz, Buffer.concat([packed, Buffer.alloc(9)])],
    ['another compression', 415, 3, team.token, { 'content-encoding': 'br' }, bytes],
  ] as const) {
    for (const type of [protobufType, { 'content-type': 'application/json' }]) {
      const sent = type === protobufType ? body : body === bytes ? Buffer.from('{"resourceSpans": [}') : body
      const response = await service.request(PATH, {
        method: 'POST',
        headers: { ...type, ...headers },
        body: new Uint8Array(sent),
        ...(as ? { as } : {}),
      })
      expect([what, response.status]).toEqual([what, status])
      expect(response.headers.get('content-type')).toContain(type['content-type'])
      if (type !== protobufType) {
        expect(await response.json()).toMatchObject({ status, code, message: expect.any(String) })
        continue
      }
      const told = readMessage(Buffer.from(await response.arrayBuffer()))
      expect([what, told[1]]).toEqual([what, code])
      expect(String(told[2]).length).toBeGreaterThan(5)
    }
  }
  const other = await service.request(PATH, {
    method: 'POST',
    as: team.token,
    body: 'x',
    headers: { 'content-type': 'text/plain' },
  })
  expect(other.status).toBe(415)
  expect(await team.usage()).toMatchObject({ calls: 0 })
  // A session may send for a team that it names.
  const own = await service.call('POST', `${PATH}?teamId=${team.teamId}`, team.cookie, toJson([{}]))
  expect(own.status).toBe(200)
  const foreign = await service.call('POST', `${PATH}?teamId=${team.teamId}`, service.admin, toJson([{}]))
  expect(foreign.status).toBe(403)
  expect((await team.sendProtobuf(gzipSync(toProtobuf([{}])), gz)).status).toBe(200)
  expect(await team.usage()).toMatchObject({ calls: 2 })
})

test('a batch is one request of the rate limit, and who is over it learns when to try again', async () => {
  const limited = await keep(startService())
  const token = await limited.token('OPERATOR')
  await limited.store.db.updateTable('teams').set({ plan: 'FREE' }).where('id', '=', limited.teamId).execute()
  const body = new Uint8Array(toProtobuf(Array.from({ length: 50 }, () => ({}))))
  const send = () =>
    limited.request(PATH, {
      method: 'POST',
      as: token,
      body,
      headers: { 'content-type': 'application/x-protobuf' },
    })
  const [first, second] = [await send(), await send()]
  const left = (response: Response) => Number(response.headers.get('x-ratelimit-remaining'))
  expect([0, 1]).toContain(Math.max(0, left(first) - left(second)))
  let refused = second
  for (let n = 0; n < 400 && refused.status !== 429; n++) refused = await send()
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(readMessage(Buffer.from(await refused.arrayBuffer()))[1]).toBe(8)
})
