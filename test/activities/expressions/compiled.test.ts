import fc from 'fast-check'
import jsonata from 'jsonata'
import { afterAll, expect, test } from 'vitest'
import type { Bindings } from '../../../activities/expressions/bindings.ts'
import {
  compileExpression,
  countWork,
  evaluateHere,
  findDirectly,
  isLight,
  NOT_DIRECT,
} from '../../../activities/expressions/compiled.ts'
import { createEvaluator } from '../../../activities/expressions/evaluator.ts'
import { isTruthy } from '../../../activities/expressions/truth.ts'
import { weighValue } from '../../../activities/expressions/weight.ts'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
import { parseExpression } from '../../../workflows/expressions/expressions.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator.close())

const bind = (input: unknown): Bindings => ({
  input,
  nodes: {},
  trigger: {},
  vars: {},
  execution: { id: 'e-1', workflowId: 'w-1' },
})

/**
 * Wraps an expression so that it is evaluated in the pool: calls of functions such as $single are not light.
 */
const away = (source: string) => `{{ $single([0], function($v) { true }) = 0 ? (${source}) }}`

const name = fc.constantFrom('a', 'b', '__proto__', 'constructor')
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, 0, 1, 2.5, '', 'x', true, false),
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .array(fc.tuple(name, tie('value')), { maxLength: 3 })
      .map((entries) =>
        JSON.parse(
          `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`,
        ),
      ),
  ),
})).value

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) freeze(item)
  return Object.freeze(value)
}

async function askJsonata(source: string, input: unknown): Promise<string | undefined> {
  const value = await jsonata(source).evaluate(input, { input })
  return value === undefined ? undefined : JSON.stringify(value)
}

test('plain paths find without JSONata what JSONata finds', async () => {
  await fc.assert(
    fc.asyncProperty(json, fc.array(name, { maxLength: 4 }), async (input, names) => {
      const source = ['$input', ...names].join('.')
      const found = findDirectly(compileExpression(source, 1), bind(input))
      if (found !== NOT_DIRECT) expect(JSON.stringify(found)).toBe(await askJsonata(source, input))
    }),
    { numRuns: 1_000 },
  )
})

test('light expressions give the same result in place as in the pool, within the bound on its size', async () => {
  const leaf = fc.constantFrom(
    '$input',
    '$input.a',
    '$input.a.b',
    'a',
    '$',
    '1',
    '"t"',
    'null',
    '$input.b[0]',
    '$input.a[-1]',
  )
  const light = fc.letrec<{ e: string }>((tie) => ({
    e: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc
        .tuple(tie('e'), fc.constantFrom('+', '&', '=', '<', 'and', 'or', 'in', '%'), tie('e'))
        .map(([l, op, r]) => `(${l} ${op} ${r})`),
      fc.tuple(tie('e'), tie('e')).map(([l, r]) => `[${l}, ${r}]`),
      fc.tuple(tie('e'), tie('e')).map(([l, r]) => `{"k": ${l}, "__proto__": ${r}}`),
      fc.tuple(tie('e'), tie('e'), tie('e')).map(([c, l, r]) => `(${c} ? ${l} : ${r})`),
      fc.tuple(tie('e'), tie('e')).map(([l, r]) => `(${l} ?? ${r})`),
      tie('e').map((e) => `$count(${e})`),
      tie('e').map((e) => `(${e}).a`),
    ),
  })).e
  await fc.assert(
    fc.asyncProperty(json, light, async (input, source) => {
      const bindings = bind(input)
      const compiled = compileExpression(source, 1)
      expect(compiled.size).toBeGreaterThan(0)
      if (!isLight(compiled, bindings, 400_000)) return
      // The input is frozen: an expression that writes into it throws.
      const here = await evaluateHere(compiled, bind(freeze(input))).catch((error: Error) => error)
      const there = await evaluator.render(away(source), bindings).catch((error: Error) => error)
      if (here instanceof Error || there instanceof Error) {
        expect(here).toBeInstanceOf(NodeFailure)
        expect(there).toBeInstanceOf(NodeFailure)
        return
      }
      expect(JSON.stringify(here ?? null)).toBe(JSON.stringify(there))
      const read = weighValue(input, 1e9) + 8 + source.length
      expect(weighValue(here, 1e9)).toBeLessThanOrEqual(compiled.size * 2 * read)
    }),
    { numRuns: 300, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: true },
  )
}, 60_000)

test('only expressions whose work is bounded by their size are evaluated in place', () => {
  const size = (source: string) => countWork(parseExpression(source), 500)
  for (const source of [
    '$input.a.b[0]',
    '1 + 2 * $input.n',
    '{"a": [$input.x]}',
    'a ?? "b"',
    '($input.a).b.c',
  ]) {
    expect(size(source), source).toBeLessThan(20)
  }
  for (const source of [
    '[1..5]',
    '$sum([1])',
    '$input.a.(b)',
    '$input.a[b = 1]',
    '$input.**',
    '$input.*.*',
    '($x := 1; $x)',
    'function() { 1 }',
    '$input ~> $count',
    '$input.a{"k": b}',
    '$input.a^(b)',
    '$input.a.{"k": $input}',
    '/a/',
    '$input.a@$v.b',
    '$input.a[]',
    '$input.a.%',
    '"x" ~> $lowercase',
    Array(300).fill('$input.a').join(' & '),
  ]) {
    expect(size(source), source).toBe(Number.POSITIVE_INFINITY)
  }
})

test('isTruthy casts values as $boolean does', async () => {
  await fc.assert(
    fc.asyncProperty(json, async (value) => {
      expect(isTruthy(value)).toBe(await jsonata('$boolean($v)').evaluate(undefined, { v: value }))
    }),
  )
})
