import jsonata from 'jsonata'
import { expect, test } from 'vitest'
import { unknownCode } from '../../../workflows/n8n/expressions/code.ts'
import { translateExpression } from '../../../workflows/n8n/expressions/expression.ts'
import type { NodeReferences } from '../../../workflows/n8n/expressions/translator.ts'

const item = {
  name: ' Ada Byron ',
  mail: 'ADA@Example.com',
  n: 7,
  text: '12',
  price: 2.5,
  yes: true,
  no: false,
  none: null,
  list: [3, 1, 2],
  words: ['a', 'b', 'c'],
  orders: [
    { id: 1, total: 10, open: true },
    { id: 2, total: 25, open: false },
  ],
  one: [{ id: 9, total: 1, open: true }],
  nested: { 'a b': 1, deep: { list: [{ x: 'y' }] } },
  empty: '',
  at: '2026-03-04T05:06:07.000Z',
}

const other = { status: 200, body: { id: 42 } }

const references: NodeReferences = {
  current: () => unknownCode('$input'),
  other: (name, which) => {
    if (name !== 'Fetch it' || which === 'all') throw new Error(`reads ${which} of ${name}`)
    return unknownCode('$nodes.Fetch_it')
  },
  wasExecuted: () => ({ text: '$exists($nodes.Fetch_it)', hint: 'boolean' }),
  index: () => ({ text: '$index', hint: 'number' }),
}

/** The value that JavaScript itself gives. */
function evaluateJavaScript(source: string): unknown {
  const wrap = { item: { json: other }, first: () => ({ json: other }), last: () => ({ json: other }) }
  const globals = {
    $json: item,
    $input: { item: { json: item }, first: () => ({ json: item }) },
    $: () => wrap,
    $node: { 'Fetch it': { json: other } },
    $itemIndex: 4,
    $vars: { host: 'example.com' },
    $execution: { id: 'run' },
    $workflow: { id: 'flow', name: 'Flow' },
  }
  return new Function(...Object.keys(globals), `return (${source.replace(/;\s*$/, '')}\n)`)(
    ...Object.values(globals),
  )
}

async function evaluateJsonata(source: string): Promise<unknown> {
  const { text } = translateExpression(source, references)
  const value = await jsonata(text).evaluate(null, {
    input: item,
    nodes: { Fetch_it: other },
    index: 4,
    vars: { host: 'example.com' },
    execution: { id: 'run', workflowId: 'flow', workflowName: 'Flow' },
  })
  // JSONata's sequences are arrays with extra properties, which JSON drops.
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}

