import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { STEP_RUNNERS } from '../../../activities/agents/runners.ts'
import { createEvaluator } from '../../../activities/expressions/evaluator.ts'
import { createHttpClient } from '../../../activities/http/http.ts'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
import type { NodeContext } from '../../../activities/nodes/kit/node.ts'
import { createNoteKeeper } from '../../../activities/nodes/kit/notes.ts'
import { RUNNERS } from '../../../activities/nodes/runners.ts'
import { readJson } from '../../../activities/reading/json.ts'
import { mergeInputs } from '../../../workflows/input.ts'
import { NODES } from '../../../workflows/nodes/nodes.ts'

const evaluator = createEvaluator({ processes: 1 })
const http = createHttpClient({ allowLoopback: true, allow: [] })
afterAll(async () => {
  await evaluator.close()
  await http.close()
})

type Type = keyof typeof RUNNERS

async function run(
  type: Type,
  config: Record<string, unknown>,
  inputs: unknown[] = [{ n: 2, items: [1, 2, 3] }],
) {
  const input = mergeInputs(inputs)
  const context: NodeContext = {
    config,
    input,
    inputs,
    bindings: {
      input,
      nodes: { first: { id: 1 } },
      trigger: { day: 'mon' },
      vars: {},
      execution: { id: 'e' },
    },
    evaluator,
    notes: createNoteKeeper(),
    signal: new AbortController().signal,
    attempt: 1,
    idempotencyKey: 'e:n',
    answer: async () => {},
    spot: undefined as never,
    check: undefined as never,
    leads: () => false,
    http,
  }
  // Which items they are is for nodes that work on items.
  const { places: _, ...result } = await RUNNERS[type](context)
  return result
}

async function failureOf(
  type: Type,
  config: Record<string, unknown>,
  inputs?: unknown[],
): Promise<NodeFailure> {
  const error = await run(type, config, inputs).then(
    (result) => expect.fail(`did not fail, but returned ${JSON.stringify(result)}`),
    (thrown) => thrown,
  )
  expect(error).toBeInstanceOf(NodeFailure)
  expect(error.retryable).toBe(false)
  return error
}

test('every node type has one runner, those of agents for their steps; triggers and loops have none', () => {
  const typesOf = (has: (kind: string) => boolean) =>
    Object.entries(NODES).flatMap(([type, { kind }]) => (has(kind) ? [type] : []))
  const isOther = (kind: string) => !['trigger', 'loop', 'agent'].includes(kind)
  expect(Object.keys(RUNNERS).sort()).toEqual(typesOf(isOther).sort())
  expect(Object.keys(STEP_RUNNERS).sort()).toEqual(typesOf((kind) => kind === 'agent').sort())
})

test('SET outputs exactly its values', async () => {
  const values = {
    n: '{{ $input.n * 2 }}',
    text: 'on {{ $trigger.day }}',
    list: ['{{ $nodes.first }}', 1],
    none: '{{ $input.x }}',
  }
  expect(await run('SET', { values })).toEqual({
    output: { n: 4, text: 'on mon', list: [{ id: 1 }, 1], none: null },
  })
  expect(await run('SET', { values: {} })).toEqual({ output: {} })
  const { output } = await run('SET', { values: JSON.parse('{"__proto__": {"x": "{{ $input.n }}"}}') })
  expect(JSON.stringify(output)).toBe('{"__proto__":{"x":2}}')
  expect((await failureOf('SET', { values: 'x' })).message).toBe('values must be an object')
  expect((await failureOf('SET', { values: { a: '{{ $error("no") }}' } })).message).toMatch(/no$/)
})

test('IF_ELSE passes its input on by true or false', async () => {
  const input = { n: 2 }
  for (const [condition, handle] of [
    ['$input.n = 2', 'true'],
    ['{{ $input.n > 2 }}', 'false'],
    ['$sum([$input.n]) = 2', 'true'],
    ['$input.missing', 'false'],
    [false, 'false'],
  ]) {
    const result = await run('IF_ELSE', { condition }, [input])
    expect(result).toEqual({ output: input, handle })
    expect(result.output).toBe(input)
  }
  expect((await failureOf('IF_ELSE', { condition: 3 })).message).toMatch(/expression or a boolean/)
})

