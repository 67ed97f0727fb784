import { expect, test } from 'vitest'
import { parseOwnJson } from '../../../activities/reading/pieces.ts'

const many = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n))
const deep = (levels: number, core: unknown): unknown =>
  many(levels, (n) => n).reduce<unknown>((inner, n) => (n % 2 ? [n, inner, n] : { n, inner, z: [] }), core)

const LARGE: Record<string, unknown> = {
  'empty lists': many(200_000, () => []),
  objects: many(40_000, (n) => ({ id: n, name: `n${n}`, on: n % 2 === 0, none: null })),
  keys: Object.fromEntries(many(60_000, (n) => [`k${n}`, n])),
  'large lists in a list': many(5, (n) => many(20_000, (m) => [n, m])),
  'large ones beside small ones': {
    a: 1,
    b: many(30_000, (n) => [n]),
    c: { d: many(30_000, (n) => ({ n })), e: 'e' },
    f: [],
  },
  'large at the end': [1, [2, many(50_000, (n) => n)]],
  'within many levels': deep(
    900,
    many(40_000, (n) => [n]),
  ),
  strings: many(30_000, (n) => `"[,]{:}\\${n}\\"`),
  'keys as odd as strings': Object.fromEntries(many(20_000, (n) => [`"],{\\${n}`, [{ ']': n }]])),
  'a prototype': JSON.parse(`{"__proto__":${JSON.stringify(many(40_000, (n) => [n]))},"a":1}`),
  'one long string': 'x'.repeat(500_000),
  'large numbers': many(30_000, () => 2 ** 60),
}

test.each(Object.keys(LARGE))('%s are read as JSON.parse reads them, in turns', async (name) => {
  let turns = 0
  const pace = () => {
    turns++
    return undefined
  }
  for (const text of [JSON.stringify(LARGE[name]), JSON.stringify(LARGE[name], null, 1)]) {
    turns = 0
    const value = await parseOwnJson(text, pace)
    expect(JSON.stringify(value) === JSON.stringify(JSON.parse(text))).toBe(true)
    if (name !== 'one long string') expect(turns).toBeGreaterThan(2)
  }
})

test.each(['[', ']', '[1,,2]', '[1,2}', '{"a":1,}', '["a]', '[1] 2', '{"a" 1}'])(
  'invalid: %s',
  async (wrong) => {
    const long = JSON.stringify(LARGE['empty lists'])
    for (const text of [
      wrong,
      `[${long},${wrong}]`,
      `${long.slice(0, -1)},${wrong}`,
      `[${long} 5,1]`,
      `[${long}}`,
      `{"a":${long},}`,
      `[${long}`,
    ])
      await expect(parseOwnJson(text, () => undefined)).rejects.toThrow(SyntaxError)
  },
)
