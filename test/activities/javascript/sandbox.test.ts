import { createHmac } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import type { EvaluatorReply } from '../../../activities/expressions/job.ts'
import { createEvaluatorPool } from '../../../activities/expressions/pool.ts'
import type { ScriptFault, ScriptReply, ScriptSource } from '../../../activities/javascript/job.ts'
import { choosePrelude } from '../../../activities/javascript/prelude/prelude.ts'

const pool = createEvaluatorPool({ processes: 2, timeoutMs: 1_000, heapMb: 128, maxChars: 8_000_000 })
afterAll(() => pool.close())

type Asked = {
  roots?: Record<string, unknown>
  items?: unknown[]
  timeoutMs?: number
  memoryMb?: number
  maxChars?: number
}

const body = (text: string, each = false): ScriptSource => ({ kind: 'body', text, each })
const expression = (text: string, each = false): ScriptSource => ({ kind: 'expression', text, each })

async function run(sources: ScriptSource[], asked: Asked = {}): Promise<EvaluatorReply> {
  const { roots = {}, items, timeoutMs = 1_000, memoryMb = 64, maxChars = 100_000 } = asked
  const script = {
    prelude: choosePrelude(sources.map(({ text }) => text)),
    roots: JSON.stringify({ nodes: {}, ...roots }),
    items: items && JSON.stringify(items),
    sources,
    limits: { timeoutMs, memoryMb, maxChars },
  }
  return pool.run({ team: 'team', workflow: 'workflow' }, () => ({ script }))
}

async function valuesOf(sources: ScriptSource[], asked: Asked = {}): Promise<unknown[]> {
  const reply = await run(sources, asked)
  expect(reply.kind, JSON.stringify(reply)).toBe('script')
  return (reply as ScriptReply).values.map((text) => (text === null ? undefined : JSON.parse(text)))
}

async function resultOf(text: string, asked: Asked = {}): Promise<unknown> {
  return (await valuesOf([body(text)], asked))[0]
}

async function faultOf(text: string, asked: Asked = {}): Promise<ScriptFault> {
  const reply = await run([body(text)], asked)
  expect(reply.kind, JSON.stringify(reply)).toBe('fault')
  return reply as ScriptFault
}

