import * as v from 'valibot'

const MAX_SECRET = 16_384

/** A text that is there and says something. */
export const text = v.pipe(
  v.string('must be a string'),
  v.check((value) => value.isWellFormed() && !value.includes('\0'), 'must not contain NUL or broken Unicode'),
  v.check((value) => value.trim() !== '', 'must not be empty'),
  v.maxLength(MAX_SECRET, `must have at most ${MAX_SECRET} characters`),
)
/** A text that may be empty, as some passwords are. */
export const secret = v.pipe(
  v.string('must be a string'),
  v.check((value) => value.isWellFormed() && !value.includes('\0'), 'must not contain NUL or broken Unicode'),
  v.maxLength(MAX_SECRET, `must have at most ${MAX_SECRET} characters`),
)
/** A text of several lines, such as a key in PEM. */
export const lines = v.pipe(text, v.metadata({ kind: 'lines' }))
export const port = v.pipe(
  v.union([v.number(), v.pipe(v.string(), v.regex(/^\d{1,5}$/), v.transform(Number))], 'must be a port'),
  v.integer('must be a port'),
  v.minValue(1, 'must be a port'),
  v.maxValue(65_535, 'must be a port'),
  v.metadata({ kind: 'number' }),
)
export const url = v.pipe(
  text,
  v.check((value) => /^https?:$/.test(URL.parse(value)?.protocol ?? ''), 'must be a URL with http or https'),
  v.check((value) => {
    const { username = '', password = '' } = URL.parse(value) ?? {}
    return username === '' && password === ''
  }, 'must not have a user name or password in it, which would not be kept secret'),
  v.metadata({ kind: 'url' }),
)
/** At most this many headers, and as many parameters, in one credential. */
const MAX_PAIRS = 20

/** Pairs of names and values, each a text as one writes it by hand: `HEADER_LINE` or `QUERY_LINE`. */
const pairs = (line: RegExp, form: string, nameOf: (name: string) => string) =>
  v.pipe(
    v.array(v.pipe(text, v.regex(line, `must be written as ${form}`)), `must be a list of texts: ${form}`),
    v.minLength(1, 'must have an entry'),
    v.maxLength(MAX_PAIRS, `must have at most ${MAX_PAIRS} entries`),
    v.check((list) => {
      const names = list.flatMap((one) => line.exec(one)?.[1] ?? []).map(nameOf)
      return new Set(names).size === names.length
    }, 'must not have a name twice'),
  )

/** A header as HTTP writes it, with a value of one line that says something. */
export const HEADER_LINE =
  /^([\w!#$%&'*+.^`|~-]+):[ \t]*([\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)[ \t]*$/

/** A parameter of a query with its value as it is, not encoded. */
export const QUERY_LINE = /^([^\s=&#]+)=(.+)$/s

export const headerLines = pairs(HEADER_LINE, 'Name: value', (name) => name.toLowerCase())
export const queryLines = pairs(QUERY_LINE, 'name=value', (name) => name)

export const flag = v.boolean('must be true or false')
const tls = v.picklist(
  ['auto', 'always', 'required', 'never'],
  'must be auto, always, required (STARTTLS) or never',
)

/** A host such as `api.example.com`, or all hosts below one: `*.example.com`. A port may follow. */
const host = v.pipe(
  v.string('must be a string'),
  v.trim(),
  v.toLowerCase(),
  v.regex(
    /^(\*\.)?([\p{L}\p{N}_-]+(\.[\p{L}\p{N}_-]+)*|\[[\da-f:.]+\])(:\d{1,5})?$/u,
    'must be a host such as api.example.com or *.example.com',
  ),
)
/** For the types that are used at any host. */
export const anywhere = {
  allowedHosts: v.optional(
    v.pipe(
      v.array(host, 'must be a list of hosts'),
      v.minLength(1, 'must name a host'),
      v.maxLength(50, 'must have at most 50 hosts'),
    ),
  ),
  testUrl: v.optional(url),
}
export const ANYWHERE = ['allowedHosts', 'testUrl'] as const
/** For the types of one vendor, whose hosts are known. */
export const vendor = { baseUrl: v.optional(url) }

/** How a mail server learns who sends. `none`: not at all, as where it takes mail of a network. */
export const authentication = v.picklist(['password', 'none'], 'must be password or none')
export const login = { host: text, port, username: text, password: secret, tls: v.optional(tls, 'auto') }
