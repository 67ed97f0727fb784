import { afterAll, describe, expect, test } from 'vitest'
import type { Bindings } from '../../../activities/expressions/bindings.ts'
import { createEvaluator } from '../../../activities/expressions/evaluator.ts'
import type { Rules } from '../../../workflows/expressions/rules.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator.close())

/** Makes an expression so costly, whatever it reads, that it is evaluated in a process. */
const away = (source: string) => `[$map([1], function($x) { ${source} })][0]`

const input = {
  email: 'a@b.c',
  name: 'Ada',
  zero: 0,
  none: null,
  empty: {},
  no: [],
  customer: { id: 7, 'odd key': 1 },
  items: [
    { price: 2, tags: ['x'] },
    { price: 5, discount: 1 },
  ],
  wide: Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`f${n}`, n])),
}
const bindings: Bindings = {
  input,
  nodes: Object.assign(Object.create(null), { fetch: { status: 200 } }),
  trigger: { body: {} },
  vars: { known: 1 },
  execution: { id: 'e' },
}

async function warnings(
  expression: string,
  { rules = 2 as Rules, scope = bindings } = {},
): Promise<string[]> {
  const noted: string[] = []
  const note = (text: string, message: string) => {
    expect(text).toBe(`{{ ${expression} }}`)
    noted.push(message)
  }
  await evaluator.under({ rules, strict: false, note }).render({ x: [`{{ ${expression} }}`] }, scope)
  return noted
}

const THERE = 'there are `email`, `name`, `zero`, `none`, `empty`, `no`, `customer`, `items`, `wide`'

/** Each expression, and what is noted of it; the same in place, on this thread and in a process. */
const MISSED: [string, string[]][] = [
  ['$input.emial', [`\`$input.emial\`: no such field; ${THERE}`]],
  ['emial', [`\`emial\`: no such field; ${THERE}`]],
  ['$input.customer.nmae', ['`$input.customer.nmae`: no such field; there are `id`, `odd key`']],
  ['$input.custmer.name', [`\`$input.custmer\`: no such field; ${THERE}`]],
  ['$input.name.first', ['`$input.name.first`: no such field; `$input.name` is a string']],
  ['$input.none.a', ['`$input.none.a`: no such field; `$input.none` is null']],
  ['$input.empty.a', ['`$input.empty.a`: no such field; there are none']],
  [
    '$input.customer."other key"',
    ['`$input.customer."other key"`: no such field; there are `id`, `odd key`'],
  ],
  ['$input.items.cost', ['`$input.items.cost`: no such field in any of 2 items; there are `price`, `tags`']],
  ['$input.items[5].price', ['`$input.items[5]`: no such element; there are 2']],
  ['$input.no[0]', ['`$input.no[0]`: no such element; the list is empty']],
  [
    '$input.wide.g',
    [expect.stringMatching(/^`\$input\.wide\.g`: no such field; there are `f0`, .*`f9` and 20 more$/)],
  ],
  ['$nodes.other.x', ['`$nodes.other`: the node has no output, as it was not executed']],
  ['$nodes.fetch.body', ['`$nodes.fetch.body`: no such field; there is `status`']],
  ['$vars.unknown', ['`$vars.unknown`: the team has no such variable']],
  ['$trigger.body.id', ['`$trigger.body.id`: no such field; there are none']],
  ['$item.x', ['`$item`: there is no item here']],
  ['"Hello " & $input.nmae', [`\`$input.nmae\`: no such field; ${THERE}`]],
  [
    '$sum($input.items.cost) + 1',
    ['`$input.items.cost`: no such field in any of 2 items; there are `price`, `tags`'],
  ],
  ['$input.zero = 0 ? $input.yes : $input.other', [`\`$input.yes\`: no such field; ${THERE}`]],
  ['$input.items[cost > 1]', ['`cost`: no such field; there are `price`, `tags`']],
  ['$map($input.items, function($v) { $v.cost })', ['`$v.cost`: no such field; there are `price`, `tags`']],
  ['$input.items.{"c": cost}', ['`cost`: no such field; there are `price`, `tags`']],
  ['($c := $input.customer; $c.nmae)', ['`$c.nmae`: no such field; there are `id`, `odd key`']],
]

/** What asks whether something is there, and what is there. */
const FINE = [
  '$input.email',
  '$input.none',
  '$input.no',
  '$input.no.price',
  '$sum($input.no.price)',
  '$input.items.discount',
  '$input.items[discount > 0].price',
  '$input.items[price > 100]',
  '$input.items[-1].price',
  '$input.items.tags[0]',
  '$exists($input.emial)',
  '$not($input.emial)',
  '$boolean($input.emial)',
  '$exists($input.a.b.c) and $not($input.b)',
  '$input.emial ? "yes" : "no"',
  '$input.emial ?: "none"',
  '$input.emial ?? "none"',
  '$input.emial ?? $input.nmae',
  '($input.emial & $input.nmae) ?: 1',
  '$exists($input.emial) ? $input.emial : "none"',
  '$exists($input.emial) and $input.emial.x = 1',
  '$input.emial ~> $exists()',
  '$map($input.items, function($v) { $v.discount })',
  '$lookup($input, "emial")',
  '$input.*.nothing ? 1 : 2',
  '($x := 1; $x)',
]

