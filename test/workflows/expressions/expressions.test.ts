import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  findReads,
  JSONATA_FUNCTIONS,
  parseExpression,
  readCondition,
  readTemplate,
} from '../../../workflows/expressions/expressions.ts'
import { findReferences } from '../../../workflows/expressions/references.ts'
import { mergeInputs } from '../../../workflows/input.ts'
import { atOnce } from '../../support/atonce.ts'

const problemsOf = (source: string) => findReads(parseExpression(source)).problems

test('splits a string at its expressions, whatever braces they contain', () => {
  expect(readTemplate('')).toEqual([''])
  expect(readTemplate('plain }} text')).toEqual(['plain }} text'])
  expect(readTemplate('{{ $input.a }}')).toEqual([{ source: '$input.a' }])
  expect(readTemplate('a {{1}}{{ 2 }} b')).toEqual(['a ', { source: '1' }, { source: '2' }, ' b'])
  expect(readTemplate('{{ {"a": {"b": {}}}}}!')).toEqual([{ source: '{"a": {"b": {}}}' }, '!'])
  expect(readTemplate('{{{"a":1}}}')).toEqual([{ source: '{"a":1}' }])
  expect(readTemplate(`{{ "}}" & '{{' & $nodes.\`}}\` }}`)).toEqual([
    { source: `"}}" & '{{' & $nodes.\`}}\`` },
  ])
  expect(readTemplate('{{ "\\"}}" }}')).toEqual([{ source: '"\\"}}"' }])
  expect(readTemplate('{{ /* }} */ 1 }}')).toEqual([{ source: '/* }} */ 1' }])
  expect(readTemplate('{{ $split($input, /["\'`{}]{2}/) }}x')).toHaveLength(2)
  expect(readTemplate('{{ 6 / 2 }}{{ $input.a / $input.b }}')).toHaveLength(2)
  expect(readTemplate('{{ $contains("a", /|"/)}} {{ 1 in /"/ }}"')).toHaveLength(4)
})

test('says what is wrong with a template and where', () => {
  const faults: [string, RegExp][] = [
    ['a {{ $input', /the \{\{ at character 3 has no closing \}\}/],
    ['{{ "abc }}', /has no closing/],
    ['{{ }}', /the expression is empty/],
    ['{{ 1 + }}', /Unexpected end of expression \(character 3 of \{\{ 1 \+ \}\}\)/],
    ['{{ ( }}', /Expected "\)"/],
    ['{{ a b }}', /Syntax error: "b"/],
    [`{{ ${'1+'.repeat(5_000)}1 }}`, /at most 10000 characters/],
    [`{{ ${'['.repeat(101)}${']'.repeat(101)} }}`, /more than 100 levels/],
  ]
  for (const [text, message] of faults) expect(() => readTemplate(text), text).toThrow(message)
})

test('reads conditions with and without braces', () => {
  expect(readCondition(' $input.a = 1 ')).toEqual({ source: '$input.a = 1' })
  expect(readCondition('{{ $input.a = 1 }}')).toEqual({ source: '$input.a = 1' })
  expect(readCondition('$input = "{{"')).toEqual({ source: '$input = "{{"' })
  for (const text of ['{{ $input.a }} = 1', '{{ 1 }}{{ 2 }}', '{{ 1 '])
    expect(() => readCondition(text)).toThrow()
  expect(() => readCondition('  ')).toThrow('the expression is empty')
})

test('accepts node ids only as literals, and refuses $eval, unknown variables and reassigned ones', () => {
  for (const source of [
    '$input & $trigger.a & $vars.b & $execution.id & $item & $index & $ & $$',
    '$nodes.a.b + $nodes.`with space`[0].c + $nodes."quoted"',
    '($x := 1; function($y) { $x + $y })',
    '$input.xs@$x.ys#$i.{"x": $x, "i": $i}',
    '$map($input, function($v, $i) { $v & $i }) ~> $join("-")',
    '$now() & $millis() & $uppercase("x")',
  ]) {
    expect(problemsOf(source), source).toEqual([])
  }
  const needsId = '$nodes needs the id of a node right after it: $nodes.fetch, or $nodes.`fetch-2`'
  for (const source of [
    '$nodes',
    '$nodes[$input]',
    '$nodes["a"]',
    '$nodes.*',
    '$nodes.($input)',
    '$nodes.**',
    '$lookup($nodes, "a")',
    '($n := $nodes; $n.a)',
    '$nodes@$n.a',
    '$nodes[0].a',
    '$keys($nodes)',
    '$nodes ~> $lookup("a")',
    '$nodes{"a": 1}',
  ]) {
    expect(problemsOf(source), source).toEqual([needsId])
  }
  expect(problemsOf('$foo + $bar.x')).toEqual(
    expect.arrayContaining(['unknown variable $foo', 'unknown variable $bar']),
  )
  expect(problemsOf('$eval("1")')).toEqual(['$eval is not available'])
  expect(problemsOf('"1" ~> $eval')).toEqual(['$eval is not available'])
  expect(problemsOf('($input := 1)')).toEqual(['$input cannot be given another value'])
  expect(problemsOf('function($nodes) { 1 }')).toEqual(['$nodes cannot be given another value'])
  expect(problemsOf('$match($input, /a(?=b)/)')[0]).toMatch(/must not look ahead/)
  expect(problemsOf('$match($input, /(a)\\1/)')[0]).toMatch(/must not refer back/)
  expect(problemsOf('$match($input, /(?<name>a)\\(?=[(?=)]\\\\/)')).toEqual([])
})

