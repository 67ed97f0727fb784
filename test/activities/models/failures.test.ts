import { describe, expect, test } from 'vitest'
import { noteExchanges } from '../../../activities/http/exchanges.ts'
import { createHttpClient } from '../../../activities/http/http.ts'
import { createMetrics } from '../../../activities/metrics.ts'
import { brokenOffBy, readDelay, refusedBy } from '../../../activities/models/failures.ts'
import type { ModelRequest } from '../../../activities/models/model.ts'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
import type { CredentialType } from '../../../db/credentials/types.ts'
import type { StartedAttempt } from '../../../db/executions/records/attempts.ts'
import type { Exchange } from '../../../db/executions/requests/exchange.ts'
import { LOCAL } from '../../support/servers/loopback.ts'
import { useModels } from '../../support/servers/models/asking.ts'
import type { VendorScript } from '../../support/servers/models/vendor.ts'
import { useVendors, VENDOR_KEY } from '../../support/servers/models/vendors.ts'

const models = useModels()
const KEY = VENDOR_KEY
const HI: ModelRequest = { messages: [{ role: 'user', content: 'hi' }] }

const { open, startVendor } = useVendors()

async function start(type: CredentialType, script: VendorScript) {
  const { server, data } = await startVendor(type, script)
  return {
    server,
    ask: (more: Parameters<typeof models.ask>[3] = {}, request = HI) =>
      models.ask(type, data, request, { model: 'some-model', ...more }),
    /** The failure of a call, with what the meter was told of it. */
    fail: async (more: Parameters<typeof models.ask>[3] = {}) => {
      const calls = models.metered.length
      const error = await models.ask(type, data, HI, { model: 'some-model', ...more }).then(
        () => new Error('it did not fail'),
        (thrown) => thrown,
      )
      expect(error).toBeInstanceOf(NodeFailure)
      expect(models.metered).toHaveLength(calls + 1)
      const { outcome } = models.metered.at(-1)!
      const { type: kind, retryable, retryAfterMs, message } = error as NodeFailure
      return {
        kind,
        retryable,
        retryAfterMs,
        message,
        status: outcome?.status,
        usage: outcome?.usage,
        outcome,
      }
    },
  }
}

const PROTOCOLS: CredentialType[] = ['OPENAI', 'OPENAI_COMPATIBLE', 'AZURE_OPENAI', 'ANTHROPIC', 'GOOGLE_AI']

