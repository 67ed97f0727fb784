import { request } from 'node:http'
import { expect, inject, test } from 'vitest'
import { chooseTemporalHost, findFree } from '../../../worker/local/ports.ts'
import { EMBEDDED_HOST, listServerArguments } from '../../../worker/temporal.ts'

const [httpPort, metricsPort] = inject('temporalPorts')
const host = inject('temporalAddress').replace(/:\d+$/, '')

/** Sends a request with any Host header; resolves with the status. */
function ask(path: string, headers: Record<string, string>, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host, port: httpPort!, path, method, headers }, (response) => {
      response.resume()
      resolve(response.statusCode!)
    })
    sent.once('error', reject).end()
  })
}

test.runIf(httpPort)('the HTTP API of the embedded server refuses every request', async () => {
  const namespaces = '/api/v1/namespaces'
  for (const name of [`${host}:${httpPort}`, 'localhost', '127.0.0.1', host, 'evil.example', '[::1]']) {
    expect([name, await ask(namespaces, { host: name })]).toEqual([name, 403])
    const terminate = `${namespaces}/default/workflows/x/terminate`
    expect([name, await ask(terminate, { host: name }, 'POST')]).toEqual([name, 403])
  }
})

test.runIf(httpPort)('the embedded server listens on an address of its own, where there is one', async () => {
  expect(host).toBe(await chooseTemporalHost())
  expect((await fetch(`http://${host}:${metricsPort}/metrics`)).status).toBe(200)
  if (host !== EMBEDDED_HOST) return
  await expect(fetch(`http://127.0.0.1:${httpPort}/`)).rejects.toThrow('fetch failed')
  await expect(fetch(`http://127.0.0.1:${metricsPort}/`)).rejects.toThrow('fetch failed')
})

test('on a machine that knows only 127.0.0.1, it listens there, on ports that are known beforehand', async () => {
  // An address of no machine here.
  expect(await chooseTemporalHost('192.0.2.1')).toBe('127.0.0.1')
  const ports = { port: await findFree(), httpPort: 1, metricsPort: 2 }
  const place = { host: '127.0.0.1', file: 'x', namespace: 'default', durable: true }
  expect(listServerArguments({ ...ports, ...place })).toEqual(
    expect.arrayContaining(['--ip=127.0.0.1', '--http-port=1', '--metrics-port=2']),
  )
})