test('finds the nodes, the variables and the context that an expression reads', () => {
  const reads = findReads(parseExpression('$nodes.a.x + $nodes.`b c`[$trigger.y = 1] + name'))
  expect([...reads.nodes].sort()).toEqual(['a', 'b c'])
  expect([...reads.roots].sort()).toEqual(['nodes', 'trigger'])
  expect(reads.context).toBe(true)
  expect(findReads(parseExpression('$input.a.b')).context).toBe(false)
})

test('our list of functions equals that of the installed JSONata, without $eval', () => {
  const file = createRequire(import.meta.url).resolve('jsonata')
  const bound = readFileSync(file, 'utf8').matchAll(/(?:staticFrame|environment)\.bind\('(\w+)'/g)
  const names = new Set([...bound].map((match) => match[1]!))
  names.delete('eval')
  expect([...names].sort()).toEqual([...JSONATA_FUNCTIONS].sort())
})

test('reads the strings of a config as templates or conditions, and gives every problem its path', () => {
  const reading = findReferences(
    {
      cases: [
        { handle: 'a', condition: '$nodes.one.ok' },
        { handle: 'b', condition: '{{ $nodes.two.ok }}' },
      ],
      values: {
        plain: 'no $nodes.x here',
        'odd key': ['{{ $foo }}', '{{ 1 +'],
        deep: { text: 'a {{ $nodes.three }}' },
      },
      count: 3,
      '{{ $nodes.key }}': null,
    },
    'nodes[4].config',
    [
      { path: 'cases[0].condition', text: '$nodes.one.ok' },
      { path: 'cases[1].condition', text: '{{ $nodes.two.ok }}' },
    ],
  )
  const { nodes, problems } = atOnce(reading)
  expect(nodes.map(({ id, path }) => ({ id, path }))).toEqual([
    { id: 'one', path: 'nodes[4].config.cases[0].condition' },
    { id: 'two', path: 'nodes[4].config.cases[1].condition' },
    { id: 'three', path: 'nodes[4].config.values.deep.text' },
  ])
  expect(problems.map((problem) => problem.path)).toEqual([
    'nodes[4].config.values["odd key"][0]',
    'nodes[4].config.values["odd key"][1]',
  ])
  expect(problems[0]!.message).toBe('unknown variable $foo')
})

test('refuses expressions that are costly to parse: each nested ?? or ?: doubles the work', () => {
  const started = performance.now()
  for (const operator of ['??', '?:']) {
    const nested = (levels: number) => `${'('.repeat(levels)}a${`${operator}a)`.repeat(levels)}`
    expect(() => parseExpression(nested(8))).not.toThrow()
    expect(() => parseExpression(nested(9))).toThrow(/more than 8 levels/)
    expect(() => parseExpression(`[1, {"a": ${nested(40)}}]`)).toThrow(/more than 8 levels/)
    // Chained or side by side, they cost nothing.
    expect(() => parseExpression(`a${`${operator}a`.repeat(500)}`)).not.toThrow()
    expect(() => parseExpression(`[${Array(200).fill(`a${operator}1`).join(',')}]`)).not.toThrow()
  }
  const long = [
    '{{'.repeat(200_000),
    `{{${'('.repeat(200_000)}${'{{}}'.repeat(100_000)}`,
    "{{'".repeat(200_000),
  ]
  for (const text of long) expect(() => readTemplate(text)).toThrow()
  const { problems } = atOnce(findReferences({ text: '{{1}}'.repeat(200_000) }, 'config'))
  expect(problems).toEqual([{ path: 'config.text', message: 'a node must have at most 1000 expressions' }])
  let deep: unknown = 1
  for (let i = 0; i < 50_000; i++) deep = [deep]
  expect(atOnce(findReferences(deep, 'config')).problems[0]!.message).toBe('is nested too deeply')
  expect(performance.now() - started).toBeLessThan(2_000)
})

