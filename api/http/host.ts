import { isIP } from 'node:net'
import type { MiddlewareHandler } from 'hono'
import ipaddr from 'ipaddr.js'
import { Fault } from '../../db/fault.ts'
import type { ApiDeps, AppEnv } from '../env.ts'

/** Paths that are served under any name: probes use whatever name a cluster gives the machine. */
export const ANY_HOST = new Set(['/healthz', '/readyz', '/metrics'])

/**
 * Refuses a request for a host name that is not the service's own (MISDIRECTED), so that a foreign page whose name is
 * rebound to this machine's address cannot talk to it. Served are the names of `publicUrl` and `allowedHosts`
 * (`*.example.com` means all names below it), loopback names, and every address: rebinding needs a name.
 */
export function guardHost({
  publicUrl,
  allowedHosts = [],
}: Pick<ApiDeps, 'publicUrl' | 'allowedHosts'>): MiddlewareHandler<AppEnv> {
  const names = new Set([new URL(publicUrl).hostname, 'localhost', ...allowedHosts])
  const suffixes = ['.localhost', ...allowedHosts.flatMap((name) => (name[0] === '*' ? [name.slice(1)] : []))]
  return async (c, next) => {
    const host = c.req.header('host')
    // A client that sends no Host header is not a browser.
    if (host !== undefined && !ANY_HOST.has(c.req.path)) {
      const name = readName(host)
      const isOwn = names.has(name) || suffixes.some((suffix) => name.endsWith(suffix)) || isAddress(name)
      if (!isOwn) {
        await c.get('countRequest')()
        throw new Fault('MISDIRECTED', describe(name))
      }
    }
    await next()
  }
}

// The name as URLs have it: in lower case, without port and final dot, an address in its usual form.
function readName(host: string): string {
  return URL.parse(`http://${host}`)?.hostname.replace(/\.$/, '') ?? ''
}

/** Whether a name or an address, also an IPv6 address in brackets as in a URL, is this machine's loopback. */
export function isLoopback(host: string): boolean {
  const plain = host.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (isIP(plain) !== 0) return ipaddr.process(plain).range() === 'loopback'
  return plain === 'localhost' || plain.endsWith('.localhost')
}

function isAddress(name: string): boolean {
  return isIP(name.replace(/^\[|\]$/g, '')) !== 0
}

function describe(name: string): string {
  const found = name === '' ? 'The Host header is not a host name' : `This service is not called ${name}`
  return `${found.slice(0, 200)}. To serve a name, set it in PUBLIC_URL or ALLOWED_HOSTS.`
}