describe('under the rules 2, what an expression reads in vain is noted', () => {
  test('with what was there instead', async () => {
    for (const [expression, expected] of MISSED)
      expect(await warnings(expression), expression).toEqual(expected)
  })
  test('but not what asks whether something is there', async () => {
    for (const expression of FINE) expect(await warnings(expression), expression).toEqual([])
  })
  test('the same in a process', async () => {
    for (const [expression, expected] of MISSED)
      expect(await warnings(away(expression)), away(expression)).toEqual(expected)
    for (const expression of FINE) expect(await warnings(away(expression)), away(expression)).toEqual([])
  })
  test('and under the rules 1 nothing is', async () => {
    for (const [expression] of MISSED)
      expect(await warnings(expression, { rules: 1 }), expression).toEqual([])
  })
})

test('for a list, what some item has is there', async () => {
  const items = [{ a: 1 }, { b: 'no' }, { b: true }]
  const ask = async (how: 'map' | 'holding', text: string) => {
    const noted: string[] = []
    const note = (_: string, message: string) => void noted.push(message)
    await evaluator.under({ rules: 2, strict: false, note })[how](items, text, bindings)
    return noted
  }
  const heavy = (source: string) => away(source)
  const missing = '`$item.c`: no such field in any of 3 items; there is `a`'
  expect(await ask('map', '$item.c')).toEqual([missing])
  expect(await ask('map', '$item.a')).toEqual([])
  for (const shape of [(source: string) => source, heavy]) {
    expect(await ask('map', shape('$item.c & "x"'))).toEqual(['`$item.c`: no such field; there is `a`'])
    expect(await ask('map', shape('$item.b & "x"'))).toEqual([])
    expect(await ask('map', shape('$item.b & $input.nmae'))).toEqual([
      `\`$input.nmae\`: no such field; ${THERE}`,
    ])
    expect(await ask('holding', shape('$item.a = 1'))).toEqual([])
    expect(await ask('holding', shape('$item.c > 1'))).toEqual(['`$item.c`: no such field; there is `a`'])
    expect(await ask('holding', shape('$not($item.a)'))).toEqual([])
    expect(await ask('holding', shape('$item.b'))).toEqual([
      'the condition gave "no", which counts as true: compare it with something',
    ])
  }
})

test('if it is strict, reading in vain fails', async () => {
  const strict = evaluator.under({ rules: 2, strict: true })
  const failed = { name: 'NodeFailure', type: 'ExpressionFailed' }
  const message = `expression {{ $input.emial }}: \`$input.emial\`: no such field; ${THERE} (settings.strict)`
  await expect(strict.render({ a: 'x {{ $input.emial }}' }, bindings)).rejects.toMatchObject({
    ...failed,
    message,
  })
  await expect(strict.test('$input.emial = 1', bindings)).rejects.toMatchObject(failed)
  await expect(strict.evaluate(away('$input.emial'), bindings)).rejects.toMatchObject(failed)
  await expect(strict.holding([{ a: 1 }], '$item.b = 1', bindings)).rejects.toMatchObject(failed)
  await expect(strict.map([{ a: 1 }], away('$item.b'), bindings)).rejects.toMatchObject(failed)
  for (const text of FINE) await strict.render(`{{ ${text} }}`, bindings)
  expect(await strict.test('$input.name', bindings)).toBe(true)
  expect(await evaluator.under({ rules: 1, strict: true }).render('{{ $input.emial }}', bindings)).toBeNull()
})

test('a condition that is neither a boolean nor nothing counts as $boolean says, and is noted', async () => {
  const ask = async (condition: unknown, rules: Rules = 2) => {
    const noted: string[] = []
    const note = (_: string, message: string) => void noted.push(message)
    return [await evaluator.under({ rules, strict: false, note }).test(condition, bindings), noted] as const
  }
  for (const [source, counts, shown] of [
    ['"false"', true, '"false"'],
    ['""', false, '""'],
    ['0', false, '0'],
    ['-1', true, '-1'],
    ['null', false, 'null'],
    ['[]', false, 'an array'],
    ['[0, ""]', false, 'an array'],
    ['[0, 1]', true, 'an array'],
    ['{}', false, 'an object'],
    ['{"a": 0}', true, 'an object'],
  ] as const) {
    const message = `the condition gave ${shown}, which counts as ${counts}: compare it with something`
    expect(await ask(source), source).toEqual([counts, [message]])
    expect(await ask(source, 1), source).toEqual([counts, []])
  }
  for (const source of ['true', '1 = 2', '$exists($input.x)', true])
    expect((await ask(source))[1]).toEqual([])
  expect(await ask('$not($input.x)')).toEqual([true, []])
  expect(await ask('$not($input.x)', 1)).toEqual([false, []])
  expect(await ask(`$not(${away('$input.x')})`)).toEqual([true, []])
  expect(await ask('$not(0) and $not("") and $not([]) and $not($sum)')).toEqual([true, []])
})
