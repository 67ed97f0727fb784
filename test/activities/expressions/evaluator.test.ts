import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import jsonata from 'jsonata'
import { afterAll, expect, test } from 'vitest'
import type { Bindings } from '../../../activities/expressions/bindings.ts'
import { createEvaluator } from '../../../activities/expressions/evaluator.ts'
import { SANDBOX } from '../../../activities/expressions/process.ts'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
import { listEvaluators } from '../../support/engine/evaluators.ts'
import { watchThread } from '../../support/thread.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator.close())

const scope: Bindings = {
  input: {
    n: 2,
    text: 'two',
    no: null,
    items: [{ price: 1 }, { price: 5 }, { price: 9, tags: ['x'] }],
    one: [7],
    empty: [],
    flag: true,
  },
  nodes: { first: { id: 'f1' }, 'with space': { id: 'ws' }, list: [{ v: 1 }, { v: 2 }] },
  trigger: { body: { name: 'Ann' } },
  vars: { region: 'eu' },
  execution: { id: 'e-1', workflowId: 'w-1' },
}

const render = (value: unknown, bindings = scope) => evaluator.render(value, bindings)

/**
 * Wraps an expression so that it is evaluated in the pool: calls of functions such as $single are not light.
 */
const away = (source: string) => `{{ $single([0], function($v) { true }) = 0 ? (${source}) }}`

/**
 * The result of `work`, which must take less than `ms` in one of three tries, as the machine may be slow at
 * times.
 */
async function takeWithin<T>(ms: number, work: () => Promise<T>, what = ''): Promise<T> {
  for (let tries = 1; ; tries++) {
    const started = performance.now()
    const given = await work()
    const took = performance.now() - started
    if (took < ms) return given
    if (tries === 3) expect.fail(`${what} took ${took} ms`)
  }
}

async function failureOf(work: Promise<unknown>): Promise<NodeFailure> {
  const error = await work.then(
    (value) => expect.fail(`did not fail, but returned ${JSON.stringify(value)}`),
    (thrown) => thrown,
  )
  expect(error).toBeInstanceOf(NodeFailure)
  return error
}

test('a string that is one expression keeps the type of its value; in other strings values become text', async () => {
  expect(
    await render({
      number: '{{ $input.n }}',
      sum: '{{ $input.n + 1 }}',
      object: '{{ $nodes.first }}',
      list: '{{ $input.items.price }}',
      nothing: '{{ $input.missing.deep }}',
      nil: '{{ $input.no }}',
      bool: '{{ $input.n = 2 }}',
      mixed: '{{ $input.n }}/{{ $input.text }}/{{ $input.missing }}/{{ $nodes.first }}/{{ $input.one }}!',
      bare: '{{ text }} {{ $.text }} {{ $$.text }}',
      quoted: '{{ $nodes.`with space`.id }}',
      rest: '{{ $trigger.body.name & "-" & $vars.region & "-" & $execution.id }}',
      made: '{{ {"a": [$input.n, $input.missing], "b": $input.flag ? "yes" : "no"} }}',
      fallback: '{{ $input.missing ?? "none" }}',
      plain: 'no expression',
      deep: [1, true, null, ['{{ $input.n }}'], '{{ $input.missing }}'],
      pool: '{{ $sum($input.items.price) }} {{ $input.items[price > 4].price }}',
    }),
  ).toEqual({
    number: 2,
    sum: 3,
    object: { id: 'f1' },
    list: [1, 5, 9],
    nothing: null,
    nil: null,
    bool: true,
    mixed: '2/two//{"id":"f1"}/[7]!',
    bare: 'two two two',
    quoted: 'ws',
    rest: 'Ann-eu-e-1',
    made: { a: [2], b: 'yes' },
    fallback: 'none',
    plain: 'no expression',
    deep: [1, true, null, [2], null],
    pool: '15 [5,9]',
  })
  expect(await render(5)).toBe(5)
  expect(await render({ a: 1 })).toEqual({ a: 1 })
  expect(await render('{{ $input.no }}|{{ $sum($input.missing) }}|')).toBe('null||')
})