test('SWITCH takes the first case whose condition holds, or default', async () => {
  const cases = [
    { handle: 'one', condition: '$input.n = 1' },
    { handle: 'two', condition: '{{ $input.n >= 2 }}' },
    { handle: 'never', condition: '$error("looked at")' },
  ]
  expect(await run('SWITCH', { cases })).toMatchObject({ handle: 'two', output: { n: 2 } })
  expect(await run('SWITCH', { cases }, [{ n: 1 }])).toMatchObject({ handle: 'one' })
  expect(await run('SWITCH', { cases: cases.slice(0, 1) })).toMatchObject({ handle: 'default' })
  expect(await run('SWITCH', { cases: [] })).toMatchObject({ handle: 'default' })
  expect((await failureOf('SWITCH', { cases }, [{ n: 0 }])).message).toMatch(/looked at/)
})

test('MERGE combines objects or appends everything, in edge order', async () => {
  expect(await run('MERGE', {}, [{ a: 1, b: 1 }, { b: 2 }])).toEqual({ output: { a: 1, b: 2 } })
  expect(await run('MERGE', { mode: 'combine' }, [{ a: 1 }, 5])).toEqual({ output: [{ a: 1 }, 5] })
  expect(await run('MERGE', { mode: 'append' }, [[1, [2]], { a: 1 }, null, []])).toEqual({
    output: [1, [2], { a: 1 }, null],
  })
  expect((await failureOf('MERGE', { mode: 'zip' })).message).toBe(
    'mode must be one of combine, append, items, byPosition, byFields, byKey, all, choose',
  )
})

test('FILTER keeps the items for which its condition holds', async () => {
  expect(await run('FILTER', { items: '{{ $input.items }}', condition: '$item > 1' })).toMatchObject({
    output: { items: [2, 3] },
  })
  expect(await run('FILTER', { items: [1, '{{ $input.n }}'], condition: '{{ $index = 1 }}' })).toMatchObject({
    output: { items: [2] },
  })
  expect(await run('FILTER', { items: '{{ $input.items[$ > 2] }}', condition: true })).toMatchObject({
    output: { items: [3] },
  })
  expect(await run('FILTER', { items: '{{ $input.missing }}', condition: true })).toMatchObject({
    output: { items: [] },
  })
})

test('WAIT returns until when to wait, and passes its input on', async () => {
  const input = { n: 2, text: '1500' }
  const before = Date.now()
  for (const [config, ms] of [
    [{ durationMs: 5_000 }, 5_000],
    [{ durationMs: '{{ $input.n * 1000 }}' }, 2_000],
    [{ durationMs: '{{ $input.text }}' }, 1_500],
    [{ durationMs: '{{ $input.n }}000' }, 2_000],
  ] as const) {
    const { output, until } = await run('WAIT', config, [input])
    expect(output).toBe(input)
    expect(until! - ms).toBeGreaterThanOrEqual(before)
    expect(until! - ms).toBeLessThanOrEqual(Date.now())
  }
  const day = new Date(Date.now() + 86_400_000).toISOString()
  expect((await run('WAIT', { until: '{{ $input.day }}' }, [{ day }])).until).toBe(Date.parse(day))
  const past = await run('WAIT', { until: '2020-01-01T00:00:00+02:00' }, [input])
  expect(past.until).toBeGreaterThanOrEqual(before)
  expect(past.until).toBeLessThanOrEqual(Date.now())
})

