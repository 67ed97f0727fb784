import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CHECKED_KINDS, PII_KINDS, type PiiKind } from '../../../../db/detection/pii/kinds.ts'
import { markPii } from '../../../../db/detection/pii/masked.ts'
import { findPii } from '../../../../db/detection/pii/pii.ts'

const ALL: ReadonlySet<PiiKind> = new Set<PiiKind>([...CHECKED_KINDS, ...PII_KINDS])
const VALUES: [PiiKind, string][] = [
  ['email', 'ada@a.example'],
  ['phone', '+49 30 1234567'],
  ['phone', '(212) 555-0100'],
  ['ssn', '123-45-6789'],
  ['credit_card', '4111 1111 1111 1111'],
  ['iban', 'DE89 3704 0044 0532 0130 00'],
  ['ip_address', '93.184.216.34'],
  ['ip_address', '2606:2800:220:1::1946'],
  ['api_key', 'glpat-Zx8kLm2Qp9RtVw3YbNc5'],
  ['jwt', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln'],
]
const piece = fc.oneof(
  fc.constantFrom(...VALUES.map(([, value]) => value)),
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    ' ',
    '\n',
    ':',
    '=',
    '@',
    '-',
    '.',
    '/',
    'token ',
    'phone ',
    'card ',
    '[EMAIL]',
    '[PHONE]',
    '😀',
    '\u0301',
    '\u200b',
  ),
)
const text = fc.array(piece, { maxLength: 10 }).map((pieces) => pieces.join(''))

test('findings are sorted, do not overlap, lie in the text, and are the same each time', () => {
  fc.assert(
    fc.property(text, (given) => {
      const found = findPii(given, ALL)
      let last = 0
      for (const { start, end } of found) {
        expect(start).toBeGreaterThanOrEqual(last)
        expect(end).toBeGreaterThan(start)
        last = end
      }
      expect(last).toBeLessThanOrEqual(given.length)
      expect(findPii(given, ALL)).toEqual(found)
    }),
    { numRuns: 1_000 },
  )
})

test('what was masked has nothing more to mask, and keeps all that was not found', () => {
  fc.assert(
    fc.property(text, (given) => {
      const { text: masked, findings } = markPii(given, ALL)
      expect(markPii(masked, ALL)).toEqual({ text: masked, findings: [] })
      let rest = masked
      let at = 0
      for (const { start, end, kind } of findings) {
        const before = `${given.slice(at, start)}[${kind.toUpperCase()}]`
        expect(rest.startsWith(before)).toBe(true)
        rest = rest.slice(before.length)
        at = end
      }
      expect(rest).toBe(given.slice(at))
    }),
    { numRuns: 1_000 },
  )
})

test('a text with more doubtful numbers than can be looked at is masked once and for all', () => {
  for (const unit of ['0123 456 ', '030 1234 56 78 ', '+1 234 5678 ', '(0123) 45678 ']) {
    const { text: masked } = markPii(unit.repeat(2_000), ALL)
    expect(markPii(masked, ALL).findings).toEqual([])
  }
})

test('a value is found at its place between any texts that stand apart from it', () => {
  const apart = fc.array(
    fc.constantFrom('😀', 'é', 'e\u0301', 'Grüße', '数字', 'and so on', '𝒜 ', '\n', '—'),
    { maxLength: 8 },
  )
  fc.assert(
    fc.property(apart, fc.constantFrom(...VALUES), apart, (before, [kind, value], after) => {
      const head = `${before.join(' ')} (`
      const given = `${head}${value}) ${after.join(' ')}`
      const found = findPii(given, ALL).filter((one) => one.kind === kind)
      expect(found).toMatchObject([{ start: head.length, end: head.length + value.length }])
    }),
    { numRuns: 500 },
  )
})

test('100,000 characters of anything take a bounded time that grows with the length', {
  timeout: 120_000,
}, () => {
  const units = [
    ...'a1-.@:="\\[ \né٣',
    ...[
      '+1',
      '+49 30 ',
      'a@',
      'a.',
      'a@b.',
      'a@b.c ',
      '%40',
      '1.2.',
      '1.2.3.4 ',
      '0123 456 ',
      '(212) ',
      '4111 ',
      '4111-',
      '123-45-',
    ],
    ...[
      'DE89',
      'DE89 ',
      'a:',
      '::',
      'fe80::',
      '::ffff:',
      'eyJ',
      'eyJhbGciOiJIUzI1NiJ9.',
      'sk-',
      'ghp_',
      'xoxb-1',
      'token=',
      'token ',
      'key: a1B2',
    ],
    ...[
      '0 ',
      'A1b2C3d4E5f6G7h8 ',
      'api_key=A1b2C3d4E5f6G7h8 ',
      '-----BEGIN PRIVATE KEY-----',
      'a\u200b',
      'b\u0301',
      '\uff41',
      '\u0430a',
      '\ud835\udcb7',
      '[EMAIL]',
    ],
    ...[
      '(at) ',
      'a (at) b (dot) ',
      'https://a:b@',
      'Bearer ',
      '-us1',
      'Q~',
      '{"a":"',
      '\ud800',
      '\u0000',
      'phone 12 34 ',
    ],
  ]
  const fill = (unit: string, length: number) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length)
  const measure = (given: string) => {
    const start = process.cpuUsage()
    findPii(given, ALL)
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1_000
  }
  for (const unit of units) {
    // 8 times the length takes 8 times the time if it is linear, 64 times if it is quadratic; three tries against noise.
    let ratio = Number.POSITIVE_INFINITY
    let whole = 0
    for (let tries = 0; tries < 3 && ratio >= 32; tries++) {
      const small = Math.min(measure(fill(unit, 12_500)), measure(fill(unit, 12_500)))
      whole = measure(fill(unit, 100_000))
      ratio = whole / Math.max(small, 4)
    }
    expect(ratio, JSON.stringify(unit)).toBeLessThan(32)
    expect(whole, JSON.stringify(unit)).toBeLessThan(3_000)
  }
})
