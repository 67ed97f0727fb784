import ipaddr from 'ipaddr.js'

/** The network to count an address against. For IPv6 it is the /64, because a single host may use all of it. */
export function readNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return 'unknown'
  const ip = ipaddr.process(address)
  if (ip.kind() === 'ipv4') return ip.toString()
  const parts = (ip as ipaddr.IPv6).parts.slice(0, 4)
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`
}