test('WAIT names the key of a value that is not a valid time', async () => {
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ durationMs: '{{ $input.missing }}' }, /^durationMs must be a number of milliseconds, not null$/],
    [{ durationMs: '{{ "soon" }}' }, /^durationMs must be a number of milliseconds, not "soon"$/],
    [{ durationMs: '{{ -5 }}' }, /^durationMs must not be negative/],
    [{ durationMs: '{{ $input }}' }, /^durationMs must be a number of milliseconds, not object$/],
    [{ durationMs: '{{ 367 * 86400000 }}' }, /^durationMs must be at most 366 days$/],
    [{ until: '{{ "tomorrow" }}' }, /^until must be an ISO 8601 time with its zone, not "tomorrow"$/],
    [{ until: '{{ "2026-01-01T00:00:00" }}' }, /^until must be an ISO 8601 time with its zone/],
    [{ until: '{{ "2026-13-45T00:00:00Z" }}' }, /^until must be an ISO 8601 time/],
    [{ until: '{{ $input.n }}' }, /^until must be an ISO 8601 time with its zone, not 2$/],
    [{ until: '9999-01-01T00:00:00Z' }, /^until must be at most 366 days away$/],
  ]
  for (const [config, message] of cases) {
    const failure = await failureOf('WAIT', config)
    expect(failure.type).toBe('InvalidConfig')
    expect(failure.message).toMatch(message)
  }
})

test('STOP_AND_ERROR fails with its message, without a retry', async () => {
  const failure = await failureOf('STOP_AND_ERROR', { message: 'order {{ $input.n }} is wrong' })
  expect(failure).toMatchObject({ message: 'order 2 is wrong', type: 'StopAndError' })
  expect((await failureOf('STOP_AND_ERROR', { message: '{{ $input }}' })).message).toBe(
    '{"n":2,"items":[1,2,3]}',
  )
  expect((await failureOf('STOP_AND_ERROR', { message: '{{ $input.x }}' })).message).toBe(
    'Stopped without a message',
  )
})

test('NO_OP passes its input on', async () => {
  const input = { n: 1 }
  expect((await run('NO_OP', {}, [input])).output).toBe(input)
  expect((await run('NO_OP', {}, [])).output).toBeNull()
})

/** How often the event loop comes round while the work is done. */
async function countRounds(work: Promise<unknown>): Promise<number> {
  let rounds = 0
  let working = true
  const count = () => {
    rounds++
    if (working) setImmediate(count)
  }
  setImmediate(count)
  await work.catch(() => {})
  working = false
  return rounds
}

test('JSON is written as JSON.stringify writes it, whatever the value and the indent', async () => {
  const values = [
    null,
    'a"\n\ud800',
    [],
    {},
    [[], {}, [[]], { a: [] }],
    { a: 1, b: [1, { c: null, d: 'x' }], '': { '"': {} } },
    JSON.parse('{"__proto__": {"x": [1]}, "1": 2}'),
    Array.from({ length: 3_000 }, (_, n) => ({ n, list: [n, [n]], text: 'x'.repeat(n % 50) })),
  ]
  for (const value of values) {
    for (const indent of [0, 1, 10]) {
      const { output } = await run('JSON', { operation: 'format', value: '{{ $input.value }}', indent }, [
        { value },
      ])
      expect(output).toEqual({ text: JSON.stringify(value, null, indent) })
    }
  }
})

test('a long JSON text is parsed as a short one is, valid or not', async () => {
  const pad = ' '.repeat(100_001)
  const parse = (text: string) =>
    run('JSON', { operation: 'parse', value: '{{ $input.text }}' }, [{ text: pad + text }]).then(
      ({ output }) => ({ value: (output as { value: unknown }).value }),
      (error) => error.message,
    )
  const expected = (text: string) => {
    try {
      return { value: readJson(text).value }
    } catch {
      return 'value is not valid JSON'
    }
  }
  const damage = fc.tuple(
    fc.json(),
    fc.nat(),
    fc.constantFrom('', ',', ']', '}', '"', '\\', '0', '-', ':', ' '),
  )
  const damaged = damage.map(([text, at, by]) => {
    const place = at % (text.length + 1)
    return text.slice(0, place) + by + text.slice(place + (at % 2))
  })
  const texts = [
    '{"__proto__": {"a": 1}, "a": 1, "a": 2, "2": 0, "1": 0}',
    '[-0, 1E-2, 0.10, 12345678901234567890]',
    '["\\u0041\\"\\\\", "\\ud800"]',
    '[1 , [ ] , { } ]\n',
    ...[
      '',
      '[',
      '[1',
      '[1,]',
      '{"a"}',
      '{"a":}',
      '{a:1}',
      '01',
      '1.',
      '.5',
      '+1',
      '"a\nb"',
      '"\\x"',
      '1 2',
      'nul',
    ],
    ...['[1}', '{"a":1]', '"', '"\\"', 'NaN', '[,1]', '\u00a01', '{"a":1,}', 'true false', '"a', '[]]'],
  ]
  for (const text of texts) expect([text, await parse(text)]).toEqual([text, expected(text)])
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.json(), damaged), async (text) => {
      expect(JSON.stringify(await parse(text))).toBe(JSON.stringify(expected(text)))
    }),
    { numRuns: 150 },
  )
  const small = { operation: 'parse', value: '{{ $input.text }}' }
  const many = run('JSON', small, [{ text: `[${'[],'.repeat(200_000)}1]` }])
  expect(await countRounds(many)).toBeGreaterThan(3)
  expect((await failureOf('JSON', small, [{ text: '['.repeat(200_000) }])).message).toBe(
    'value is nested more than 1000 levels deep',
  )
})

