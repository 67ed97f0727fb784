import { afterAll, expect, test } from 'vitest'
import { createEvaluator } from '../../../activities/expressions/evaluator.ts'
import { checkJson } from '../../../activities/jsonschema/check.ts'
import { fitText } from '../../../activities/jsonschema/texts.ts'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
import { checkJsonSchema } from '../../../workflows/jsonschema/schema.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator.close())

const bindings = { input: null, nodes: {}, trigger: null, vars: {}, execution: { id: 'e', workflowId: 'w' } }
const { signal } = new AbortController()
const check = (schema: unknown, value: unknown) => checkJson({ evaluator, bindings, signal }, schema, value)

async function failureOf(work: Promise<unknown>): Promise<NodeFailure> {
  const error = await work.then(
    (value) => expect.fail(`did not fail, but gave ${JSON.stringify(value)}`),
    (thrown) => thrown,
  )
  expect(error).toBeInstanceOf(NodeFailure)
  return error
}

const order = {
  type: 'object',
  properties: {
    id: { type: 'string', pattern: '^o-[0-9]+$' },
    total: { type: 'number', minimum: 0 },
    lines: { type: 'array', minItems: 1, items: { $ref: '#/$defs/line' } },
    state: { enum: ['open', 'paid'] },
    mail: { type: 'string', format: 'email' },
  },
  required: ['id', 'total'],
  additionalProperties: false,
  $defs: { line: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] } },
}

test('a value that fits has no problems, also with names that every object has', async () => {
  expect(await check(order, { id: 'o-1', total: 2.5, lines: [{ count: 1 }], state: 'paid' })).toEqual([])
  const odd = JSON.parse('{"properties": {"__proto__": {"type": "string"}}, "required": ["constructor"]}')
  expect(await check(odd, JSON.parse('{"__proto__": "a", "constructor": 1}'))).toEqual([])
  expect((await check(odd, JSON.parse('{"__proto__": 1}'))).sort()).toEqual([
    '__proto__: must be string, not a number',
    'the value: must have the property "constructor"',
  ])
})

test('everything that does not fit is named at once, with its path', async () => {
  const value = { id: 'x', lines: [{ count: 1 }, { count: 1.5 }, {}], state: 'lost', mail: 'nobody', more: 1 }
  expect((await check(order, value)).sort()).toEqual([
    'id: must match the pattern "^o-[0-9]+$"',
    'lines[1].count: must be integer, not a number',
    'lines[2]: must have the property "count"',
    'mail: must be a valid email, not "nobody"',
    'more: is a property that the schema does not have',
    'state: must be one of ["open","paid"], not "lost"',
    'the value: must have the property "total"',
  ])
  const slashed = { 'a/b': 1 }
  expect(await check({ additionalProperties: false }, slashed)).toEqual([
    'the value: is a property that the schema does not have',
  ])
  const many = await check(
    { items: { type: 'string' } },
    Array.from({ length: 100 }, () => 1),
  )
  expect(many).toHaveLength(21)
  expect(many.at(-1)).toBe('and 80 more')
  const long = await check({ enum: Array.from({ length: 5_000 }, (_, i) => `k${i}`) }, 'x'.repeat(9_000))
  expect(long.join('').length).toBeLessThan(600)
  // A value is quoted whole or not at all: what is masked later must not have been cut.
  expect(long.join('')).not.toContain('xxx')
})

test('drafts before 2020-12 are known by their $schema', async () => {
  const old = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    items: [{ type: 'string' }],
    additionalItems: false,
  }
  expect(await check(old, ['a'])).toEqual([])
  expect(await check(old, ['a', 'b'])).toHaveLength(1)
  expect(await check({ prefixItems: [{ type: 'string' }], items: false }, ['a', 'b'])).toHaveLength(1)
})