describe.each(PROTOCOLS)('%s', (type) => {
  test.each([400, 401, 403, 404, 413, 422])(
    '%i is final, with what the vendor says and nothing charged',
    async (status) => {
      const { fail, server } = await start(type, { status })
      const failure = await fail()
      expect(failure).toMatchObject({
        kind: 'ModelRefused',
        retryable: false,
        status: 'REFUSED',
        usage: null,
      })
      expect(failure.message).toBe(
        `${type} (credential mine) responded with ${status}: The server says ${status}`,
      )
      expect(server.calls).toHaveLength(1)
    },
  )

  test.each([408, 429, 500, 502, 503, 529])(
    '%i may pass, after as long as the vendor asks, and is not repeated here',
    async (status) => {
      const { fail, server } = await start(type, { status, headers: { 'retry-after': '7' } })
      const failure = await fail()
      expect(failure).toMatchObject({
        kind: 'ModelUnavailable',
        retryable: true,
        status: 'REFUSED',
        retryAfterMs: 7_000,
      })
      expect(server.calls).toHaveLength(1)
    },
  )

  test('429, then an answer', async () => {
    const { ask, fail, server } = await start(type, [{ status: 429 }, { text: 'here you are' }])
    expect(await fail()).toMatchObject({ retryable: true, retryAfterMs: undefined })
    expect(await ask()).toMatchObject({ text: 'here you are' })
    expect(server.calls).toHaveLength(2)
  })

  test('an answer that is cut off, before its first word and after it', async () => {
    for (const cutAfter of [0, 1, 4]) {
      const { fail } = await start(type, { text: 'one two three four five six', cutAfter })
      expect(await fail()).toMatchObject({
        kind: 'ModelUnavailable',
        retryable: true,
        status: 'LOST',
        usage: null,
      })
    }
  })

  test('an answer that ends in order, but in the middle', async () => {
    for (const endAfter of [0, 1, 3, 4]) {
      const { fail } = await start(type, { text: 'one two three four five six', endAfter })
      const failure = await fail()
      expect(failure).toMatchObject({ kind: 'ModelUnavailable', retryable: true, status: 'LOST' })
      expect(failure.message).toContain('ended its answer in the middle')
    }
  })

  test('JSON that is broken, whichever event it is', async () => {
    for (const event of [0, 1, 3]) {
      const replace = { event, raw: 'data: {"broken": \n\n' }
      const { fail } = await start(type, { text: 'one two three four', replace })
      expect(await fail()).toMatchObject({ kind: 'ModelAnswer', retryable: true, status: 'LOST' })
    }
  })

  test('JSON of another protocol', async () => {
    for (const raw of ['data: []\n\n', 'data: {"hello": "you"}\n\n', 'data: "text"\n\n', 'data: null\n\n']) {
      const { fail } = await start(type, { text: '', replace: { event: 0, raw }, endAfter: 1 })
      expect(await fail()).toMatchObject({ retryable: true, status: 'LOST' })
    }
  })

  test('a page in the place of an answer', async () => {
    const { fail, server } = await start(type, { status: 200, raw: '{"error": {"message": "Sign in"}}' })
    const sent = await fail()
    expect(sent).toMatchObject({ kind: 'ModelAnswer', retryable: true, status: 'LOST' })
    expect(sent.message).toContain('is no stream of events: Sign in')
    server.say({ status: 200, headers: { 'content-type': 'text/plain' }, raw: 'Hello' })
    expect(await fail()).toMatchObject({ retryable: true, status: 'LOST' })
    server.say({ status: 503, raw: 'x'.repeat(2_000_000) })
    expect(await fail()).toMatchObject({ kind: 'ModelUnavailable', retryable: true, status: 'REFUSED' })
    server.say({ status: 502, raw: `<html>\n <b>Bad</b>\tgateway</html>${'x'.repeat(5_000)}` })
    const failure = await fail()
    expect(failure.message).toContain('responded with 502: <html> <b>Bad</b> gateway</html>xxx')
    expect(failure.message.length).toBeLessThan(600)
    expect(failure.message.endsWith('x...')).toBe(true)
  })

  test('silence, from the beginning and in the middle', async () => {
    for (const hangAfter of [0, 4]) {
      const { fail, server } = await start(type, { text: 'one two three four', hangAfter })
      const failure = await fail({ context: { models: { silenceMs: 250 } } })
      expect(failure).toMatchObject({ kind: 'ModelUnavailable', retryable: true, status: 'LOST' })
      expect(failure.message).toContain('sent nothing for 0.25 seconds')
      // The request is given up, too.
      expect(await server.calls[0]!.ended).toBe(false)
    }
  })

  test('a slow answer is none that is silent', async () => {
    const { ask } = await start(type, { text: 'one two three four five', paceMs: 60 })
    expect(await ask({ context: { models: { silenceMs: 400 } } })).toMatchObject({
      text: 'one two three four five',
    })
  })

  test('a cancellation gives the request up at once, with its own reason', async () => {
    for (const hangAfter of [0, 4]) {
      const { server, ask } = await start(type, { text: 'one two three four', hangAfter })
      const stop = new AbortController()
      const reason = new Error('nobody wants it any more')
      const asked = ask({ context: { signal: stop.signal } }).catch((error) => error)
      await server.until(1)
      stop.abort(reason)
      expect(await asked).toBe(reason)
      expect(await server.calls[0]!.ended).toBe(false)
      expect(models.metered.at(-1)!.outcome).toMatchObject({ status: 'LOST', usage: null })
    }
  })

  test('a call that nobody wants any more is not sent', async () => {
    const { server, ask } = await start(type, { text: 'one' })
    const calls = models.metered.length
    const reason = new Error('too late')
    await expect(ask({ context: { signal: AbortSignal.abort(reason) } })).rejects.toBe(reason)
    expect(server.calls).toHaveLength(0)
    expect(models.metered).toHaveLength(calls)
  })

  test('an answer without a word', async () => {
    const { fail, server } = await start(type, { text: '' })
    expect(await fail()).toMatchObject({ kind: 'ModelAnswer', retryable: true, status: 'SUCCESS' })
    server.say({ text: ' \n ' })
    expect(await fail()).toMatchObject({ kind: 'ModelAnswer', retryable: true })
    const reasons: Record<string, string> = {
      OPENAI: 'max_output_tokens',
      ANTHROPIC: 'max_tokens',
      GOOGLE_AI: 'MAX_TOKENS',
    }
    server.say({ text: '', finish: reasons[type] ?? 'length' })
    expect(await fail()).toMatchObject({ kind: 'ModelAnswer', retryable: false })
    const filters: Record<string, string> = { ANTHROPIC: 'refusal', GOOGLE_AI: 'SAFETY' }
    server.say({ text: '', finish: filters[type] ?? 'content_filter' })
    expect(await fail()).toMatchObject({ kind: 'ModelRefused', retryable: false })
    server.say({ text: 'I can', finish: filters[type] ?? 'content_filter' })
    const reply = await (
      await start(type, { text: 'I can', finish: filters[type] ?? 'content_filter' })
    ).ask()
    expect(reply).toMatchObject({ text: 'I can', finish: 'filter' })
  })

  test('an answer of eight megabytes is taken; a longer one, and one in a single event, are not', async () => {
    const piece = 'x'.repeat(64 * 1024)
    const { ask, server, fail } = await start(type, { text: Array.from({ length: 120 }, () => piece) })
    if (type === 'OPENAI') {
      // It repeats the whole text in one event, three times.
      const repeated = await fail()
      expect(repeated).toMatchObject({ kind: 'ModelAnswer', retryable: false, status: 'LOST' })
      expect(repeated.message).toMatch(
        /^The answer of OPENAI \(credential mine\) is too long: .* 4194304 bytes.*repeat a whole answer/,
      )
      server.say({ text: Array.from({ length: 15 }, () => piece) })
      expect((await ask()).text.length).toBe(15 * piece.length)
    } else expect((await ask()).text.length).toBe(120 * piece.length)
    server.say({ text: Array.from({ length: 140 }, () => piece) })
    const long = await fail()
    expect(long).toMatchObject({ kind: 'ModelAnswer', retryable: false, status: 'LOST' })
    expect(long.message).toContain('is longer than 8388608 characters')
    server.say({ text: ['y'.repeat(5 * 1024 * 1024)] })
    expect(await fail()).toMatchObject({ kind: 'ModelAnswer', retryable: false, status: 'LOST' })
  })

  test('redirects are not followed, and no key goes along', async () => {
    const other = await start('OPENAI', { text: 'stolen' })
    const { fail } = await start(type, { status: 307, headers: { location: other.server.url }, raw: '' })
    expect(await fail()).toMatchObject({ kind: 'ModelRefused', retryable: false, status: 'REFUSED' })
    expect(other.server.calls).toHaveLength(0)
  })

  test('the key is in nothing that is said, also where it is cut', async () => {
    const raw = JSON.stringify({ error: { message: `${'a'.repeat(490)} ${KEY} and ${KEY}` } })
    const { fail } = await start(type, { status: 401, raw })
    const { message } = await fail()
    expect(message).not.toContain('key-of')
    expect(message).toContain('[redacted')
  })
})

