import { createServer, type IncomingMessage, Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { getRequestListener, RequestError } from '@hono/node-server'
import { describeRefusal } from '../api/refusal.ts'

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
  const open = new Set<ServerResponse>()
  let stopping = false
  let path = ''
  const answer = getRequestListener(fetch, {
    errorHandler: (error) => {
      // A RequestError comes before the call below has returned: the address or the Host header makes no URL.
      const bad = error instanceof RequestError
      const { headers, body } = bad
        ? describeRefusal(path, 400, 'The address or the Host header is not valid')
        : describeRefusal('', 500, 'The service failed unexpectedly')
      return new Response(body, { status: bad ? 400 : 500, headers })
    },
  })
  const take = (request: IncomingMessage, response: ServerResponse) => {
    open.add(response)
    response.once('close', () => open.delete(response))
    if (stopping) response.setHeader('connection', 'close')
    path = request.url?.split('?', 1)[0] ?? ''
    void answer(request, response)
  }
  const server = createServer({ requireHostHeader: false }, take)
  // An expectation that nobody knows may be ignored.
  server.on('checkExpectation', take)
  server.on('clientError', refuse)
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

/** Answers what Node could not read as a request, unless an answer is on its way already. */
function refuse(
  error: NodeJS.ErrnoException,
  socket: Socket & { _httpMessage?: { headersSent: boolean } },
): void {
  if (!socket.writable || socket._httpMessage?.headersSent || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
  const { headers, body } = describeRefusal('', status, WHY[status])
  const lines = Object.entries({ ...headers, 'Content-Length': String(Buffer.byteLength(body)) })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`)
}

const WHY = {
  400: 'This is not an HTTP request',
  408: 'The request did not arrive in time',
  431: 'The headers of the request are too long',
} as const
