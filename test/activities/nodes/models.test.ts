import { afterEach, describe, expect, test } from 'vitest'
import type { ExecutionBody } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import type { VendorScript, VendorSpeech } from '../../support/servers/models/vendor.ts'

const host = await keep(shareRunning())

const open: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop()
})

let numbers = 0

async function credential(type: string, data: object): Promise<string> {
  const body = { teamId: host.teamId, name: `model ${++numbers}`, type, data }
  return (await host.ask<{ id: string }>('POST', '/api/credentials', body)).id
}

/** A vendor that answers as the script says, with a credential for it. */
async function vendor(script: VendorScript) {
  const server = await startOpenAi(script)
  open.push(server)
  const credentialId = await credential('OPENAI_COMPATIBLE', {
    apiKey: 'sk-nobody-knows-it',
    baseUrl: server.url,
  })
  return { ...server, credentialId, asked: (n = 0) => server.calls[n]!.body.messages as Message[] }
}
type Message = { role: string; content: string | { text: string }[] }

const demo = await credential('DEMO', {})

const QUICK = { maxAttempts: 3, initialIntervalMs: 10, maxIntervalMs: 10 }

function graphOf(
  type: string,
  config: object,
  more: object = {},
  after: object[] = [],
  joins: object[] = [],
) {
  return {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'node', type, retry: QUICK, config: { model: 'demo', ...config }, ...more },
      ...after,
    ],
    edges: [...edges('start -> node'), ...joins],
  } as never
}

async function run(type: string, config: object, data: object = {}, more: object = {}) {
  const ended = await host.run(graphOf(type, config, more), data as never)
  return { run: ended, ...nodeOf(ended, 'node') }
}

type UsageRow = { status: string; inputTokens: number | null; attempt: number; call: number }

/** The calls of an execution, as they were noted. */
async function calls({ id }: Pick<ExecutionBody, 'id'>): Promise<UsageRow[]> {
  return host.store.db
    .selectFrom('modelCalls')
    .select(['status', 'inputTokens', 'attempt', 'call'])
    .where('executionId', '=', id)
    .orderBy('attempt')
    .orderBy('call')
    .execute() as Promise<UsageRow[]>
}

const textOf = ({ content }: Message) =>
  typeof content === 'string' ? content : content.map(({ text }) => text).join('')
const says = (value: unknown): VendorSpeech => ({ text: JSON.stringify(value) })