test('errors within a stream: what may pass, and what does not', async () => {
  const cases: [CredentialType, number, string, object][] = [
    [
      'ANTHROPIC',
      0,
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
      { kind: 'ModelUnavailable', retryable: true },
    ],
    [
      'ANTHROPIC',
      4,
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
      { kind: 'ModelUnavailable', retryable: true },
    ],
    [
      'ANTHROPIC',
      4,
      'event: error\ndata: {"type":"error","error":{"type":"invalid_request_error","message":"Overloaded"}}\n\n',
      { kind: 'ModelRefused', retryable: false },
    ],
    [
      'OPENAI',
      2,
      'event: error\ndata: {"type":"error","code":"rate_limit_exceeded","message":"Overloaded","param":null,"sequence_number":2}\n\n',
      { kind: 'ModelUnavailable', retryable: true },
    ],
    [
      'OPENAI',
      6,
      'event: error\ndata: {"type":"error","code":"server_error","message":"Overloaded","param":null,"sequence_number":6}\n\n',
      { kind: 'ModelUnavailable', retryable: true },
    ],
    [
      'OPENAI',
      2,
      'event: response.failed\ndata: {"type":"response.failed","sequence_number":2,"response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"Overloaded"},"usage":null}}\n\n',
      { kind: 'ModelUnavailable', retryable: true },
    ],
    [
      'OPENAI',
      6,
      'event: error\ndata: {"type":"error","code":"invalid_prompt","message":"Overloaded","param":null,"sequence_number":6}\n\n',
      { kind: 'ModelRefused', retryable: false },
    ],
    [
      'OPENAI_COMPATIBLE',
      0,
      'data: {"error":{"message":"Overloaded","type":"server_error","code":503}}\n\n',
      { kind: 'ModelUnavailable', retryable: true },
    ],
    [
      'OPENAI_COMPATIBLE',
      3,
      'data: {"error":{"message":"Overloaded","type":"server_error","code":null}}\n\n',
      { kind: 'ModelUnavailable', retryable: true },
    ],
    [
      'OPENAI_COMPATIBLE',
      3,
      'data: {"error":{"message":"Overloaded","type":"invalid_request_error","code":400}}\n\n',
      { kind: 'ModelRefused', retryable: false },
    ],
    [
      'AZURE_OPENAI',
      3,
      'data: {"error":{"message":"Overloaded","type":"server_error","code":null}}\n\n',
      { kind: 'ModelUnavailable', retryable: true },
    ],
    [
      'GOOGLE_AI',
      2,
      'data: {"error":{"message":"Overloaded","code":503,"status":"UNAVAILABLE"}}\r\n\r\n',
      { kind: 'ModelUnavailable', retryable: true },
    ],
    [
      'GOOGLE_AI',
      2,
      'data: {"error":{"message":"Overloaded","code":400,"status":"INVALID_ARGUMENT"}}\r\n\r\n',
      { kind: 'ModelRefused', retryable: false },
    ],
  ]
  for (const [type, event, raw, expected] of cases) {
    const { fail } = await start(type, { text: 'one two three four five six seven', replace: { event, raw } })
    const failure = await fail()
    expect({ type, event, ...failure }).toMatchObject({ type, event, ...expected, status: 'LOST' })
    expect(failure.message).toMatch(/broke off its answer with \w+: Overloaded/)
  }
})

