import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

/** An address in its usual form: IPv4 if it is mapped to IPv6, and without a zone. */
export function normalizeAddress(address: string): string {
  const plain = address.replace(/%.*$/, '')
  return ipaddr.isValid(plain) ? ipaddr.process(plain).toString() : plain
}

/** The address, and the IPv4 addresses that a gateway or tunnel may make of it (NAT64, 6to4, ::a.b.c.d). */
export function listAddressForms(text: string): string[] {
  const address = normalizeAddress(text)
  if (isIP(address) !== 6) return [address]
  const ip = ipaddr.parse(address)
  const bytes = ip.toByteArray()
  if (ip.range() === 'unicast' && bytes.slice(0, 12).some((byte) => byte !== 0)) return [address]
  return [address, bytes.slice(12).join('.'), bytes.slice(2, 6).join('.')]
}

/** Whether an address leads to this machine: loopback, or that of one of its network interfaces. */
export function isOfThisMachine(text: string): boolean {
  const address = normalizeAddress(text)
  if (!ipaddr.isValid(address)) return false
  const range = ipaddr.parse(address).range()
  if (range === 'loopback' || range === 'unspecified') return true
  return Object.values(networkInterfaces()).some((list) =>
    list?.some((one) => normalizeAddress(one.address) === address),
  )
}

/** A host as rules and places are compared: lower case, without the brackets of IPv6 and without final dots. */
export function tidyHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.+$/, '')
}