describe('LLM', () => {
  test('sends its system and its prompt, and outputs what the model says', async () => {
    const { credentialId, asked, calls: sent } = await vendor({ text: 'Grüße, Ada' })
    const found = await run(
      'LLM',
      {
        credentialId,
        model: 'llama',
        system: 'Be kind to {{ $input.name }}.',
        prompt: 'Greet {{ $input.name }}',
        temperature: '{{ $input.warmth }}',
        maxTokens: 50,
      },
      { name: 'Ada', warmth: 0.5 },
    )
    expect(found).toMatchObject({ status: 'SUCCESS', outputData: { text: 'Grüße, Ada' }, retryCount: 0 })
    expect(asked().map(({ role }) => role)).toEqual(['system', 'user'])
    expect(asked().map(textOf)).toEqual(['Be kind to Ada.', 'Greet Ada'])
    expect(sent[0]?.body).toMatchObject({ model: 'llama', temperature: 0.5, max_tokens: 50 })
    expect(await calls(found.run)).toEqual([{ status: 'SUCCESS', inputTokens: 100, attempt: 1, call: 1 }])
  })

  test('outputs an object that fits its schema, of a model that was told the schema', async () => {
    const { credentialId, asked } = await vendor(says({ city: 'Oslo', people: 717_710 }))
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' }, people: { type: 'integer' } },
      required: ['city', 'people'],
    }
    const found = await run('LLM', { credentialId, prompt: 'Norway?', output: 'json', schema })
    expect(found.outputData).toEqual({ city: 'Oslo', people: 717_710 })
    expect(textOf(asked()[0]!)).toContain('"people"')
  })

  test('an answer that does not fit is asked for once more, with what is wrong, in the same attempt', async () => {
    const { credentialId, asked, calls: sent } = await vendor([says({ n: 'seven', more: 1 }), says({ n: 7 })])
    const schema = {
      type: 'object',
      properties: { n: { type: 'integer' } },
      required: ['n'],
      additionalProperties: false,
    }
    const found = await run('LLM', { credentialId, prompt: 'A number', output: 'json', schema })
    expect(found).toMatchObject({ status: 'SUCCESS', outputData: { n: 7 }, retryCount: 0 })
    expect(sent).toHaveLength(2)
    const [, , answer, complaint] = asked(1)
    expect(textOf(answer!)).toBe('{"n":"seven","more":1}')
    expect(textOf(complaint!)).toContain('- n: must be integer, not a string')
    expect(textOf(complaint!)).toContain('- more: is a property that the schema does not have')
    expect((await calls(found.run)).map(({ status, call }) => ({ status, call }))).toEqual([
      { status: 'SUCCESS', call: 1 },
      { status: 'SUCCESS', call: 2 },
    ])
  })

  test('two answers that do not fit, or are no JSON, fail the attempt; the node tries again', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    const misfit = await vendor(says({ n: 'x' }))
    const config = { prompt: 'A number', output: 'json', schema }
    const failed = await run(
      'LLM',
      { ...config, credentialId: misfit.credentialId },
      {},
      { retry: { maxAttempts: 2 } },
    )
    expect(failed).toMatchObject({
      status: 'FAILED',
      retryCount: 1,
      errorMessage: expect.stringMatching(/do not fit the schema.*n: must be integer/),
    })
    expect(misfit.calls).toHaveLength(4)
    const garbage = await vendor([{ text: 'Sure! Here it is: {"n": ' }, { text: 'n=7' }, says({ n: 7 })])
    const mended = await run('LLM', { ...config, credentialId: garbage.credentialId })
    expect(mended).toMatchObject({ status: 'SUCCESS', retryCount: 1, outputData: { n: 7 } })
  })

  test('an answer that was cut off: text is used with a warning, JSON fails for good', async () => {
    const cut: VendorSpeech = { text: '{"n": 12', finish: 'length' }
    const { credentialId, calls: sent } = await vendor(cut)
    const text = await run('LLM', { credentialId, prompt: 'Go on', maxTokens: 3 })
    expect(text).toMatchObject({ status: 'SUCCESS', outputData: { text: '{"n": 12' } })
    expect(text.warnings).toEqual([{ path: 'maxTokens', message: expect.stringMatching(/cut off/) }])
    const json = await run('LLM', { credentialId, prompt: 'Go on', output: 'json' })
    expect(json).toMatchObject({
      status: 'FAILED',
      retryCount: 0,
      errorMessage: expect.stringMatching(/cut off/),
    })
    expect(sent).toHaveLength(2)
  })

  test('a busy vendor, a broken stream and garbage are tried again; a refusal is final', async () => {
    const busy = await vendor([{ status: 429, headers: { 'retry-after': '0' } }, { text: 'Hello' }])
    const hello = await run('LLM', { credentialId: busy.credentialId, prompt: 'Hi' })
    expect(hello).toMatchObject({ status: 'SUCCESS', retryCount: 1, outputData: { text: 'Hello' } })
    expect((await calls(hello.run)).map(({ status }) => status)).toEqual(['REFUSED', 'SUCCESS'])
    const broken = await vendor([
      { text: 'Hello there', cutAfter: 2 },
      { replace: { event: 1, raw: 'data: {oh\n\n' }, text: 'a b' },
      { text: 'Hello' },
    ])
    const again = await run('LLM', { credentialId: broken.credentialId, prompt: 'Hi' })
    expect(again).toMatchObject({ status: 'SUCCESS', retryCount: 2, outputData: { text: 'Hello' } })
    expect((await calls(again.run)).map(({ status }) => status)).toEqual(['LOST', 'LOST', 'SUCCESS'])
    const refusing = await vendor({ status: 401 })
    const refused = await run(
      'LLM',
      { credentialId: refusing.credentialId, prompt: 'Hi' },
      {},
      { onError: 'CONTINUE' },
    )
    expect(refused).toMatchObject({
      status: 'FAILED',
      retryCount: 0,
      outputData: { error: { type: 'ModelRefused' } },
    })
    expect(refused.run.status).toBe('SUCCESS')
  })

  test('a cancelled run breaks its call off, which counts as lost', async () => {
    const { credentialId, calls: sent, until } = await vendor({ text: 'One two three', hangAfter: 2 })
    const id = await host.execute(await host.create(graphOf('LLM', { credentialId, prompt: 'Count' })))
    await until(1)
    await host.ask('POST', `/api/executions/${id}/cancel`)
    expect(await sent[0]!.ended).toBe(false)
    const ended = await host.ended(id)
    expect(nodeOf(ended, 'node').status).toBe('CANCELLED')
    const [row] = await calls(ended)
    expect(row).toMatchObject({ status: 'LOST', inputTokens: null })
  })

  test('works on each of its items', async () => {
    const { credentialId } = await vendor((call) => {
      const [last] = (call.body.messages as Message[]).slice(-1)
      return { text: textOf(last!).toUpperCase() }
    })
    const graph = graphOf('LLM', { credentialId, prompt: '{{ $item.name }}' }, { perItem: true })
    const ended = await host.run(graph, { items: [{ name: 'ada' }, { name: 'bob' }] } as never)
    expect(nodeOf(ended, 'node').outputData).toMatchObject({ items: [{ text: 'ADA' }, { text: 'BOB' }] })
  })

  test('an empty prompt is no question', async () => {
    const { credentialId, calls: sent } = await vendor({ text: 'Hello' })
    const found = await run('LLM', { credentialId, prompt: '{{ $input.none }}' })
    expect(found).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringMatching(/prompt must have a value/),
    })
    expect(sent).toHaveLength(0)
  })
})

