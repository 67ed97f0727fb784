import { describe, expect, test } from 'vitest'
import {
  CHECKED_KINDS,
  LEAST_CONFIDENCE,
  PII_KINDS,
  type PiiKind,
} from '../../../../db/detection/pii/kinds.ts'
import { markPii } from '../../../../db/detection/pii/masked.ts'
import { findPii } from '../../../../db/detection/pii/pii.ts'
import { listViews } from '../../../../db/detection/views.ts'

const ALL: ReadonlySet<PiiKind> = new Set<PiiKind>([...CHECKED_KINDS, ...PII_KINDS])
const KEY = 'glpat-Zx8kLm2Qp9RtVw3YbNc5'

/** What is found, as `kind text`. */
const tell = (text: string, kinds = ALL) =>
  findPii(text, kinds).map(({ kind, start, end }) => `${kind} ${text.slice(start, end)}`)

describe('found, with its exact place', () => {
  const found: [string, string[]][] = [
    ['Mail Bob.O+x@mail.a.example!', ['email Bob.O+x@mail.a.example']],
    ['<o\'brien@a.example>, "bob"', ["email o'brien@a.example"]],
    ['to=bob%40a.example&x=1 and bob&#64;a.example', ['email bob%40a.example', 'email bob&#64;a.example']],
    ['"a\\nbob@a.example\\n"', ['email bob@a.example']],
    ['ask bob (at) shop (dot) example', ['email bob (at) shop (dot) example']],
    ['почта иван@почта.рф.', ['email иван@почта.рф']],
    ['请写信bob@a.example谢谢', ['email bob@a.example']],
    ['SSN 123-45-6789 or social security 123456789', ['ssn 123-45-6789', 'ssn 123456789']],
    ['her number is 123-45-6789', ['ssn 123-45-6789']],
    ['card 4111 1111 1111 1111 ok', ['credit_card 4111 1111 1111 1111']],
    [
      'amex 3782-822463-10005, 5555555555554444',
      ['credit_card 3782-822463-10005', 'credit_card 5555555555554444'],
    ],
    ['my maestro card 503890547220', ['credit_card 503890547220']],
    ['call +49 30 1234567 now', ['phone +49 30 1234567']],
    ['(212) 555-0100 x12, 212.555.0101', ['phone (212) 555-0100 x12', 'phone 212.555.0101']],
    ['phone: 0393 1144137', ['phone 0393 1144137']],
    ['phoneNumber=5551234567', ['phone 5551234567']],
    ['020 7946 0958 is mine', ['phone 020 7946 0958']],
    ['电话：138 0013 8000', ['phone 138 0013 8000']],
    ['Zadzwoń: 601 234 567', ['phone 601 234 567']],
    ['write or 00 33 1 42 68 53 00', ['phone 00 33 1 42 68 53 00']],
    ['from 93.184.216.34:443, 192.168.1.20.', ['ip_address 93.184.216.34', 'ip_address 192.168.1.20']],
    ['deny 10.0.0.0/24', ['ip_address 10.0.0.0/24']],
    ['[2001:db8::1]:443 fe80::1%eth0', ['ip_address 2001:db8::1', 'ip_address fe80::1%eth0']],
    ['::ffff:93.184.216.34', ['ip_address ::ffff:93.184.216.34']],
    ['2606:2800:220:1::1946/64', ['ip_address 2606:2800:220:1::1946/64']],
    ['IBAN DE89 3704 0044 0532 0130 00 PAID', ['iban DE89 3704 0044 0532 0130 00']],
    ['id12 gb82west12345698765432', ['iban gb82west12345698765432']],
    [`key ${KEY}.`, [`api_key ${KEY}`]],
    ['x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln y', ['jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln']],
  ]
  test.each(found)('%j', (text, expected) => expect(tell(text)).toEqual(expected))
})

describe('not told', () => {
  test.each([
    'git@git.a.example:team/project.git',
    'pkg@1.2.3 icon@2x.png @mention a@b bob@localhost self@other.shape(x)',
    'postgres://app:hunter2@db.a.example/x',
    'order 123-45-6789, 000-12-3456, 666-12-3456, 900-12-3456, 123-00-4567, 123-45-0000, 078-05-1120',
    '123456789 and 123.45.6789',
    'card 4111111111111112, 0000000000000000',
    '503890547220',
    '2026-11-21, 21.11.2026, 11/21/2026, 2019-2024, 13:06:02',
    'order 5551234567, total 1 234 567, account 0123 456 789',
    '978-3-16-148410-0 and 12345-6789',
    'version 1.2.3.4, v10.0.19041.1, Chrome/120.0.0.0, pkg@1.2.3.4, >=1.2.3.4',
    '4.2.1.7 says more than 4.2.1.6',
    '1.2.3.4.5, 300.1.2.3, 01.02.03.04, 1.2.3',
    'std::vector a::b 12:34:56 00:1B:44:11:3A:B7 00:1A:2B:FF:FE:3C:4D:5E',
    '127.0.0.1, ::1, 0.0.0.0, 255.255.255.0',
    'DE88370400440532013000 and XX89370400440532013000',
    'eyJhbGciOiJIUzI1NiJ9 and eyJub3BlIjoxfQ.eyJzdWIiOiIxIn0.c2ln',
    '0198c6f2-4111-7111-8111-411111111111',
  ])('%j', (text) => expect(tell(text)).toEqual([]))
})

