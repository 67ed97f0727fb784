import { afterAll, describe, expect, test } from 'vitest'
import { createEvaluator } from '../../../../activities/expressions/evaluator.ts'
import { createDetectorPool } from '../../../../activities/guardrails/pool.ts'
import { applyRules } from '../../../../activities/guardrails/rules/apply.ts'
import type { StoredRule } from '../../../../db/guardrails/enabled.ts'

const pool = createDetectorPool({ threads: 1 })
const evaluator = createEvaluator({ processes: 2 })
afterAll(() => Promise.all([pool.close(), evaluator.close()]))

let made = 0
const makeRule = (kind: StoredRule['kind'], config: object): StoredRule => ({
  id: `rule-${++made}`,
  version: 1,
  name: `rule ${made}`,
  kind,
  config: JSON.stringify(config),
  severity: 'HIGH',
  action: 'BLOCKED',
})
const apply = (rules: StoredRule[], text: string) =>
  applyRules({ pool, evaluator }, { team: 'a', workflow: 'a', text, rules })
const code = (source: string) => makeRule('JAVASCRIPT', { code: source })

/** Each returns true, or a list of what it got hold of, if it gets out of the sandbox. */
const ESCAPES: Record<string, string> = {
  process: 'return typeof process !== "undefined"',
  modules:
    'return ["fs", "node:fs", "child_process", "node:process", "module", "net", "/etc/passwd", "file:///etc/passwd"].some((name) => { try { return !!require(name) } catch { return false } })',
  'the outer Function': 'return this.constructor.constructor("return typeof process")() !== "undefined"',
  'Function of a value': 'return text.constructor.constructor("return typeof process !== \'undefined\'")()',
  'the caller': 'return (function f() { return !!(f.caller || arguments.callee.caller) })()',
  'an error with frames':
    'Error.prepareStackTrace = (_, frames) => frames; const { stack } = new Error(); return Array.isArray(stack) && stack.some((frame) => frame.getThis && frame.getThis())',
  'a getter of the answer':
    'return { get violations() { return typeof process === "undefined" ? [] : [{ message: "out" }] } }',
  'a thenable': 'return { then(done) { done(typeof process !== "undefined") } }',
  'global eval': "return (0, eval)(\"typeof process !== 'undefined' || typeof Bun !== 'undefined'\")",
  'a network':
    'return typeof fetch !== "undefined" && typeof fetch("http://127.0.0.1:1/").then === "function" && false',
  workers:
    'return typeof Worker !== "undefined" || typeof SharedArrayBuffer !== "undefined" && typeof Atomics.waitAsync === "function" && false',
  'an async generator':
    'return Object.getPrototypeOf(async function*(){}).constructor("return typeof process")().next().then(({ value }) => value !== "undefined")',
  WebAssembly: 'return typeof WebAssembly !== "undefined"',
}
describe('code of a rule has nothing but the text', () => {
  test.each(Object.entries(ESCAPES))('%s', async (_, source) => {
    const { violations } = await apply([code(source)], 'a text')
    expect(violations).toEqual([])
  })

  test('nothing is left of a run for the next one', async () => {
    await apply(
      [
        code(
          'globalThis.kept = text; Array.prototype.kept = text; Object.prototype.flagged = true; return false',
        ),
      ],
      'first',
    )
    const look = 'return typeof kept !== "undefined" || [].kept !== undefined || ({}).flagged !== undefined'
    for (let round = 0; round < 4; round++) {
      const { violations, error } = await apply([code(look)], 'second')
      expect([violations, error]).toEqual([[], undefined])
    }
  })

  test('what the code does to prototypes decides nothing for the next rule', async () => {
    const tricks =
      'Object.prototype.toJSON = () => false; Array.prototype.toJSON = () => []; JSON.stringify = () => "false"; return { flagged: true }'
    await apply([code(tricks)], 'a text')
    const { violations: next } = await apply([code('return { flagged: true }')], 'a text')
    expect(next).toHaveLength(1)
  })
})

