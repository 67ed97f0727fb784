import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type TLSSocket } from 'node:tls'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { readConfig } from '../../worker/config.ts'
import { connectClient, connectWorker } from '../../worker/temporal.ts'
import { AUTHORITY, KEY, SIGNED_CERT } from '../support/servers/certificate.ts'

const folder = mkdtempSync(join(tmpdir(), 'perdure-tls-'))
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

const OTHER_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg6FujawT6e//e2RSv
3BVgsmwW6d5OQ1n8k14CIFTVg2GhRANCAAR0pP5BiiJ2hNDWH22U2sq5CGhBAvqT
KtHNv74EsCPITqVXQzjvlpkiXF0ocheEB/0P4QkZpIk029mT01stKeyw
-----END PRIVATE KEY-----`

const CA_PATH = write('ca.pem', AUTHORITY)
const CERT_PATH = write('client.pem', SIGNED_CERT)
const KEY_PATH = write('client.key', KEY)
const MUTUAL = {
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: CA_PATH,
  TEMPORAL_TLS_CLIENT_CERT_PATH: CERT_PATH,
  TEMPORAL_TLS_CLIENT_KEY_PATH: KEY_PATH,
}

describe('a Temporal that wants mutual TLS', () => {
  /** A server in front of the real Temporal that admits only clients with the test certificate. */
  async function startFront() {
    const [host, port] = inject('temporalAddress').split(':')
    const seen: boolean[] = []
    const options = {
      key: KEY,
      cert: SIGNED_CERT,
      ca: [AUTHORITY],
      requestCert: true,
      rejectUnauthorized: true,
    }
    const server = createServer({ ...options, ALPNProtocols: ['h2'] }, (socket: TLSSocket) => {
      seen.push(socket.authorized)
      const through = connect(Number(port), host)
      for (const [from, to] of [
        [socket, through],
        [through, socket],
      ] as const) {
        from.pipe(to)
        from.on('error', () => to.destroy())
        from.on('close', () => to.destroy())
      }
    }).listen(0, '127.0.0.1')
    server.on('tlsClientError', () => seen.push(false))
    await once(server, 'listening')
    return { server, seen, port: (server.address() as AddressInfo).port }
  }

  test('is reached with authority, certificate, key and server name, by workers and by the API', async () => {
    const { server, seen, port } = await startFront()
    const address = `127.0.0.1:${port}`
    const named = { ...MUTUAL, TEMPORAL_ADDRESS: address, TEMPORAL_TLS_SERVER_NAME: 'perdure.test' }
    try {
      const worker = await connectWorker(readConfig(named))
      await worker.workflowService.describeNamespace({ namespace: 'default' })
      await worker.close()
      const api = connectClient(readConfig(named))
      await api.workflowService.describeNamespace({ namespace: 'default' })
      await api.close()
      expect(new Set(seen)).toEqual(new Set([true]))

      const other = readConfig({ ...named, TEMPORAL_TLS_SERVER_NAME: 'other.test' })
      await expect(connectWorker(other)).rejects.toThrow()
      const anonymous = { TEMPORAL_ADDRESS: address, TEMPORAL_TLS_SERVER_CA_CERT_PATH: CA_PATH }
      const before = seen.length
      await expect(connectWorker(readConfig(anonymous))).rejects.toThrow()
      expect(seen.slice(before)).not.toContain(true)
    } finally {
      server.close()
    }
  })
})

describe('the settings', () => {
  const explain = (env: Record<string, string>): string => {
    try {
      readConfig(env)
    } catch (error) {
      return (error as Error).message
    }
    return 'nothing is wrong'
  }

  test('an API key or any TLS setting switches TLS on; TEMPORAL_TLS=false with one of the latter is refused', () => {
    const tlsOf = (env: Record<string, string>) => readConfig(env).temporal.tls
    expect(tlsOf({})).toBe(false)
    expect(tlsOf({ TEMPORAL_TLS: '1' })).toBe(true)
    expect(tlsOf({ TEMPORAL_API_KEY: 'x' })).toBe(true)
    expect(tlsOf({ TEMPORAL_API_KEY: 'x', TEMPORAL_TLS: 'false' })).toBe(false)
    expect(tlsOf({ TEMPORAL_TLS_SERVER_NAME: 'a.example' })).toEqual({ serverNameOverride: 'a.example' })
    expect(tlsOf(MUTUAL)).toEqual({
      serverRootCACertificate: Buffer.from(AUTHORITY),
      clientCertPair: { crt: Buffer.from(SIGNED_CERT), key: Buffer.from(KEY) },
    })
    expect(explain({ TEMPORAL_TLS: 'false', TEMPORAL_TLS_SERVER_NAME: 'a.example' })).toBe(
      'TEMPORAL_TLS must not be false if TEMPORAL_TLS_SERVER_NAME is set',
    )
  })

  test('certificate and key belong together', () => {
    expect(explain({ TEMPORAL_TLS_CLIENT_CERT_PATH: CERT_PATH })).toBe(
      'TEMPORAL_TLS_CLIENT_KEY_PATH must be set too if TEMPORAL_TLS_CLIENT_CERT_PATH is',
    )
    expect(explain({ TEMPORAL_TLS_CLIENT_KEY_PATH: KEY_PATH })).toBe(
      'TEMPORAL_TLS_CLIENT_CERT_PATH must be set too if TEMPORAL_TLS_CLIENT_KEY_PATH is',
    )
    const other = write('other.key', OTHER_KEY)
    expect(explain({ ...MUTUAL, TEMPORAL_TLS_CLIENT_KEY_PATH: other })).toBe(
      'TEMPORAL_TLS_CLIENT_KEY_PATH must be the key of the certificate in TEMPORAL_TLS_CLIENT_CERT_PATH',
    )
  })

  test('every file that is missing or holds something else is named, and nothing of it is shown', () => {
    const message = explain({
      PORT: 'x',
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: join(folder, 'missing'),
      TEMPORAL_TLS_CLIENT_CERT_PATH: KEY_PATH,
      TEMPORAL_TLS_CLIENT_KEY_PATH: CERT_PATH,
    })
    expect(message.split('\n')).toEqual([
      'PORT must be a whole number',
      'TEMPORAL_TLS_SERVER_CA_CERT_PATH must name a file that can be read (ENOENT)',
      'TEMPORAL_TLS_CLIENT_CERT_PATH must name a file with a certificate in PEM form',
      'TEMPORAL_TLS_CLIENT_KEY_PATH must name a file with a private key in PEM form without a password',
    ])
  })
})