test('an answer that is whole is taken, though its connection stays open', { tags: 'long' }, async () => {
  for (const type of ['OPENAI', 'OPENAI_COMPATIBLE', 'AZURE_OPENAI', 'ANTHROPIC'] as const)
    for (const pieceBytes of [1, 1_000]) {
      const { ask } = await start(type, { text: 'all of it', hangAfter: 1_000, pieceBytes })
      expect(await ask()).toMatchObject({ text: 'all of it', finish: 'stop' })
      expect(models.metered.at(-1)!.outcome).toMatchObject({ status: 'SUCCESS' })
    }
})

test('connections are used again', async () => {
  const { server, ask } = await start('OPENAI_COMPATIBLE', { text: 'all of it' })
  for (let n = 0; n < 8; n++) await ask()
  // One may not be free yet when the next call is sent.
  expect(new Set(server.calls.map(({ port }) => port)).size).toBeLessThan(4)
})

test('requests are shown with their prompt, without the key, and with the bytes that came', async () => {
  const { ask } = await start('OPENAI', { text: 'hello' })
  const shown: Exchange[] = []
  const attempt = { executionId: 'e', nodeId: 'n', iteration: null, attempt: 1 } as unknown as StartedAttempt
  const plain = createHttpClient(LOCAL)
  const http = noteExchanges(plain, attempt, (exchange) => shown.push(structuredClone(exchange)))
  await ask({ context: { http } })
  await plain.close()
  const last = shown.at(-1)!
  expect(last).toMatchObject({ method: 'POST', response: { status: 200 }, error: null })
  expect(last.headers.authorization).toBe('[redacted]')
  expect(last.body.text).toContain('"hi"')
  expect(last.response!.body.bytes).toBeGreaterThan(500)
  expect(JSON.stringify(shown)).not.toContain(KEY)
})

test('the metrics count calls, tokens and the time to the first piece', async () => {
  const metrics = createMetrics()
  const { ask, server } = await start('OPENAI', [
    { text: 'hello' },
    { status: 429 },
    { text: 'hello', cutAfter: 3 },
  ])
  const context = { models: { metrics } }
  for (let n = 0; n < 3; n++) await ask({ context }).catch(() => {})
  expect(server.calls).toHaveLength(3)
  const text = await metrics.registry.metrics()
  for (const status of ['SUCCESS', 'REFUSED', 'LOST'])
    expect(text).toContain(`perdure_model_calls_total{provider="OPENAI",status="${status}"} 1`)
  expect(text).toContain('perdure_model_tokens_total{provider="OPENAI",kind="input"} 100')
  expect(text).toContain('perdure_model_tokens_total{provider="OPENAI",kind="cached"} 40')
  expect(text).toContain('perdure_model_first_seconds_count{provider="OPENAI"} 1')
})

test('a vendor that cannot be reached is charged nothing, and is asked again later', async () => {
  const { server, fail } = await start('OPENAI', { text: 'x' })
  await server.stop()
  open.length = 0
  expect(await fail()).toMatchObject({ kind: 'ModelUnavailable', retryable: true, status: 'REFUSED' })
})

