import { expect, test } from 'vitest'
import { compareWithExpected } from '../../../activities/evaluation/goldstandard.ts'

const rungOf = (actual: string, expected: string) => {
  const found = compareWithExpected(actual, expected)
  return found && [found.match, found.rung]
}

test('each rung decides what it can tell', () => {
  expect(rungOf(' Paris\n', 'Paris')).toEqual([true, 'EXACT'])
  expect(rungOf('1,234.50', '1234.5')).toEqual([true, 'NUMERIC'])
  expect(rungOf('1e3', '1000.0000001')).toEqual([true, 'NUMERIC'])
  expect(rungOf('41', '42')).toEqual([false, 'NUMERIC'])
  expect(rungOf('{"a":[1,2],"b":{}}', '{ "b": {}, "a": [1, 2] }')).toEqual([true, 'JSON'])
  expect(rungOf('The capital is PARIS!', 'the capital is Paris')).toEqual([true, 'SIMILARITY'])
})

test('what may turn the meaning, or needs understanding, is left to a judge', () => {
  expect(rungOf('The capital of France', 'Paris')).toBeNull()
  expect(rungOf('{"a":1}', '{"a":2}')).toBeNull()
  const long = 'one two three four five six seven eight nine ten '.repeat(5)
  expect(rungOf(`${long}It is safe`, `${long}It is not safe`)).toBeNull()
  expect(rungOf(`${long}It isn't safe`, `${long}It is safe`)).toBeNull()
  expect(rungOf(`${long}It costs 5 euros`, `${long}It costs 6 euros`)).toBeNull()
  expect(rungOf(`${long}It costs 5 euros`, `${long}It costs 5 of our euros`)).toEqual([true, 'SIMILARITY'])
  expect(rungOf(`${long}It is ready`, `${long}It is hardly ready`)).toBeNull()
  expect(rungOf(`${long}It was approved`, `${long}It was refused`)).toBeNull()
  expect(rungOf('Germany beat Brazil in the final', 'Brazil beat Germany in the final')).toBeNull()
  expect(rungOf('', 'Paris')).toBeNull()
})
