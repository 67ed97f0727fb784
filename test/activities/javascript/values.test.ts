import { afterAll, describe, expect, test } from 'vitest'
import type { Bindings } from '../../../activities/expressions/bindings.ts'
import { createEvaluator } from '../../../activities/expressions/evaluator.ts'
import recorded from './recorded.json' with { type: 'json' }

const evaluator = createEvaluator()
const n8n = evaluator.under({ rules: 2, strict: false })
afterAll(() => evaluator.close())

const INPUT = {
  a: { b: 'x' },
  name: 'ada lovelace',
  list: [3, 1, 2],
  people: [{ name: 'Ada' }, { name: 'Kim' }],
  date: '2024-03-05T10:11:12.000Z',
  price: 12.345,
  text: 'Hello',
  nothing: null,
  empty: '',
}
const BINDINGS: Bindings = {
  input: INPUT,
  nodes: { fetch: { items: [{ k: 1 }, { k: 2 }] }, one: { q: 'only' } },
  names: { 'Fetch all': 'fetch', fetch: 'fetch', One: 'one' },
  trigger: { body: { id: 7 } },
  vars: { region: 'eu' },
  execution: {
    id: 'e-1',
    workflowId: 'w-1',
    workflowName: 'Orders',
    trigger: 'WEBHOOK',
    timezone: 'America/New_York',
  },
}

/** The values of the texts, which are evaluated as one config. */
async function render(texts: string[], bindings = BINDINGS): Promise<unknown[]> {
  return (await n8n.render(texts, bindings)) as unknown[]
}

