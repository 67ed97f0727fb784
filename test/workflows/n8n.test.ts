import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import jsonata from 'jsonata'
import { expect, test } from 'vitest'
import { convertWorkflow } from '../../workflows/n8n/convert.ts'
import { type Code, type Names, translateScript } from '../../workflows/n8n/javascript.ts'
import { mendGraph } from '../../workflows/n8n/mend.ts'
import { n8n } from '../n8n/shapes.ts'

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

const unknown = (text: string): Code => ({ text, hint: 'unknown' })
const names: Names = {
  current: () => unknown('$input'),
  other: (name, which) => {
    if (name !== 'Fetch it' || which === 'all') throw new Error(`reads ${which} of ${name}`)
    return unknown('$nodes.Fetch_it')
  },
  ran: () => ({ text: '$exists($nodes.Fetch_it)', hint: 'boolean' }),
  index: () => ({ text: '$index', hint: 'number' }),
}

/** What JavaScript itself makes of the expression. */
function run(source: string): unknown {
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

async function evaluate(source: string): Promise<unknown> {
  const { text } = translateScript(source, names)
  const value = await jsonata(text).evaluate(null, {
    input: item,
    nodes: { Fetch_it: other },
    index: 4,
    vars: { host: 'example.com' },
    execution: { id: 'run', workflowId: 'flow', workflowName: 'Flow' },
  })
  // Sequences are arrays with marks on them.
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
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what is translated
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
])('%s means the same in JSONata', async (source) => {
  const expected = run(source)
  const actual = await evaluate(source)
  expect(actual, translateScript(source, names).text).toEqual(
    expected === undefined ? undefined : JSON.parse(JSON.stringify(expected)),
  )
})