describe('what is hidden', () => {
  const mail = 'bob@a.example'
  const wide = (text: string) => text.replace(/[!-~]/g, (c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0))
  const hidden: [string, string, PiiKind][] = [
    ['zero-width spaces', [...mail].join('\u200b'), 'email'],
    ['soft hyphens', 'bob\u00ad@a\u00ad.example', 'email'],
    ['full-width letters', wide(mail), 'email'],
    ['Cyrillic letters', 'b\u043eb@\u0430.example', 'email'],
    ['combining marks', 'bo\u0301b@a.exa\u0301mple', 'email'],
    ['mathematical letters', '\ud835\uddef\ud835\uddfc\ud835\uddef@a.example', 'email'],
    ['full-width digits', wide('4111111111111111'), 'credit_card'],
    ['circled digits', '\u2463111 1111 1111 1111', 'credit_card'],
    ['zero-width joiners', '123\u200d-45-\u200d6789', 'ssn'],
    ['a key with a word joiner', `${KEY.slice(0, 12)}\u2060${KEY.slice(12)}`, 'api_key'],
    ['full-width telephone number', `tel ${wide('+49')} 30 1234567`, 'phone'],
  ]
  test.each(hidden)('%s', (_name, value, kind) => {
    const text = `so it is 😀 ${value} 😀, e\u0301`
    const [found, ...more] = findPii(text, ALL)
    expect(more).toEqual([])
    const wanted = value.replace(/^tel /, '')
    expect(found).toMatchObject({
      kind,
      start: text.indexOf(wanted),
      end: text.indexOf(wanted) + wanted.length,
    })
  })

  test.each([
    Buffer.from('write to bob@a.example').toString('base64'),
    Buffer.from('ssn 123-45-6789').toString('hex'),
    encodeURIComponent('card 4111 1111 1111 1111'),
  ])('what is encoded is found with the views of the text: %s', (encoded) => {
    const text = `data: ${encoded} end`
    expect(findPii(text, ALL)).toEqual([])
    const found = findPii(text, ALL, listViews(text))
    expect(found).toHaveLength(1)
    expect(found[0]!.start).toBeGreaterThanOrEqual(6)
    expect(found[0]!.end).toBeLessThanOrEqual(6 + encoded.length)
    expect(markPii(text, ALL).text).toMatch(/\[(?:EMAIL|SSN|CREDIT_CARD)\]/)
  })
})

test('only the kinds that are asked for are told, and never as another', () => {
  const text = 'card 4111111111111111, tel +49 30 1234567, 93.184.216.34, bob@a.example, 123-45-6789'
  expect(tell(text, new Set(['phone']))).toEqual(['phone +49 30 1234567'])
  expect(tell(text, new Set(['email', 'ip_address']))).toEqual([
    'ip_address 93.184.216.34',
    'email bob@a.example',
  ])
  expect(tell('phone 123-45-6789', new Set(['phone']))).toEqual([])
  expect(tell(text, new Set())).toEqual([])
})

test('a finding says how sure it is, and by which rule', () => {
  for (const { confidence, rule } of findPii(`bob@a.example ${KEY} 93.184.216.34`, ALL)) {
    expect(confidence).toBeGreaterThanOrEqual(LEAST_CONFIDENCE)
    expect(confidence).toBeLessThanOrEqual(1)
    expect(rule).toMatch(/^[a-z0-9_-]+$/)
  }
})

test('each place has its marker, and the findings are those of the text', () => {
  const text = `bob@a.example 😀 4111111111111111 tel +49 30 1234567 ${KEY}`
  const { text: masked, findings } = markPii(text, ALL)
  expect(masked).toBe('[EMAIL] 😀 [CREDIT_CARD] tel [PHONE] [API_KEY]')
  expect(findings.map(({ start, end }) => text.slice(start, end))).toEqual([
    'bob@a.example',
    '4111111111111111',
    '+49 30 1234567',
    KEY,
  ])
  expect(markPii('[EMAIL]bob@a.example', ALL).text).toBe('[EMAIL][EMAIL]')
})