// What n8n gives, as its documentation and its package n8n-workflow 2.41 say.
const VALUES: Record<string, [text: string, value: unknown][]> = {
  'paths and literals': [
    ['={{ $json.a.b }}', 'x'],
    ['={{ $json["a"].b }}', 'x'],
    ['={{ $json.list[1] }}', 1],
    ['={{ $json.list.length }}', 3],
    ['={{ $json.name.length }}', 12],
    ['={{ $json.people.map(({ name }) => name).join() }}', 'Ada,Kim'],
    ['={{ $json.people.map(({ name, ...rest }) => rest) }}', [{}, {}]],
    [
      '={{ $json.people.map(({ name: first, age = $json.list.first() }) => first + age).join() }}',
      'Ada3,Kim3',
    ],
    [
      '={{ $json.people.map(({ name, age = $json.list.first() }) => ({ name, age }))[1] }}',
      { name: 'Kim', age: 3 },
    ],
    ['={{ $json.q }}', null],
    ['={{ -1 / 0 }}', Number.NEGATIVE_INFINITY],
    ['={{ 1 / 0 }} and more', 'Infinity and more'],
    ['={{ $json.q.z }}', null],
    ['={{ $json?.a?.b }}', 'x'],
    ['={{ $input.item.json.text }}', 'Hello'],
    ['={{ $input.first().json.text }}', 'Hello'],
    ["={{ $('Fetch all').first().json.k }}", 1],
    ["={{ $('fetch').last().json.k }}", 2],
    ["={{ $('One').item.json.q }}", 'only'],
    ['={{ $node["One"].json.q }}', 'only'],
    ['={{ $vars.region }}', 'eu'],
    ['={{ $env.region }}', 'eu'],
    ['={{ $trigger.body.id }}', 7],
    ['={{ $execution.id }}', 'e-1'],
    ['={{ $workflow.name }}', 'Orders'],
    ['={{ 12 }}', 12],
    ['={{ -1.5 }}', -1.5],
    ["={{ 'it''s' }}".replace("''", "\\'"), "it's"],
    ['={{ null }}', null],
    ['={{ true }}', true],
  ],
  'expressions keep their type': [
    ['={{ $json.list.map(n => n * 2) }}', [6, 2, 4]],
    ['={{ { total: $json.list.length, ...$json.a } }}', { total: 3, b: 'x' }],
    ['={{ $json.text === "Hello" && !$json.nothing }}', true],
    ['={{ undefined }}', null],
    ['={{ 1 / 0 }}', Number.POSITIVE_INFINITY],
    ['={{ $json }}', INPUT],
    ['={{ $input.all().length }}', 1],
    ["={{ $('fetch').all().map(i => i.json.k) }}", [1, 2]],
    ["={{ $items('fetch').length }}", 2],
    ["={{ $('fetch').isExecuted }}", true],
    ['={{ $itemIndex + $runIndex }}', 0],
    ['={{ $execution.mode }}', 'production'],
    ['={{ $workflow.id + $workflow.active }}', 'w-1true'],
    ['={{ new Date("2024-03-05T10:00:00Z") }}', '2024-03-05T10:00:00.000Z'],
    ['={{ [1, undefined] }}', [1, null]],
    ['={{ $json.list.sort() }}', [1, 2, 3]],
    ['={{ $json.list }}', [3, 1, 2]],
    ['={{ (() => { $json.a.b = 1; return $json.a.b })() }}', 1],
    ['={{ $json.a.b.toUpperCase() }}', 'X'],
    ['={{ $json.text; 5 }}', 'Hello'],
    ['={{ $json.text; }}', 'Hello'],
  ],
  texts: [
    ['=plain', 'plain'],
    ['=', ''],
    ['= {{ $json.a.b }}', ' x'],
    ['={{ $json.a.b }} ', 'x '],
    ['=Hi {{ $json.text }}, {{ $json.list[0] }}!', 'Hi Hello, 3!'],
    ['=a{{ $json.q }}b{{ null }}c{{ NaN }}d', 'abcd'],
    ['={{ 0 }}{{ false }}{{ "" }}', '0false'],
    [
      '=o: {{ $json.a }} l: {{ $json.list }} p: {{ $json.people }}',
      'o: [object Object] l: 3,1,2 p: [object Object],[object Object]',
    ],
    ['=d: {{ DateTime.fromISO("2024-07-01") }}', 'd: 2024-07-01T00:00:00.000-04:00'],
    ['=x {{ $json.q.z.y }} y', 'x  y'],
    ['=\\{{ 1 }} {{ 2 }}', '\\{{ 1 }} 2'],
    ['={{ "}}" }}{{ 1 }}', '}}1'],
    ['={{ { a: { b: 1 }} }}{{ 1 }}', '[object Object]1'],
    ["'={{ $input.a }}", '={"b":"x"}'],
    ["'=SUM(A1)", '=SUM(A1)'],
    ['open {{ a.b }}', 'open x'],
  ],
  'errors of JavaScript are nothing': [
    ['={{ $json.foo() }}', null],
    ['={{ null.x }}', null],
    ['={{ JSON.parse("{") }}', null],
    ['={{ BigInt("x") }}', null],
    ['=a{{ $json.foo() }}b', 'ab'],
    ['={{ String($json.foo()) + "!" }}', null],
    ['={{ String($try($json.foo())) + "!" }}', 'undefined!'],
    ['={{ [$json.a, $try(null.x // no\n), $try($if(true, null.x))].length }}', 3],
    ['={{ [1, 2].map(n => $try(n === 1 ? n : null.x) ?? "none") }}', [1, 'none']],
    ['={{ $try() ?? "none" }}', 'none'],
  ],
  'what n8n gives': [
    ['={{ $if($json.a, 1, $json.foo()) }}', 1],
    ['={{ $if(false, 1) }}', false],
    ['={{ $ifEmpty($json.q, "d") }}', 'd'],
    ['={{ $ifEmpty([], "d") }}', 'd'],
    ['={{ $ifEmpty(0, "d") }}', 0],
    ['={{ $min(3, 1) + $max(3, 1) }}', 4],
    ['={{ $not("") }}', true],
    ['={{ $jmespath($json, "people[*].name") }}', ['Ada', 'Kim']],
    ['={{ $now.zoneName }}', 'America/New_York'],
    ['={{ $today.toFormat("HH:mm:ss.SSS") }}', '00:00:00.000'],
    ['={{ typeof $now.toISO() }}', 'string'],
    ['={{ numberList(3, 1) }}', [3, 2, 1]],
    ['={{ zip(["a"], [1]) }}', { a: 1 }],
    ['={{ $binary }}', {}],
    ['={{ Duration.fromObject({ hours: 3 }).toHuman() }}', '3 hours'],
    [
      '={{ Interval.fromDateTimes(DateTime.fromISO("2024-01-01"), DateTime.fromISO("2024-01-03")).length("days") }}',
      2,
    ],
    ['={{ DateTime.fromISO("x") }}', null],
    ['={{ DateTime.fromISO("2024-07-01").setLocale("de").toFormat("d. LLLL yyyy") }}', '1. Juli 2024'],
    [
      '={{ DateTime.fromISO("2024-01-15T12:00", { zone: "Europe/Berlin" }).toISO() }}',
      '2024-01-15T12:00:00.000+01:00',
    ],
  ],
  'numbers and dates in languages': [
    ['={{ (1234567.891).toLocaleString() }}', '1,234,567.891'],
    ['={{ (1234.5).toLocaleString("de-DE", { style: "currency", currency: "EUR" }) }}', '1.234,50\u00a0€'],
    [
      '={{ new Date("2024-03-05T10:00:00Z").toLocaleDateString("en-GB", { timeZone: "UTC" }) }}',
      '05/03/2024',
    ],
    ['={{ new Intl.NumberFormat("en", { notation: "compact" }).format(12345) }}', '12K'],
    ['={{ ["b", "ä", "a"].sort((a, b) => a.localeCompare(b, "de")) }}', ['a', 'ä', 'b']],
    ['={{ new Date("Jan 5, 2024 10:00 UTC").toISOString() }}', '2024-01-05T10:00:00.000Z'],
  ],
  'methods of texts': [
    ['={{ $json.name.toTitleCase() }}', 'Ada Lovelace'],
    ['={{ "a b-c!".toSnakeCase() }}', 'a_b_c'],
    ['={{ "hello WORLD. and YOU".toSentenceCase() }}', 'Hello world. And you'],
    ['={{ "x".hash("sha256").slice(0, 8) }}', '2d711642'],
    ['={{ "x".hash() }}', '9dd4e461268c8034f5c8564e155c67a6'],
    ['={{ "áé".base64Encode() }}', 'w6HDqQ=='],
    ['={{ "w6HDqQ==".base64Decode() }}', 'áé'],
    ['={{ "12,5".toNumber }}', null],
    ['={{ "€ 12.5".toNumber() }}', 12.5],
    ['={{ "42nd".toInt() }}', 42],
    ['={{ "no".toBoolean() }}', false],
    ['={{ "yes".toBoolean() }}', true],
    ['={{ "a@b.co x".extractEmail() }}', 'a@b.co'],
    ['={{ "https://www.n8n.io/a?b".extractDomain() }}', 'www.n8n.io'],
    ['={{ "https://n8n.io/a/b?c".extractUrlPath() }}', '/a/b'],
    ['={{ "see https://n8n.io/a now".extractUrl() }}', 'https://n8n.io/a'],
    ['={{ "a@b.co".isEmail() }}', true],
    ['={{ "n8n.io".isDomain() }}', true],
    ['={{ "https://n8n.io".isUrl() }}', true],
    ['={{ "1e3".isNumeric() }}', true],
    ['={{ "".isEmpty() }}', true],
    ['={{ $json.q.isEmpty() }}', true],
    ['={{ "Ærøskøbing".replaceSpecialChars() }}', 'AEroskobing'],
    ['={{ "<b>x</b>".removeTags() }}', 'x'],
    ['={{ "# Title".removeMarkdown() }}', 'Title'],
    [`={{ 'a"b'.quote() }}`, '"a\\"b"'],
    ['={{ "a b".urlEncode() }}', 'a%20b'],
    ['={{ "{\\"a\\":1}".parseJson().a }}', 1],
    ['={{ "abc".length() }}', 3],
    ['={{ "2024-03-05".toDateTime().toISO() }}', '2024-03-05T00:00:00.000-05:00'],
    ['={{ "05.03.2024".toDateTime("dd.MM.yyyy").toISODate() }}', '2024-03-05'],
    ['={{ $json.date.toDateTime().format("yyyy LLL dd HH:mm") }}', '2024 Mar 05 10:11'],
    // n8n takes a text as JSON writes dates for a date, and does not make one of it.
    ['={{ $json.date.format("yyyy LLL dd HH:mm") }}', 'Invalid DateTime'],
    ['={{ $json.a?.b.toTitleCase().length }}', 1],
    ['={{ $json.q?.b.toTitleCase().length }}', null],
    ['={{ $json.a?.b?.toTitleCase?.() }}', 'X'],
  ],
  'methods of lists': [
    ['={{ $json.list.sum() }}', 6],
    ['={{ $json.list.average() }}', 2],
    ['={{ $json.list.first() + $json.list.last() }}', 5],
    ['={{ [].first() }}', null],
    ['={{ $json.people.pluck("name") }}', ['Ada', 'Kim']],
    ['={{ [1, 1, { a: 1 }, { a: 1 }].unique() }}', [1, { a: 1 }]],
    ['={{ [{ a: 1, b: 2 }, { a: 1, b: 3 }].removeDuplicates("a") }}', [{ a: 1, b: 2 }]],
    ['={{ [1, 2, 3].chunk(2) }}', [[1, 2], [3]]],
    ['={{ [1, null, "", 2, {}].compact() }}', [1, 2]],
    ['={{ [1, 2].union([2, 3]) }}', [1, 2, 3]],
    ['={{ [1, 2, 3].difference([2]) }}', [1, 3]],
    ['={{ [1, 2].intersection([2, 3]) }}', [2]],
    ['={{ [{ k: "a", v: 1 }].smartJoin("k", "v") }}', { a: 1 }],
    ['={{ [{ a: 1 }].renameKeys("a", "b") }}', [{ b: 1 }]],
    ['={{ [{ a: 1 }, { b: 2 }].merge() }}', { a: 1, b: 2 }],
    ['={{ [1].append(2, 3) }}', [1, 2, 3]],
    ['={{ [1, 2].reverse() }}', [2, 1]],
    ['={{ [1, 2].max() }}', 2],
    ['={{ Math.max(1, 2) }}', 2],
    ['={{ Object.keys({ a: 1 }) }}', ['a']],
    ['={{ [1].toJsonString() }}', '[1]'],
  ],
  'methods of objects, numbers and booleans': [
    ['={{ $json.a.isEmpty() }}', false],
    ['={{ $json.a.hasField("b") }}', true],
    ['={{ { a: 1, b: 2 }.removeField("a") }}', { b: 2 }],
    ['={{ { a: "xy", b: "z" }.keepFieldsContaining("x") }}', { a: 'xy' }],
    ['={{ { a: null, b: { c: "" }, d: 1 }.compact() }}', { b: {}, d: 1 }],
    ['={{ { a: "x y" }.urlEncode() }}', 'a=x+y'],
    ['={{ $json.a.keys() }}', ['b']],
    ['={{ $json.price.round(1) }}', 12.3],
    ['={{ (1234.5).format("de-DE") }}', '1.234,5'],
    ['={{ (4).isEven() }}', true],
    ['={{ (1709633472).toDateTime("s").toUTC().toISO() }}', '2024-03-05T10:11:12.000Z'],
    ['={{ true.toInt() }}', 1],
  ],
  'methods of dates': [
    ['={{ DateTime.fromISO("2024-03-05").plus(3, "days").toISODate() }}', '2024-03-08'],
    ['={{ DateTime.fromISO("2024-03-05").plus({ days: 3 }).toISODate() }}', '2024-03-08'],
    ['={{ DateTime.fromISO("2024-03-05").minus(1, "hour").toISO() }}', '2024-03-04T23:00:00.000-05:00'],
    ['={{ DateTime.fromISO("2024-03-05").beginningOf("month").toISODate() }}', '2024-03-01'],
    ['={{ DateTime.fromISO("2024-03-05").endOfMonth().day }}', 31],
    ['={{ DateTime.fromISO("2024-03-05").extract("week") }}', 10],
    ['={{ DateTime.fromISO("2024-03-05").isWeekend() }}', false],
    ['={{ DateTime.fromISO("2024-03-05").diffTo("2024-03-01", "days") }}', 4],
    ['={{ DateTime.fromISO("2024-03-05").isBetween("2024-03-01", "2024-03-09") }}', true],
    ['={{ DateTime.fromISO("2024-07-05").isDst() }}', true],
    ['={{ DateTime.now().isInLast(1, "hours") }}', true],
    ['={{ $json.date.toInt() }}', null],
  ],
}

