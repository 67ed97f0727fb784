import { request } from 'node:http'
import { createServer } from 'node:net'
import { expect, inject, test } from 'vitest'
import { listListeningPorts } from '../../../worker/local/processes.ts'

const [httpPort, metricsPort] = inject('temporalPorts')

/** Sends a request with any Host header; resolves with the status. */
function ask(path: string, host: string, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: '127.0.0.1', port: httpPort!, path, method, headers: { host } },
      (response) => {
        response.resume()
        resolve(response.statusCode!)
      },
    )
    sent.once('error', reject).end()
  })
}

test.runIf(httpPort)('the HTTP API of the embedded server refuses every request', async () => {
  const namespaces = '/api/v1/namespaces'
  for (const name of [`127.0.0.1:${httpPort}`, 'localhost', '127.0.0.1', 'evil.example', '[::1]']) {
    expect([name, await ask(namespaces, name)]).toEqual([name, 403])
    expect([name, await ask(`${namespaces}/default/workflows/x/terminate`, name, 'POST')]).toEqual([
      name,
      403,
    ])
  }
  expect((await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).status).toBe(200)
})

test('the ports that a process listens on are found, on IPv4 and IPv6, and no other ones', async () => {
  const servers = await Promise.all(
    ['127.0.0.1', '::1', '127.0.0.3'].map(
      (host) =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer().listen(0, host, () => resolve(server))
        }),
    ),
  )
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  expect(listListeningPorts(process.pid)).toEqual(expect.arrayContaining(ports))
  for (const server of servers) await new Promise((resolve) => server.close(resolve))
  for (const port of ports) expect(listListeningPorts(process.pid)).not.toContain(port)
  expect(listListeningPorts(2 ** 22 + 1)).toEqual([])
})