test('a schema that never ends, takes too long or cannot be used fails the node, not the service', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const endless = await failureOf(check({ $ref: '#' }, 1))
  expect(endless).toMatchObject({
    type: 'InvalidConfig',
    message: expect.stringMatching(/refers to itself/),
  })
  const bomb = await failureOf(check({ pattern: '^(a+)+$' }, `${'a'.repeat(60)}!`))
  expect(bomb).toMatchObject({
    type: 'ExpressionLimit',
    message: expect.stringMatching(/^the JSON Schema took/),
  })
  const levels = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [
      `d${i}`,
      { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
    ]),
  )
  const growing = { $ref: '#/$defs/d0', $defs: { ...levels, d40: { type: 'string' } } }
  expect(await failureOf(check(growing, 'x'))).toMatchObject({ type: 'ExpressionLimit' })
  expect(await failureOf(check({ type: 'text' }, 'x'))).toMatchObject({ type: 'InvalidConfig' })
  expect(await failureOf(check({ $ref: 'http://other.example/s' }, 'x'))).toMatchObject({
    type: 'InvalidConfig',
    message: expect.stringMatching(/Could not resolve/),
  })
  expect(await check({ type: 'string' }, 'x')).toEqual([])
})

test('a schema is checked before it is used, everything wrong with it at once', () => {
  expect(checkJsonSchema(order)).toEqual([])
  expect(checkJsonSchema('text')).toEqual([
    { path: '', message: 'must be a JSON Schema, which is an object' },
  ])
  const wrong = {
    type: 'object',
    properties: {
      a: { type: 'text' },
      b: { $ref: 'https://other.example/schema' },
      c: { pattern: '(' },
      d: { $ref: '#/$defs/none' },
      $ref: { type: 'string' },
    },
    allOf: [{ required: 'a' }],
    const: { $ref: 'https://no.reference.example' },
  }
  expect(
    checkJsonSchema(wrong)
      .map(({ path }) => path)
      .sort(),
  ).toEqual([
    'allOf[0].required',
    'properties.a.type',
    'properties.b.$ref',
    'properties.c.pattern',
    'properties.d.$ref',
  ])
  let deep: unknown = {}
  for (let i = 0; i < 5_000; i++) deep = { not: deep }
  expect(checkJsonSchema(deep)).toEqual([{ path: '', message: 'must not have more than 100 levels' }])
  const large = { enum: Array.from({ length: 9_000 }, (_, i) => `entry ${i}`) }
  expect(checkJsonSchema(large)).toEqual([
    { path: '', message: 'must have at most 65536 characters of JSON' },
  ])
})

test('while there is no process it waits, since the value may have been paid for', async () => {
  let asked = 0
  const down = new NodeFailure('the service is stopping', { type: 'ExpressionsUnavailable', retryable: true })
  const flaky: typeof evaluator = {
    ...evaluator,
    convert: (...given) => (++asked < 3 ? Promise.reject(down) : evaluator.convert(...given)),
  }
  expect(await checkJson({ evaluator: flaky, bindings, signal }, order, { id: 'o-1', total: 1 })).toEqual([])
  expect(asked).toBe(3)
  asked = 0
  const over = { evaluator: flaky, bindings, signal: AbortSignal.abort() }
  await expect(checkJson(over, order, {})).rejects.toBe(down)
})

/** Schemas of 64 KB, each with as many parts of a kind as it can have. */
const LARGE: Record<string, (count: number) => object> = {
  properties: (count) => ({
    properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [i, {}])),
  }),
  alternatives: (count) => ({ anyOf: Array.from({ length: count }, () => ({})) }),
  'unknown types': (count) => ({
    properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { type: 'x' }])),
  }),
  patterns: (count) => ({
    patternProperties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, {}])),
  }),
  'broken patterns': (count) => ({
    patternProperties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`(${i}`, {}])),
  }),
  references: (count) => ({
    $defs: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { $ref: '#/$defs/p0' }])),
  }),
}

