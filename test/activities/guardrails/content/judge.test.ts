import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CONTENT_CATEGORIES } from '../../../../activities/guardrails/content/categories.ts'
import { readJudges } from '../../../../activities/guardrails/content/judge.ts'

const file = readFileSync(
  new URL('../../../../activities/guardrails/content/weights.json', import.meta.url),
  'utf8',
)

test('the weights are small, and there are some for each category', () => {
  expect(file.length).toBeLessThan(1_500_000)
  expect(Object.keys(readJudges(JSON.parse(file)).of)).toEqual([...CONTENT_CATEGORIES])
})

test('weights that were fitted for another lexicon are refused', () => {
  const stored = JSON.parse(file)
  stored.judges.hate.figures = stored.judges.hate.figures.split(' ').slice(1).join(' ')
  expect(() => readJudges(stored)).toThrow(/weights of hate are for \d+ figures, not \d+: fit them again/)
})

test('weights that were fitted for another vocabulary are refused', () => {
  const stored = JSON.parse(file)
  stored.vocabulary = Buffer.from(stored.vocabulary, 'base64').subarray(4).toString('base64')
  expect(() => readJudges(stored)).toThrow(/weights of hate are for \d+ words, not \d+: fit them again/)
})
