import { expect, test } from 'vitest'
import { parseExpression } from '../../../workflows/expressions/expressions.ts'
import { findHabits } from '../../../workflows/expressions/habits.ts'
import { locate } from '../../../workflows/expressions/place.ts'

function parses(source: string): boolean {
  try {
    parseExpression(source)
    return true
  } catch {
    return false
  }
}

/** Each habit as its kind, the text that it is about, and its message. */
const find = (source: string) =>
  findHabits(source, parses(source)).map(({ at, length, sure, message }) => [
    sure ? 'refused' : 'doubtful',
    source.slice(at, at + length),
    message,
  ])

test.each([
  ['$input.a === 1', '===', '"="'],
  ['$input.a == 1', '==', '"="'],
  ['$input.a !== 1', '!==', '"!="'],
  ['$input.a && $input.b', '&&', '"and"'],
  ['$input.a || "none"', '||', '"or"'],
  ['!$input.a', '!', '$not(value)'],
  ['$input.a and !$input.b', '!', '$not(value)'],
  ['$input.a?.b', '?.', '"."'],
  ['[...$input.a, 1]', '...', '$append'],
  ['typeof $input.a', 'typeof', '$type'],
  ['new Date()', 'new Date', '$now()'],
  ['return $input.a', 'return', 'leave "return" out'],
  ['$input.a AND $input.b', 'AND', '"and"'],
  ['$input.name.toUpperCase()', '.toUpperCase', '$uppercase(text)'],
  ['$input.list.map($x)', '.map', 'list.(expression)'],
  ['Math.round($input.a)', '.round', '$round(number)'],
  ['JSON.stringify($input)', '.stringify', '$string(value)'],
  ['parseInt($input.a)', 'parseInt', '$number(text)'],
  ['uppercase($input.a)', 'uppercase', '$uppercase(...)'],
  ['$input.name & unheardOf(1)', 'unheardOf', 'begins with "$"'],
  ['$input.first + " " & $input.last', '+', '"&"'],
  ['"Hello " + $input.name', '+', '"&"'],
  ["$input.a+'x'", '+', '"&"'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what users write
  ['`Hello ${$input.name}!`', '`Hello ${$input.name}!`', '"Hello " & $input.name & "!"'],
  ['$("Fetch").item.json.a', '$', '$nodes.<id>'],
  ['$input["first name"]', '["first name"]', '.`first name`'],
  ['$nodes["fetch-2"].a', '["fetch-2"]', '$nodes.`fetch-2`'],
  ['$now', '$now', '$now()'],
])('%s cannot be meant', (source, text, instead) => {
  expect(find(source)).toEqual([['refused', text, expect.stringContaining(instead)]])
})

test.each([
  ['$input.length', '.length', '$count(list)'],
  ['input.name', 'input', '$input'],
  ['trigger.body.id = 1', 'trigger', '$trigger'],
  ['$input.first-name', 'first-name', '`first-name`'],
  ['$trigger.headers.x-request-id', 'x-request-id', '`x-request-id`'],
  ['`first name`', '`first name`', 'quotes'],
  ['$input.a = undefined', 'undefined', '$exists(value)'],
])('%s may be meant', (source, text, instead) => {
  expect(find(source)).toEqual([['doubtful', text, expect.stringContaining(instead)]])
})

test.each([
  '$input.total - $input.fee',
  '$input.total-$input.fee',
  'total - fee',
  '$input.`first name`',
  '{"a === b": 1, "c": "x && !y"}',
  '$contains(name, /a||b && !c/)',
  '/* a === b */ $input.a',
  '$map(items, function($v, $i) { $v.name & $i })',
  'items.(price * count)',
  '$input.tags[0] in ["a", "b"]',
  'tag in["a"]',
  '$input."first name" + 1',
  '"a" & "b" & (1 + 2)',
  '$exists(a) and (b or (c))',
  '( $o := {"double": function($x) { $x * 2 }}; $o.double(2) )',
  '$uppercase($input.name) ~> $trim',
  'a.$uppercase()',
  '$input.orders.item.price',
  'a != b and c <= d',
  '{`quoted`: 1}',
])('%s is JSONata as it should be', (source) => {
  expect(parses(source)).toBe(true)
  expect(find(source)).toEqual([])
})

test('names every habit of an expression, in their order', () => {
  const source = '$input.a === 1 && !$input.b || $input.c.trim()'
  expect(find(source).map(([, text]) => text)).toEqual(['===', '&&', '!', '||', '.trim'])
})

test('takes time in proportion to the length, also for what is made to take long', () => {
  const pieces = ['a-', '`', '. ', '"" +', 'a.b(', ' ', 'x', ' (', 'not ', '[ ', 'a["', '"\\', "'", '/', '$(']
  for (const piece of pieces) {
    const source = piece.repeat(Math.floor(10_000 / piece.length))
    const began = process.cpuUsage()
    findHabits(source, false)
    findHabits(source, true)
    expect([piece, process.cpuUsage(began).user < 500_000]).toEqual([piece, true])
  }
})

test('a place has its line and column, and an excerpt with carets', () => {
  const text = 'one\n  $a === 2\nthree'
  expect(locate(text, text.indexOf('==='), 3)).toEqual({
    line: 2,
    column: 6,
    excerpt: ['  $a === 2', '     ^^^'],
  })
  const long = `${'a'.repeat(100)}!${'b'.repeat(100)}`
  const { column, excerpt } = locate(long, 100, 1)
  expect(column).toBe(101)
  expect(excerpt[0]).toBe(`... ${'a'.repeat(40)}!${'b'.repeat(59)} ...`)
  expect(excerpt[0][excerpt[1].indexOf('^')]).toBe('!')
  expect(locate('', 0, 1)).toEqual({ line: 1, column: 1, excerpt: ['', '^'] })
})