const ENDLESS: Record<string, string> = {
  'a loop': 'for (;;);',
  'a loop that catches': 'for (;;) { try { for (;;); } catch {} finally { continue } }',
  'a loop of promises': 'const again = () => Promise.resolve().then(again); return again()',
  'a promise that never settles': 'return new Promise(() => {})',
  'a pattern that backtracks': 'return /^(a+)+$/.test("a".repeat(40) + "!")',
  'a list without an end': 'const all = []; for (;;) all.push(new Array(1e6).fill(1))',
  'a text without an end': 'let all = "x"; for (;;) all += all',
  'a deep recursion': 'const f = () => f() + f(); return f()',
  'a sort that never ends': 'return [3, 2, 1].sort(() => { for (;;); })',
  'a getter without an end': 'return { get flagged() { for (;;); } }',
  'an answer that is huge':
    'return { violations: Array.from({ length: 1e7 }, () => ({ start: 0, end: 1 })) }',
  'a proxy': 'return new Proxy({}, { ownKeys() { for (;;); }, get() { for (;;); } })',
  'a BigInt': 'let n = 2n; for (;;) n = n ** 1000n',
  'a repeat': 'return "x".repeat(2 ** 29).length > 0 && "x".padEnd(2 ** 29).replace(/x/g, "yy")',
}
test('code without an end is ended, and the rules beside it are applied', {
  tags: 'long',
  timeout: 300_000,
}, async () => {
  for (const [name, source] of Object.entries(ENDLESS)) {
    const { violations, error, ms } = await apply([code(source), code('return true')], 'a text')
    expect(error, name).toMatch(/^These rules could not be applied/)
    expect(violations, name).toHaveLength(1)
    expect(ms, name).toBeLessThan(60_000)
  }
})

const EVIL = [
  '(a+)+$',
  '^(a|aa)+$',
  '(.*a){20}',
  '^(\\w+\\s?)*$',
  '(x+x+)+y',
  '(?:a?){30}a{30}',
  '(.*)*=(.*)*;',
  '^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$',
  '(\\s*,\\s*)*\\s*$',
  '<(?:[^>"\']|"[^"]*"|\'[^\']*\')*>x',
  '[\\s\\S]*?[\\s\\S]*?[\\s\\S]*?z',
  '(?i)(?:k|K|\u212a)+\\b$',
]
const HAY = [
  'a'.repeat(100_000),
  'x '.repeat(50_000),
  'a"<\' ,'.repeat(16_000),
  '\ud83d\ude00'.repeat(50_000),
]
test('patterns that explode elsewhere end within the time of rules', { timeout: 300_000 }, async () => {
  for (const text of HAY) {
    const rules = EVIL.map((pattern) => makeRule('REGEX', { pattern, flags: '' }))
    const began = process.cpuUsage()
    const { error, violations } = await apply(rules, text)
    const { user, system } = process.cpuUsage(began)
    // Those that got no time are told; the ones that did are whole.
    expect(error === undefined || /could not be applied/.test(error)).toBe(true)
    expect((user + system) / 1_000).toBeLessThan(10_000)
    for (const { details } of violations)
      if (details.end !== undefined) expect(details.end).toBeLessThanOrEqual(text.length)
  }
  const { violations } = await apply([makeRule('REGEX', { pattern: 'needle', flags: '' })], 'a needle')
  expect(violations).toHaveLength(1)
})

test.each(['(a)\\1', '(?<n>a)\\k<n>', '(?=a)b', '(?<!a)b', '((a{1,1000}){1,1000})', '(', '[z-a]'])(
  'a stored pattern that RE2 has not is an error of its rule: %s',
  async (pattern) => {
    const { violations, error } = await apply([makeRule('REGEX', { pattern, flags: '' })], 'aa')
    expect(violations).toEqual([])
    expect(error).toMatch(/could not be applied/)
  },
)
