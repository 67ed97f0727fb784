import { promises as dns, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'

export type EgressOptions = {
  /** True on a developer's machine, where the service itself is bound to loopback. */
  allowLoopback: boolean
  /** CIDRs (or single addresses) allowed beside the public ones; wins over everything else. */
  allow: string[]
  /** No rule at all (EGRESS=any). */
  any?: boolean
  /** How a name becomes addresses; the system's resolver unless a test says otherwise. */
  resolve?: (host: string) => Promise<LookupAddress[]>
}

export type Egress = {
  /** Why a literal address may not be connected to, or null if it may. */
  refuse(address: string): string | null
  /** A `lookup` for net, tls, pg, nodemailer: fails if ANY address of the answer is refused. */
  lookup: LookupFunction
  /** A connector for undici: literals, names and the connected address are all checked. */
  connect: buildConnector.connector
}

/** Thrown (through the socket) for an address that the rules refuse. `message` is fit for users. */
export type RefusedAddress = Error & { code: 'EGRESS_REFUSED' }

export const CONNECT_TIMEOUT_MS = 10_000

// Azure's wire server: an address that counts as public, with the host's secrets behind it.
const DENIED = new Set(['168.63.129.16'])

/**
 * The rules for every connection that a user can aim. Public (unicast) addresses only, plus loopback and the
 * CIDRs of the options. Addresses are judged after unmapping ::ffff:a.b.c.d; other ways to wrap an IPv4
 * address (NAT64, 6to4, Teredo) are no unicast range and so refused. Throws on a CIDR that does not parse.
 */
export function createEgress(options: EgressOptions): Egress {
  const allowed = options.allow.map(parseRange)
  const resolve = options.resolve ?? ((host: string) => dns.lookup(host, { all: true }))

  function refuse(text: string): string | null {
    if (options.any) return null
    if (!ipaddr.isValid(text)) return 'no valid address'
    const address = ipaddr.process(text)
    if (allowed.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits)))
      return null
    if (DENIED.has(address.toString())) return 'a denied address'
    const range = address.range()
    if (range === 'unicast' || (range === 'loopback' && options.allowLoopback)) return null
    return `not a public address (${range})`
  }

  const lookup: LookupFunction = (host, wanted, callback) => {
    resolve(host).then(
      (all) => {
        const bad = all.map((found) => refuse(found.address)).find((reason) => reason !== null)
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

  const open = buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false, lookup })

  const connect: buildConnector.connector = (target, callback) => {
    const host = target.hostname.replace(/^\[|\]$/g, '')
    // net never asks a lookup about a literal, so literals are judged here.
    const bad = isIP(host) ? refuse(host) : null
    if (bad) return callback(refused(host, bad), null)
    let late: Error | undefined
    // The types say void; it is the socket. Its own 'connect' comes before any TLS handshake.
    const socket = open({ ...target, hostname: host }, (error, ready) => {
      if (late || error) callback(late ?? (error as Error), null)
      else callback(null, ready as NonNullable<typeof ready>)
    }) as unknown as Socket
    socket.prependOnceListener('connect', () => {
      const reason = refuse(socket.remoteAddress ?? '')
      if (!reason) return
      late = refused(host, reason)
      socket.destroy(late)
    })
  }

  return { refuse, lookup, connect }
}

function parseRange(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  const cidr = text.includes('/') ? text : `${text}/${isIP(text) === 6 ? 128 : 32}`
  try {
    return ipaddr.parseCIDR(cidr)
  } catch {
    throw new Error(`${JSON.stringify(text)} is no address range (expected e.g. 10.0.0.0/8)`)
  }
}

// The address behind a name stays unsaid: an answer must not map the network inside for an outsider.
function refused(host: string, reason: string): RefusedAddress {
  const what = isIP(host)
    ? `is ${reason}`
    : `leads to ${reason.replace(/^not a/, 'an address that is not a')}`
  return Object.assign(new Error(`${host} ${what}; the egress rules refuse it`), {
    code: 'EGRESS_REFUSED' as const,
  })
}
