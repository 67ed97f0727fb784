import { describe, expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { teamId } = service
const viewer = await service.token('VIEWER')

/** Sends a body as it is written: some are too deep to be written by this process. */
async function send(body: string) {
  const response = await service.request(`/api/guardrails/check?teamId=${teamId}`, {
    method: 'POST',
    as: viewer,
    body,
    headers: { 'Content-Type': 'application/json' },
  })
  return { status: response.status, body: (await response.json()) as Body }
}
const hold = (text: string, schema: string) =>
  send(`{"validateSchema":true,"text":${JSON.stringify(text)},"jsonSchema":${schema}}`)
const check = (text: string, schema: unknown) => hold(text, JSON.stringify(schema))

const DRAFT = 'https://json-schema.org/draft/2020-12/schema'
const CORE = { 'https://json-schema.org/draft/2020-12/vocab/core': true }
const FORMAL = { $id: DRAFT, $vocabulary: CORE }

/** That a schema of another team still means what it says, whichever process holds a text against it. */
async function expectSense() {
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => check('1', { type: 'string', $schema: DRAFT })),
  )
  for (const { status, body } of answers) {
    expect(status, JSON.stringify(body)).toBe(200)
    expect(body).toMatchObject({ passed: false, violations: [{ details: { keyword: 'type' } }] })
  }
}

describe('no schema changes what the schemas of others mean', () => {
  test.each<[string, unknown]>([
    ['a property called default', { properties: { default: FORMAL } }],
    ['a constant', { const: FORMAL }],
    ['one of some values', { enum: [[FORMAL]] }],
    ['an example', { examples: [{ ...FORMAL, $schema: DRAFT }] }],
    ['a schema of its own', { $defs: { a: FORMAL } }],
    ['an unknown keyword', { 'x-a': { properties: { const: FORMAL } } }],
  ])('a vocabulary in %s is refused', async (_, schema) => {
    const { status, body } = await check('"x"', schema)
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toMatch(
      /\$vocabulary: must be left out|\$vocabulary","message":"must be left out/,
    )
    await expectSense()
  })

  test.each<[string, unknown]>([
    ['the address of the draft', { $id: DRAFT, type: 'number' }],
    ['the address of the draft within', { $defs: { a: { $id: DRAFT, type: 'number' } }, $ref: DRAFT }],
    ['an address as others have', { $id: 'https://schema.invalid/0', type: 'number' }],
    ['keys of prototypes', { $dynamicAnchor: '__proto__', $defs: { toString: { $anchor: 'constructor' } } }],
  ])('%s is nobody else’s', async (_, schema) => {
    await check('"x"', schema)
    await expectSense()
  })
})

describe('a schema that cannot be used is refused, whatever it is', () => {
  const nest = (levels: number, open: string, close: string, end = 'true') =>
    `${open.repeat(levels)}${end}${close.repeat(levels)}`
  test.each<[string, string]>([
    ['30,000 levels', nest(30_000, '{"not":', '}')],
    ['900 levels', nest(900, '{"not":', '}')],
    ['50,000 levels in data', `{"const":${nest(50_000, '[', ']', '')}}`],
    ['a circle', '{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}'],
    [
      'a circle that doubles',
      '{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}',
    ],
    ['a dynamic circle', '{"$dynamicAnchor":"x","allOf":[{"$dynamicRef":"#x"}]}'],
    [
      'more than 65,536 characters',
      JSON.stringify({ enum: Array.from({ length: 9_000 }, (_, at) => `e${at}`) }),
    ],
    ['the prototype', '{"properties":{"__proto__":{"type":"string"}}}'],
    ['a reference to a prototype', '{"$ref":"#/constructor/prototype"}'],
    ['a reference that is none', '{"$ref":"#/%E0%A4%A"}'],
    ['an address that is none', '{"$id":"http://["}'],
    ['a reference to data', '{"$ref":"data:application/schema+json,true"}'],
    ['a reference in capitals', '{"$ref":"HTTP://127.0.0.1:1/"}'],
    ['a relative reference', '{"$id":"http://127.0.0.1:1/a","$ref":"../x"}'],
    ['a dynamic reference', '{"$dynamicRef":"http://127.0.0.1:1/#x"}'],
    ['a file', '{"$id":"file:///etc/passwd","$ref":"file:///etc/hosts"}'],
    ['a back-reference', '{"pattern":"(a)\\\\1"}'],
    ['a back-reference by name', '{"pattern":"(?<n>a)\\\\k<n>"}'],
    ['a look behind', '{"$defs":{"never":{"pattern":"(?<=a)b"}}}'],
    ['a name that looks ahead', '{"patternProperties":{"(?!a)b":true}}'],
    ['a pattern that grows', '{"pattern":"((a{0,30}){0,30}){0,30}"}'],
    ['a pattern that is none', '{"pattern":"("}'],
    ['data that would be read as its own', '{"const":{"$anchor":"a","b":1}}'],
  ])('%s', async (_, schema) => {
    const { status, body } = await hold('1', schema)
    expect(status).toBe(400)
    // What is nested too deeply is refused before it is known where.
    expect(body.message).toMatch(/^(jsonSchema|body: must not be nested deeper)/)
  })
})