test('no chain of steps grows faster than what is written', () => {
  const deep = (from: string, step: (inner: string) => string, times: number) => {
    let source = from
    for (let i = 0; i < times; i++) source = step(source)
    return translateScript(source, names).text.length
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
])('%s is a date in UTC', async (source, expected) => {
  expect(await evaluate(source)).toEqual(expected)
})

test.each([
  ['$env.HOME', '$env'],
  ['$items()', '$items'],
  ['$input.all()', 'all items of its input'],
  ["$('Fetch it').all()", 'all of Fetch it'],
  ["$('Other').item.json.x", 'item of Other'],
  ['$json.x.localeCompare("y")', 'localeCompare()'],
  ['$json.list.concat(1, 2)', 'concat() this way'],
  ['$json.n.toString(2)', 'toString() this way'],
  ['$json.orders.map(o => { return o.id })', 'more than one expression'],
  ['$json.a; $json.b', 'not one JavaScript expression'],
  ['$json.a, $json.b', 'sequence'],
  ['$json.', 'is not one JavaScript expression'],
  ['(() => 1)()', 'arrowfunction'],
  ['$json.x = 1', 'assignment'],
  ['$jmespath($json, "a")', '$jmespath'],
  ['$now.plus({ months: 1 })', 'months'],
  ['$now.zoneName', 'zoneName of a date'],
  ['$now[0]', 'of a date'],
  ['$now[$json.part]', 'of a date'],
  ['$binary.data', '$binary'],
  ['this', 'this'],
  ['JSON.parse($json.text)', 'JSON'],
  ['JSON.stringify($json.mail + "")', 'on a text'],
  [`${'('.repeat(5_000)}1${')'.repeat(5_000)}`, ''],
])('%s is refused with a reason', (source, reason) => {
  expect(() => translateScript(source, names)).toThrow(reason)
})

const TEMPLATES = ['orders', 'report', 'alarm', 'sources', 'batches', 'parent']

const readTemplate = (name: string) => {
  const raw = JSON.parse(readFileSync(new URL(`../n8n/${name}.json`, import.meta.url), 'utf8'))
  return Array.isArray(raw) ? raw[0] : raw
}

/** What an import does short of the database. */
function bring(raw: unknown) {
  const converted = convertWorkflow(raw, () => undefined)
  if (!converted) return undefined
  const { report } = converted
  const mended = mendGraph(converted, (problem) => void report.problems.push(problem), randomUUID)
  return { ...mended, report }
}

test('a value that depends on the time zone, which is UTC here, is reported', () => {
  const told = (value: string) => {
    const assignments = { assignments: [{ id: '1', name: 'at', value, type: 'string' }] }
    const set = { id: '1', name: 'Set', type: 'n8n-nodes-base.set', typeVersion: 3.4, position: [0, 0] }
    const brought = bring({ nodes: [{ ...set, parameters: { assignments } }], connections: {} })
    return brought!.report.problems.map(({ message }) => message)
  }
  const zoned = ['$today', '$now.toFormat("HH:mm")', '$now.toISODate()', '$now.hour', '$now.startOf("day")']
  for (const source of zoned) {
    expect(told(`={{ ${source} }}`), source).toEqual([expect.stringContaining("workflow's time zone")])
  }
  expect(told('={{ $now.plus({ hours: 1 }).toMillis() }}')).toEqual([])
})

const junk = fc.oneof(
  fc.constantFrom(
    null,
    true,
    -1,
    1e9,
    '',
    '={{',
    '={{ $json. }}',
    '={{ $("x").all() }}',
    '__proto__',
    [],
    {},
    [[]],
  ),
  fc.jsonValue({ maxDepth: 3 }),
)

/** Puts `value` at some place of a copy of the document. */
function spoil(document: unknown, picks: number[], value: unknown): unknown {
  const copy = structuredClone(document)
  let at = copy as Record<string, unknown>
  for (const pick of picks) {
    const keys = Object.keys(at)
    const key = keys[pick % Math.max(1, keys.length)]
    if (key === undefined) break
    const inner = at[key]
    if (typeof inner !== 'object' || inner === null || pick % 7 === 0) {
      at[key] = value
      break
    }
    at = inner as Record<string, unknown>
  }
  return copy
}

test('a splitInBatches of the first version, which is no loop by itself, stops the run in its place', () => {
  const document = readTemplate('batches')
  const first = document.nodes.find(({ type }: { type: string }) => type.endsWith('splitInBatches'))
  first.typeVersion = 1
  const brought = bring(document)!
  expect(brought.problems).toEqual([])
  expect(brought.report.mapped).toContainEqual(
    expect.objectContaining({ node: first.name, as: 'STOP_AND_ERROR' }),
  )
  expect(brought.report.problems).toContainEqual(
    expect.objectContaining({ node: first.name, message: expect.stringContaining('noItemsLeft') }),
  )
})

test('whatever is spoiled in a document, what comes of it can be saved or is refused', () => {
  const spoils = fc.array(fc.tuple(fc.array(fc.nat(1_000), { minLength: 1, maxLength: 9 }), junk), {
    maxLength: 6,
  })
  fc.assert(
    fc.property(fc.constantFrom(...TEMPLATES), spoils, (name, all) => {
      const document = all.reduce<unknown>(
        (doc, [picks, value]) => spoil(doc, picks, value),
        readTemplate(name),
      )
      const brought = bring(document)
      expect(brought?.problems ?? []).toEqual([])
    }),
    { numRuns: 200 },
  )
})

test('however nodes are connected, what comes of it can be saved', () => {
  const types = [
    'manualTrigger@1',
    'if@2',
    'switch@3',
    'splitOut@1',
    'splitInBatches@3',
    'merge@3',
    'httpRequest@4',
    'set@3.4',
    'aggregate@1',
    'filter@2',
    'code@2',
    'wait@1.1',
    'respondToWebhook@1',
    'limit@1',
  ]
  const arrow = fc.tuple(fc.nat(11), fc.nat(2), fc.nat(11), fc.nat(1))
  const kinds = fc.array(fc.constantFrom(...types), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(kinds, fc.array(arrow, { maxLength: 24 }), fc.boolean(), (kinds, arrows, care) => {
      const nodes = Object.fromEntries(
        kinds.map((kind, i): [string, [string, object, object]] => [
          `N ${i}`,
          [
            kind,
            { fieldToSplitOut: 'x', url: "={{ $('N 1').item.json.u }}" },
            care ? { onError: 'continueErrorOutput' } : {},
          ],
        ]),
      ) as Parameters<typeof n8n>[0]
      const links = arrows
        .filter(([from, , to]) => from < kinds.length && to < kinds.length)
        .map(([from, output, to, input]) => `N ${from}:${output} -> N ${to}:${input}`)
      const brought = bring(n8n(nodes, ...links))!
      expect(brought.problems).toEqual([])
      // Every node is there, whatever became of it.
      expect(brought.report.mapped.map(({ node }) => node).sort()).toEqual(Object.keys(nodes).sort())
    }),
    { numRuns: 200 },
  )
})
