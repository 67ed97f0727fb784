import { promises as dns, type LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'
import { readEgressRules } from './egressrules.ts'
import { createOwnPlaces, type OwnPlace } from './ownplaces.ts'

export type EgressOptions = {
  /**
   * Allows loopback, as on a developer's machine. A function returns the reason why it is no longer allowed, in words
   * that follow "since"; null as long as it is allowed.
   */
  allowLoopback: boolean | (() => string | null)
  /** The targets that are allowed besides public addresses: addresses, ranges, hosts (`EgressRules`). */
  allow: readonly string[]
  /** The targets that are refused even if another rule allows them, in the same form. */
  deny?: readonly string[] | undefined
  /** Allows every address that is not denied (EGRESS=any). */
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
  /**
   * Opens a plain connection. The host is as in a URL, but without the brackets of IPv6. Resolves with the socket
   * once it is connected, and its address checked; rejects with a RefusedAddress or an error of the socket.
   */
  open(host: string, port: number, signal: AbortSignal): Promise<Socket>
  /** A connector for undici. It checks IP literals, names, and the address that was really connected to. */
  connect: buildConnector.connector
  /** The same for requests to hooks (`isHookPath`): it also connects to the service's own API. */
  connectToHooks: buildConnector.connector
  allowsLoopback(): boolean
}

/** Why an address, to which `host` leads, is refused. */
type Check = (address: string, host: string, isThisMachine?: boolean) => string | null

/** The error, also of a socket, for an address that the rules refuse. Users may see its `message`. */
type RefusedAddress = Error & { code: 'EGRESS_REFUSED' }

export const CONNECT_TIMEOUT_MS = 10_000

// Azure's wire server: the address counts as public, but it serves secrets of the host.
const DENIED = new Set(['168.63.129.16'])

const DENIED_HOST = 'a denied host'

/** The IPv6 form of an IPv4 address that was given up long ago; ipaddr.js counts it as public. */
const IPV4_COMPATIBLE = ipaddr.parseCIDR('::/96')

/**
 * The rules for every connection whose target a user can choose. Only public (unicast) addresses are allowed, plus
 * loopback and what `allow` names, without what `deny` names, and never the service's own places. ::ffff:a.b.c.d is
 * checked as the IPv4 address in it; the other ways to wrap an IPv4 address (NAT64, 6to4, Teredo) are not unicast
 * ranges and so refused. Throws an Error for an invalid entry.
 */
export function createEgress(options: EgressOptions): Egress {
  const rules = readEgressRules({ allow: options.allow, deny: options.deny ?? [] })
  const resolve = options.resolve ?? ((host: string) => dns.lookup(host, { all: true }))
  const own = createOwnPlaces(options.own ?? (() => []), resolve)

  /** Why loopback, once allowed, is closed. */
  function findClosing(): string | null {
    return typeof options.allowLoopback === 'function' ? options.allowLoopback() : null
  }

  function allowsLoopback(): boolean {
    return options.allowLoopback !== false && findClosing() === null
  }

  function refuse(text: string, host = text): string | null {
    if (rules.deniesAddress(text)) return 'a denied address'
    if (options.any) return null
    if (!ipaddr.isValid(text)) return 'not a valid address'
    if (rules.allowsAddress(text) || rules.allowsHost(host, text)) return null
    const address = ipaddr.process(text)
    if (DENIED.has(address.toString())) return 'a denied address'
    const isOld = address.kind() === 'ipv6' && address.match(IPV4_COMPATIBLE)
    const range = isOld && address.range() === 'unicast' ? 'reserved' : address.range()
    if (range === 'unicast' || (range === 'loopback' && allowsLoopback())) return null
    const why = range === 'loopback' ? findClosing() : null
    const closed = why && `, and loopback is closed since ${why}: EGRESS_ALLOW=127.0.0.0/8 opens it`
    return `not a public address (${range})${closed ?? ''}`
  }

  function checkPort(port: number | undefined, toHooks: boolean): Check {
    return (address, host, isThisMachine) => {
      const place = own.findByAddress(address, port, isThisMachine)
      if (place && !(toHooks && place.isApi)) return describePlace(place)
      return place?.isCertain ? null : refuse(address, host)
    }
  }

  function lookupWith(check: Check): LookupFunction {
    return (host, wanted, callback) => {
      resolve(host).then(
        (all) => {
          const bad = all.map((found) => check(found.address, host)).find((reason) => reason !== null)
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

  /** The check for connections to a host and port. Rejects with what is known before any connection. */
  async function prepare(host: string, port: number, toHooks: boolean): Promise<Check> {
    await own.refresh()
    const check = checkPort(port, toHooks)
    const place = own.findByHost(host, port)
    const isOwn = place && !(toHooks && place.isApi)
    // net does not call lookup for an IP literal, so literals are checked here.
    const bad = isOwn
      ? describePlace(place)
      : rules.deniesHost(host)
        ? DENIED_HOST
        : isIP(host)
          ? check(host, host)
          : null
    if (bad) throw refused(host, bad)
    return check
  }

  async function open(host: string, port: number, signal: AbortSignal): Promise<Socket> {
    const check = await prepare(host, port, false)
    signal.throwIfAborted()
    const socket = connect({ host, port, lookup: lookupWith(check), autoSelectFamily: true })
    const onAbort = () => socket.destroy(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await once(socket, 'connect')
      const refusal = inspect(socket, check, host)
      if (refusal) throw refusal
      return socket
    } catch (error) {
      socket.destroy()
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
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
      const host = target.hostname.replace(/^\[|\]$/g, '')
      const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80)
      let check: Check
      try {
        check = await prepare(host, port, toHooks)
      } catch (error) {
        return callback(error as Error, null)
      }
      let refusal: Error | undefined
      // The type is void, but the value is the socket. Its 'connect' event comes before any TLS handshake.
      const socket = findOpener(port)({ ...target, hostname: host }, (error, ready) => {
        if (refusal || error) callback(refusal ?? (error as Error), null)
        else callback(null, ready as NonNullable<typeof ready>)
      }) as unknown as Socket
      socket.prependOnceListener('connect', () => {
        refusal = inspect(socket, check, host)
        if (refusal) socket.destroy(refusal)
      })
    }
  }

  const check = checkPort(undefined, false)
  return {
    refuse: (address) => check(address, address),
    open,
    connect: connectWith(false),
    connectToHooks: connectWith(true),
    allowsLoopback,
  }
}

/** Why the address that a socket has really been connected to is refused. */
function inspect(socket: Socket, check: Check, host: string): RefusedAddress | undefined {
  const { remoteAddress = '', localAddress } = socket
  const reason = check(remoteAddress, host, localAddress === remoteAddress)
  return reason === null ? undefined : refused(host, reason)
}

function describePlace({ what, isApi }: OwnPlace): string {
  return isApi ? `${what}, of which workflows may call only /hooks and /resume` : what
}

// Does not tell the address behind a name, so that these messages cannot be used to map the internal network.
function refused(host: string, reason: string): RefusedAddress {
  const what =
    isIP(host) || reason === DENIED_HOST
      ? `is ${reason}`
      : `leads to ${reason.replace(/^not a/, 'an address that is not a')}`
  return Object.assign(new Error(`${host} ${what}; the egress rules refuse it`), {
    code: 'EGRESS_REFUSED' as const,
  })
}