describe('values are those that n8n gives', () => {
  for (const [name, cases] of Object.entries(VALUES)) {
    test(name, async () => {
      const found = await render(cases.map(([text]) => text))
      const shown = Object.fromEntries(cases.map(([text], i) => [text, found[i]]))
      expect(shown).toEqual(Object.fromEntries(cases))
    })
  }
})

test('values and errors are those that n8n 2.41 gave for the same input', async () => {
  const pairs = recorded as [text: string, value: unknown][]
  const isError = (value: unknown) => typeof value === 'string' && value.startsWith('ERR ')
  const values = pairs.filter(([, value]) => !isError(value))
  const found = await render(values.map(([text]) => text))
  // It was recorded as JSON.
  const written = JSON.parse(JSON.stringify(found))
  expect(values.map(([text], i) => [text, written[i]])).toEqual(values)
  const errors = pairs.filter(([, value]) => isError(value))
  expect(errors.length).toBeGreaterThan(10)
  const said = await Promise.all(
    errors.map(([text]) => n8n.render(text, BINDINGS).catch((error: Error) => error.message)),
  )
  const ended = errors.map(([text, message], i) => [text, String(said[i]).endsWith(String(message).slice(4))])
  expect(ended.filter(([, same]) => !same)).toEqual([])
})