const linear: [string, unknown, unknown][] = [
  ['stars in stars', { pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' }, 'a'.repeat(90_000)],
  ['alternatives that overlap', { pattern: '^(a|a)*$' }, `${'a'.repeat(90_000)}!`],
  ['dots in stars', { pattern: '(.*)*=(.*)*;' }, 'x=x'.repeat(30_000)],
  [
    'an address',
    { pattern: '^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+$' },
    'a'.repeat(90_000),
  ],
  ['white space', { pattern: '^(?:\\s+|\\S)*,$' }, ' \u00a0'.repeat(40_000)],
  ['a bounded run', { pattern: '(?:a{0,500}b{0,500}c?){1}$' }, 'ab'.repeat(45_000)],
  ['names', { patternProperties: { '^(x+x+)+y$': true } }, { [`${'x'.repeat(80_000)}`]: 1 }],
  [
    'names of others',
    { propertyNames: { pattern: '(x+)+$' }, additionalProperties: false },
    { [`${'x'.repeat(80_000)}y`]: 1 },
  ],
]
test.each(linear)('a pattern that backtracks elsewhere takes linear time: %s', async (_, schema, value) => {
  const { status, body } = await check(JSON.stringify(value), schema)
  expect(status, body.message).toBe(200)
  expect(body.checks[0].error).toBeUndefined()
})

test('a schema that takes too long or too much is an error of its check, and the process works on', {
  tags: 'long',
  timeout: 300_000,
}, async () => {
  const double = (key: string) => {
    const $defs: Record<string, unknown> = { s0: { type: 'object' } }
    for (let i = 1; i <= 40; i++)
      $defs[`s${i}`] = { [key]: [{ $ref: `#/$defs/s${i - 1}` }, { $ref: `#/$defs/s${i - 1}` }] }
    return { $defs, $ref: '#/$defs/s40', unevaluatedProperties: false }
  }
  const heavy = Array.from({ length: 1_000 }, (_, at) => ({ pattern: `(x{0,${at}})*[a-z]{${at}}$` }))
  for (const [text, schema] of [
    ['{"a":1}', double('allOf')],
    [JSON.stringify('x'.repeat(90_000)), { allOf: heavy }],
  ] as const) {
    const { status, body } = await check(text, schema)
    expect(status, body.message).toBe(200)
    expect(body.checks).toMatchObject([{ passed: false, error: expect.stringMatching(/too long|too much/) }])
  }
  await expectSense()
})

test.each<[string, string, unknown, string | undefined]>([
  ['numbers that are as good as endless', '1'.repeat(99_000), { multipleOf: 3 }, 'multipleOf'],
  [
    'numbers of far powers',
    `[${Array(15_000).fill('1e308').join(',')}]`,
    { items: { multipleOf: 5e-324 } },
    undefined,
  ],
  ['an integer that is none', '1e999999', { type: 'integer' }, 'type'],
  ['names of prototypes', '{"__proto__": 1}', { additionalProperties: false }, 'additionalProperties'],
  ['names that are forbidden', '{"items": 1}', { properties: { items: false } }, 'false'],
  ['what an object has by nature', '{}', { required: ['toString'] }, 'required'],
  ['8,000 times no', '1', { allOf: Array(8_000).fill(false) }, undefined],
  ['45,000 misfits', JSON.stringify(Array(45_000).fill(1)), { items: { type: 'string' } }, 'type'],
  ['names that come twice', '{"a":1,"a":"x"}', { properties: { a: { type: 'string' } } }, undefined],
  ['characters of two units', '"\\ud83d\\ude00"', { minLength: 2 }, 'minLength'],
  ['a pattern over line ends', '"a\\u2028c"', { pattern: '^a.c$' }, 'pattern'],
  [
    'properties that are called as keywords',
    '{"const":"x","$id":1}',
    { properties: { const: { $id: 'a', type: 'number' }, $id: { $ref: 'a' } } },
    'type',
  ],
  ['a pattern over white space', '"\\u00a0"', { pattern: '^[\\s]$' }, undefined],
])('%s are held against a schema', async (name, text, schema, keyword) => {
  const { status, body } = await check(text, schema)
  expect(status, body.message).toBe(200)
  if (keyword) expect(body.violations[0].details.keyword).toBe(keyword)
  else if (name === '8,000 times no') expect(body.violations).toHaveLength(101)
  else expect(body.violations).toEqual([])
})