test('addresses that are not allowed are final, and nothing is charged', async () => {
  const asked = models.ask('OPENAI_COMPATIBLE', { baseUrl: 'http://10.1.2.3/v1' }, HI)
  await expect(asked).rejects.toMatchObject({ type: 'HttpRefusedAddress', retryable: false })
  expect(models.metered.at(-1)!.outcome).toMatchObject({ status: 'REFUSED' })
})

test('a request of more than eight megabytes is not sent', async () => {
  const { server, ask } = await start('OPENAI', { text: 'x' })
  const calls = models.metered.length
  const large = ask({}, { messages: [{ role: 'user', content: 'x'.repeat(9_000_000) }] })
  await expect(large).rejects.toMatchObject({ type: 'InvalidConfig', retryable: false })
  expect(server.calls).toHaveLength(0)
  expect(models.metered).toHaveLength(calls)
})

test('a call that cannot be noted is not sent, and fails as the noting did', async () => {
  const { server, ask } = await start('OPENAI', { text: 'x' })
  const away = new Error('the database is away')
  const meter = { ...models.meter, begin: async () => Promise.reject(away) }
  await expect(ask({ context: { meter } })).rejects.toBe(away)
  expect(server.calls).toHaveLength(0)
})

test('an end that cannot be noted does not cost the answer', async () => {
  const { ask } = await start('OPENAI', { text: 'dear answer' })
  const end = async () => Promise.reject(new Error('the database is away'))
  const meter = { ...models.meter, begin: async () => ({ end }) }
  expect(await ask({ context: { meter } })).toMatchObject({ text: 'dear answer', cost: null })
})

test('with maxCost, a model without a price is not asked', async () => {
  const { server, ask } = await start('OPENAI', { text: 'x' })
  models.state.priced = false
  await expect(ask({ budget: { maxCost: 1 } })).rejects.toMatchObject({
    type: 'ModelUnpriced',
    retryable: false,
  })
  expect(server.calls).toHaveLength(0)
  expect(await ask({ budget: {} })).toMatchObject({ text: 'x' })
  models.state.priced = true
  expect(await ask({ budget: { maxCost: 1 } })).toMatchObject({ text: 'x' })
})

test('ten thousand calls of tools in one answer are all there', { tags: 'long' }, async () => {
  const tools = Array.from({ length: 10_000 }, (_, n) => ({ name: 'find', args: { n } }))
  const { ask } = await start('OPENAI_COMPATIBLE', { tools })
  const { toolCalls } = await ask({}, { ...HI, tools: [{ name: 'find', description: '', parameters: {} }] })
  expect(toolCalls.map(({ arguments: { n } }) => n)).toEqual(tools.map((_, n) => n))
})

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  test.each([
    [{ 'retry-after': '12' }, 12_000],
    [{ 'retry-after': '0.4' }, 1_000],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, 30_000],
    [{ 'retry-after': '999999' }, 3_600_000],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after-ms': '1500', 'retry-after': '60' }, 2_000],
    [{ 'retry-after-ms': 'x', 'retry-after': '60' }, 60_000],
    [{ 'retry-after-ms': '-1' }, undefined],
    [{}, undefined],
  ])('%j', (headers, expected) => {
    expect(readDelay(headers as Record<string, string>, now)).toBe(expected)
  })
})

test('what vendors say is found in each of their forms', () => {
  const vendor = { name: 'V', secrets: [] }
  const say = (text: string) => refusedBy(vendor, { status: 400, headers: {}, text }).message
  const cases = [
    ['{"error":{"message":"deep"}}', 'deep'],
    ['{"error":"flat"}', 'flat'],
    ['{"message":"plain"}', 'plain'],
    ['{"detail":"detailed"}', 'detailed'],
    ['[{"error":{"message":"listed"}}]', 'listed'],
    ['{"other":1}', '{"other":1}'],
    ['no JSON', 'no JSON'],
    ['[]', '[]'],
    ['"text"', '"text"'],
  ]
  for (const [text, said] of cases) expect(say(text!)).toBe(`V responded with 400: ${said}`)
  expect(say('')).toBe('V responded with 400')
  for (const odd of [null, undefined, 7, 'text', {}, new Error('x'), { error: null }, { message: 7 }])
    expect(brokenOffBy(vendor, odd).type).toBe('ModelUnavailable')
})

test('an account without money is no matter of waiting', async () => {
  const json = {
    error: {
      message: 'You exceeded your current quota',
      type: 'insufficient_quota',
      code: 'insufficient_quota',
    },
  }
  const { fail } = await start('OPENAI', { status: 429, json })
  expect(await fail()).toMatchObject({ kind: 'ModelRefused', retryable: false, status: 'REFUSED' })
})