test('conditions are cast as by $boolean, in place and in the pool', async () => {
  const conditions: [unknown, boolean][] = [
    [true, true],
    [false, false],
    ['$input.n = 2', true],
    ['{{ $input.n = 3 }}', false],
    ['$input.missing', false],
    ['$input.empty', false],
    ['$input.no', false],
    ['$input.text', true],
    ['""', false],
    ['0', false],
    ['[0, ""]', false],
    ['[0, 1]', true],
    ['{}', false],
    ['$nodes.first', true],
    ['$sum', false],
    ['$count($input.items[price > 4]) = 2', true],
    ['$exists($input.items[price > 10])', false],
  ]
  for (const [condition, held] of conditions) {
    expect(await evaluator.test(condition, scope), String(condition)).toBe(held)
    if (typeof condition === 'string')
      expect(await evaluator.test(away(condition.replace(/^{{|}}$/g, '')), scope)).toBe(held)
  }
  expect((await failureOf(evaluator.test(7, scope))).type).toBe('ExpressionFailed')
  expect((await failureOf(evaluator.test('{{ 1 }} = 1', scope))).message).toMatch(/one expression/)
})

test('holding binds $item and $index, in place and in one round trip to the pool', {
  tags: 'long',
}, async () => {
  const items = Array.from({ length: 500 }, (_, id) => ({ id, even: id % 2 === 0 }))
  const even = items.filter((item) => item.even).map(({ id }) => id)
  expect(await evaluator.holding(items, '$item.even', scope)).toEqual(even)
  expect(await evaluator.holding(items, '$index % $input.n = 0', scope)).toEqual(even)
  expect(await evaluator.holding(items, '{{ $sum([$item.id, $input.n]) % 2 = 0 }}', scope)).toEqual(even)
  const many = Array.from({ length: 40_000 }, (_, id) => ({ id }))
  expect(await evaluator.holding(many, '$item.id >= 39998', scope)).toEqual([39_998, 39_999])
  expect(await evaluator.holding([], '$sum($item)', scope)).toEqual([])
  expect(await evaluator.holding(items, true, scope)).toEqual([...items.keys()])
  expect(await evaluator.holding(items, false, scope)).toEqual([])
  expect(
    (await failureOf(evaluator.holding(items, '($f := function() { $f() }; $f())', scope))).message,
  ).toMatch(/took longer than 1 s/)
})

test('map binds $item and $index, for plain paths, in place and in one round trip to the pool', async () => {
  const items = Array.from({ length: 10_000 }, (_, id) => ({ id, deep: { id } }))
  const ids = items.map(({ id }) => id)
  expect(await evaluator.map(items, '$item.deep.id', scope)).toEqual(ids)
  expect(await evaluator.map(items, '{{ $index }}', scope)).toEqual(ids)
  const sums = () => evaluator.map(items, '{{ $sum([$item.id, $input.n]) }}', scope)
  // A round trip for each item would take some 10 s.
  expect(await takeWithin(4_000, sums)).toEqual(ids.map((id) => id + 2))
  const few = [{ v: [{ n: 1 }, { n: 2 }] }, {}, 5, null]
  expect(await evaluator.map(few, '$item.v.n', scope)).toEqual([[1, 2], null, null, null])
  expect(await evaluator.map(few, '$item.v', scope)).toEqual([[{ n: 1 }, { n: 2 }], null, null, null])
  expect(await evaluator.map(few, '$count($item) + $index', scope)).toEqual([1, 2, 3, 4])
  expect(await evaluator.map(few, '$single([$item], function($v) { true }).none', scope)).toEqual(
    Array(4).fill(null),
  )
  expect(await evaluator.map([], '$sum($item)', scope)).toEqual([])
  expect(await evaluator.evaluate('{{ $input.n + 1 }}', scope)).toBe(3)
  expect(await evaluator.evaluate('$input.missing', scope)).toBeNull()
  expect((await failureOf(evaluator.map(few, '$item.v + 1', scope))).message).toMatch(/^expression/)
  expect((await failureOf(evaluator.map(few, 7, scope))).message).toMatch(/must be a string/)
  const input = 'x'.repeat(1_000_000)
  for (const text of ['$input', '$pad($input, 1000001)']) {
    const failure = await failureOf(evaluator.map(items.slice(0, 200), text, { ...scope, input }))
    expect(failure.message).toMatch(/too big/)
  }
})

