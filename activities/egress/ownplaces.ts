import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isOfThisMachine, listAddressForms, normalizeAddress, tidyHost } from './addresses.ts'

/** A place that belongs to the service itself, such as its database. No egress rule opens it to users. */
export type OwnPlace = {
  /** The name of the place, in words for users: `the database of this service`. */
  what: string
  /** A name or an address. An address of this machine means all of this machine's addresses. */
  host: string
  /** Undefined: every port of exactly this host. */
  port?: number
  /** The service's own API, of which users' requests may call the hooks (`isHookPath`) and nothing else. */
  isApi?: boolean
  /** The API is certain to be there, so that its hooks can be called whatever the rules say of the address. */
  isCertain?: boolean
  /** Others may be served at the same addresses, so only the name counts, or an address instead of a name. */
  byName?: boolean
  /** For the API: the path under which a proxy serves it, such as `/perdure`. */
  base?: string
}

export type OwnPlaces = {
  /** Lists the places and looks their names up again, unless that was done a moment ago. */
  refresh(): Promise<void>
  /** The place that a URL's host and port name. */
  findByHost(host: string, port: number): OwnPlace | undefined
  /** The place at an address. Without a port, only a host that is the service's with all its ports. */
  findByAddress(address: string, port?: number, isThisMachine?: boolean): OwnPlace | undefined
  /** Whether some place has this port. */
  hasPort(port: number): boolean
}

type Resolve = (host: string) => Promise<LookupAddress[]>
type ResolvedPlace = { place: OwnPlace; addresses: Set<string>; onThisMachine: boolean }

const REFRESH_MS = 5_000
const PATIENCE_MS = 1_000

/** Finds out whether a host or an address is one of the places, under whatever name or notation. */
export function createOwnPlaces(list: () => OwnPlace[], resolve: Resolve): OwnPlaces {
  let known: ResolvedPlace[] = []
  let refreshed = -Infinity
  let refreshing: Promise<unknown> | undefined

  async function refresh(): Promise<void> {
    const next = list().map((place): ResolvedPlace => {
      const before = known.find(({ place: { host, port } }) => host === place.host && port === place.port)
      return { addresses: new Set(), onThisMachine: false, ...before, place }
    })
    known = next
    await Promise.all(next.map(lookUp))
    refreshed = performance.now()
  }

  // What a name once led to stays known: a name may lead to a part of its addresses at each lookup.
  async function lookUp(one: ResolvedPlace): Promise<void> {
    const host = tidyHost(one.place.host)
    const found = isIP(host) ? [{ address: host }] : await resolve(host).catch(() => [])
    for (const { address } of found) {
      one.addresses.add(normalizeAddress(address))
      one.onThisMachine ||= isOfThisMachine(address)
    }
  }

  return {
    async refresh() {
      if (performance.now() - refreshed < REFRESH_MS) return
      refreshing ??= refresh().finally(() => {
        refreshing = undefined
      })
      // A name server that does not respond holds up the first connection only, not all that follow.
      const isFirst = refreshed === -Infinity
      await (isFirst ? refreshing : Promise.race([refreshing, sleep(PATIENCE_MS, undefined, { ref: false })]))
    },
    findByHost(text, port) {
      const host = tidyHost(text)
      const isAddress = isIP(host) !== 0
      const found = known.find(({ place, addresses }) => {
        if (place.port !== undefined && place.port !== port) return false
        if (tidyHost(place.host) === host) return true
        return (
          place.byName === true && isAddress && listAddressForms(host).some((form) => addresses.has(form))
        )
      })
      return found?.place
    },
    findByAddress(address, port, isThisMachine = false) {
      const forms = listAddressForms(address)
      const found = known.find(({ place, addresses, onThisMachine }) => {
        if (place.byName || (place.port !== undefined && place.port !== port)) return false
        if (forms.some((form) => addresses.has(form))) return true
        if (place.port === undefined || !onThisMachine) return false
        return isThisMachine || forms.some(isOfThisMachine)
      })
      return found?.place
    },
    hasPort: (port) => known.some(({ place }) => place.port === port),
  }
}

/**
 * Whether a URL's path leads to a webhook or a resume URL and nowhere else, however a proxy may decode or tidy
 * it: each part is of plain characters. `base` is the API's.
 */
export function isHookPath(path: string, base = ''): boolean {
  const own = base !== '' && path.startsWith(`${base}/`) ? path.slice(base.length) : path
  return /^\/(?:hooks|resume)(?:\/(?!\.)[\w.~-]+)+$/.test(own)
}
