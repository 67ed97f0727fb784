import { createServer, type IncomingMessage, Server, type ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'

export type Listener = {
  port: number
  /**
   * Takes no new connection, answers what is under way or still comes on the open ones (each told to close), and
   * cuts what is not done after `limitMs`.
   */
  stop(limitMs: number): Promise<void>
}

/** How long open connections may still bring a request after the stop, before the idle ones are closed. */
const LINGER_MS = 250

/** Serves `fetch` over HTTP; rejects where the port is taken. */
export async function startListener(
  fetch: (request: Request, env: unknown) => Response | Promise<Response>,
  port: number,
  host: string,
): Promise<Listener> {
  const answer = getRequestListener(fetch)
  const open = new Set<ServerResponse>()
  let stopping = false
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    open.add(response)
    response.once('close', () => open.delete(response))
    if (stopping) response.setHeader('connection', 'close')
    answer(request, response)
  })
  // Longer than a balancer keeps its idle connections, so that it is not the server that ends one under it.
  server.keepAliveTimeout = 65_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })

  return {
    port: (server.address() as { port: number }).port,
    async stop(limitMs) {
      const deadline = Date.now() + limitMs
      stopping = true
      for (const response of open) if (!response.headersSent) response.setHeader('connection', 'close')
      // http.Server.close would cut idle connections at once, and with them a request already on its way.
      const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
      await sleep(LINGER_MS)
      while (open.size > 0 && Date.now() < deadline) await sleep(20)
      server.closeIdleConnections()
      if (open.size > 0) server.closeAllConnections()
      const cut = setTimeout(() => server.closeAllConnections(), 500)
      await closed
      clearTimeout(cut)
      Server.prototype.close.call(server)
    },
  }
}
