import { expect, test } from 'vitest'
import { readWeights, type StoredWeights } from '../../../../activities/guardrails/injection/confidence.ts'
import { fitModel, prepare } from '../../../bench/guardrails/fit/injection/fit.ts'
import { readSentences } from '../../../bench/guardrails/fit/injection/sentences.ts'
import { fitStack, type Judged } from '../../../bench/guardrails/fit/injection/stack.ts'
import { createRandom } from '../../../bench/guardrails/fit/random.ts'

test('the same texts give the same weights to the byte, others give others', () => {
  const texts = readSentences(createRandom(1), 1).filter((_, at) => at % 12 === 0)
  const fitBytes = (some: typeof texts) => JSON.stringify(fitModel(some.map(prepare)))
  const first = fitBytes(texts)
  expect(fitBytes(readSentences(createRandom(1), 1).filter((_, at) => at % 12 === 0))).toBe(first)
  expect(fitBytes(texts.slice(1))).not.toBe(first)
})

test('sentences have all their slots filled, and no text is an attack and harmless at once', () => {
  const texts = readSentences(createRandom(2), 3)
  expect(
    texts.filter(({ text }) =>
      /\{(?:word|secret|prompt|topic|thing|orders|past|override|reveal)\}/.test(text),
    ),
  ).toEqual([])
  const harmless = new Set(texts.filter(({ attack }) => !attack).map(({ text }) => text))
  expect(texts.filter(({ attack, text }) => attack && harmless.has(text))).toEqual([])
  expect(texts.filter(({ attack }) => attack).length).toBeGreaterThan(1_000)
  expect(harmless.size).toBeGreaterThan(1_500)
})

test('a rule that only harmless texts have gets no figure below 0, one that attacks have gets one above', () => {
  const judged = Array.from({ length: 200 }, (_, at): Judged => {
    const attack = at % 2 === 0
    return { score: attack ? 0.5 : -0.5, rules: attack ? [0] : [1], attack, weight: 1, source: 'made' }
  })
  const { calibration, rules } = fitStack(judged, 3)
  expect(calibration.slope).toBeGreaterThan(0)
  expect(rules[0]).toBeGreaterThan(0.5)
  expect(rules.slice(1)).toEqual([0, 0])
})

test('weights without a figure for each rule are refused', () => {
  const stored: StoredWeights = {
    model: { bits: 2, bias: 0, scale: 1, weights: 'AAAAAA==' },
    calibration: { slope: 1, offset: 0 },
    rules: { 'override-orders': 1 },
  }
  expect(() => readWeights(JSON.stringify(stored))).toThrow('older than its rules')
})