describe('CLASSIFY', () => {
  const categories = [{ name: 'billing', description: 'invoices and money' }, { name: 'bug report' }]
  const sets = [
    { id: 'paid', type: 'SET', config: { values: { way: 'billing' } } },
    { id: 'fixed', type: 'SET', config: { values: { way: 'bug' } } },
    { id: 'rest', type: 'SET', config: { values: { way: 'other', was: '{{ $input }}' } } },
  ]
  const joins = [
    { source: 'node', sourceHandle: 'billing', target: 'paid' },
    { source: 'node', sourceHandle: 'bug report', target: 'fixed' },
    { source: 'node', sourceHandle: 'other', target: 'rest' },
  ]
  const classify = (config: object, data: object, more: object = {}) =>
    host.run(
      graphOf('CLASSIFY', { input: '{{ $input.text }}', categories, ...config }, more, sets, joins),
      data as never,
    )
  const ways = (ended: ExecutionBody) =>
    ended.nodeExecutions.map(({ nodeId }) => nodeId).filter((id) => ['paid', 'fixed', 'rest'].includes(id))

  test('passes its input on by the handle of the category; what fits none by other', async () => {
    const {
      credentialId,
      calls: sent,
      asked,
    } = await vendor([says({ category: 'bug report' }), says({ category: 'other' })])
    const bug = await classify(
      { credentialId, instructions: 'Think of {{ $input.who }}.' },
      { text: 'It crashes', who: 'Ada' },
    )
    expect(ways(bug)).toEqual(['fixed'])
    expect(nodeOf(bug, 'node')).toMatchObject({
      handle: 'bug report',
      outputData: { text: 'It crashes', who: 'Ada' },
    })
    expect(sent[0]!.body.temperature).toBe(0)
    expect(textOf(asked()[0]!)).toContain('- billing: invoices and money')
    expect(textOf(asked()[0]!)).toContain('Think of Ada.')
    expect(textOf(asked()[1]!)).toBe('It crashes')
    const rest = await classify({ credentialId }, { text: 'Nice weather' })
    expect(ways(rest)).toEqual(['rest'])
    expect(nodeOf(rest, 'rest').outputData).toEqual({ way: 'other', was: { text: 'Nice weather' } })
  })

  test('what is no category never passes: it is asked again, then the node fails', async () => {
    const { credentialId, calls: sent, asked } = await vendor(says({ category: 'Billing' }))
    const failed = await classify({ credentialId }, { text: 'My invoice' }, { retry: { maxAttempts: 1 } })
    expect(failed.status).toBe('FAILED')
    expect(nodeOf(failed, 'node').errorMessage).toMatch(/category: must be one of .*not "Billing"/)
    expect(ways(failed)).toEqual([])
    expect(sent).toHaveLength(2)
    expect(textOf(asked(1).at(-1)!)).toContain('must be one of ["billing","bug report","other"]')
  })

  test('several categories leave by several handles, and into a field', async () => {
    const { credentialId } = await vendor([
      says({ categories: ['bug report', 'billing', 'billing'] }),
      says({ categories: [] }),
      says({ categories: [] }),
      says({ categories: ['billing'] }),
    ])
    const config = { credentialId, multiple: true, into: { field: 'kinds' } }
    const both = await classify(config, { text: 'Crash when paying' })
    expect(ways(both).sort()).toEqual(['fixed', 'paid'])
    expect(nodeOf(both, 'node').outputData).toEqual({
      text: 'Crash when paying',
      kinds: ['billing', 'bug report'],
    })
    const none = await classify(config, { text: 'Hm' })
    expect(ways(none)).toEqual(['rest'])
    const strict = await host.run(
      graphOf(
        'CLASSIFY',
        { input: 'x', categories, ...config, fallback: false },
        {},
        sets.slice(0, 2),
        joins.slice(0, 2),
      ),
    )
    expect(ways(strict)).toEqual(['paid'])
  })

  test('a category cannot have the name of a handle that is there already', async () => {
    const taken = graphOf('CLASSIFY', {
      credentialId: demo,
      input: 'x',
      categories: [{ name: 'other' }, { name: '[a' }],
    })
    await expect(host.create(taken)).rejects.toThrow(/must not begin with a space or a bracket/)
    const both = graphOf('CLASSIFY', { credentialId: demo, input: 'x', categories: [{ name: 'other' }] })
    await expect(host.create(both)).rejects.toThrow(/must not name the handle other/)
  })
})

