import { expect, test } from 'vitest'
import { dropThoughts, findJson } from '../../../activities/models/jsontext.ts'

const VALUE = { a: 1, text: 'a <think> b </think> ``` {"x":2} \\" }' }
const JSON_TEXT = JSON.stringify(VALUE)

test.each([
  ['alone', JSON_TEXT],
  ['in a fence', `\`\`\`json\n${JSON_TEXT}\n\`\`\``],
  ['after thoughts', `<think>\nIs it {"a":2}? No.\n</think>\n\n${JSON_TEXT}`],
  ['after thoughts without their first mark', `It may be {"a":2}.\n</think>\n${JSON_TEXT}`],
  ['after two thoughts, in a fence', `<think>x</think><thinking>y</thinking>\n\`\`\`\n${JSON_TEXT}\n\`\`\``],
  ['after a sentence', `Here is the JSON that you asked for:\n\n${JSON_TEXT}`],
  ['in a fence between sentences', `Sure [1]!\n\n\`\`\`json\n${JSON_TEXT}\n\`\`\`\nIt has {two} fields.`],
  ['after a sentence and thoughts', `Let me think. <think>{"a":3}</think> So: ${JSON_TEXT}`],
  ['twice', `${JSON_TEXT}\nAgain: ${JSON_TEXT}`],
  ['over several lines', `Answer:\n${JSON.stringify(VALUE, null, 2)}\n\nDone.`],
])('JSON %s is found, and nothing is taken off within it', (_where, text) => {
  expect(findJson(text)).toEqual({ value: VALUE, warning: undefined })
})

test.each([
  ['a list after thoughts', '<think>hm</think> [1,2]', [1, 2]],
  ['a list between words', 'It is [{"a":1}] then.', [{ a: 1 }]],
  ['a scalar after thoughts', '<think>hm</think>\n"yes"', 'yes'],
  ['thoughts that are a value', '"<think>hm</think>"', '<think>hm</think>'],
])('%s', (_what, text, value) => {
  expect(findJson(text)?.value).toEqual(value)
})

test.each([
  ['two different objects', '{"a":1} or {"a":2}'],
  ['an object that is cut', 'Here: {"a":{"b":1}'],
  ['an object that is broken', 'Here: {"list":[{"a":1}],}'],
  ['a list that is broken', 'Here: [{"a":1},]'],
  ['thoughts without an end', '<think>It may be {"a":1}'],
  ['later thoughts without an end', 'So <think>it may be {"a":1}'],
  ['no JSON at all', 'I cannot {do} that.'],
  ['nothing', '  '],
])('%s is no answer', (_what, text) => {
  expect(findJson(text)).toBeUndefined()
})

test('large integers in it keep their digits, and a warning says so', () => {
  const found = findJson('The id: {"id":12345678901234567890}')
  expect(found).toEqual({
    value: { id: '12345678901234567890' },
    warning: expect.stringMatching(/^1 number is too large/),
  })
})

test.each([
  '{'.repeat(500_000),
  '{"'.repeat(400_000),
  '<'.repeat(900_000),
  '<think>'.repeat(140_000),
  '[['.repeat(300_000),
])('hostile text takes no time (%#)', (text) => {
  const since = performance.now()
  expect(findJson(`x ${text}`)).toBeUndefined()
  expect(performance.now() - since).toBeLessThan(1_000)
})

test('thoughts are dropped from the beginning only', () => {
  expect(dropThoughts(' <think>a</think>\n<think>b</think> c <think>d</think>')).toBe('c <think>d</think>')
  expect(dropThoughts('c <think>d</think>')).toBe('c <think>d</think>')
  expect(dropThoughts('<think>a')).toBe('')
})