describe('what scripts give', () => {
  test('Buffer is that of Node.js', async () => {
    const text = `const bytes = Buffer.from('Zoë €😀')
      return [bytes.toString('base64'), Buffer.from('aGkgeW91', 'base64').toString(), bytes.toString('hex').length,
        Buffer.concat([bytes, Buffer.alloc(2)]).length, Buffer.byteLength('€'), Buffer.isBuffer(bytes)]`
    const bytes = Buffer.from('Zoë €😀')
    expect(await resultOf(text)).toEqual([bytes.toString('base64'), 'hi you', 24, 14, 3, true])
  })

  test('expressions and bodies give JSON values, in their order, and nothing is undefined', async () => {
    const sources = [
      expression('$input.n + 1'),
      body('return [$vars.a, null]'),
      body(''),
      expression('{ a: 1 }'),
    ]
    const roots = { input: { n: 1 }, vars: { a: 'ä\u0000\ud800😀' } }
    expect(await valuesOf(sources, { roots })).toEqual([2, ['ä\u0000\ud800😀', null], undefined, { a: 1 }])
  })

  test('with each, a source runs once for each item', async () => {
    const items = [{ n: 1 }, { n: 2 }]
    const sources = [body('await null; return $item.n * 10 + $index', true), expression('$item?.gone', true)]
    expect(await valuesOf(sources, { items })).toEqual([
      [10, 21],
      [null, null],
    ])
  })

  test('what one expression changes, another one does not see', async () => {
    const items = [{ list: [2, 1] }]
    const sources = [
      expression('$input.list.sort().join()'),
      expression('$input.list.join()'),
      expression('$item.list.reverse().join()', true),
      expression('$item.list.join()', true),
    ]
    const found = await valuesOf(sources, { roots: { input: { list: [2, 1] } }, items })
    expect(found).toEqual(['1,2', '2,1', ['1,2'], ['2,1']])
  })

  test('no job sees what the one before it has left', async () => {
    expect(await resultOf('globalThis.left = 1; Array.prototype.left = 1; return left')).toBe(1)
    const found = await Promise.all([1, 2, 3].map(() => resultOf('return typeof left + [].left')))
    expect(found).toEqual(['undefinedundefined', 'undefinedundefined', 'undefinedundefined'])
  })

  test('timers, hashes, URLs, encodings and require work', async () => {
    const found = await resultOf(`
      const order = []
      setTimeout(() => order.push('late'), 20)
      clearTimeout(setTimeout(() => order.push('never'), 1))
      await new Promise((resolve) => setTimeout(resolve, 40))
      const url = new URL('../b?x=1', 'https://me@host:81/a/c')
      url.searchParams.append('y', 'ü &')
      url.hostname = 'other'
      const { createHmac } = require('crypto')
      return [
        order, url, url.port, crypto.createHash('sha256').update('a').update('b').digest('hex'),
        createHmac('sha1', 'key').update('ü').digest('base64'), btoa('hi'), atob('aGk='),
        [...new TextEncoder().encode('€')], new TextDecoder().decode(new Uint8Array([226, 130, 172])),
        crypto.randomUUID().length, [...new URLSearchParams('a=1&a=2').entries()],
      ]`)
    expect(found).toEqual([
      ['late'],
      'https://me@other:81/b?x=1&y=%C3%BC+%26',
      '81',
      'fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603',
      createHmac('sha1', 'key').update('ü').digest('base64'),
      'aGk=',
      'hi',
      [226, 130, 172],
      '€',
      36,
      [
        ['a', '1'],
        ['a', '2'],
      ],
    ])
  })

  test('the console is kept, up to a limit, also of a script that fails', async () => {
    const fault = await faultOf(
      'console.log("a", { b: [1] }, 2); console.error(new TypeError("no")); for (;;);',
      {
        timeoutMs: 100,
      },
    )
    expect(fault.console).toEqual([
      { level: 'log', text: 'a {"b":[1]} 2' },
      { level: 'error', text: 'TypeError: no' },
    ])
    const reply = (await run([body('for (let i = 0; i < 1e6; i++) console.log("line", i)')], {
      timeoutMs: 20_000,
    })) as ScriptReply
    expect(reply.console.at(-1)!.text).toBe('what was written after this is left out')
    expect(JSON.stringify(reply.console).length).toBeLessThan(16_384)
  })

  test('an error has its place in the text of the author', async () => {
    expect(await faultOf('let a = 1\n  throw new RangeError("no " + a)')).toMatchObject({
      cause: 'ERROR',
      message: 'RangeError: no 1',
      line: 2,
    })
    expect(await faultOf('null.a')).toMatchObject({ line: 1, column: 5 })
    expect(await faultOf('const f = async () => {\n await null\n gone()\n}\nawait f()')).toMatchObject({
      message: "ReferenceError: 'gone' is not defined",
      line: 3,
    })
    expect(await faultOf('let a = ;')).toMatchObject({ line: 1, column: 9 })
    const second = await run([expression('1'), expression('$item.a.b', true)], { items: [{ a: {} }, {}] })
    expect(second).toMatchObject({ kind: 'fault', at: 1, item: 1, line: 1 })
  })
})

