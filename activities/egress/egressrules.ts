import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import ipaddr from 'ipaddr.js'
import { listAddressForms, normalizeAddress, tidyHost } from './addresses.ts'

/**
 * The targets that are allowed besides public addresses, and those that are always refused. An entry is an address, a
 * range such as `10.0.0.0/8`, a host such as `api.example.com`, or all hosts below one: `*.example.com`.
 */
export type EgressRules = { allow: readonly string[]; deny: readonly string[] }

export type ReadRules = {
  /** Whether an entry of `deny` names the host, written as in a URL. */
  deniesHost(host: string): boolean
  /** Whether an entry of `deny` names the address, or an IPv4 address that is wrapped in it. */
  deniesAddress(address: string): boolean
  /** Whether an entry of `allow` names the host and the address is one that a host may be allowed to have. */
  allowsHost(host: string, address: string): boolean
  /** Whether an entry of `allow` names the address. */
  allowsAddress(address: string): boolean
}

type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]
type Entry = { range: Range } | { host: string; below: boolean }

/**
 * The owner of a name can let it lead to any address. So a name that is allowed opens inner networks and this
 * machine, but never these: the addresses at which clouds hand out the secrets of a machine.
 */
const INNER = new Set<string>(['private', 'uniqueLocal', 'carrierGradeNat', 'loopback'])
const METADATA = new Set(['100.100.100.200', 'fd00:ec2::254', 'fd20:ce::254'])

/** The fault of an entry, as words that follow it; null if it has none. */
export function findEgressRuleFault(text: string): string | null {
  return readEntry(text)
    ? null
    : 'is not an address, a range such as 10.0.0.0/8, or a host such as *.example.com'
}

/** Reads the rules. Throws an Error that names the first invalid entry. */
export function readEgressRules({ allow, deny }: EgressRules): ReadRules {
  const [allowed, denied] = [allow, deny].map((list) => {
    const entries = list.map(demandEntry)
    return {
      ranges: entries.flatMap((entry) => ('range' in entry ? [entry.range] : [])),
      hosts: entries.flatMap((entry) => ('host' in entry ? [entry] : [])),
    }
  }) as [Sorted, Sorted]
  return {
    deniesHost: (host) => hasHost(denied, host),
    deniesAddress: (address) => listAddressForms(address).some((form) => hasAddress(denied, form)),
    allowsHost(host, address) {
      const plain = normalizeAddress(address)
      if (!hasHost(allowed, host) || !ipaddr.isValid(plain) || METADATA.has(plain)) return false
      return INNER.has(ipaddr.parse(plain).range())
    },
    allowsAddress: (address) => hasAddress(allowed, normalizeAddress(address)),
  }
}

type Sorted = { ranges: Range[]; hosts: { host: string; below: boolean }[] }

function hasHost({ hosts }: Sorted, text: string): boolean {
  const name = tidyHost(text)
  // Rules for hosts do not apply to an address.
  if (hosts.length === 0 || isIP(name)) return false
  return hosts.some(({ host, below }) => (below ? name.endsWith(`.${host}`) : name === host))
}

function hasAddress({ ranges }: Sorted, text: string): boolean {
  if (ranges.length === 0 || !ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  return ranges.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))
}

function demandEntry(text: string): Entry {
  const entry = readEntry(text)
  if (entry) return entry
  throw new Error(`${JSON.stringify(text)} ${findEgressRuleFault(text)}`)
}

function readEntry(text: string): Entry | undefined {
  const family = isIP(text.split('/')[0]!)
  if (family && !text.includes('%')) {
    const cidr = text.includes('/') ? text : `${text}/${family === 6 ? 128 : 32}`
    return ipaddr.isValidCIDR(cidr) ? readRange(cidr) : undefined
  }
  const below = text.startsWith('*.')
  const name = tidyHost(below ? text.slice(2) : text)
  if (!/^[\p{L}\p{M}\p{N}_-]+(\.[\p{L}\p{M}\p{N}_-]+)*$/u.test(name)) return undefined
  const host = domainToASCII(name)
  // What a URL reads as an address, such as 10.1 or 0x7f000001, is no name.
  return host === '' || isIP(host) ? undefined : { host, below }
}

/** The IPv4 range for a range of mapped addresses, because addresses are compared in that form. */
function readRange(cidr: string): Entry | undefined {
  const [base, bits] = ipaddr.parseCIDR(cidr)
  if (base.kind() !== 'ipv6' || !(base as ipaddr.IPv6).isIPv4MappedAddress()) return { range: [base, bits] }
  if (bits < 96) return undefined
  return { range: [(base as ipaddr.IPv6).toIPv4Address(), bits - 96] }
}
