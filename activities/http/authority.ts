import { HttpError } from './httperror.ts'
import type { StreamedBody } from './streams.ts'

/** A request that is about to be sent, for what signs it. Header names are in lower case. */
export type AuthorizedHop = {
  method: string
  url: URL
  headers: Record<string, string>
  body: Uint8Array | StreamedBody | null
}

/** What a credential adds to a request. It wins over a header or parameter of the same name that is there. */
export type Authorization = { headers?: Record<string, string>; query?: Record<string, string> }

export type Authorize = (hop: AuthorizedHop) => Authorization | Promise<Authorization>

/** The mark in the place of what a credential has added. */
const MASKED = '[redacted]'

/**
 * What credentials add to the requests of one call: to the first, and to each redirect that stays at its origin.
 * A redirect to another origin ends that, also for one that leads back.
 */
export type Authority = {
  /** The request as it is sent, and as it may be shown. */
  apply(hop: AuthorizedHop): Promise<{ sent: AuthorizedHop; shown: AuthorizedHop }>
  /** The URL of a redirect, without the parameters of the credential that the server has copied into it. */
  leave(from: URL, to: URL): URL
  /** The names of the headers that were added, which do not go to another origin. */
  names(): string[]
}

export function createAuthority(authorize: Authorize | undefined): Authority {
  let left = false
  let names: string[] = []
  let query: [string, string][] = []
  return {
    async apply(hop) {
      if (!authorize || left) return { sent: hop, shown: hop }
      const added = await authorize(hop)
      const headers = Object.entries(added.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])
      names = headers.map(([name]) => name as string)
      query = Object.entries(added.query ?? {})
      const masked = query.map(([name]): [string, string] => [name, MASKED])
      return {
        sent: {
          ...hop,
          url: setQuery(hop.url, query),
          headers: { ...hop.headers, ...Object.fromEntries(headers) },
        },
        shown: {
          ...hop,
          url: setQuery(hop.url, masked),
          headers: { ...hop.headers, ...Object.fromEntries(names.map((name) => [name, MASKED])) },
        },
      }
    },
    leave(from, to) {
      if (to.origin === from.origin) return to
      left = true
      const own = new Set(query.map(([name, value]) => `${name}=${value}`))
      return own.size === 0 ? to : dropQuery(to, (name, value) => own.has(`${name}=${value}`))
    },
    names: () => names,
  }
}

/** The URL with these parameters in the place of those of the same names; all others are spelled as they were. */
function setQuery(url: URL, query: [string, string][]): URL {
  if (query.length === 0) return url
  const names = new Set(query.map(([name]) => name))
  const next = dropQuery(url, (name) => names.has(name))
  const added = query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  next.search = [...(next.search === '' ? [] : [next.search.slice(1)]), ...added].join('&')
  return next
}

function dropQuery(url: URL, drops: (name: string, value: string) => boolean): URL {
  const next = new URL(url)
  const kept = url.search
    .slice(1)
    .split('&')
    .filter((pair) => ![...new URLSearchParams(pair)].some(([name, value]) => drops(name, value)))
  next.search = kept.join('&')
  return next
}

/**
 * Throws an HttpError (refused-host) if none of `allowed` is the URL's host: `api.example.com` with any port,
 * `*.example.com` for all hosts below it, `api.example.com:8443` for one port. Undefined allows all.
 */
export function demandHost(allowed: readonly string[] | undefined, url: URL): void {
  if (!allowed || allowed.some((rule) => isHost(rule, url))) return
  throw new HttpError('refused-host', `the credential must not be sent to ${url.host}`)
}

const DEFAULT_PORTS: Record<string, string> = { 'http:': '80', 'https:': '443' }

function isHost(rule: string, url: URL): boolean {
  const [, wild, name = '', port] = /^(\*\.)?(.+?)(?::(\d{1,5}))?$/.exec(rule.trim()) ?? []
  const own = tidy(URL.parse(`http://${name}`)?.hostname)
  if (own === '' || (port !== undefined && Number(port) !== Number(url.port || DEFAULT_PORTS[url.protocol])))
    return false
  const host = tidy(url.hostname)
  return wild ? host.endsWith(`.${own}`) : host === own
}

/** Without the final dot of a name that is written in full. */
function tidy(host = ''): string {
  return host.replace(/\.$/, '')
}
