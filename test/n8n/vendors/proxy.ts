import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request as ask, createServer } from 'node:http'
import { createServer as createSecure } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VENDOR_HOSTS } from './vendors.ts'

/** A proxy on loopback that answers for the vendors' hosts in their names: what they are asked goes to the mock server. */
export type VendorProxy = { env: Record<string, string>; stop(): void }

/**
 * Starts the proxy. Its certificate is made for this time only, and only who gets `env` trusts it. No other host can be
 * reached by it.
 */
export async function startVendorProxy(mockUrl: string): Promise<VendorProxy> {
  const folder = mkdtempSync(join(tmpdir(), 'perdure-vendors-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const names = Object.keys(VENDOR_HOSTS).map((host) => `DNS:${host}`)
  const made = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ]
  const named = ['-subj', '/CN=vendors.test', '-addext', `subjectAltName=${names.join(',')}`]
  execFileSync('openssl', [...made, '-keyout', key, '-out', cert, ...named], { stdio: 'ignore' })
  const { hostname, port } = new URL(mockUrl)
  const vendors = createSecure({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
    const folder = VENDOR_HOSTS[String(request.headers.host).replace(/:\d+$/, '')]
    const path = `/vendors/${folder}${request.url}`
    const { method, headers } = request
    const onward = ask({ hostname, port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  const proxy = createServer((_, response) => response.writeHead(403).end())
  proxy.on('connect', (request, socket) => {
    const host = String(request.url).replace(/:\d+$/, '')
    socket.on('error', () => socket.destroy())
    if (!Object.hasOwn(VENDOR_HOSTS, host)) return socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    vendors.emit('connection', socket)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  return {
    env: {
      HTTPS_PROXY: url,
      https_proxy: url,
      NO_PROXY: '127.0.0.1,localhost',
      no_proxy: '127.0.0.1,localhost',
      NODE_EXTRA_CA_CERTS: cert,
    },
    stop() {
      proxy.closeAllConnections()
      proxy.close()
      vendors.closeAllConnections()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