describe('CLASSIFY of items', () => {
  test('each item leaves by the handle of its own category, a failed one by other', {
    tags: 'long',
  }, async () => {
    const { credentialId } = await vendor((call) => {
      const text = textOf((call.body.messages as Message[])[1]!)
      return text === 'bad' ? { status: 400 } : says({ categories: text.split(' ') })
    })
    const config = {
      credentialId,
      input: '{{ $item.is }}',
      categories: [{ name: 'a' }, { name: 'b' }],
      multiple: true,
    }
    const after = ['a', 'b', 'other'].map((id) => ({
      id,
      type: 'SET',
      perItem: true,
      config: { values: { is: '{{ $item.is }}' } },
    }))
    const joins = ['a', 'b', 'other'].map((id) => ({ source: 'node', sourceHandle: id, target: id }))
    const graph = graphOf('CLASSIFY', config, { perItem: true, onError: 'CONTINUE' }, after, joins)
    const items = ['a', 'b', 'a b', 'bad'].map((is) => ({ is }))
    const ended = await host.run(graph, { items } as never)
    const left = (id: string) =>
      (nodeOf(ended, id).outputData as { items: { is: string }[] }).items.map(({ is }) => is)
    expect([left('a'), left('b'), left('other')]).toEqual([['a', 'a b'], ['b', 'a b'], ['bad']])
  })
})

describe('EXTRACT', () => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string' },
      total: { type: 'number', minimum: 0 },
      due: { type: ['string', 'null'], format: 'date' },
    },
    required: ['name', 'total', 'due'],
    additionalProperties: false,
  }

  test('outputs what the model finds, if it fits the schema', async () => {
    const { credentialId, asked } = await vendor([
      says({ name: 'Ada', total: -1, due: 'tomorrow' }),
      says({ name: 'Ada', total: 12.5, due: null }),
    ])
    const found = await run(
      'EXTRACT',
      { credentialId, schema, input: '{{ $input.letter }}' },
      { letter: 'Ada owes 12.5' },
    )
    expect(found.outputData).toEqual({ name: 'Ada', total: 12.5, due: null })
    expect(textOf(asked(1).at(-1)!)).toMatch(/total: must be at least 0, not -1\n.*due: must be a valid date/)
  })

  test('the demo model answers with an object that fits', async () => {
    const found = await run('EXTRACT', {
      credentialId: demo,
      schema,
      input: 'name: Ada\ntotal: 7',
      into: { field: 'output', keep: false },
    })
    expect(found.outputData).toMatchObject({ output: { name: 'Ada', total: 7 } })
  })

  test('a schema that cannot be used is refused when it is saved, everything wrong at once', async () => {
    const wrong = {
      type: 'object',
      properties: { a: { type: 'text' }, b: { $ref: 'https://other.example/s' }, c: { pattern: '(' } },
    }
    const graph = graphOf('EXTRACT', { credentialId: demo, input: 'x', schema: wrong })
    const refused = await host.call('POST', '/api/workflows', host.admin, {
      name: 'wrong',
      teamId: host.teamId,
      ...(graph as object),
    })
    expect(refused.status).toBe(400)
    const text = JSON.stringify(refused.body)
    for (const path of ['properties.a.type', 'properties.b.$ref', 'properties.c'])
      expect(text).toContain(`nodes[1].config.schema.${path}`)
    const plain = graphOf('EXTRACT', { credentialId: demo, input: 'x', schema: { type: 'string' } })
    await expect(host.create(plain)).rejects.toThrow(/models answer with objects or lists/)
  })

  test('texts of a schema may have expressions, which are checked when the node is executed', async () => {
    const config = {
      credentialId: demo,
      input: 'the colour is red',
      schema: {
        type: 'object',
        properties: { colour: { enum: '{{ $input.colours }}' } },
        required: ['colour'],
      },
    }
    await expect(host.create(graphOf('EXTRACT', config))).rejects.toThrow(/enum/)
    const whole = { ...config, schema: '{{ $input.schema }}' }
    const own = { type: 'object', properties: { colour: { enum: ['blue', 'red'] } }, required: ['colour'] }
    const found = await run('EXTRACT', whole, { schema: own })
    expect(found.outputData).toEqual({ colour: 'red' })
    const broken = await run('EXTRACT', whole, { schema: { type: 'none' } })
    expect(broken).toMatchObject({ status: 'FAILED', errorMessage: expect.stringMatching(/schema/) })
  })
})

