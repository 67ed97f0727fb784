import { expect, test } from 'vitest'
import { nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())

type Node = { id: string; type: string } & Record<string, unknown>

const set = (values: Record<string, unknown>, more: object = {}): Node => ({
  id: 'node',
  type: 'SET',
  config: { values },
  ...more,
})

/** How the execution of a single node ended, with its record. */
async function recordOf(node: Node, data: Record<string, unknown>, settings = {}) {
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const id = await host.create({ nodes: [start, node], edges: edges('start -> node'), settings })
  const executionId = await host.execute(id, data)
  const { status } = await host.ended(executionId)
  const { body } = await host.call('GET', `/api/executions/${executionId}`, host.admin)
  const {
    warnings = [],
    console = [],
    errorMessage,
  } = nodeOf(body, 'node') as unknown as {
    warnings?: { path: string; message: string }[]
    console?: { level: string; text: string }[]
    errorMessage: string | null
  }
  return { status, errorMessage, console, messages: warnings.map(({ message }) => message) }
}

const THERE = 'there are `email`, `name`, `list`'
const data = { email: 'a@b.c', name: 'Ada', list: [1] }

test('a text that begins with = notes the paths that it reads in vain', async () => {
  const values = {
    path: '={{ $json.emial }}',
    text: '=Hi {{ $json.nmae }}!',
    call: '={{ $json.naem.toUpperCase() }}',
    node: "={{ $('start').first().json.nam + 'x' }}",
    deep: '={{ $json.name.first.second }}',
    variable: '={{ $vars.none }}',
  }
  const { status, messages } = await recordOf(set(values), data)
  expect(status).toBe('SUCCESS')
  expect(messages.sort()).toEqual(
    [
      `\`$json.emial\`: no such field; ${THERE}`,
      `\`$json.nmae\`: no such field; ${THERE}`,
      `\`$json.naem\`: no such field; ${THERE}`,
      `\`$('start').first().json.nam\`: no such field; ${THERE}`,
      '`$json.name.first`: no such field; `$json.name` is a string',
      '`$vars.none`: the team has no such variable',
    ].sort(),
  )
})

test('what asks whether there is something notes nothing', async () => {
  const asking = [
    '$json.x?.y',
    '$json.x ?? 1',
    '$json.x || 1',
    '$json.x ? 1 : 2',
    '!$json.x',
    'typeof $json.x',
    '$json.x === undefined',
    '$if($json.x, 1, 2)',
    '$ifEmpty($json.x, 1)',
    '$json.x.isEmpty()',
    '$json.list.map((one) => one.x)',
    '$json.list.length + $json.name.length',
    '$json.email.includes("@")',
  ]
  const values = Object.fromEntries(asking.map((text, i) => [`v${i}`, `={{ ${text} }}`]))
  expect(await recordOf(set(values), data, { strict: true })).toMatchObject({
    status: 'SUCCESS',
    messages: [],
  })
})

test('where settings.strict is set, a path that a text with = reads in vain is an error, also for each item', async () => {
  const strict = { strict: true }
  const items = { items: [{ email: 'a' }, { email: 'b', name: 'Bea' }] }
  const texts = ['={{ $json.emial }}', '=Hi {{ $json.emial }}', '={{ $json.emial.trim() }}']
  // Such an expression is evaluated in a process.
  const heavy = '{{ $map([1, 2], function($x) { $item.emial & $x }) }}'
  for (const text of texts) {
    const found = await recordOf(set({ text }), data, strict)
    expect(found).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringContaining('settings.strict'),
    })
  }
  for (const text of [...texts, heavy]) {
    const found = await recordOf(set({ text }, { perItem: true }), items, strict)
    expect(found).toMatchObject({
      status: 'FAILED',
      errorMessage: expect.stringContaining('settings.strict'),
    })
  }
  // One of the items has it.
  const some = await recordOf(set({ text: '={{ $json.name }}' }, { perItem: true }), items, strict)
  expect(some).toMatchObject({ status: 'SUCCESS', messages: [] })
})

test('a condition that is no boolean is noted for each item, too', async () => {
  const node = {
    id: 'node',
    type: 'FILTER',
    config: { items: '{{ $input.items }}', condition: '{{ $item.email }}' },
  }
  const branch = { id: 'node', type: 'IF_ELSE', perItem: true, config: { condition: '{{ $item.email }}' } }
  const items = { items: [{ email: 'a' }, { email: '' }] }
  const { messages } = await recordOf(node, items)
  expect(messages).toEqual(['the condition gave "a", which counts as true: compare it with something'])
  expect((await recordOf(branch, items)).messages).toContain(messages[0])
})

test('what code has written is in the record when it fails, whether it is an activity of its own or not', async () => {
  for (const timeoutMs of [500, 2_000]) {
    const code = 'console.log("before"); throw new Error("no")'
    const found = await recordOf({ id: 'node', type: 'CODE', config: { code, timeoutMs } }, {})
    expect(found).toMatchObject({ status: 'FAILED', console: [{ level: 'log', text: 'before' }] })
  }
})

test('what JSON has no form for is not lost without a word', async () => {
  const code = 'return { total: 1 / 0, list: [null, {}] }'
  expect((await recordOf({ id: 'node', type: 'CODE', config: { code } }, {})).console).toEqual([
    { level: 'warn', text: '"total" is Infinity, which JSON does not have: it becomes null' },
  ])
  expect((await recordOf(set({ mean: '={{ 0 / $json.list.length }}' }), { list: [] })).console).toEqual([
    { level: 'warn', text: 'the value is NaN, which JSON does not have: it becomes null' },
  ])
  expect((await recordOf(set({ seen: '={{ new Set([1]) }}' }), {})).console).toEqual([
    { level: 'warn', text: 'the value is a Set, which JSON does not have: it becomes {}' },
  ])
  expect((await recordOf(set({ mean: '={{ [1, null] }}', o: '={{ ({}) }}' }), {})).console).toEqual([])
})

test('arithmetic with a field that is missing gives NaN as in JavaScript, which is null in JSON, and says so', async () => {
  const nan = [{ level: 'warn', text: 'the value is NaN, which JSON does not have: it becomes null' }]
  for (const text of ['={{ $json.gone * 2 }}', '={{ 1 + $json.gone }}', '={{ -$json.gone }}']) {
    const found = await recordOf(set({ value: text }), data)
    expect(found).toMatchObject({ status: 'SUCCESS', console: nan })
    expect(found.messages).toEqual([`\`$json.gone\`: no such field; ${THERE}`])
  }
  const branch = { id: 'node', type: 'IF_ELSE', config: { condition: '={{ $json.gone * 2 > 1 }}' } }
  expect((await recordOf(branch, data)).messages).toContain(`\`$json.gone\`: no such field; ${THERE}`)
})