test('an expression whose parts are copied many times, or with a long path, is refused before it is parsed', () => {
  const wrap = (inner: string, levels: number) => `${'('.repeat(levels)}${inner}${'?:b)'.repeat(levels)}`
  const refused = [
    wrap(`**${'.**'.repeat(3_200)}`, 8),
    wrap(`1${'+1'.repeat(2_000)}`, 8),
    wrap(`a${'[0]'.repeat(3_000)}`, 8),
    wrap(`$f(${'1,'.repeat(3_000)}1)`, 8),
    `${'('.repeat(8)}1${'+1'.repeat(2_000)}${'?:b)'.repeat(7)}?:b`,
    `a${'.a'.repeat(201)}`,
    `*${'.*'.repeat(201)}`,
    `**${'.**'.repeat(201)}`,
    `a${'. a'.repeat(201)}`,
    `a${'[0].a'.repeat(201)}`,
    `a${'@$x.a'.repeat(201)}`,
    `a${'. and'.repeat(201)}`,
  ]
  for (const source of refused)
    expect(() => parseExpression(source), source.slice(0, 30)).toThrow(/ which double | more than 200 steps/)
  const fine = [
    wrap('$input.total', 8),
    wrap(`1${'+1'.repeat(1_000)}`, 3),
    `a${'.a'.repeat(200)}`,
    `**${'.**'.repeat(200)}`,
    `[${Array(300).fill('a * b.*').join(',')}]`,
    Array(400).fill('$input.order.lines.price * 1.5').join(' + ').slice(0, 9_989),
    `{${Array(300).fill('"key": $input.order.id ?? 0').join(', ')}}`,
    Array(300).fill('$input.a.b = 1').join(' and '),
    Array(500).fill('a.b').join('%'),
    `[${Array(500).fill('a.b').join(',')}]`,
  ]
  for (const source of fine) expect(() => parseExpression(source), source.slice(0, 30)).not.toThrow()
})

test('any string is read or refused with an Error, and the parts that are read occur in it in order', () => {
  const piece = fc.constantFrom(
    '{{',
    '}}',
    '{',
    '}',
    '"',
    "'",
    '`',
    '/',
    '$input',
    '.a',
    ' ',
    '1',
    '+',
    '??',
    '(',
    ')',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const text = pieces.join('')
      let template: ReturnType<typeof readTemplate>
      try {
        template = readTemplate(text)
      } catch (error) {
        expect(error).toBeInstanceOf(Error)
        expect((error as Error).message).not.toBe('')
        return
      }
      let rest = text
      for (const part of template) {
        const piece = typeof part === 'string' ? part : part.source
        const at = rest.indexOf(piece)
        expect(at).toBeGreaterThanOrEqual(0)
        rest = rest.slice(at + piece.length)
      }
    }),
    { numRuns: 2_000 },
  )
})

test('an expression in braces is found whole, whatever text is around it', () => {
  const source = fc.constantFrom(
    '$input.a',
    '{"a": {"b": 1}}',
    '"}}"',
    "'{{'",
    '6 / 2',
    '$f ~> $g',
    '/}{2}/',
    '[{}]',
  )
  const parsable = source.map((text) => text.replace('/}{2}/', '/a{2}/').replace('$f ~> $g', '$sum ~> $not'))
  const beside = fc.string().filter((text) => !/[{}]/.test(text))
  fc.assert(
    fc.property(beside, parsable, beside, (before, expression, after) => {
      const parts = [before, { source: expression }, after].filter((part) => part !== '')
      expect(readTemplate(`${before}{{ ${expression} }}${after}`)).toEqual(parts)
    }),
  )
})

test('merges inputs in edge order', () => {
  expect(mergeInputs([])).toBeNull()
  expect(mergeInputs([[1]])).toEqual([1])
  expect(mergeInputs([{ a: 1, b: 1 }, { b: 2 }])).toEqual({ a: 1, b: 2 })
  expect(mergeInputs([{ a: 1 }, [2]])).toEqual([{ a: 1 }, [2]])
  expect(mergeInputs([{ a: 1 }, null])).toEqual([{ a: 1 }, null])
  const merged = mergeInputs([JSON.parse('{"__proto__": {"polluted": true}}'), {}]) as Record<string, unknown>
  expect(Object.getPrototypeOf(merged)).toBe(Object.prototype)
  expect(merged.polluted).toBeUndefined()
  expect(JSON.stringify(merged)).toBe('{"__proto__":{"polluted":true}}')
})
