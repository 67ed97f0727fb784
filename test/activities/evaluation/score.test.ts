import { expect, test } from 'vitest'
import { composite } from '../../../activities/evaluation/judge.ts'
import { readScore } from '../../../activities/evaluation/score.ts'

const fault = (text: string, isCut = false) => {
  const read = readScore(text, isCut)
  return 'fault' in read ? read.fault : `scored ${read.score}`
}

test.each([
  ['{"explanation": "good", "score": 4}', 4],
  ['{"explanation": "good", "score": "4", "pass": false}', 4],
  ['{"explanation": "good", "score": 4.0}', 4],
  ['```json\n{"explanation": "good", "score": 2}\n```', 2],
  ['Here it is: {"explanation": "a } in a text", "score": 5}. Done.', 5],
  ["{'explanation': 'single quotes', 'score': 3,}", 3],
  ['{"explanation": "no end", "score": 1', 1],
  ['{"explanation": "it says \\"score\\": 5 in the output", "score": 1}', 1],
  ['{"score": 3} and again {"score": 3}', 3],
  [`{"explanation": "it says 'score': 5 in the output", "score": 1}`, 1],
])('reads %s', (text, score) => {
  expect(readScore(text)).toMatchObject({ score })
})

test.each([
  ['', 'EMPTY'],
  ['4', 'UNREADABLE'],
  ['I think it is good', 'UNREADABLE'],
  ['{"explanation": "good"}', 'UNREADABLE'],
  ['{"explanation": "x", "score": 0}', 'OUT_OF_RANGE'],
  ['{"explanation": "x", "score": 6}', 'OUT_OF_RANGE'],
  ['{"explanation": "x", "score": 4.5}', 'OUT_OF_RANGE'],
  ['{"explanation": "x", "score": "4 or 5"}', 'OUT_OF_RANGE'],
  ['{"explanation": "x", "score": null}', 'OUT_OF_RANGE'],
  ['{"explanation": "x", "score": 4, "score": 2}', 'CONTRADICTORY'],
  ['{"explanation": "x", "score": 4} {"explanation": "x", "score": 2}', 'CONTRADICTORY'],
  // An object that the judge has quoted from the output is not its answer.
  [
    `The output ends with {'explanation': 'best', 'score': 5}. {"explanation": "x", "score": 1}`,
    'CONTRADICTORY',
  ],
  [`{'score': 5} is in the output. {'explanation': 'x', 'score': 1}`, 'CONTRADICTORY'],
  [`{"sc\\u006fre": 5} is in the output. {"explanation": "x", "score": 1}`, 'CONTRADICTORY'],
  [`{score: 5} is in the output. {"explanation": "x", "score": 1}`, 'CONTRADICTORY'],
  [`\`\`\`\n{'score': 5}\n\`\`\` is in the output. {"explanation": "x", "score": 1}`, 'CONTRADICTORY'],
  [`{"explanation": "${'x'.repeat(70_000)}", "score": 4}`, 'UNREADABLE'],
])('has no score for %s', (text, expected) => {
  expect(fault(text)).toBe(expected)
})

test('what was cut off is not mended', () => {
  expect(fault('{"explanation": "it", "score": 4', true)).toBe('TRUNCATED')
  expect(fault('{"explanation": "it", "score": 4} and', true)).toBe('scored 4')
})

test('the composite is the mean of what has a score, and safety is a gate', () => {
  expect(composite({ groundedness: 4, relevance: 5, safety: 5 })).toBe(4.67)
  expect(composite({ groundedness: null, relevance: 3 })).toBe(3)
  expect(composite({ groundedness: null })).toBeNull()
  expect(composite({})).toBeNull()
  expect(composite({ groundedness: 5, relevance: 5, safety: 2 })).toBe(2)
  expect(composite({ groundedness: 1, relevance: 1, safety: 2 })).toBe(1.33)
  expect(composite({ groundedness: 5, relevance: 5, safety: 3 })).toBe(4.33)
})
