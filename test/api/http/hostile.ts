// What a hostile client may send: strings, numbers and
// shapes that can break parsers, databases and prototypes.

export type Random = {
  /** A whole number from 0 to `n` - 1. */
  below(n: number): number
  chance(share: number): boolean
  pick<T>(values: readonly T[]): T
}

/** Creates a Mulberry32 generator: the same seed gives the same numbers everywhere. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (n: number) => Math.floor(next() * n)
  return { below, chance: (share) => next() < share, pick: (values) => values[below(values.length)]! }
}

export const KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'length',
  '',
  '\0',
  'then',
]

export const TEXTS = [
  ...KEYS,
  ' ',
  '\t\r\n',
  'a\0b',
  '\ud800',
  'a\udfffb',
  '\udc00\ud800',
  '\u202e\u200b\ufeff',
  'e\u0301',
  '😀'.repeat(200),
  'null',
  'undefined',
  'NaN',
  'Infinity',
  '-0',
  '1e309',
  '9007199254740993',
  '0x10',
  '00',
  '-1',
  '1.5',
  '1e3',
  '../../etc/passwd',
  '..%2f..%2f',
  '%00',
  '%ff',
  '%',
  '%E0%A4%A',
  '%ED%A0%80',
  '\\',
  '/',
  '//',
  '?',
  '#',
  '&a=b',
  "' or 1=1 --",
  '"; drop table users',
  '$1',
  '{{',
  '}}',
  '{{ $eval("1") }}',
  '{{ $nodes.x }}',
  `\${7*7}`,
  '<script>alert(1)</script>',
  'a\r\nX-Evil: 1',
  '%0d%0aX-Evil:1',
  '=1+1',
  '*',
  'true',
  '[]',
  '{}',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  '{01a1fe70-f31f-700c-b5ca-b259c87c65bc}',
  '0000-01-01',
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  '2024-02-30',
  '+275760-09-13T00:00:00Z',
  '2024-01-01T00:00:00+99:99',
  '2024-01-01T24:00:00Z',
  '2024-01-01 00:00',
  'a@b',
  '@',
  `${'a'.repeat(310)}@example.com`,
  'x'.repeat(300),
  'ä'.repeat(5_001),
  'x'.repeat(70_000),
]

const NUMBERS = [
  '0',
  '-0',
  '1',
  '-1',
  '1.5',
  '1e-400',
  '5e-324',
  '1e21',
  '1e308',
  '-1e308',
  '1e999',
  '-1e999',
  '2147483647',
  '2147483648',
  '-2147483649',
  '4294967296',
  '9007199254740991',
  '9007199254740993',
  '9223372036854775808',
  '123456789012345678901234567890',
  '0.1e1',
  '100',
  '101',
]

/** Makes a JSON document of any type; few are deep or large. */
export function makeJson(random: Random, depth = 0): string {
  const kind = random.below(depth > 4 ? 4 : 9)
  if (kind === 0) return random.pick(['null', 'true', 'false'])
  if (kind === 1) return random.pick(NUMBERS)
  if (kind <= 3) return JSON.stringify(random.pick(TEXTS))
  if (kind === 4 && random.chance(0.2)) return makeDeep(random)
  const items = Array.from({ length: random.below(4) }, () => makeJson(random, depth + 1))
  if (kind <= 6) return `[${items}]`
  return `{${items.map((item) => `${JSON.stringify(random.pick([...KEYS, 'id', 'a', 'a', 'value']))}:${item}`)}}`
}

