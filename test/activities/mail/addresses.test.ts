import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isMailAddress, readMailAddresses } from '../../../activities/mail/addresses.ts'
import { chooseTls } from '../../../activities/mail/session.ts'

test.each([
  ['ada@example.com', [['', 'ada@example.com']]],
  ['Ada Byron <ada@example.com>', [['Ada Byron', 'ada@example.com']]],
  [
    '"Byron, \\"A\\"" <ada@example.com> , b@c.example',
    [
      ['Byron, "A"', 'ada@example.com'],
      ['', 'b@c.example'],
    ],
  ],
  ['zoë@bücher.example', [['', 'zoë@xn--bcher-kva.example']]],
  ['a@example.com,, ', [['', 'a@example.com']]],
  [
    ['a@example.com', null, 'b@example.com'],
    [
      ['', 'a@example.com'],
      ['', 'b@example.com'],
    ],
  ],
  [null, []],
])('%j', (given, read) => {
  expect(readMailAddresses(given).map(({ name, address }) => [name, address])).toEqual(read)
})

test.each([
  'ada',
  '@example.com',
  'ada@',
  'a@b@example.com',
  'a b@example.com',
  '"a@evil.example" <ada@example.com',
  '"xclow@evil.example x"@example.com',
  'ada@example.com<eve@evil.example>x',
  'team: ada@example.com;',
  'a@example.com;b@example.com',
  'ada@exa mple.com',
  'a@example.com\nb@example.com',
  '"open@example.com',
])('%j is refused', (given) => {
  expect(() => readMailAddresses(given)).toThrow(/^must|^has/)
})

test('whatever is read is a single address, and its name is on one line', () => {
  const piece = fc.constantFrom(
    'a',
    '@',
    '<',
    '>',
    '"',
    ',',
    '\\',
    ' ',
    '.',
    'b.example',
    '\r',
    '\n',
    '\0',
    'é',
    ';',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      try {
        for (const { name, address } of readMailAddresses(pieces.join(''))) {
          expect(isMailAddress(address)).toBe(true)
          expect(name).not.toMatch(/\p{Cc}/u)
        }
      } catch (error) {
        expect((error as Error).message).toMatch(/^must|^has/)
      }
    }),
    { numRuns: 2_000 },
  )
})

test('no password goes out in clear, but to this machine or where the credential says so', () => {
  const near = { remoteAddress: '127.0.0.1' }
  const far = { remoteAddress: '203.0.113.7' }
  const how = (login: Parameters<typeof chooseTls>[0], socket: { remoteAddress: string | undefined }) =>
    chooseTls(login, 465, socket).how
  expect(how({ tls: 'auto', port: 465 }, far)).toBe('at once')
  expect(how({ tls: 'auto', port: 25 }, far)).toBe('required')
  expect(how({ port: 587 }, { remoteAddress: undefined })).toBe('required')
  expect(how({ tls: 'auto', port: 25 }, near)).toBe('if offered')
  expect(how({ tls: 'required', port: 25 }, near)).toBe('required')
  expect(how({ tls: 'always', port: 25 }, near)).toBe('at once')
  expect(how({ tls: 'never', port: 465 }, far)).toBe('none')
  for (const tls of ['always', 'required', 'auto'] as const)
    expect(chooseTls({ tls, port: 587 }, 465, far).verified).toBe(true)
})
