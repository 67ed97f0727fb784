import { describe, expect, test } from 'vitest'
import { ENDED } from '../../support/client.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, startRunning } from '../../support/running.ts'
import { until } from '../../support/until.ts'

const running = await keep(startRunning({ expressions: { processes: 4, patienceMs: 300 } }))

type Config = Record<string, unknown>

const graphOf = (config: Config, more: Config = {}) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER' },
    { id: 'list', type: 'SET', config: { values: { items: [{ n: 1 }, { n: 2 }], text: 'ä' } } },
    { id: 'code', type: 'CODE', config, ...more },
  ],
  edges: [
    { source: 'start', target: 'list' },
    { source: 'list', target: 'code' },
  ],
})

/** Executes the code behind a list. `timeoutMs` decides whether it is a step of a segment or an attempt. */
async function runCode(config: Config, data: Config = {}) {
  const run = await running.run(graphOf(config), data)
  return { ...nodeOf(run, 'code'), ended: run.status }
}

async function faultsOf(config: Config): Promise<string[]> {
  const json = { name: 'w', teamId: running.teamId, ...graphOf(config) }
  const response = await running.request('/api/workflows', { method: 'POST', as: running.admin, json })
  expect(response.status).toBe(400)
  const { errors } = (await response.json()) as { errors: { path: string; message: string }[] }
  return errors.map(({ path, message }) => `${path.replace('nodes[2].config.', '')}: ${message}`)
}

describe.each([
  ['in a segment', 1_000],
  ['as an activity of its own', 1_001],
])('%s', (_, timeoutMs) => {
  test('once for all, code outputs what it returns, a list as items', async () => {
    const read =
      'const { n } = $input.items[1]; return { n, t: $trigger.a, l: $nodes.list.text, w: $execution.workflowName }'
    const found = await runCode({ code: read, timeoutMs }, { a: 1 })
    expect(found.outputData).toEqual({ n: 2, t: 1, l: 'ä', w: expect.stringMatching(/^w /) })
    const list = 'return (await Promise.all($nodes["list"].items)).map((item) => ({ ...item, at: 1 }))'
    expect((await runCode({ code: list, timeoutMs })).outputData).toEqual({
      items: [
        { n: 1, at: 1 },
        { n: 2, at: 1 },
      ],
    })
    expect((await runCode({ code: 'console.log(1)', timeoutMs })).outputData).toEqual({ value: null })
  })

  test('once for each item, it outputs what it returns for each', async () => {
    const each = { code: 'if ($index === 0) return; return { double: $item.n * 2 }', mode: 'each', timeoutMs }
    expect((await runCode(each)).outputData).toEqual({ items: [null, { double: 4 }] })
    const given = { ...each, items: '{{ $nodes.list.items.n }}', code: 'return [$item]' }
    expect((await runCode(given)).outputData).toEqual({ items: [[1], [2]] })
  })

  test('what it throws has its place in the text, and the failure is the code’s', async () => {
    const found = await runCode({ code: 'const a = {}\nreturn a.b.c', timeoutMs })
    expect(found).toMatchObject({ status: 'FAILED', ended: 'FAILED' })
    expect(found.errorMessage).toBe(
      "the code, line 2, column 11: TypeError: cannot read property 'c' of undefined",
    )
    const each = await runCode({ code: 'throw new Error($item.n)', mode: 'each', timeoutMs })
    expect(each.errorMessage).toMatch(/^the code, line 1, column \d+: 1 \(item 0\)$/)
  })

  test('an endless loop ends the node, not the process', async () => {
    const found = await runCode({ code: 'for (;;);', timeoutMs: timeoutMs > 1_000 ? timeoutMs : 100 })
    expect(found).toMatchObject({ status: 'FAILED', ended: 'FAILED' })
    expect(found.errorMessage).toMatch(/^the code took longer than [\d.]+ s of processor time$/)
  })

  test('strange keys and a million lines of console do no harm', async () => {
    const found = await runCode({ code: 'return JSON.parse(\'{"__proto__": {"a": 1}}\')', timeoutMs })
    expect(JSON.stringify(found.outputData)).toBe('{"__proto__":{"a":1}}')
    const lines = await runCode({ code: 'for (let i = 0; i < 1e4; i++) console.log(i); return 1', timeoutMs })
    expect(lines.outputData).toEqual({ value: 1 })
  })

  test.each([
    ['all items', { allItems: true }],
    ['each item', { perItem: true }],
  ])('what code for %s writes with console is in the record, also if it fails', async (_, more) => {
    for (const end of ['return 1', 'throw new Error("no")']) {
      const run = await running.run(graphOf({ code: `console.log("seen"); ${end}`, timeoutMs }, more))
      expect(nodeOf(run, 'code')).toMatchObject({ console: [{ level: 'log', text: 'seen' }] })
    }
  })
})

