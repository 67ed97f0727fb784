import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { makeDemoValue } from '../../../activities/models/demovalue.ts'
import type { ModelMessage, ModelRequest } from '../../../activities/models/model.ts'
import { useModels } from '../../support/servers/models/asking.ts'

const models = useModels()
const user = (content: string): ModelMessage => ({ role: 'user', content })
const ask = (messages: ModelMessage[], more: Partial<ModelRequest> = {}, model = 'demo') =>
  models.ask('DEMO', {}, { messages, ...more }, { model })

const tool = (name: string, properties: object = {}) => ({
  name,
  description: '',
  parameters: { type: 'object', properties, required: Object.keys(properties) },
})

/** Asks, and answers each call of a tool, until the model says something. */
async function converse(prompt: string, tools: ModelRequest['tools'], before: ModelMessage[] = []) {
  const messages = [...before, user(prompt)]
  const turns: { name: string; args: unknown; invalid: string | undefined }[][] = []
  for (;;) {
    const reply = await ask(messages, { ...(tools ? { tools } : {}) })
    messages.push(reply.message)
    if (reply.toolCalls.length === 0) return { text: reply.text, turns, messages }
    turns.push(reply.toolCalls.map(({ name, arguments: args, invalid }) => ({ name, args, invalid })))
    for (const { id, name } of reply.toolCalls)
      messages.push({ role: 'tool', toolCallId: id, toolName: name, result: { done: turns.length } })
  }
}

test.each([
  ['Say: hello dear world', 'hello dear world'],
  ['What is 12 * 4?', '12 * 4 is 48.'],
  ['what is 0.1 + 0.2', '0.1 + 0.2 is 0.3.'],
  ['Hello there', 'Hello! I am the demo model. What can I do for you?'],
  ['Who are you?', 'I am the demo model: I answer by rules, without a key and without cost.'],
  ['Summarize: One thing. Another thing.', 'One thing. Another thing.'],
  ['My invoice is wrong', 'You said: My invoice is wrong'],
  ['  ', 'You said nothing.'],
])('%s', async (prompt, answer) => {
  expect((await ask([user(prompt)])).text).toBe(answer)
})

test('streams word by word, the same each time, and counts a quarter of the characters', async () => {
  const texts: string[] = []
  const request: ModelRequest = { messages: [user('Say: one two  three\n')] }
  const asked = () => models.ask('DEMO', {}, request, { onText: (text) => texts.push(text) })
  const first = await asked()
  expect(texts).toEqual(['one', ' two', '  three'])
  expect(first.usage).toEqual({ input: 14, output: 4, cached: 0, cacheWrite: 0, reasoning: 0 })
  expect(await asked()).toEqual(first)
  expect(models.metered.at(-1)).toMatchObject({
    provider: 'DEMO',
    model: 'demo',
    outcome: { status: 'SUCCESS' },
  })
})

test('demo-slow takes its time, and stops when it is cancelled', async () => {
  const stop = new AbortController()
  const reason = new Error('enough')
  let words = 0
  const asked = models.ask(
    'DEMO',
    {},
    { messages: [user(`Say: ${'word '.repeat(1_000)}`)] },
    {
      model: 'demo-slow',
      context: { signal: stop.signal },
      onText: () => ++words === 3 && stop.abort(reason),
    },
  )
  await expect(asked).rejects.toBe(reason)
  expect(words).toBe(3)
  expect(models.metered.at(-1)!.outcome).toMatchObject({ status: 'LOST' })
})

test('another model is refused, and no call is noted', async () => {
  const calls = models.metered.length
  for (const model of ['gpt-5', 'constructor'])
    await expect(ask([user('hi')], {}, model)).rejects.toMatchObject({
      type: 'ModelRefused',
      retryable: false,
    })
  expect(models.metered).toHaveLength(calls)
})

test('keeps to maxTokens', async () => {
  const reply = await ask([user('Say: one two three four')], { maxTokens: 2 })
  expect(reply).toMatchObject({ text: 'one two ', finish: 'length', usage: { output: 2 } })
})

test('remembers what was said', async () => {
  const reply = await ask([
    user('My name is Ada'),
    { role: 'assistant', content: 'Hi' },
    user('What did I say?'),
  ])
  expect(reply.text).toBe('You said: My name is Ada')
})