test.each([
  '$json.n',
  '$json["n"]',
  '$json.nested["a b"]',
  '$json.nested.deep.list[0].x',
  '$json.nested?.deep?.list?.[0]?.x',
  '$input.item.json.n',
  '$input.first().json.n',
  "$('Fetch it').item.json.body.id",
  "$('Fetch it').first().json.status",
  '$node["Fetch it"].json["body"]["id"]',
  '$itemIndex + 1',
  '$execution.id',
  '$workflow.id + "/" + $workflow.name',
  '"https://" + $vars.host + "/x"',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the source that is translated
  '`Hello ${$json.name.trim()}, you are ${$json.n}`',
  '$json.n + 1',
  '$json.text + 1',
  '$json.n + $json.price',
  '$json.text + $json.n',
  '$json.n - 1 * 2 / 4 % 3',
  '(-$json.n)',
  '+$json.text',
  '$json.n > 5 && $json.n <= 7',
  '$json.n > 9 || $json.yes',
  '!$json.no',
  '$json.n === 7',
  '$json.n !== "7"',
  '$json.text == 12',
  '$json.text != 13',
  '$json.missing === undefined',
  '$json.missing !== undefined',
  '$json.missing == null',
  '$json.none === null',
  '$json.missing !== "x"',
  '$json.n > 5 ? "big" : "small"',
  '$json.empty || "fallback"',
  '$json.missing ?? "fallback"',
  '$json.none ?? $json.missing ?? 3',
  '$json.yes && $json.n',
  'typeof $json.text === "string"',
  'typeof $json.missing === "undefined"',
  '$json.mail.toLowerCase()',
  '$json.name.trim().toUpperCase()',
  '$json.mail.includes("@")',
  '$json.words.includes("b")',
  '$json.mail.startsWith("ADA")',
  '$json.mail.endsWith(".com")',
  '$json.mail.split("@")[1]',
  '$json.words.join("-")',
  '$json.list.join()',
  '$json.list.length',
  '$json.mail.length',
  '$json.mail.slice(0, 3)',
  '$json.mail.slice(-3)',
  '$json.mail.substring(1, 4)',
  '$json.name.trimStart() + "|" + $json.name.trimEnd()',
  '$json.text.padStart(5, "0") + $json.text.padEnd(4) + $json.text.padStart(1)',
  '"ab".repeat(3) + "ab".repeat(0)',
  '$json.mail.charAt(1) + $json.mail.charAt()',
  '$json.orders.at(-1).id',
  '$json.mail.at(-1)',
  '$json.mail.split("@").at(0)',
  '$json.mail.indexOf("@")',
  '$json.mail.split("").indexOf("@")',
  '$json.list.indexOf(2) + $json.list.indexOf(99)',
  '$json.mail.indexOf("#")',
  '$json.mail.split("@").pop()',
  '$json.mail.split("@").shift()',
  '$json.list.concat(4)',
  '$json.mail.concat("!")',
  '$json.list.slice(1)',
  '$json.list.slice(-1)',
  '$json.n; ',
  '$json.n // a comment',
  '$json.list.slice(0, 1)',
  '$json.mail.replace("A", "a")',
  '$json.mail.replace(/[A-Z]/g, "x")',
  '$json.mail.replace(/[A-Z]/, "x")',
  '$json.mail.replaceAll("A", "b")',
  '/^[^@ ]+@example[.]com$/i.test($json.mail)',
  '/^[0-9]$/.test($json.n) && !/x/.test("abc") ? "one" : "more"',
  '$json.n.toString() + "!"',
  '$json.price.toFixed(2)',
  'Number($json.text) * 2',
  'parseInt("12.7")',
  'parseFloat($json.text)',
  'String($json.n)',
  'Boolean($json.empty)',
  'Math.round($json.price)',
  'Math.floor($json.price) + Math.ceil($json.price)',
  'Math.max($json.n, 3)',
  'Math.abs(-3)',
  'JSON.stringify({a: $json.n})',
  'Object.keys($json.nested)',
  'Array.isArray($json.list)',
  'encodeURIComponent($json.name)',
  '$json.orders.map(o => o.total)',
  '$json.orders.map((o, i) => ({ id: o.id, at: i }))',
  '$json.one.map(o => o.id)',
  '$json.orders.filter(order => order.open)',
  '$json.orders.filter(o => o.total > 99)',
  '$json.orders.filter(o => o.total > 5).length',
  '$json.orders.find(o => o.id === 2).total',
  '$json.orders.some(o => o.total > 20)',
  '$json.orders.every(o => o.total > 20)',
  '$json.orders.reduce((sum, o) => sum + o.total, 0)',
  '$json.orders.map(o => o.id).join(",")',
  '({ ...$json.nested, extra: [1, $json.n], "c d": null })',
  '[$json.n, "x", true]',
  '$json.words[$json.list.length - 1]',
  '$json[$json.yes ? "n" : "text"]',
  'new Date($json.at).toISOString()',
  'new Date($json.at).getTime()',
])('%s gives the same value when it is translated into JSONata', async (source) => {
  const expected = evaluateJavaScript(source)
  const actual = await evaluateJsonata(source)
  expect(actual, translateExpression(source, references).text).toEqual(
    expected === undefined ? undefined : JSON.parse(JSON.stringify(expected)),
  )
})

