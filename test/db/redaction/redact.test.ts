import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { labelOf, maskPartly, PII_KINDS } from '../../../db/detection/pii/kinds.ts'
import type { MaskPii } from '../../../db/redaction/detect.ts'
import { redact, redactText } from '../../../db/redaction/redact.ts'
import { isSecretName } from '../../../workflows/secrets/secretnames.ts'

const JWT =
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U'
const PEM = `-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabcd/+==\n-----END RSA PRIVATE KEY-----`

describe('key names', () => {
  const secret =
    'password Password PASSWORD passwd pwd pass userPassword db_password DB-PASSWORD clientSecret client_secret apiKey api_key API-KEY x-api-key apikey stripeApiKey accessToken access_token refreshToken idToken token authorization Authorization Proxy-Authorization cookie Set-Cookie auth privateKey private_key secretKey aws_secret_access_key encryptionKey passphrase credentials bearer jwt otp ssn cvv sessionId connectionString secretHeader XApiKey dbpassword accesstoken passwordHash SECRET_ACCESS_KEY'
  test.each(secret.split(' '))('%s', (name) => expect(isSecretName(name)).toBe(true))

  const plain =
    'author authors authored tokens tokens_used tokensUsed max_tokens total_tokens prompt_tokens token_count tokenType token_type nextPageToken page_token key keys monkey keyboard id name secretary passenger bypass compass passed passes tokenizer cookieless credentialId credential_id secretName passwordChangedAt password_updated_at hasher signature description status idempotency-key primaryKey foreign_key'
  test.each(plain.split(' '))('not %s', (name) => expect(isSecretName(name)).toBe(false))
})