describe('tools', () => {
  test('are called as told, one after the other, and their answers are told', async () => {
    const prompt = 'Please use the tool find with {"q": "a } \\" b"}, then use the tool send.'
    const { turns, text } = await converse(prompt, [tool('find'), tool('send')])
    expect(turns).toEqual([
      [{ name: 'find', args: { q: 'a } " b' }, invalid: undefined }],
      [{ name: 'send', args: {}, invalid: undefined }],
    ])
    expect(text).toBe('The tool find answered: {"done":1}\nThe tool send answered: {"done":2}')
  })

  test('are called many times, with the number of the call', async () => {
    const { turns } = await converse('use the tool count with {"n": "$n"} 40 times', [tool('count')])
    expect(turns.map(([call]) => call!.args)).toEqual(Array.from({ length: 40 }, (_, n) => ({ n: n + 1 })))
  })

  test('are called at once', async () => {
    const { turns } = await converse('use the tool count with {"n": "$n"} 3 times at once', [tool('count')])
    expect(turns.map((calls) => calls.map(({ args }) => args))).toEqual([[{ n: 1 }, { n: 2 }, { n: 3 }]])
  })

  test('that do not exist, or with arguments that are no JSON, are called all the same', async () => {
    const { turns } = await converse('use the tool other with {"q": oops}', [tool('find')])
    expect(turns).toEqual([[{ name: 'other', args: {}, invalid: '{"q": oops}' }]])
  })

  test('are found by a word of their name, with arguments out of the prompt', async () => {
    const tools = [
      tool('send_mail', { to: { type: 'string' } }),
      tool('getWeather', { city: { type: 'string' }, days: { type: 'integer' } }),
    ]
    const { turns } = await converse('How is the weather? city: Zürich, for 3 days', tools)
    expect(turns).toEqual([[{ name: 'getWeather', args: { city: 'Zürich', days: 3 }, invalid: undefined }]])
    expect((await converse('Nothing of that kind', tools)).turns).toEqual([])
  })

  test('of an earlier question do not count for the next one', async () => {
    const first = await converse('use the tool find', [tool('find')])
    const next = await converse('use the tool find with {"q": 2}', [tool('find')], first.messages)
    expect(next.turns).toEqual([[{ name: 'find', args: { q: 2 }, invalid: undefined }]])
    const ids = next.messages
      .flatMap((one) => (one.role === 'assistant' ? (one.toolCalls ?? []) : []))
      .map(({ id }) => id)
    expect(new Set(ids).size).toBe(2)
  })

  test('are not called where there are none', async () => {
    expect((await converse('use the tool find', undefined)).text).toBe('You said: use the tool find')
  })
})

describe('a schema', () => {
  const ajv = formats.default(new Ajv2020({ strict: false }))
  const text = 'name: Ada Lovelace, age: 36. She likes purple. urgent is no; 7 apples'
  test.each([
    [
      {
        type: 'object',
        properties: { name: { type: 'string' }, age: { type: 'integer' } },
        required: ['name', 'age'],
      },
      { name: 'Ada Lovelace', age: 36 },
    ],
    [{ enum: ['green', 'purple'] }, 'purple'],
    [{ type: 'object', properties: { urgent: { type: 'boolean' } } }, { urgent: false }],
    [{ const: 7 }, 7],
    [{ type: ['null', 'number'], minimum: 5, maximum: 20 }, 7],
    [{ type: 'array', items: { type: 'string', maxLength: 4 }, minItems: 2 }, ['name', 'name']],
    [{ $ref: '#/$defs/color', $defs: { color: { type: 'string', enum: ['red'] } } }, 'red'],
    [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, 36],
    [
      {
        allOf: [
          { type: 'object', properties: { a: { const: 1 } }, required: ['a'] },
          { properties: { b: { const: 2 } }, required: ['b'] },
        ],
      },
      { a: 1, b: 2 },
    ],
    [{ type: 'string', format: 'date-time' }, '2026-01-01T12:00:00Z'],
    [{ type: 'string', minLength: 80 }, undefined],
    [{ type: 'integer', exclusiveMinimum: 36, multipleOf: 5 }, 40],
    [{ type: 'object', required: ['free'] }, undefined],
    [
      {
        properties: {
          deep: { type: 'object', properties: { list: { type: 'array', items: { type: 'boolean' } } } },
        },
      },
      { deep: { list: [true] } },
    ],
  ])('%j', async (schema, value) => {
    const reply = await ask([user(text)], { schema })
    if (value !== undefined) expect(reply.object).toEqual(value)
    expect(ajv.validate(schema, reply.object)).toBe(true)
    expect(JSON.parse(reply.text)).toEqual(reply.object)
  })

  test('that is a bomb, or odd, has an end', () => {
    const wide = (depth: number): object =>
      depth === 0
        ? {}
        : {
            type: 'object',
            properties: Object.fromEntries('abcdefgh'.split('').map((key) => [key, wide(depth - 1)])),
          }
    const cases = [
      wide(5),
      { $ref: '#' },
      { $ref: '#/a', a: { $ref: '#/b' }, b: { $ref: '#/a' } },
      { type: 'object', properties: { self: { $ref: '#' } }, required: ['self'] },
      { type: 'array', items: { $ref: '#' }, minItems: 100 },
      { anyOf: [{ anyOf: [{ anyOf: [] }] }] },
      { type: 'nonsense' },
      { properties: { __proto__: { type: 'string' } } },
      { type: 'array', minItems: 1e9 },
      { type: 'string', minLength: 1e9 },
      { enum: [] },
      { $ref: 7, allOf: 'x', anyOf: {}, required: 7, properties: [] },
    ]
    for (const schema of cases) {
      const began = performance.now()
      const made = makeDemoValue(schema as Record<string, unknown>, text)
      expect(JSON.stringify(made)?.length ?? 0).toBeLessThan(1_000_000)
      expect(performance.now() - began).toBeLessThan(1_000)
    }
  })
})