test('the translation of nested steps does not grow faster than their source', () => {
  const deep = (from: string, step: (inner: string) => string, times: number) => {
    let source = from
    for (let i = 0; i < times; i++) source = step(source)
    return translateExpression(source, references).text.length
  }
  expect(deep('$json.a', (inner) => `${inner}.length`, 200)).toBeLessThan(20_000)
  expect(deep('$json', (inner) => `${inner}[$json.k]`, 100)).toBeLessThan(20_000)
  expect(deep('$json.a', (inner) => `$json.b.endsWith(${inner})`, 60)).toBeLessThan(40_000)
  expect(deep('$json.a', (inner) => `(${inner} + $json.b)`, 60)).toBeLessThan(20_000)
  expect(deep('$json.a', (inner) => `(${inner} || $json.b)`, 60)).toBeLessThan(20_000)
  expect(deep('$json.a', (inner) => `(${inner} ?? $json.b)`, 60)).toBeLessThan(20_000)
  expect(deep('$json.a', (inner) => `${inner}.slice(1)`, 60)).toBeLessThan(20_000)
})

test.each([
  ['$today.toFormat("yyyy-MM-dd")', new Date().toISOString().slice(0, 10)],
  ['$now.toISO().slice(0, 10)', new Date().toISOString().slice(0, 10)],
  ['$now.plus({ days: 1 }).toMillis() - $now.toMillis()', 86_400_000],
  ['DateTime.fromISO("2026-03-04").plus(2, "hours").toISO()', '2026-03-04T02:00:00.000Z'],
  ['DateTime.fromISO($json.at).toFormat("dd.MM.yyyy HH:mm")', '04.03.2026 05:06'],
  ['$today', `${new Date().toISOString().slice(0, 10)}T00:00:00.000Z`],
  ['$today.year', new Date().getUTCFullYear()],
  ['DateTime.fromISO("2026-03-04T05:06:07.089Z").weekday', 3],
  ['$now.plus({ days: 1 }).toMillis() > $now.day', true],
  ['DateTime.fromISO("2026-03-04T05:06:07.089Z")["hour"]', 5],
  ['DateTime.fromISO("2026-03-04T05:06:07.089Z").minute + 0.5', 6.5],
  ['DateTime.fromISO("2026-03-04T05:06:07.089Z").millisecond', 89],
])('%s is computed in UTC', async (source, expected) => {
  expect(await evaluateJsonata(source)).toEqual(expected)
})

test.each([
  ['$env.HOME', '$env'],
  ['$items()', '$items'],
  ['$input.all()', 'all items of its input'],
  ["$('Fetch it').all()", 'all of Fetch it'],
  ["$('Other').item.json.x", 'item of Other'],
  ['$json.x.localeCompare("y")', 'localeCompare()'],
  ['$json.list.concat(1, 2)', 'concat() with arguments that Perdure does not support'],
  ['$json.n.toString(2)', 'toString() with arguments that Perdure does not support'],
  ['$json.orders.map(o => { return o.id })', 'other than an arrow function of one expression'],
  ['$json.a; $json.b', 'not one JavaScript expression'],
  ['$json.a, $json.b', 'sequence'],
  ['$json.', 'is not one JavaScript expression'],
  ['(() => 1)()', 'arrow function'],
  ['$json.x = 1', 'assignment'],
  ['$jmespath($json, "a")', '$jmespath'],
  ['$now.plus({ months: 1 })', 'months'],
  ['$now.zoneName', 'zoneName of a date'],
  ['$now[0]', 'of a date'],
  ['$now[$json.part]', 'of a date'],
  ['$binary.data', '$binary'],
  ['this', 'this'],
  ['JSON.parse($json.text)', 'JSON.parse'],
  ['JSON.stringify($json.mail + "")', 'on a string'],
  [`${'('.repeat(5_000)}1${')'.repeat(5_000)}`, ''],
])('%s is not translated, and the error says why', (source, reason) => {
  expect(() => translateExpression(source, references)).toThrow(reason)
})