function makeDeep(random: Random): string {
  const levels = random.pick([10, 60, 63, 64, 65, 200, 20_000])
  return random.chance(0.5)
    ? '['.repeat(levels) + ']'.repeat(levels)
    : `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
}

/** Makes bytes that are not valid JSON or not UTF-8. */
export function makeGarbage(random: Random): Buffer {
  const valid = '{"name":"ä","teamId":"x"}'
  return random.pick([
    Buffer.from(''),
    Buffer.from('{'),
    Buffer.from('{"a":1,}'),
    Buffer.from("{'a':1}"),
    Buffer.from('NaN'),
    Buffer.from('\ufeff{}'),
    Buffer.from('"\\ud83d"'),
    Buffer.from('{"a":"\\u12"}'),
    Buffer.from('{"a":"\n"}'),
    Buffer.from(`${valid}${valid}`),
    Buffer.from(valid, 'latin1'),
    Buffer.from(valid, 'utf16le'),
    Buffer.from([0xff, 0xfe, 0x00, 0xed, 0xa0, 0x80]),
    Buffer.from(`{"name":"\xff"}`, 'latin1'),
    Buffer.from([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0]),
    Buffer.from('name=a&teamId=b'),
    Buffer.from('--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--'),
    Buffer.alloc(100_000, '['),
    Buffer.alloc(1_600_000, ' '),
  ])
}

const HEADERS: [string, string[]][] = [
  [
    'Content-Type',
    [
      'text/plain',
      'application/json; charset=utf-16',
      'application/json;;;',
      'a'.repeat(5_000),
      '/',
      'multipart/form-data; boundary=x',
      'application/x-www-form-urlencoded',
      'application/problem+json',
    ],
  ],
  ['Content-Encoding', ['gzip', 'br', 'identity', 'gzip, gzip', '\xff']],
  ['Accept', ['*/*', 'text/html', ',', 'application/xml;q=2', '\xff\xfe']],
  ['Accept-Encoding', ['gzip', 'gzip;q=NaN', '*;q=0', ',,,', 'x'.repeat(3_000)]],
  [
    'Authorization',
    [
      'Bearer',
      'Bearer  ',
      'Bearer sdk_',
      `Bearer sdk_${'0'.repeat(38)}`,
      'Basic YTpi',
      'bearer \xff',
      `Bearer ${'x'.repeat(9_000)}`,
    ],
  ],
  [
    'Cookie',
    [
      'perdure_session=',
      'perdure_session=a.b.c',
      'perdure_session=eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.',
      '=',
      ';;;',
      'perdure_session=%',
      'a=\xff',
    ],
  ],
  ['Origin', ['null', 'https://evil.example', 'x', '\xff', 'http://[']],
  ['Sec-Fetch-Site', ['cross-site', 'same-origin', '\xff']],
  ['Idempotency-Key', ['', 'a', 'x'.repeat(256), '\xff', '__proto__', '\t']],
  ['If-Match', ['*', '""', '"', 'W/', 'W/"x"', ',', '"a", "b"', '\xff', 'x'.repeat(5_000)]],
  ['X-Request-Id', ['', 'a b', '\xff', 'x'.repeat(500), '../..', '{{x}}']],
  [
    'X-Forwarded-For',
    ['', ',', 'x', '::1', '1.2.3.4, ::ffff:1.2.3.4', '\xff', "'", '1'.repeat(2_000), '2001:db8::1%eth0'],
  ],
  ['X-HTTP-Method-Override', ['DELETE', 'GET']],
  ['Traceparent', ['00-0-0-00', `00-${'f'.repeat(32)}-${'f'.repeat(16)}-ff`, '\xff']],
  ['Range', ['bytes=0-1', 'bytes=-']],
  ['Expect', ['100-continue', 'x']],
  ['Upgrade', ['websocket', 'h2c']],
  ['Host', ['', 'a b', 'evil.example', '[::1', '127.0.0.1:99999', '\xff', 'a@b', 'x'.repeat(1_000)]],
  ['Bad Name', ['x']],
  ['__proto__', ['x']],
  ['X-Any', ['', '\x01', 'a\0b', '\xff'.repeat(100), 'x'.repeat(15_000), 'x'.repeat(40_000)]],
]

/** Makes none, one or three header lines, in Latin-1. */
export function makeHeaders(random: Random): string[] {
  return Array.from({ length: random.pick([0, 0, 0, 1, 1, 3]) }, () => {
    const [name, values] = random.pick(HEADERS)
    return `${name}: ${random.pick(values)}`
  })
}