describe('values', () => {
  test('under a secret key every string and number is masked; structure, booleans and null are kept', () => {
    const value = { password: 'a', n: 1, credentials: { user: 'u', list: ['x', 7, true, null], empty: '' } }
    expect(redact(value)).toEqual({
      password: '[redacted]',
      n: 1,
      credentials: { user: '[redacted]', list: ['[redacted]', '[redacted]', true, null], empty: '' },
    })
    expect(value.password).toBe('a')
  })

  test('a value in a list of names and values is masked by its name', () => {
    const headers = [
      { name: 'X-Api-Key', value: 'abc' },
      { name: 'Accept', value: 'text/html' },
    ]
    expect(redact(headers)).toEqual([{ name: 'X-Api-Key', value: '[redacted]' }, headers[1]])
  })

  const found: [string, string][] = [
    [`jwt ${JWT}.`, 'jwt [redacted].'],
    [`before ${PEM} after`, 'before [redacted] after'],
    [PEM.slice(0, 50), '[redacted]'],
    ['sdk_0123456789abcdefABCDEF', '[redacted]'],
    ['ghp_0123456789abcdefghijklmnopqrstuvwxyz', '[redacted]'],
    ['id AKIAIOSFODNN7EXAMPLE, x', 'id [redacted], x'],
    ['sent Bearer abc.def-123456 to it', 'sent Bearer [redacted] to it'],
    [`sent Basic ${Buffer.from('user:pass').toString('base64')} to it`, 'sent Basic [redacted] to it'],
    ['postgres://app:hunter2@db:5432/x', 'postgres://[redacted]@db:5432/x'],
    ['redis://:p@ss@cache/0', 'redis://[redacted]@cache/0'],
    [
      'GET https://a.example/x?page=2&access_token=abc123&z=1',
      'GET https://a.example/x?page=2&access_token=[redacted]&z=1',
    ],
    [
      'https://b.example/?X-Amz-Signature=0123456789abcdef0123&a=b',
      'https://b.example/?X-Amz-Signature=[redacted]&a=b',
    ],
    ['password=hunter2 user=bob', 'password=[redacted] user=bob'],
    ['failed: password=hunter2', 'failed: password=[redacted]'],
    ['{"user":"bob","apiKey":"a \\"b\\" c","n":1', '{"user":"bob","apiKey":"[redacted]","n":1'],
    ['said "{\\"token\\":\\"abc\\",\\"n\\":1}"', 'said "{\\"token\\":\\"[redacted]\\",\\"n\\":1}"'],
    ['Cookie: a=b; c=d\nHost: x', 'Cookie: [redacted]\nHost: x'],
    ['Authorization: Digest username=a, response=b', 'Authorization: [redacted]'],
    ['card 4111 1111 1111 1111 ok', 'card [redacted] ok'],
    ['4111111111111111', '[redacted]'],
    ['amex 3782-822463-10005', 'amex [redacted]'],
  ]
  test.each(found)('%j', (text, expected) => expect(redactText(text)).toBe(expected))

  test.each([
    '0198c6f2-4111-7111-8111-411111111111',
    '2026-11-21T13:06:02.123Z',
    '1763730362123',
    '1763730362123456',
    'order 4111111111111112',
    'order 1234567890123456',
    '3.4111111111111111',
    'a basic information page, the bearer authentication scheme',
    'password: must be at least 12 characters',
    'token is missing',
    'ssh://git@github.com/a/b.git',
    'http://localhost:3000/a@b',
    'https://a.example/?key=short&page=1',
    'tokens_used=17 author: bob',
    'sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
    'mail bob@a.example, +49 30 1234567, DE89370400440532013000',
  ])('%j is kept', (text) => expect(redact({ text })).toEqual({ text }))

  const personal: [string, string][] = [
    ['mail Bob.O+x@mail.a.example!', 'mail [redacted]!'],
    ['call +49 30 1234567 now', 'call [redacted] now'],
    ['call (212) 555-0100 or 212-555-0100', 'call [redacted] or [redacted]'],
    ['IBAN DE89 3704 0044 0532 0130 00 PAID', 'IBAN [redacted] PAID'],
    ['GB82WEST12345698765432', '[redacted]'],
    ['ssn 123-45-6789', 'ssn [redacted]'],
    ['from 93.184.216.34:443, 192.168.1.20.', 'from [redacted]:443, [redacted].'],
    ['from 2606:2800:220:1::1946 (fe80::1)', 'from [redacted] ([redacted])'],
    ['4111-1111-1111-1111', '[redacted]'],
  ]
  test.each(personal)('with pii: %j', (text, expected) =>
    expect(redactText(text, { pii: true })).toBe(expected),
  )

  test.each([
    'DE88370400440532013000',
    '0198c6f2-1234-7111-8111-411111111111',
    '2026-11-21T13:06:02.123+01:00',
    '12:34:56',
    '1.2.3.4.5',
    '300.1.2.3',
    'connect ECONNREFUSED 127.0.0.1:5432, ::1, 0.0.0.0',
  ])('with pii %j is kept', (text) => expect(redactText(text, { pii: true })).toBe(text))

  test('numbers are searched like strings', () => {
    expect(redact({ a: 4111111111111111, b: 4111111111111111n, c: 17 })).toEqual({
      a: '[redacted]',
      b: '[redacted]',
      c: 17,
    })
  })

  test('a string that holds JSON is parsed once, and keeps its spelling if nothing is masked', () => {
    expect(redact({ body: '{"password": "x", "n": 1}' })).toEqual({ body: '{"password":"[redacted]","n":1}' })
    expect(redact({ body: ' { "n" : 1.0 } ' })).toEqual({ body: ' { "n" : 1.0 } ' })
    expect(redact(JSON.stringify({ inner: JSON.stringify({ apiKey: 'very secret' }) }))).not.toContain(
      'very secret',
    )
  })

  test('keys that are secrets themselves are masked, and no entry is lost', () => {
    const copy = redact({ sdk_0123456789abcdefABCDEF: 1, sdk_0123456789abcdefABCDEE: 2 })
    expect(Object.values(copy).sort()).toEqual([1, 2])
    expect(JSON.stringify(copy)).not.toContain('sdk_')
  })
})

