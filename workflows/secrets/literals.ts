import type { Rules } from '../expressions/rules.ts'
import type { GraphNode } from '../graph/graph.ts'
import { HIDDEN } from '../graph/secrets.ts'
import { isObject } from '../json.ts'
import { joinPath, type Path, type Problem } from '../problem.ts'
import { listRequests } from './requests.ts'
import { isSecretName, LEAST_SECRET, MAYBE_SECRET, normalizeKey } from './secretnames.ts'

/**
 * A secret that is written into a request: where it is in the config, how it is sent, and its exact value. `user` is
 * the `user:password` of a URL, of which `value` has both; `parameter` is one in the text of a URL.
 */
export type Literal = {
  place: 'header' | 'query' | 'parameter' | 'user'
  path: Path
  name: string
  value: string
}

/** The most secrets of one node that are looked at. */
const MAX_LITERALS = 100

/** A user name without a password that is as long as this is taken for a token. */
const TOKEN_CHARS = 16

/**
 * The secrets that are written into a node's requests: in headers and parameters whose names are those of secrets, and
 * before the host of the URL. A text with an expression in it does not count, nor does one that an export has hidden.
 */
export function findLiterals(node: GraphNode, rules: Rules): Literal[] {
  const found = listRequests(node).flatMap(({ config, path }) =>
    [
      ...findNamed(config.headers, 'header', rules),
      ...findInUrl(config.url, rules),
      ...findNamed(config.query, 'query', rules),
    ].map((literal) => ({ ...literal, path: [...path, ...literal.path] })),
  )
  return found.filter(({ value }) => !value.includes(HIDDEN)).slice(0, MAX_LITERALS)
}

/**
 * The problems of the secrets that are written into a node at `configPath`. A secret that the `stored` node has at the
 * same place is only a warning: a workflow stays savable.
 */
export function checkLiterals(
  node: GraphNode,
  configPath: string,
  rules: Rules,
  stored: GraphNode | undefined,
): { problems: Problem[]; warnings: Problem[] } {
  const identify = ({ place, path, name, value }: Literal) => JSON.stringify([place, path, name, value])
  const literals = findLiterals(node, rules)
  const known = new Set(
    stored?.type === node.type && literals.length > 0 ? findLiterals(stored, rules).map(identify) : [],
  )
  const [problems, warnings]: [Problem[], Problem[]] = [[], []]
  for (const literal of literals) {
    const isKept = known.has(identify(literal))
    const path = literal.path.reduce<string>(joinPath, configPath)
    ;(isKept ? warnings : problems).push({
      path,
      message: `${nameLiteral(literal)} ${isKept ? KEPT : REFUSED}`,
    })
  }
  return { problems, warnings }
}

const WAY_OUT = 'put it into a credential (POST /api/credentials) and name that by credentialId'
const REFUSED = `must not be written into the graph: ${WAY_OUT}`
const KEPT = `is written into the graph: ${WAY_OUT}; POST /api/credentials/extract does so for a whole workflow`

/** The place of a literal, in words that begin a message. It never has the value. */
export function nameLiteral({ place, name }: Literal): string {
  if (place === 'user') return 'the user and password in the URL'
  return `the secret in the ${place === 'header' ? 'header' : 'parameter'} ${name.slice(0, 100)}`
}

/** The text that a text of a config always gives; undefined if it has expressions. */
export function readConstant(text: string, rules: Rules): string | undefined {
  if (text.includes('{{')) return undefined
  return rules >= 2 && text.startsWith('=') ? text.slice(1) : text
}

function findNamed(values: unknown, place: 'header' | 'query', rules: Rules): Literal[] {
  if (!isObject(values)) return []
  return Object.entries(values).flatMap(([name, given]) => {
    const text = typeof given === 'number' ? String(given) : given
    const value = typeof text === 'string' ? readConstant(text, rules) : undefined
    if (value === undefined || !holdsSecret(name, value)) return []
    return [{ place, path: [place === 'header' ? 'headers' : 'query', name], name, value }]
  })
}

function holdsSecret(name: string, value: string): boolean {
  if (value.trim() === '') return false
  if (isSecretName(name)) return true
  return MAYBE_SECRET.has(normalizeKey(name)) && value.length >= LEAST_SECRET && !/\s/.test(value)
}

/** The character that replaces an expression while a URL is taken apart. */
const HOLE = '\u{e000}'

