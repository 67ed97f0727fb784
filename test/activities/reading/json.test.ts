import { expect, test } from 'vitest'
import { createPacer } from '../../../activities/expressions/pace.ts'
import { describeLarge, readJson, readJsonInTurns } from '../../../activities/reading/json.ts'

/** Texts beside what they are read as; those that are changed are counted. */
const READ: [text: string, value: unknown, large?: { count: number; key: string }][] = [
  ['[9007199254740991, -9007199254740991, 9007199254740992]', [2 ** 53 - 1, 1 - 2 ** 53, 2 ** 53]],
  ['{"id": 12345678901234567890}', { id: '12345678901234567890' }, { count: 1, key: 'id' }],
  [
    '{"a": {"id": -9007199254740993}, "b": 1e20, "c": 18014398509481984}',
    { a: { id: '-9007199254740993' }, b: 1e20, c: '18014398509481984' },
    { count: 2, key: 'id' },
  ],
  ['{"x": 12345678901234567.89}', { x: '12345678901234567.89' }, { count: 1, key: 'x' }],
  [
    '{"x": 1e400, "y": 0.12345678901234567890}',
    { x: '1e400', y: 0.12345678901234568 },
    { count: 1, key: 'x' },
  ],
  ['{"text": "12345678901234567890", "list": []}', { text: '12345678901234567890', list: [] }],
  ['12345678901234567890', '12345678901234567890', { count: 1, key: '' }],
]

test('numbers too large for JavaScript become texts of their digits', () => {
  for (const [text, value, large] of READ) expect(readJson(text)).toEqual({ value, ...(large && { large }) })
})

test('a long text is read in turns to the same values', async () => {
  const space = ' '.repeat(100_001)
  for (const [text, value, large] of READ) {
    expect(await readJsonInTurns(space + text, createPacer())).toEqual({ value, ...(large && { large }) })
  }
  for (const bad of [
    '[01234567890123456789]',
    '{12345678901234567890: 1}',
    '[-]',
    '[1',
    '[1 12345678901234567890]',
  ]) {
    expect(() => readJson(bad)).toThrow(SyntaxError)
    await expect(readJsonInTurns(space + bad, createPacer())).rejects.toThrow(SyntaxError)
  }
})

test('numbers are rounded where that is asked for, and never infinite', () => {
  expect(readJson('[12345678901234567890, 1e400]', 'number')).toEqual({
    value: [12345678901234567000, '1e400'],
    large: { count: 2, key: '0' },
  })
})

test('a deep text with a large number is refused', () => {
  expect(() => readJson(`${'['.repeat(50_000)}12345678901234567890${']'.repeat(50_000)}`)).toThrow(
    SyntaxError,
  )
})

test('what became of large numbers is one sentence', () => {
  expect(describeLarge({})).toBeUndefined()
  expect(describeLarge(readJson('{"id": 12345678901234567890}'))).toBe(
    '1 number is too large for JavaScript to hold exactly, at the key "id": it is a text of its digits',
  )
  expect(describeLarge(readJson('[12345678901234567890, 12345678901234567890]', 'number'), 'number')).toBe(
    '2 numbers are too large for JavaScript to hold exactly, the first one at the key "0": they were rounded',
  )
})
