import { createHmac } from 'node:crypto'
import zlib from 'node:zlib'

/** A request of a stranger, as its bytes go over the line. */
export type Attack = {
  what: string
  method?: string
  path: string
  headers?: [name: string, value: string][]
  body?: Buffer
}

export type Places = { hook: string; signed: string; files: string; secret: string; resume: string }

const MOST = 1_499_000
const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

/** So many bytes of a text again and again. */
const fill = (text: string, bytes = MOST) => text.repeat(Math.floor(bytes / text.length))
const listOf = (entry: string, bytes = MOST) => `[${fill(`${entry},`, bytes - 20)}0]`
const part = (value: string, head = 'form-data; name=a', boundary = 'b') =>
  `--${boundary}\r\nContent-Disposition: ${head}\r\n\r\n${value}\r\n`
const long = fill('x', 200)

/** The worst single requests that we know of each kind. */
export function listAttacks(places: Places): Attack[] {
  const post = (
    what: string,
    path: string,
    type: string,
    body: string | Buffer,
    more: [string, string][] = [],
  ): Attack => ({
    what,
    method: 'POST',
    path,
    headers: [['Content-Type', type], ...more],
    body: typeof body === 'string' ? Buffer.from(body, 'latin1') : body,
  })
  const hook = (what: string, type: string, body: string | Buffer, more?: [string, string][]) =>
    post(what, places.hook, type, body, more)
  const login = (what: string, body: string, more?: [string, string][]) =>
    post(what, '/api/auth/login', JSON_TYPE, body, more)
  const register = (what: string, fields: object) => {
    const person = { firstName: 'Ada', lastName: 'Byron', email: 'stranger@example.com', password: 'a' }
    return post(what, '/api/auth/register', JSON_TYPE, JSON.stringify({ ...person, ...fields }))
  }
  const multipart = (what: string, path: string, body: string, type = 'multipart/form-data; boundary=b') =>
    post(what, path, type, body)
  const keys = Array.from({ length: 110_000 }, (_, n) => `"k${n}":1`).join(',')
  const text = listOf('{"a":1}')
  const sign = (body: string) => createHmac('sha256', 'key').update(body).digest('hex')
  const forms = [places.hook, places.files].flatMap((path) => {
    const where = path === places.files ? ' (streamed)' : ''
    return [
      multipart(`tiny parts${where}`, path, `${fill(part(''))}--b--`),
      multipart(`1000 parts${where}`, path, `${part('x'.repeat(1_400)).repeat(1_000)}--b--`),
      multipart(`boundaries alone${where}`, path, `${fill('--b\r\n')}--b--`),
      multipart(
        `a long boundary, nearly met${where}`,
        path,
        fill(`\r\n--${long.slice(0, -1)}y`),
        `multipart/form-data; boundary=${long}`,
      ),
      multipart(
        `parameters of a part${where}`,
        path,
        `${part('', `form-data; name=a${fill(';a="\\"', 14_000)}`).repeat(100)}--b--`,
      ),
      multipart(`a cut part of 1.5 MB${where}`, path, part(fill('\r\n-'), 'form-data; name=a; filename=f')),
      multipart(
        `a file of 1.5 MB${where}`,
        path,
        `${part(fill('\r\n--'), 'form-data; name=a; filename=f')}--b--`,
      ),
    ]
  })
  const queries = [
    ['of one name', 'a&'],
    ['of escapes', '%e4%'],
    ['of plus signs', '+'],
    ['of prototypes', '__proto__=1&'],
    ['of brackets', 'a[b][c]=1&'],
  ].map(([what, piece]) => post(`a query ${what}`, `${places.hook}?${fill(piece!, 14_000)}`, JSON_TYPE, '{}'))
  return [
    hook('a small body', JSON_TYPE, '{"a":1}'),
    hook('a form of 740,000 fields', FORM, fill('a&')),
    hook('a form of 1000 long fields', FORM, fill(`a=${'%41'.repeat(495)}&`)),
    hook('a form of one field of plus signs', FORM, `a=${fill('+')}`),
    hook('a form of broken escapes', FORM, `a=${fill('%e')}`),
    hook('a form in Shift_JIS', `${FORM}; charset=shift_jis`, `a=${fill('%93%fa')}`),
    hook('a text that is said to be a form', FORM, fill('x ')),
    ...forms,
    hook('empty lists', JSON_TYPE, listOf('[]')),
    hook('empty objects', JSON_TYPE, listOf('{}')),
    hook('small objects', JSON_TYPE, text),
    hook('lists in lists', JSON_TYPE, listOf(`${'['.repeat(60)}${']'.repeat(60)}`)),
    hook('750,000 numbers', JSON_TYPE, listOf('1')),
    hook('numbers that are too large', JSON_TYPE, listOf('12345678901234567890')),
    hook('keys', JSON_TYPE, `{${keys}}`),
    hook('JSON nested 700,000 deep', JSON_TYPE, '['.repeat(749_000) + ']'.repeat(749_000)),
    hook('__proto__ at the end', JSON_TYPE, listOf('[]').replace(/0\]$/, '{"__proto__":1}]')),
    hook('JSON that is broken at the end', JSON_TYPE, `${listOf('[]')}]`),
    hook('a string of escapes', JSON_TYPE, `"${fill('\\u0001')}"`),
    hook('strings', JSON_TYPE, listOf('"a"')),
    hook('JSON in UTF-16', `${JSON_TYPE}; charset=utf-16`, Buffer.from(listOf('[]', MOST / 2), 'utf16le')),
    hook('60 KB of lists', JSON_TYPE, listOf('[]', 60_000)),
    hook('60 KB of keys', JSON_TYPE, `{${keys.slice(0, 60_000).replace(/,[^,]*$/, '')}}`),
    hook('a text of control characters', 'text/plain', fill('\x01')),
    hook('a text of quotes', 'text/plain', fill('"')),
    hook('a text in Shift_JIS', 'text/plain; charset=shift_jis', fill('\x93\xfa')),
    hook('bytes', 'image/png', fill('\xff')),
    hook('a page', 'text/html', fill('<meta ')),
    ...Object.entries({
      gzip: zlib.gzipSync,
      br: zlib.brotliCompressSync,
      zstd: zlib.zstdCompressSync,
    }).flatMap(([name, press]) => [
      hook(`lists in ${name}`, JSON_TYPE, press(listOf('[]')), [['Content-Encoding', name]]),
      hook(`a bomb in ${name}`, JSON_TYPE, press(Buffer.alloc(200_000_000)), [['Content-Encoding', name]]),
      post(`a bomb in ${name}, as a file`, places.files, 'image/png', press(Buffer.alloc(60_000_000)), [
        ['Content-Encoding', name],
      ]),
    ]),
    hook('a bomb in a bomb', JSON_TYPE, zlib.gzipSync(zlib.gzipSync(Buffer.alloc(200_000_000))), [
      ['Content-Encoding', 'gzip, gzip'],
    ]),
    post('a wrong signature of 1.5 MB', places.signed, JSON_TYPE, text, [['X-Signature', sign('')]]),
    post('14 KB of signatures of 1.5 MB', places.signed, JSON_TYPE, text, [
      ['X-Signature', fill('a,', 14_000)],
    ]),
    post('a signature of 1.5 MB', places.signed, JSON_TYPE, text, [['X-Signature', sign(text)]]),
    post('a secret of 14 KB', places.secret, JSON_TYPE, '{}', [['X-Key', fill('x', 14_000)]]),
    post('1.5 MB for no webhook', `${places.hook.slice(0, 10)}/in`, JSON_TYPE, text),
    post('a file of 15 MB', places.files, 'image/png', Buffer.alloc(15_000_000)),
    ...queries,
    hook(
      '1,900 headers',
      JSON_TYPE,
      '{}',
      Array.from({ length: 1_900 }, (_, n): [string, string] => [`a${n % 10}`, '']),
    ),
    login('cookies of 14 KB', '{"email":"a","password":"b"}', [['Cookie', fill('a=b; ', 14_000)]]),
    login('a cookie of 14 KB', '{"email":"a","password":"b"}', [
      ['Cookie', `perdure_session=${fill('a.', 14_000)}`],
    ]),
    login('a token of 14 KB', '{"email":"a","password":"b"}', [
      ['Authorization', `Bearer ${fill('a', 14_000)}`],
    ]),
    login('a chain of proxies of 14 KB', '{"email":"a","password":"b"}', [
      ['X-Forwarded-For', fill('1,', 14_000)],
    ]),
    login('a sign-in of 1.5 MB', `{"email":"${fill('a', 1_490_000)}"}`),
    login('a sign-in of 32 KB of lists', `{"email":"a","a":${listOf('[]', 32_000)}}`),
    login('a wrong password', '{"email":"admin@example.com","password":"wrong wrong wrong"}'),
    login('a password of 1 KB', `{"email":"a@example.com","password":"${fill('a', 1_024)}"}`),
    register('a password of 1 KB to estimate', { password: fill('aA1!', 1_024) }),
    register('a password of dates', { password: fill('2012-12-12', 1_024) }),
    register('a password of words', { password: fill('correcthorse', 1_024) }),
    register('an e-mail to match', { email: `${fill('a.', 160)}@${fill('a.', 150)}` }),
    register('an e-mail of one letter', { email: fill('a', 320) }),
    post('a wrong token to resume, of 1.5 MB', `/resume/${fill('a', 900)}.a`, JSON_TYPE, text),
    post('a right token to resume, of 1.5 MB', places.resume, JSON_TYPE, listOf('[]')),
    post('a widget that is not there', '/api/public/widgets/wk_none/sessions', JSON_TYPE, text),
    post('traces without a token', '/api/telemetry/v1/traces', JSON_TYPE, text),
    {
      what: 'an OAuth answer of 14 KB',
      path: `/api/credentials/oauth2/callback?state=${fill('a', 7_000)}&code=${fill('%', 7_000)}`,
    },
    { what: 'a path of slashes', path: `/${fill('a/', 14_000)}` },
    { what: 'a path of escapes', path: `/api/${fill('%e4', 14_000)}` },
  ]
}
