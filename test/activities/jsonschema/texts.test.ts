import { expect, test } from 'vitest'
import { fitText } from '../../../activities/jsonschema/texts.ts'

const DRAFT_07 = 'http://json-schema.org/draft-07/schema#'
const DRAFT_2020 = 'https://json-schema.org/draft/2020-12/schema'

async function misfitsOf(schema: unknown, value: unknown): Promise<string[]> {
  const fit = await fitText(schema, JSON.stringify(value))
  if (!('misfits' in fit)) throw new Error(JSON.stringify(fit))
  return fit.misfits.map(({ path, message }) => `${path} ${message}`)
}

test('a schema without $schema is one of the draft 2020-12, and one may be of the draft 07', async () => {
  const lists = { prefixItems: [{ type: 'string' }], items: { type: 'number' } }
  expect(await misfitsOf(lists, ['a', 1])).toEqual([])
  expect(await misfitsOf(lists, ['a', 'b'])).toEqual(['/1 must be of the type number'])
  const old = {
    $schema: DRAFT_07,
    items: [{ type: 'string' }],
    additionalItems: false,
    dependencies: { a: ['b'] },
  }
  expect(await misfitsOf(old, ['a'])).toEqual([])
  expect(await misfitsOf(old, ['a', 2])).toEqual(['/1 must not be there'])
  expect(await misfitsOf(old, { a: 1 })).toHaveLength(1)
})

test('what a schema refers to within itself is found, also by $id and in turn', async () => {
  const tree = {
    $id: 'https://a.example/tree',
    type: 'object',
    properties: { value: { $ref: 'value.json' }, children: { type: 'array', items: { $ref: '#' } } },
    $defs: { value: { $id: 'value.json', type: 'integer' } },
    unevaluatedProperties: false,
  }
  expect(await misfitsOf(tree, { value: 1, children: [{ value: 2 }] })).toEqual([])
  expect(await misfitsOf(tree, { children: [{ value: 'x' }] })).toEqual([
    '/children/0/value must be of the type integer',
  ])
  expect(await misfitsOf(tree, { other: 1 })).toEqual(['/other must not be there'])
})

test('patterns are those of RE2, with the names of Unicode that ECMA knows', async () => {
  expect(await misfitsOf({ pattern: '^\\p{Letter}+$' }, 'πäß')).toEqual([])
  expect(await misfitsOf({ pattern: '^\\p{Script=Greek}\\P{L}\\d$' }, 'π-1')).toEqual([])
  expect(await misfitsOf({ pattern: '^\\\\p\\{Letter\\}$' }, '\\p{Letter}')).toEqual([])
  const names = {
    patternProperties: { '^x-': true },
    properties: { 'a.b': true },
    additionalProperties: false,
  }
  expect(await misfitsOf(names, { 'x-y': 1, 'a.b': 2 })).toEqual([])
  expect(await misfitsOf(names, { axb: 1 })).toEqual(['/axb must not be there'])
})

test('multiples are exact', async () => {
  const fits = async (value: number, multipleOf: number) =>
    (await misfitsOf({ multipleOf }, value)).length === 0
  for (const [value, of] of [
    [0.3, 0.1],
    [4.35, 0.01],
    [1e21, 10],
    [0, 7],
    [-9, 3],
    [1e-7, 1e-8],
  ] as const)
    expect([value, of, await fits(value, of)]).toEqual([value, of, true])
  for (const [value, of] of [
    [1.00000001, 1],
    [0.35, 0.1],
    [1e-9, 1e-8],
    [7, 1e300],
  ] as const)
    expect([value, of, await fits(value, of)]).toEqual([value, of, false])
})

test('a schema cannot change what others mean', async () => {
  for (const $id of [DRAFT_2020, DRAFT_07, 'https://schema.invalid/0']) {
    await fitText({ $id, type: 'string', $defs: { inner: { $id: DRAFT_2020, type: 'string' } } }, '1')
    await fitText({ $schema: DRAFT_2020, $id, $anchor: 'meta', $dynamicAnchor: 'meta', not: {} }, '1')
  }
  expect(await fitText({ type: 'sting' }, '1')).toEqual({
    unusable: 'it does not fit the rules of its draft',
  })
  expect(await misfitsOf({ type: 'number' }, 1)).toEqual([])
  expect(await misfitsOf({ type: 'number' }, 'x')).toEqual([' must be of the type number'])
})

test('no more than 100 misfits are told, and no value is quoted', async () => {
  const secret = 'sk-canary-0123456789'
  const fit = await fitText({ items: { type: 'number', enum: [1] } }, JSON.stringify(Array(150).fill(secret)))
  expect(fit).toMatchObject({ more: 200 })
  expect('misfits' in fit && fit.misfits.length).toBe(100)
  expect(JSON.stringify(fit)).not.toContain(secret)
})

test('keys that objects have by nature are keys like any other', async () => {
  const schema = {
    properties: { constructor: { type: 'number' } },
    required: ['toString'],
    additionalProperties: false,
  }
  expect(await misfitsOf(schema, { constructor: 1 })).toEqual([' must have the property "toString"'])
  expect(await misfitsOf({ additionalProperties: false }, { hasOwnProperty: 1 })).toEqual([
    '/hasOwnProperty must not be there',
  ])
})