describe('exact secrets', () => {
  const secret = 'pä$$ w"ord/+?&=1'
  const bytes = Buffer.from(secret)
  const forms: [string, string][] = [
    ['plain', secret],
    ['url', encodeURIComponent(secret)],
    ['form', new URLSearchParams({ a: secret }).toString()],
    ['lower-case url', encodeURIComponent(secret).toLowerCase()],
    ['hex', bytes.toString('hex')],
    ['upper-case hex', bytes.toString('hex').toUpperCase()],
    ['json', JSON.stringify(secret)],
    ['base64', bytes.toString('base64')],
    ['base64url', bytes.toString('base64url')],
    ['basic', Buffer.from(`u:${secret}`).toString('base64')],
    ['basic 2', Buffer.from(`us:${secret}`).toString('base64')],
    ['inside base64', Buffer.from(`abcd${secret}xyz`).toString('base64')],
  ]
  test.each(forms)('%s', (_name, form) => {
    const clean = redactText(`<<${form}>>`, { secrets: [secret] })
    expect(clean).toContain('[redacted]')
    expect(clean).not.toContain(form.replaceAll('"', ''))
    // Beside what surrounds the secret, a base64 text keeps at each edge at most the bits of one character.
    expect(clean.replace('[redacted]', '').length).toBeLessThanOrEqual(4 + 12)
  })

  test('short secrets are masked only as whole values', () => {
    expect(redact({ a: '1234', b: 1234, c: 'no 1234' }, { secrets: ['1234', ''] })).toEqual({
      a: '[redacted]',
      b: '[redacted]',
      c: 'no 1234',
    })
  })

  test('of two secrets that overlap the longer one is masked as a whole', () => {
    expect(redactText('x=abcdefgh', { secrets: ['abcdef', 'abcdefgh'] })).toBe('x=[redacted]')
  })
})

describe('any value', () => {
  test('cycles, deep values, shared objects and getters that throw are no problem', () => {
    const cycle: Record<string, unknown> = { password: 'x' }
    cycle.self = cycle
    expect(redact(cycle)).toEqual({ password: '[redacted]', self: '[circular]' })

    let deep: unknown = 'secret-at-the-bottom'
    for (let i = 0; i < 100_000; i++) deep = [deep]
    expect(JSON.stringify(redact(deep))).toContain('[truncated]')
    const text = '['.repeat(100_000) + ']'.repeat(100_000)
    expect(redact({ text })).toEqual({ text })

    let wide: unknown = { token: 'abc' }
    for (let i = 0; i < 60; i++) wide = { a: wide, b: wide }
    expect(redact({ wide })).toHaveProperty('wide.a.b.a')

    const shared = { a: 'plain' }
    expect(redact({ secret: shared, open: shared })).toEqual({
      secret: { a: '[redacted]' },
      open: { a: 'plain' },
    })
    const trap = {
      get boom(): string {
        throw new Error('no')
      },
    }
    expect(redact({ trap, n: 1 })).toEqual({ trap: '[unreadable]', n: 1 })
  })

  test('after the most values that are copied comes a mark', () => {
    const copy = redact(Array.from({ length: 300_000 }, (_, i) => i))
    expect(copy.length).toBeLessThan(300_000)
    expect(copy.at(-1)).toBe('[truncated]')
  })

  test('errors, URLs, maps, sets and bytes become plain values; dates are kept', () => {
    const error = Object.assign(new Error('no login with password=hunter2', { cause: new Error(JWT) }), {
      token: 'abc',
    })
    const copy = JSON.stringify(redact({ error }))
    expect(copy).toContain('no login with password=[redacted]')
    for (const leak of ['hunter2', JWT, '"abc"']) expect(copy).not.toContain(leak)
    const at = new Date(0)
    expect(
      redact({
        at,
        url: new URL('http://u:p@h/'),
        map: new Map([['apiKey', 'x']]),
        set: new Set([1]),
        bytes: Buffer.from('x'),
      }),
    ).toEqual({
      at,
      url: 'http://[redacted]@h/',
      map: { apiKey: '[redacted]' },
      set: [1],
      bytes: '[bytes]',
    })
  })

  test('`__proto__` and `constructor` are keys like any other', () => {
    const copy = redact(JSON.parse('{"__proto__":{"password":"x"},"constructor":"c"}'))
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"password":"[redacted]"},"constructor":"c"}')
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
  })
})