test.each([
  ['const f = () => Promise.resolve().then(f); await f()', /took longer than|used too much memory/],
  ['return /^(a+)+$/.test("a".repeat(40) + "b")', /took longer than/],
  ['return new Array(2 ** 32 - 2).indexOf(1)', /took longer than/],
  ['return Array(2 ** 32 - 1)', /took longer than|used too much memory/],
  ['await new Promise(() => {})', /waits for a promise that nothing will settle/],
  ['return "x".repeat(2 ** 29)', /used too much memory \(more than 16 MB\)/],
  ['return Array(2 ** 32 - 1).fill(0)', /used too much memory/],
  ['return this.constructor.constructor("return process")()', /'process' is not defined/],
  ['return WebAssembly', /'WebAssembly' is not defined/],
  ['throw new Proxy({}, { get() { throw 1 } })', /something was thrown that cannot be read/],
  ['return { toJSON() { return 1n } }', /BigInt/],
  ['const a = {}; a.a = a; return a', /circular/],
  ['return { a: 1n }', /BigInt/],
])('%s fails the node with a clear message', async (code, message) => {
  const found = await runCode({ code, timeoutMs: 300, memoryMb: 16 })
  expect(found.status).toBe('FAILED')
  expect(found.errorMessage).toMatch(message)
})

test('what cannot be code is refused when it is saved, with its place', async () => {
  expect(await faultsOf({ code: 'let a = 1\nlet b = ;' })).toEqual([
    'code: line 2, column 9: Unexpected token',
  ])
  expect(await faultsOf({ code: 'return $nodes.gone + $nodes.code + $nodes[$input]' })).toEqual([
    'code: line 1: $nodes needs the id of a node, as in $nodes.fetch or $nodes["fetch"]',
    'code: names the node "code", which does not come before "code"',
    'code: names the node "gone", which is not in this graph',
  ])
  expect(await faultsOf({ code: `return ${'('.repeat(50_000)}` })).toEqual(['code: is nested too deeply'])
  expect(await faultsOf({ code: '}); (function () {' })).toEqual(['code: line 1, column 1: Unexpected token'])
  expect(
    await faultsOf({ code: 'x'.repeat(60_001), language: 'perl', mode: 'x', timeoutMs: 60_001, memoryMb: 1 }),
  ).toEqual([
    'language: must be javascript, not "perl"',
    'code: must have at most 60000 characters, not 60001',
    'mode: must be all or each, not "x"',
    'timeoutMs: must be at most 60000, not 60001',
    'memoryMb: must be at least 8, not 1',
  ])
})

test('braces in code are code', async () => {
  const { outputData } = await runCode({ code: 'if (true) {{ return "{{ $input }}" }}' })
  expect(outputData).toEqual({ value: '{{ $input }}' })
})

test('while a team has a hundred endless loops, another team’s code runs on, and none is lost', {
  tags: 'long',
}, async () => {
  const mine = await running.create(graphOf({ code: 'for (;;);', timeoutMs: 1_500 }))
  const stuck = await Promise.all(Array.from({ length: 100 }, () => running.execute(mine)))
  await running.until(stuck[0]!, (run) => run.status === 'RUNNING')
  const other = await running.otherTeam()
  const graph = { name: 'other', teamId: other.teamId, ...graphOf({ code: 'return 1', timeoutMs: 10_000 }) }
  const { id } = await running.ask<{ id: string }>('POST', '/api/workflows', graph, other.cookie)
  for (let n = 0; n < 3; n++) {
    const asked = { teamId: other.teamId, data: {} }
    const path = `/api/workflows/${id}/execute`
    const { executionId } = await running.ask<{ executionId: string }>('POST', path, asked, other.cookie)
    const read = () =>
      running.ask<{ status: string }>('GET', `/api/executions/${executionId}`, undefined, other.cookie)
    const run = await until(read, { holds: ({ status }) => ENDED.includes(status) })
    expect(run.status).toBe('SUCCESS')
  }
  const failed = () =>
    running.ask<{ content: { errorMessage: string }[] }>(
      'GET',
      `/api/executions?workflowId=${mine}&status=FAILED`,
    )
  expect((await failed()).content.length).toBeLessThan(50)
  // Each waits in vain for a process again and again, which is no failure of its own.
  const { content: first } = await until(failed, { holds: ({ content }) => content.length >= 2 })
  for (const { errorMessage } of first) expect(errorMessage).toContain('the code took longer than 1.5 s')
  const filter = { workflowId: mine }
  await running.ask('POST', `/api/executions/team/${running.teamId}/cancel`, { filter })
  const statuses = await Promise.all(stuck.map(async (id) => (await running.ended(id)).status))
  expect(statuses.filter((status) => status !== 'FAILED' && status !== 'CANCELLED')).toEqual([])
})