describe('SUMMARIZE', () => {
  const sentence = 'The committee met on Monday and talked about the weather for a very long time. '
  /** Answers with the number of the call, so that summaries tell their order. */
  const counting: VendorScript = (_call, number) => ({ text: `Summary ${number + 1}` })

  test('puts its summary into a field with into', async () => {
    const { credentialId } = await vendor({ text: 'In short.' })
    const into = { field: 'output.text', keep: false, dots: true }
    const found = await run('SUMMARIZE', { credentialId, input: 'A text.', into }, { a: 1 })
    expect(found).toMatchObject({ status: 'SUCCESS', outputData: { output: { text: 'In short.' } } })
  })

  test('a short text takes one turn', async () => {
    const { credentialId, asked, calls: sent } = await vendor({ text: 'They met.' })
    const config = {
      credentialId,
      input: '{{ $input.text }}',
      style: 'bullets',
      instructions: 'For {{ $input.who }}',
    }
    const found = await run('SUMMARIZE', config, { text: sentence, who: 'Ada' })
    expect(found).toMatchObject({ status: 'SUCCESS', outputData: { text: 'They met.' } })
    expect(sent).toHaveLength(1)
    expect(textOf(asked()[0]!)).toMatch(/bullet points.*For Ada/s)
    expect(textOf(asked()[1]!)).toBe(sentence.trim())
  })

  test('a long text is summarized in parts that lose nothing, and the summaries are joined', async () => {
    const { credentialId, asked, calls: sent } = await vendor(counting)
    const text = Array.from({ length: 1_300 }, (_, i) => `${i}: ${sentence}${i % 9 ? '' : '\n\n'}`).join('')
    const found = await run('SUMMARIZE', { credentialId, input: '{{ $input.text }}' }, { text })
    const parts = Math.ceil(text.length / 32_000)
    expect(parts).toBe(4)
    expect(found).toMatchObject({ status: 'SUCCESS', outputData: { text: `Summary ${parts + 1}` } })
    expect(sent).toHaveLength(parts + 1)
    const read = Array.from({ length: parts }, (_, i) => textOf(asked(i)[1]!)).join(' ')
    expect(read.replace(/\s+/g, ' ').trim()).toBe(text.replace(/\s+/g, ' ').trim())
    expect(textOf(asked(parts)[1]!)).toBe('Summary 1\n\nSummary 2\n\nSummary 3\n\nSummary 4')
    expect(await calls(found.run)).toHaveLength(parts + 1)
  })

  test('a failed turn is tried again, and those before it are not', async () => {
    const { credentialId, calls: sent } = await vendor((_call, number) =>
      number === 1 ? { status: 503 } : { text: `Summary ${number}` },
    )
    const found = await run(
      'SUMMARIZE',
      { credentialId, input: '{{ $input.text }}' },
      { text: sentence.repeat(600) },
    )
    expect(found.status).toBe('SUCCESS')
    expect(sent).toHaveLength(4)
    expect((await calls(found.run)).map(({ status }) => status).sort()).toEqual([
      'REFUSED',
      'SUCCESS',
      'SUCCESS',
      'SUCCESS',
    ])
  })

  test('more parts than are allowed, and a text that changes, fail before anything is asked', {
    tags: 'long',
  }, async () => {
    const { credentialId, calls: sent } = await vendor(counting)
    const config = { model: 'demo', credentialId, input: '{{ $input.text }}' }
    const long = await host.run({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'book', type: 'CODE', config: { code: "return { text: 'a b '.repeat(1_650_000) }" } },
        { id: 'node', type: 'SUMMARIZE', config },
      ],
      edges: edges('start -> book', 'book -> node'),
    } as never)
    expect(nodeOf(long, 'node')).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringMatching(/at most 200 are allowed/),
    })
    const changing = await run('SUMMARIZE', {
      credentialId,
      input: '{{ $pad("", 40000, "a b ") & $random() }}',
    })
    expect(changing).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringMatching(/another text each time/),
    })
    expect(sent).toHaveLength(0)
  })
})
