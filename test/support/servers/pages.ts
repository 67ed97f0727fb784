import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Serves what `read` returns as a page, on a loopback origin of its own. */
export async function serveText(read: () => string) {
  const server = createServer((request, response) => {
    if (request.url !== '/') {
      response.writeHead(204).end()
      return
    }
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(read())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