/**
 * The text of a URL with one character for each of its expressions, and a function that puts them back. Undefined if
 * it cannot be told where they end.
 */
function flattenUrl(
  url: string,
  rules: Rules,
): { flat: string; restore: (flat: string) => string } | undefined {
  const head = rules >= 2 && url.startsWith('=') ? '=' : ''
  const text = url.slice(head.length)
  if (text.includes(HOLE) || (text.includes('\\') && text.includes('{{'))) return undefined
  const pieces: string[] = []
  let flat = ''
  let at = 0
  for (;;) {
    const open = text.indexOf('{{', at)
    if (open < 0) break
    const close = text.indexOf('}}', open)
    if (close < 0) return undefined
    flat += text.slice(at, open) + HOLE
    pieces.push(text.slice(open, close + 2))
    at = close + 2
  }
  flat += text.slice(at)
  // Braces in an expression may have ended it too early.
  if (pieces.length > 0 && /[{}]/.test(flat)) return undefined
  const restore = (changed: string) => {
    let next = 0
    return head + changed.replaceAll(HOLE, () => pieces[next++] ?? '')
  }
  return { flat, restore }
}

/** The parts of a flat URL: what is before the host, the host with its port, and what comes after it. */
function partUrl(flat: string): { scheme: string; user: string; host: string; rest: string } | undefined {
  const scheme = /^\s{0,100}[a-z][a-z0-9+.-]{0,30}:\/\//i.exec(flat)?.[0]
  if (scheme === undefined) return undefined
  const length = flat.slice(scheme.length).search(/[/?#\\]/)
  const end = length < 0 ? flat.length : scheme.length + length
  const authority = flat.slice(scheme.length, end)
  const at = authority.lastIndexOf('@')
  return {
    scheme,
    user: at < 0 ? '' : authority.slice(0, at),
    host: authority.slice(at + 1),
    rest: flat.slice(end),
  }
}

/** The host and port that every request of the URL goes to; undefined if an expression has a say in it. */
export function readHost(url: unknown, rules: Rules): string | undefined {
  const parts = typeof url === 'string' ? partUrl(flattenUrl(url, rules)?.flat ?? '') : undefined
  // Without anything behind it, an expression could still extend the host.
  if (!parts || parts.host === '' || parts.host.includes(HOLE)) return undefined
  return URL.parse(`${parts.scheme.trim()}${parts.host}/`)?.host || undefined
}

function findInUrl(url: unknown, rules: Rules): Literal[] {
  const parts = typeof url === 'string' ? partUrl(flattenUrl(url, rules)?.flat ?? '') : undefined
  if (!parts) return []
  const { user, rest } = parts
  const isUser = !user.includes(HOLE) && (user.includes(':') || user.length >= TOKEN_CHARS)
  const literals: Literal[] = isUser ? [{ place: 'user', path: ['url'], name: '', value: user }] : []
  for (const parameter of listParameters(rest)) {
    const { name, value } = readParameter(parameter)
    if (`${name}${value}`.includes(HOLE) || !holdsSecret(name, value)) continue
    literals.push({ place: 'parameter', path: ['url'], name, value })
  }
  return literals
}

function listParameters(rest: string): string[] {
  const [before = ''] = rest.split('#', 1)
  const at = before.indexOf('?')
  return at < 0 ? [] : before.slice(at + 1).split('&')
}

function readParameter(text: string): { name: string; value: string } {
  const [[name, value] = ['', '']] = new URLSearchParams(text)
  return { name, value }
}

/** The text of a URL without the user and password, or without the parameter, that a literal of it is. */
export function cutFromUrl(url: string, { place, name, value }: Literal, rules: Rules): string {
  const { flat, restore } = flattenUrl(url, rules)!
  const { scheme, user, host, rest } = partUrl(flat)!
  if (place === 'user') return restore(`${scheme}${host}${rest}`)
  const [before = ''] = rest.split('#', 1)
  const path = before.slice(0, before.indexOf('?'))
  const all = listParameters(rest)
  const cut = all.findIndex((parameter) => {
    const own = readParameter(parameter)
    return own.name === name && own.value === value
  })
  const kept = all.filter((_, at) => at !== cut)
  const query = kept.length > 0 ? `?${kept.join('&')}` : ''
  return restore(
    `${scheme}${user === '' ? '' : `${user}@`}${host}${path}${query}${rest.slice(before.length)}`,
  )
}