test('XML and HTML are parsed in a process, and invalid or hostile input does no harm', async () => {
  const xml = '<?xml version="1.0"?><a x="1"><b>one</b><b>2</b><__proto__>p</__proto__></a>'
  const parsed = await evaluator.convert({ kind: 'xml', parse: '<a x="1"><b>one</b><b>2</b></a>' }, scope)
  expect(parsed).toEqual({ a: { '@x': '1', b: ['one', '2'] } })
  expect(await evaluator.convert({ kind: 'xml', build: JSON.stringify(parsed) }, scope)).toBe(
    '<a x="1">\n  <b>one</b>\n  <b>2</b>\n</a>\n',
  )
  const hostile = await evaluator.convert({ kind: 'xml', parse: xml }, scope).catch((error) => error)
  expect(({} as { p?: unknown }).p).toBeUndefined()
  expect(hostile).toBeDefined()
  const failure = await failureOf(evaluator.convert({ kind: 'xml', parse: '<a><b></a>' }, scope))
  expect(failure).toMatchObject({ type: 'InvalidInput', retryable: false })
  expect(failure.message).toMatch(/^the XML cannot be converted: /)
  const lol = Array.from({ length: 9 }, (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`)
  const bomb = `<!DOCTYPE x [<!ENTITY l0 "lol">${lol.join('')}]><x>&l9;</x>`
  const outcome = await evaluator.convert({ kind: 'xml', parse: bomb }, scope).catch((error) => error)
  expect(JSON.stringify(outcome).length).toBeLessThan(10_000)
  const page = '<html><h1> Shop </h1><a href="/1">One</a><a>Two<script>bad()</script></a></html>'
  expect(
    await evaluator.convert(
      {
        kind: 'html',
        page,
        picks: [
          ['title', { selector: 'h1' }],
          ['links', { selector: 'a', attribute: 'href', all: true }],
          ['names', { selector: 'a', all: true }],
          ['none', { selector: '.none' }],
        ],
      },
      scope,
    ),
  ).toEqual({ title: 'Shop', links: ['/1', null], names: ['One', 'Two'], none: null })
  expect(await evaluator.convert({ kind: 'html', text: '<p>Hello <b>you</b></p><p>Bye</p>' }, scope)).toBe(
    'Hello you\nBye',
  )
})

test('a failure says what is wrong with the expression', async () => {
  const cases: [string, string, RegExp][] = [
    [
      '{{ $input.n + "x" }}',
      'ExpressionFailed',
      /^expression \{\{ \$input\.n \+ "x" \}\}: The right side of the "\+"/,
    ],
    ['{{ $error("my own words") }}', 'ExpressionFailed', /my own words/],
    ['{{ $eval("1") }}', 'ExpressionFailed', /\$eval is not available/],
    ['{{ $unknown }}', 'ExpressionFailed', /unknown variable \$unknown/],
    ['{{ 1 / 0 }}', 'ExpressionFailed', /not a finite number/],
    [away('1 / 0'), 'ExpressionFailed', /not a finite number/],
    ['{{ $match("a", /\\pX/) }}', 'ExpressionFailed', /regexp/],
    ['{{ 1 + }}', 'ExpressionFailed', /Unexpected end/],
    ['{{ 1', 'ExpressionFailed', /no closing/],
  ]
  for (const [text, type, message] of cases) {
    const failure = await failureOf(render({ ok: '{{ $sum([1]) }}', text }))
    expect(failure.type, text).toBe(type)
    expect(failure.message).toMatch(message)
    expect(failure.retryable).toBe(false)
  }
})

test('a hostile expression ends in a clear error and does not block this thread', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  await render(away('1'))
  const limit = (pattern: RegExp) => ({ type: 'ExpressionLimit', pattern })
  const memory = limit(/used too much memory|took longer than 1 s/)
  const time = limit(/took longer than 1 s/)
  const attacks: [string, { type: string; pattern: RegExp }][] = [
    ['$pad("x", 1000000000)', memory],
    ['$pad("x", 500000000)', memory],
    ['$uppercase($reduce([1..28], function($a, $b) { $a & $a }, "x"))', memory],
    ['$base64encode($pad("x", 400000000, "x"))', memory],
    ['$reduce([1..40], function($a, $b) { [$a, $a] }, "x")', memory],
    ['[1..10000000].[1..10000000]', memory],
    ['[1..10000000]', memory],
    ['[1..1000000000]', { type: 'ExpressionFailed', pattern: /must not exceed 1e7/ }],
    ['($f := function($n) { $f($n + 1) }; $f(1))', time],
    ['($f := function($n) { $f($n + 1) + 1 }; $f(1))', memory],
    ['$input.items.($f := function() { $f() }; $f())', time],
    ['[1..100000].([1..100000][$ = 1])', memory],
  ]
  const stretch = watchThread()
  for (const [source, { type, pattern }] of attacks) {
    const failure = await failureOf(render({ a: `{{ ${source} }}` }))
    expect(failure.type, `${source}: ${failure.message}`).toBe(type)
    expect(failure.message, source).toMatch(pattern)
    // A killed process is replaced.
    expect(await render(away('$input.n'))).toBe(2)
  }
  const longest = stretch.stop()
  // Evaluated on this thread, each of these would block it for a second.
  expect(longest).toBeLessThan(600)
})

test('a regular expression takes linear time and matches as in JSONata', async () => {
  const text = `${'a'.repeat(3_000)}!`
  // Backtracking would take far longer than the time limit.
  expect(await render('{{ $contains($input, /^(a+)+$/) }}', { ...scope, input: text })).toBe(false)
  expect(await render('{{ $contains($input, /(a|aa)*b/) }}', { ...scope, input: text })).toBe(false)
  for (const source of [
    '$match("ab12cd345", /([a-z]+)(\\d+)/)',
    '$match("ab", /(x)?(a)/)',
    '$replace("John Smith", /(\\w+)\\s(\\w+)/, "$2, $1")',
    '$replace("aXbX", /x/i, "-", 1)',
    '$split("a, b ;c", /\\s*[,;]\\s*/)',
    '$contains("one\\ntwo", /^two$/m)',
    '$match("a.b.c", /\\./).index',
    '$replace("265USD", /([0-9]+)USD/, function($m) { $m.groups[0] & "!" })',
    '$split("äöü€𝄞x", /€/)',
    '"a" ~> /a/',
  ]) {
    const expected = await jsonata(source).evaluate(undefined)
    expect(await render(`{{ ${source} }}`), source).toEqual(JSON.parse(JSON.stringify(expected)))
  }
})

test('a result that is too big fails, and so do results that are too big together', async () => {
  // Enough time to reach the size limit on any machine.
  const patient = createEvaluator({ processes: 1, timeoutMs: 20_000 })
  const failure = await failureOf(patient.render('{{ $pad("x", 9000000) }}', scope))
  await patient.close()
  expect(failure.message).toMatch(/result that is too big \(more than 8 MB\)/)
  const input = 'x'.repeat(1_000_000)
  const values = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, '{{ $input }}']))
  expect((await failureOf(render(values, { ...scope, input }))).message).toMatch(/too big/)
  // One value of the largest size passes, and is not copied.
  const list = Array.from({ length: 4_000_000 }, () => 1)
  expect(await render('{{ $input }}', { ...scope, input: list })).toBe(list)
}, 60_000)

test('expressions cannot change or reach prototypes', async () => {
  const input = JSON.parse(
    '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "a": {}}',
  )
  const bindings = { ...scope, input }
  const texts = [
    '{{ {"__proto__": {"polluted": 1}} }}',
    '{{ $merge([$input, {"__proto__": {"polluted": 2}}]) }}',
    '{{ $input ~> |$|{"__proto__": {"polluted": 3}}| }}',
    '{{ $input ~> |a|{"constructor": {"polluted": 3}}| }}',
    '{{ $input.__proto__ }}',
    '{{ $input.constructor.prototype }}',
    '{{ $sift($input, function($v, $k) { $k = "__proto__" }) }}',
    '{{ $input }}',
  ]
  for (const text of texts) {
    const value = await render(text, bindings)
    expect(JSON.stringify(value), text).toMatch(/polluted/)
    for (const object of [value, {}, []]) expect(Object.getPrototypeOf(object)?.polluted).toBeUndefined()
    const fresh = (await render(away('{"own": {}}'))) as { own: { polluted?: unknown } }
    expect(fresh.own.polluted).toBeUndefined()
  }
  const config = JSON.parse('{"__proto__": {"x": "{{ $input.a }}"}, "b": "{{ 1 }}"}')
  const rendered = (await render(config, bindings)) as Record<string, unknown>
  expect(Object.getPrototypeOf(rendered)).toBe(Object.prototype)
  expect(JSON.stringify(rendered)).toBe('{"__proto__":{"x":{}},"b":1}')
  for (const text of [
    '{{ $input.a.toString }}',
    '{{ $input.a.hasOwnProperty }}',
    '{{ $input.a.__proto__ }}',
  ]) {
    expect(await render(text, bindings)).toBeNull()
  }
})

test('results are plain JSON, without functions and the flags of JSONata sequences', async () => {
  for (const wrap of [(source: string) => `{{ ${source} }}`, away]) {
    expect(await render(wrap('function($x) { $x }'))).toBeNull()
    expect(await render(wrap('{"f": $sum, "a": [$sum, 1]}'))).toEqual({ a: [null, 1] })
    const list = (await render(wrap('$input.items.price'))) as unknown[]
    expect(Object.keys(list)).toEqual(['0', '1', '2'])
  }
})

test('an expression does not change the values that the next one reads', async () => {
  const bindings = { ...scope, input: [] as unknown[], nodes: { list: { lists: [[], [1]] } } }
  const values = await render(
    [
      '{{ {"a": {"b": 1}} }}',
      '{{ $nodes.list.lists.{"n": 1} }}',
      '{{ $input }}',
      '{{ [$count($input)] }}',
      '{{ $map([1], function() { $nodes.list }) }}',
    ],
    bindings,
  )
  expect((values as unknown[]).slice(2)).toEqual([[], [0], { lists: [[], [1]] }])
  expect(bindings.input).toEqual([])
  const one = [7]
  await render('{{ $input.one[] }}', { ...scope, input: { one } })
  expect(Object.keys(one)).toEqual(['0'])
})

test('a flood from one workflow does not hold up another, and waiting does not count towards the time limit', {
  tags: 'long',
}, async () => {
  const one = createEvaluator({ processes: 1, timeoutMs: 300 })
  try {
    const loop = '{{ ($f := function() { $f() }; $f()) }}'
    const flood = Array.from({ length: 5 }, () =>
      one.render(loop, scope).catch((error: Error) => error.message),
    )
    const done: string[] = []
    void flood.at(-1)!.then(() => done.push('flood'))
    const other = { ...scope, execution: { id: 'e-2', workflowId: 'w-2' } }
    expect(await one.render('{{ $sum([1, 2]) }}', other)).toBe(3)
    expect(done).toEqual([])
    for (const message of await Promise.all(flood))
      expect(message).toMatch(/took longer than 0.3 s of processor time/)
  } finally {
    await one.close()
  }
})

test('a config with many small expressions does not block the thread', async () => {
  // As many as one node may have. All are compiled at once.
  const config = Array.from({ length: 1_000 }, (_, i) => `{{ $input.n + ${i} }}`)
  const stretch = watchThread()
  const values = (await render(config)) as number[]
  const longest = stretch.stop()
  expect(values[999]).toBe(1_001)
  expect(longest).toBeLessThan(300)
})

test('closing the evaluator fails running, waiting and later jobs with a retryable failure', async () => {
  const one = createEvaluator({ processes: 1 })
  const running = failureOf(one.render('{{ ($f := function() { $f() }; $f()) }}', scope))
  const waiting = failureOf(one.render(away('1'), scope))
  await one.close()
  for (const failure of [await running, await waiting, await failureOf(one.render(away('1'), scope))]) {
    expect(failure).toMatchObject({ type: 'ExpressionsUnavailable', retryable: true })
  }
})

test.runIf(process.platform === 'linux')(
  'an evaluator that is drained ends all jobs but the answers of calls, and reads those that come later',
  async () => {
    const before = listEvaluators()
    const four = createEvaluator({ processes: 4, timeoutMs: 60_000 })
    const body = Buffer.from('{"n":1}')
    const answer = { status: 200, headers: {}, body, responseType: 'json' }
    const read = (team: string) =>
      four.for({ team }).readAnswer(answer, 'GET a.test responded with 200', scope)
    const endless = '{{ ($f := function() { $f() }; $f()) }}'
    try {
      // The first process stands still with its answer.
      await read('one')
      const [held] = listEvaluators().filter((pid) => !before.includes(pid)) as [number]
      process.kill(held, 'SIGSTOP')
      const first = read('one')
      const running = [1, 2].map(() => failureOf(four.for({ team: 'two' }).render(endless, scope)))
      const waiting = failureOf(four.for({ team: 'two' }).render(away('1'), scope))
      const queued = read('two')
      four.drain()
      const later = failureOf(four.render(away('1'), scope))
      for (const failure of await Promise.all([...running, waiting, later]))
        expect(failure).toMatchObject({ type: 'ExpressionsUnavailable', retryable: true })
      const after = [await queued, await read('two')]
      process.kill(held, 'SIGCONT')
      for (const { output } of [await first, ...after]) expect(output.bytes).toBe(after[0]!.output.bytes)
      expect(listEvaluators()).toContain(held)
    } finally {
      await four.close()
    }
  },
)

test('an evaluator process reads no file but code, writes none and starts no process', async () => {
  const probe = `
    const { readFileSync, writeFileSync, readdirSync } = require('node:fs')
    const attempt = (work) => { try { work(); return 'done' } catch (error) { return error.code } }
    console.log(JSON.stringify([
      attempt(() => readFileSync('activities/expressions/child.ts')),
      attempt(() => readFileSync('/etc/passwd')),
      attempt(() => readFileSync('/proc/self/environ')),
      attempt(() => readdirSync('.')),
      attempt(() => readdirSync('.perdure')),
      attempt(() => writeFileSync('activities/new.ts', '')),
      attempt(() => require('node:child_process').spawnSync('true')),
      attempt(() => new (require('node:worker_threads').Worker)('', { eval: true })),
    ]))`
  const { stdout } = await promisify(execFile)(process.execPath, [...SANDBOX, '--eval', probe])
  expect(JSON.parse(stdout)).toEqual(['done', ...Array(7).fill('ERR_ACCESS_DENIED')])
})

test('an evaluator process whose service is gone ends by itself, even in an endless loop', async () => {
  const child = fork(
    new URL('../../../activities/expressions/child.ts', import.meta.url),
    ['300', '1000', '1000'],
    {
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    },
  )
  await once(child, 'message')
  const loop = { text: '($f := function() { $f() }; $f())', context: false }
  await new Promise((resolve) => child.send({ roots: '{}', sources: [loop] }, resolve))
  const exit = once(child, 'exit')
  child.disconnect()
  expect(await exit).toEqual([0, null])
})