test.each(Object.keys(LARGE))(
  'a schema of 64 KB of %s is read by its form only, and by no library',
  (kind) => {
    let count = 1_000
    while (JSON.stringify(LARGE[kind]!(count + 100)).length <= 65_536) count += 100
    const schema = LARGE[kind]!(count)
    // CPU time of this thread, which others on the machine do not add to.
    const least = Math.min(
      ...Array.from({ length: 5 }, () => {
        const before = process.cpuUsage()
        checkJsonSchema(schema)
        const { user, system } = process.cpuUsage(before)
        return (user + system) / 1_000
      }),
    )
    // The library takes 50 to 400 ms.
    expect(least).toBeLessThan(25)
  },
)

test.each([
  [{ type: 1 }, 'type'],
  [{ properties: [] }, 'properties'],
  [{ properties: { a: 1 } }, 'properties.a'],
  [{ patternProperties: { '(': {} } }, 'patternProperties.('],
  [{ required: [1] }, 'required'],
  [{ minLength: -1 }, 'minLength'],
  [{ minimum: '1' }, 'minimum'],
  [{ enum: 1 }, 'enum'],
  [{ anyOf: {} }, 'anyOf'],
  [{ items: [{}, 1] }, 'items[1]'],
  [{ not: 1 }, 'not'],
  [{ $ref: 1 }, '$ref'],
  [{ dependentRequired: { a: 1 } }, 'dependentRequired'],
  [{ dependencies: { a: 1 } }, 'dependencies.a'],
  [{ uniqueItems: 1 }, 'uniqueItems'],
])('the fault of %j is named at %s', (schema, path) => {
  expect(checkJsonSchema(schema).map((problem) => problem.path)).toEqual([path])
})

test('what all drafts allow is no fault, and references lead from the nearest id', () => {
  const inner = { $id: 'https://own.example/a', $defs: { q: {} }, properties: { c: { $ref: '#/$defs/q' } } }
  for (const schema of [
    { items: [{ type: 'string' }], additionalItems: false, exclusiveMinimum: true, minimum: 1 },
    { type: ['string', 'null'], title: 1, 'x-own': [], anyOf: [true, false, {}], default: { type: 1 } },
    { dependencies: { a: ['b'], b: { required: ['c'] } }, const: { properties: 1 } },
    { properties: { a: inner, 'b~/c%': {}, d: { $ref: '#/properties/b~0~1c%25' } } },
    {
      $anchor: 'here',
      properties: { type: { type: 'string' }, self: { $ref: '#here' }, all: { $ref: '#' } },
    },
  ])
    expect(checkJsonSchema(schema)).toEqual([])
})

test('a number that is too large to be held, as the text of its digits, fits where a number is wanted', async () => {
  const id = '12345678901234567890'
  const schema = (one: object) => ({ type: 'object', properties: { id: one }, required: ['id'] })
  for (const one of [
    { type: 'integer' },
    { type: ['integer', 'null'] },
    { type: 'number', minimum: 0 },
    { anyOf: [{ type: 'boolean' }, { type: 'integer' }] },
    { type: 'string' },
    { oneOf: [{ type: 'null' }, { type: 'integer', exclusiveMinimum: 1 }] },
  ]) {
    expect(await check(schema(one), { id }), JSON.stringify(one)).toEqual([])
    expect(await fitText(schema(one), JSON.stringify({ id })), JSON.stringify(one)).toEqual({
      misfits: [],
      more: 0,
    })
  }
  for (const [one, value] of [
    [{ type: 'integer' }, '1234'],
    [{ type: 'integer' }, '9007199254740991'],
    [{ type: 'integer' }, '12345678901234567890.5'],
    [{ type: 'integer' }, '12345678901234567890 '],
    [{ type: 'integer' }, '012345678901234567890'],
    [{ type: 'integer', maximum: 100 }, id],
    [{ type: 'integer', minimum: 0 }, `-${id}`],
    [{ type: 'boolean' }, id],
  ] as const) {
    const name = `${JSON.stringify(one)} ${value}`
    expect(await check(schema(one), { id: value }), name).toHaveLength(1)
    expect(await fitText(schema(one), JSON.stringify({ id: value })), name).toMatchObject({ misfits: [{}] })
  }
  expect(await check({ type: 'number' }, '12345678901234567890.5')).toEqual([])
})