test('what n8n refuses, and what is not there, fails with a reason', async () => {
  const cases: [text: string, message: string][] = [
    ["={{ $('One').first().json.q }}{{ $('Gone').first().json.a }}", "Node 'Gone' hasn't been executed"],
    ["={{ $('Gone').item.json.a }}", "Node 'Gone' hasn't been executed"],
    ["={{ $('Gone').all()[0] }}", "Node 'Gone' hasn't been executed"],
    ['={{ $json.q.toTitleCase() }}', "toTitleCase can't be used on undefined value"],
    ['={{ (5).toTitleCase() }}', 'toTitleCase() is only callable on type "String"'],
    ['={{ "x".toNumber() }}', 'cannot convert to number'],
    ['={{ ["a"].sum() }}', 'sum(): all array elements must be numbers'],
    ['={{ $json.text.toUpperCase }}', 'this is a function, please add ()'],
    ['={{ DateTime }}', 'this is a DateTime, please access its methods'],
    ['={{ $input.first(1) }}', '$input.first() takes no arguments'],
    ["={{ $('fetch').first(1) }}", 'other outputs and runs'],
    ["={{ $('fetch')[$json.text] }}", "$('fetch').Hello is not available"],
    ['={{ $execution.customData }}', '$execution.customData is not available'],
    ['={{ $json. }}', 'invalid syntax: Unexpected token (column 12)'],
    ['={{ }}', 'the expression is empty'],
    ['={{ const a = 1 }}', 'only an expression can stand in {{ }}'],
    ['={{ foo }}', 'unknown variable foo'],
    ['={{ $secrets.key }}', 'secrets are not for expressions'],
    ['={{ fetch("http://127.0.0.1") }}', 'fetch is not available in expressions'],
    ['={{ this.x }}', 'this is not available'],
    ["={{ import('fs') }}", 'imports are not available'],
    ['={{ "".constructor.constructor("return 1")() }}', 'the constructor of a value cannot be read'],
    ['={{ $($json.text).item }}', 'the name of the node must be written out'],
    ['={{ 10n }}', 'BigInt'],
    ['={{ $fail("the total is " + $json.q) }}', 'the total is undefined'],
    ['={{ $try($fail("mine")) ?? 1 }}', 'mine'],
  ]
  const found = await Promise.all(
    cases.map(([text]) => n8n.render(text, BINDINGS).catch((error: Error) => error.message)),
  )
  const wrong = cases.filter(([, message], i) => !String(found[i]).includes(message))
  expect(wrong.map(([text]) => [text, found[cases.findIndex((one) => one[0] === text)]])).toEqual([])
})