describe('properties', () => {
  const SECRET = 'S3cr3t/Value+42~x'
  const encodings = [
    (s: string) => s,
    (s: string) => `around ${s} it`,
    (s: string) => encodeURIComponent(s),
    (s: string) => Buffer.from(s).toString('base64'),
    (s: string) => Buffer.from(s).toString('hex'),
    (s: string) => JSON.stringify({ a: [s] }),
  ]
  const shapeOf = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(shapeOf)
      : typeof value === 'object' && value !== null
        ? Object.values(value).map(shapeOf)
        : 'leaf'

  test('a planted secret is always masked, and the structure is kept', () => {
    const planted = fc
      .tuple(
        fc.jsonValue({ maxDepth: 3 }),
        fc.array(fc.oneof(fc.string(), fc.nat(3)), { maxLength: 5 }),
        fc.nat(5),
      )
      .map(([other, path, encoding]) =>
        path.reduceRight<unknown>(
          (inner, step) =>
            typeof step === 'number'
              ? [other, inner]
              : Object.fromEntries([
                  ['o', other],
                  [step, inner],
                ]),
          encodings[encoding]?.(SECRET),
        ),
      )
    fc.assert(
      fc.property(planted, (value) => {
        const copy = redact(value, { secrets: [SECRET] })
        const text = JSON.stringify(copy)
        for (const encode of encodings.slice(2, 5))
          expect(text).not.toContain(encode(SECRET).replace(/=+$/, ''))
        expect(text).not.toContain(SECRET)
        expect(shapeOf(copy)).toEqual(shapeOf(value))
      }),
      { numRuns: 500 },
    )
  })

  test('redacting twice changes nothing', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom(
        ...'=: "\'\\&?{}\n',
        JWT,
        PEM,
        SECRET,
        'password',
        'token',
        'Bearer ',
        'x://u:p@h',
        '4111111111111111',
        '[redacted]',
        'sdk_0123456789abcdef',
        'bob@a.example',
      ),
    )
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
    const value = fc.oneof(text, fc.dictionary(text, text), fc.jsonValue(), fc.object())
    fc.assert(
      fc.property(value, fc.boolean(), (input, pii) => {
        const once = redact(input, { pii, secrets: [SECRET] })
        expect(redact(once, { pii, secrets: [SECRET] })).toEqual(once)
      }),
      { numRuns: 2_000 },
    )
  })

  test('what was masked with a label or partly is not masked again', () => {
    const found = fc.constantFrom(
      'ada@a.example',
      '+49 30 1234567',
      '(212) 555-0100',
      '123-45-6789',
      '4111 1111 1111 1111',
      'DE89 3704 0044 0532 0130 00',
      '93.184.216.34',
      '2606:2800:220:1::1946',
    )
    const text = fc
      .array(fc.oneof(found, fc.string(), fc.constantFrom(' ', ':', '=', 'token')), { maxLength: 8 })
      .map((pieces) => pieces.join(''))
    const styles = fc.constantFrom<MaskPii[]>(labelOf, maskPartly)
    fc.assert(
      fc.property(text, styles, (input, mask) => {
        const rules = {
          kinds: new Set(PII_KINDS),
          mask,
          names: new Set<string>(),
          maskOwn: (all: string) => all,
        }
        const once = redact(input, { pii: true, rules })
        expect(redact(once, { pii: true, rules })).toBe(once)
      }),
      { numRuns: 2_000 },
    )
  })

  test('the time is linear in the length of the text, whatever it contains', { tags: 'long' }, () => {
    const pieces = [
      ...'a1-.@:="\\[ \né',
      '+1',
      'a@',
      'a.',
      'a://',
      'a=',
      'password=',
      'password="',
      'password="\\',
      'eyJ',
      'eyJaaaaaa.',
      'eyJ-',
      'sk-',
      'sdk_',
      'AKIA',
      'Bearer ',
      'Basic a',
      '?key=',
      '://a:',
      '4111 ',
      '4111-',
      'DE89',
      'DE89 ',
      '-----BEGIN ',
      '-----BEGIN PRIVATE KEY-----',
      '-----END',
      '(212) ',
      '1.2.',
      'a:',
      '::',
      '{"a":',
    ]
    const fill = (piece: string, length: number) =>
      piece.repeat(Math.ceil(length / piece.length)).slice(0, length)
    const measure = (text: string) => {
      const start = process.cpuUsage()
      redactText(text, { pii: true, secrets: [SECRET] })
      const { user, system } = process.cpuUsage(start)
      return (user + system) / 1_000
    }
    for (const piece of pieces) {
      // 8 times the length takes 8 times the time if it is linear, 64 times if it is quadratic. At least 4 ms
      // are assumed for the short text, and there are three tries, so that noise does not matter.
      let ratio = Number.POSITIVE_INFINITY
      for (let tries = 0; tries < 3 && ratio >= 32; tries++) {
        const small = Math.min(...[0, 1, 2].map(() => measure(fill(piece, 50_000))))
        ratio = measure(fill(piece, 400_000)) / Math.max(small, 4)
      }
      expect(ratio, JSON.stringify(piece)).toBeLessThan(32)
    }
  })
})
