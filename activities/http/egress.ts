import { promises as dns, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'
import { createOwnPlaces, type OwnPlace } from './ownplaces.ts'

export type EgressOptions = {
  /**
   * Allows loopback, as on a developer's machine. A function says why it is not allowed any more, in words that
   * follow "since"; null as long as it is.
   */
  allowLoopback: boolean | (() => string | null)
  /** CIDRs (or single addresses) that are allowed besides public ones; they win over every other rule. */
  allow: string[]
  /** Allows every address (EGRESS=any). */
  any?: boolean
  /** Places of the service itself: its database, Temporal, its API. No rule above opens them. */
  own?: () => OwnPlace[]
  /** What each request carries in the header CALL_MARK. */
  mark?: string
  /** Resolves a host name; the system's resolver by default, another one in tests. */
  resolve?: (host: string) => Promise<LookupAddress[]>
}

export type Egress = {
  /** Why an IP address is refused, such as `a denied address`; null if it is allowed. */
  refuse(address: string): string | null
  /** A `lookup` for net, tls, pg and nodemailer. It fails if ANY address of a name is refused. */
  lookup: LookupFunction
  /** A connector for undici. It checks IP literals, names, and the address that was really connected to. */
  connect: buildConnector.connector
  /** The same for requests to hooks (`isHookPath`): it also connects to the service's own API. */
  connectToHooks: buildConnector.connector
  allowsLoopback(): boolean
}

type Check = (address: string, isThisMachine?: boolean) => string | null

/** The error, also of a socket, for an address that the rules refuse. Users may see its `message`. */
export type RefusedAddress = Error & { code: 'EGRESS_REFUSED' }

export const CONNECT_TIMEOUT_MS = 10_000

// Azure's wire server: the address counts as public, but it serves secrets of the host.
const DENIED = new Set(['168.63.129.16'])

/** The IPv6 form of an IPv4 address that was given up long ago; ipaddr.js counts it as public. */
const IPV4_COMPATIBLE = ipaddr.parseCIDR('::/96')

/**
 * The rules for every connection whose target a user can choose. Only public (unicast) addresses are allowed,
 * plus loopback and the CIDRs of the options, and never the service's own places. ::ffff:a.b.c.d is checked as
 * the IPv4 address in it; the other ways to wrap an IPv4 address (NAT64, 6to4, Teredo) are not unicast ranges
 * and so refused. Throws an Error for an invalid CIDR.
 */
export function createEgress(options: EgressOptions): Egress {
  const allowed = options.allow.map(parseRange)
  const resolve = options.resolve ?? ((host: string) => dns.lookup(host, { all: true }))
  const own = createOwnPlaces(options.own ?? (() => []), resolve)

  /** Why loopback, once allowed, is closed. */
  function findClosing(): string | null {
    return typeof options.allowLoopback === 'function' ? options.allowLoopback() : null
  }

  function allowsLoopback(): boolean {
    return options.allowLoopback !== false && findClosing() === null
  }

  function refuse(text: string): string | null {
    if (options.any) return null
    if (!ipaddr.isValid(text)) return 'not a valid address'
    const address = ipaddr.process(text)
    if (allowed.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits)))
      return null
    if (DENIED.has(address.toString())) return 'a denied address'
    const isOld = address.kind() === 'ipv6' && address.match(IPV4_COMPATIBLE)
    const range = isOld && address.range() === 'unicast' ? 'reserved' : address.range()
    if (range === 'unicast' || (range === 'loopback' && allowsLoopback())) return null
    const why = range === 'loopback' ? findClosing() : null
    const closed = why && `, and loopback is closed since ${why}: EGRESS_ALLOW=127.0.0.0/8 opens it`
    return `not a public address (${range})${closed ?? ''}`
  }

  function checkPort(port: number | undefined, toHooks: boolean): Check {
    return (address, isThisMachine) => {
      const place = own.findByAddress(address, port, isThisMachine)
      if (place && !(toHooks && place.isApi)) return describePlace(place)
      return place?.isCertain ? null : refuse(address)
    }
  }

  function lookupWith(check: Check): LookupFunction {
    return (host, wanted, callback) => {
      resolve(host).then(
        (all) => {
          const bad = all.map((found) => check(found.address)).find((reason) => reason !== null)
          const family = wanted.family === 'IPv4' ? 4 : wanted.family === 'IPv6' ? 6 : wanted.family
          const fitting = family ? all.filter((found) => found.family === family) : all
          const first = fitting[0]
          if (bad) callback(refused(host, bad), '', 0)
          else if (!first) callback(Object.assign(new Error('host not found'), { code: 'ENOTFOUND' }), '', 0)
          else if (wanted.all) callback(null, fitting)
          else callback(null, first.address, first.family)
        },
        (error) => callback(error, '', 0),
      )
    }
  }

  function connectWith(toHooks: boolean): buildConnector.connector {
    const openers = new Map<number | undefined, buildConnector.connector>()

    // undici hands no port to `lookup`, so each port of an own place has its own opener; all others share one.
    function findOpener(port: number): buildConnector.connector {
      const key = own.hasPort(port) ? port : undefined
      const lookup = lookupWith(checkPort(key, toHooks))
      const open = openers.get(key) ?? buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false, lookup })
      openers.set(key, open)
      return open
    }

    return async (target, callback) => {
      try {
        await own.refresh()
      } catch (error) {
        return callback(error as Error, null)
      }
      const host = target.hostname.replace(/^\[|\]$/g, '')
      const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80)
      const check = checkPort(port, toHooks)
      const place = own.findByHost(host, port)
      const named = place && !(toHooks && place.isApi) ? describePlace(place) : null
      // net does not call lookup for an IP literal, so literals are checked here.
      const bad = named ?? (isIP(host) ? check(host) : null)
      if (bad) return callback(refused(host, bad), null)
      let refusal: Error | undefined
      // The type is void, but the value is the socket. Its 'connect' event comes before any TLS handshake.
      const socket = findOpener(port)({ ...target, hostname: host }, (error, ready) => {
        if (refusal || error) callback(refusal ?? (error as Error), null)
        else callback(null, ready as NonNullable<typeof ready>)
      }) as unknown as Socket
      socket.prependOnceListener('connect', () => {
        const reason = check(socket.remoteAddress ?? '', socket.localAddress === socket.remoteAddress)
        if (!reason) return
        refusal = refused(host, reason)
        socket.destroy(refusal)
      })
    }
  }

  return {
    refuse: checkPort(undefined, false),
    lookup: lookupWith(checkPort(undefined, false)),
    connect: connectWith(false),
    connectToHooks: connectWith(true),
    allowsLoopback,
  }
}

function parseRange(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  const cidr = text.includes('/') ? text : `${text}/${isIP(text) === 6 ? 128 : 32}`
  try {
    return ipaddr.parseCIDR(cidr)
  } catch {
    throw new Error(`${JSON.stringify(text)} is not an address range such as 10.0.0.0/8`)
  }
}

function describePlace({ what, isApi }: OwnPlace): string {
  return isApi ? `${what}, of which workflows may call only /hooks and /resume` : what
}

// Does not tell the address behind a name, so that nobody can map the internal network by these messages.
function refused(host: string, reason: string): RefusedAddress {
  const what = isIP(host)
    ? `is ${reason}`
    : `leads to ${reason.replace(/^not a/, 'an address that is not a')}`
  return Object.assign(new Error(`${host} ${what}; the egress rules refuse it`), {
    code: 'EGRESS_REFUSED' as const,
  })
}