test('a JSON text that an indent makes large ends at 8 MB, and others have their turn meanwhile', async () => {
  const deep = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
  const format = (value: unknown, indent: number) =>
    run('JSON', { operation: 'format', value: '{{ $input.value }}', indent }, [{ value }])
  const many = Array.from({ length: 200_000 }, () => [])
  expect(await countRounds(format(many, 10))).toBeGreaterThan(3)
  const config = { operation: 'format', value: '{{ $input.value }}' }
  const failures = [
    await failureOf('JSON', { ...config, indent: 10 }, [{ value: [[[[[[[[[Array(90_000).fill(1)]]]]]]]]] }]),
    await failureOf('JSON', { ...config, indent: 10 }, [{ value: deep(5_000) }]),
    await failureOf('JSON', { ...config, indent: 0 }, [{ value: deep(100_000) }]),
  ]
  expect(failures.map(({ type }) => type)).toEqual(['OutputTooLarge', 'InvalidInput', 'InvalidInput'])
})

test('lists of one huge value, or of many, are worked on in pieces', { tags: 'long' }, async () => {
  const huge = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`k${at}`, [at]]))
  const turned = Object.fromEntries(Object.entries(huge).reverse())
  const items = '{{ $input.items }}'
  const same = run('DEDUPLICATE', { items }, [{ items: [huge, turned, 1] }])
  expect(await countRounds(same)).toBeGreaterThan(1)
  expect((await same).output).toEqual({ items: [huge, 1] })
  const text = ' a ,b,, c'.repeat(30_000)
  for (const config of [{ separator: ',' }, { separator: ',', trim: true }, { separator: '' }, {}]) {
    const { output } = await run('SPLIT', { value: '{{ $input.text }}', ...config }, [{ text }])
    const parts = config.separator === undefined ? [text] : text.split(config.separator)
    expect(output).toEqual({
      items: 'trim' in config ? parts.map((part) => part.trim()).filter((part) => part !== '') : parts,
    })
  }
  const split = run('SPLIT', { value: '{{ $input.text }}', separator: ',' }, [{ text: text.repeat(8) }])
  expect(await countRounds(split)).toBeGreaterThan(1)
})

test('a text that repeats a big value fails before it is written', async () => {
  const big = Array.from({ length: 300_000 }, () => 'abcd')
  const failure = await failureOf('TEMPLATE', { text: '{{ $input.big }}'.repeat(5) }, [{ big }])
  expect([failure.type, failure.message]).toEqual([
    'ExpressionLimit',
    'a text with expressions would have more than 8 million characters',
  ])
})

test('expressions that are dear to compile are compiled in turns', async () => {
  const dear = (at: number) => `${'('.repeat(8)}a${at}${'+1'.repeat(25)}${'?:b)'.repeat(8)}`
  const cases = Array.from({ length: 10 }, (_, at) => ({ handle: `h${at}`, condition: `${dear(at)} = "x"` }))
  const chosen = run('SWITCH', { cases })
  expect(await countRounds(chosen)).toBeGreaterThan(5)
  expect(await chosen).toMatchObject({ handle: 'default' })
})