describe('what scripts cannot do', () => {
  const TIMEOUT = { cause: 'TIMEOUT' }
  const MEMORY = { cause: 'MEMORY' }
  const failing = (message: string | RegExp) => ({ cause: 'ERROR', message: expect.stringMatching(message) })

  test.each<[name: string, text: string, fault: object]>([
    ['an endless loop', 'for (;;);', TIMEOUT],
    ['an endless loop in a getter', 'return { get a() { for (;;); } }', TIMEOUT],
    ['an endless loop in a proxy', 'return new Proxy({}, { ownKeys() { for (;;); } })', TIMEOUT],
    ['an endless loop in toJSON', 'return { toJSON() { for (;;); } }', TIMEOUT],
    ['an endless loop that catches', 'for (;;) try { for (;;); } catch {} finally { continue }', TIMEOUT],
    ['an endless generator', 'for (const x of (function* () { for (;;) yield 1 })());', TIMEOUT],
    ['text that ends its function', '}); for (;;); (async function () {', TIMEOUT],
    ['a flood of microtasks', 'const f = () => Promise.resolve().then(f); await f()', TIMEOUT],
    ['a timer that never stops', 'setInterval(() => {}, 0); await new Promise(() => {})', TIMEOUT],
    ['a sleep beyond the limit', 'await new Promise((resolve) => setTimeout(resolve, 1e6))', TIMEOUT],
    ['a regex bomb', 'return /^(a+)+$/.test("a".repeat(40) + "b")', TIMEOUT],
    ['a promise that never settles', 'await new Promise(() => {})', { cause: 'STUCK' }],
    ['a memory bomb', 'const a = []; for (;;) a.push(new Array(100_000).fill(a.length))', MEMORY],
    ['a huge text', 'return "x".repeat(2 ** 29)', MEMORY],
    ['a huge filled array', 'return Array(2 ** 32 - 1).fill(0)', MEMORY],
    ['a huge result', 'return "x".repeat(200_000)', { cause: 'SIZE' }],
    ['a huge number', 'return String(2n ** (2n ** 40n))', failing('BigInt')],
    ['endless recursion', 'const f = () => f() + 1; f()', failing('stack overflow')],
    [
      'endless recursion by awaiting',
      'const f = async () => await f(); await f()',
      failing(/stack overflow|^$/),
    ],
    ['deep JSON', 'return JSON.parse("[".repeat(1e5) + "]".repeat(1e5))', failing('deep')],
    ['a deep result', 'let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a', failing('deep')],
    ['a cycle', 'const a = {}; a.a = a; return a', failing('circular')],
    ['a BigInt', 'return { a: 1n }', failing('BigInt')],
    ['a function', 'return () => 1', failing('function')],
    [
      'a thrown proxy',
      'throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })',
      failing('cannot be read'),
    ],
    ['a thrown null', 'throw null', failing('null was thrown')],
    ['an import', 'return await import("node:fs")', failing('could not load module')],
    ['require of what is not there', 'require("fs")', failing('no module "fs"')],
    [
      "the constructor's constructor",
      'return this.constructor.constructor("return process")()',
      failing('process'),
    ],
    [
      'the constructor of a function of the host',
      'return console.log.constructor("return process")()',
      failing('process'),
    ],
    [
      'the constructor of an error of the host',
      'try { require("crypto").createHash("x").digest() } catch (e) { return e.constructor.constructor("return process")() }',
      failing('process'),
    ],
    [
      'an async generator',
      'return (async function* () {}).constructor("return process")().next()',
      failing('process'),
    ],
    ['WebAssembly', 'return WebAssembly.compile(new Uint8Array())', failing('WebAssembly')],
    ['the network', 'return await fetch("http://127.0.0.1")', failing('fetch')],
  ])('%s', async (_, text, fault) => {
    expect(await faultOf(text, { timeoutMs: fault === TIMEOUT ? 300 : 10_000, memoryMb: 32 })).toMatchObject(
      fault,
    )
  })

  test('what cannot be interrupted ends with its process, and the next job has another one', {
    tags: 'long',
  }, async () => {
    for (const text of [
      'return new Array(2 ** 32 - 2).indexOf(1)',
      'return new Array(2 ** 32 - 2).includes(1)',
    ]) {
      expect(await run([body(text)], { timeoutMs: 200 })).toMatchObject({ kind: 'error', cause: 'TIMEOUT' })
    }
    expect(await resultOf('return 1')).toBe(1)
  })

  test('what a script does to the language it does to itself alone', async () => {
    const text = `
      Object.prototype.toJSON = () => 'mine'
      Array.prototype.push = () => { throw 1 }
      Promise = Error = 1
      JSON.stringify = () => '{'
      JSON.parse = () => { throw 1 }
      Error.prepareStackTrace = () => { for (;;); }
      return { a: 1 }`
    expect(await resultOf(text)).toBe('mine')
    expect(await resultOf('return { a: [1] }')).toEqual({ a: [1] })
  })

  test('keys such as __proto__ are keys', async () => {
    const found = await resultOf('return JSON.parse(\'{"__proto__": {"a": 1}, "constructor": 2}\')')
    expect(Object.keys(found as object)).toEqual(['__proto__', 'constructor'])
  })

  test('the limit counts from the begin of the script, not while the sandbox is made', async () => {
    const fresh = createEvaluatorPool({ processes: 1, timeoutMs: 1_000, heapMb: 128, maxChars: 1_000 })
    const limits = { timeoutMs: 25, memoryMb: 16, maxChars: 1_000 }
    const script = { prelude: ['base' as const], roots: '{}', sources: [expression('1')], limits }
    const reply = await fresh.run({ team: 'team', workflow: 'workflow' }, () => ({ script }))
    await fresh.close()
    expect(reply).toMatchObject({ kind: 'script', values: ['1'] })
  })
})
