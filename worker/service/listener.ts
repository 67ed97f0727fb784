import { createServer, type IncomingMessage, Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { getRequestListener, RequestError } from '@hono/node-server'
import { describeRefusal } from '../../api/http/errors.ts'

export type Listener = {
  port: number
  /**
   * Accepts no new connections, and finishes the requests that are in progress or still arrive on open ones. Responses
   * say `Connection: close`. Requests that are not finished after `limitMs` are cut off.
   */
  stop(limitMs: number): Promise<void>
}

/** After a stop, idle connections stay open this long, because a request may already be on its way. */
const LINGER_MS = 250

/** Serves `fetch` over HTTP. Rejects if the port is taken. */
export async function startListener(
  fetch: (request: Request, env: unknown) => Response | Promise<Response>,
  port: number,
  host: string,
): Promise<Listener> {
  const open = new Set<ServerResponse>()
  let stopping = false
  let path = ''
  const respond = getRequestListener(fetch, {
    errorHandler: (error) => {
      // A RequestError says that address and Host header form no URL. It is raised while `respond` below has
      // not returned, so `path` is still that of this request.
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
    void respond(request, response)
  }
  const server = createServer({ requireHostHeader: false }, take)
  // RFC 9110 allows a server to ignore an unknown Expect header; Node would respond with 417.
  server.on('checkExpectation', take)
  server.on('clientError', refuse)
  // Longer than load balancers keep idle connections, so that the server never closes one that a balancer is
  // about to use.
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
      // http.Server.close would close idle connections at once,
      // and with them a request that is already on its way.
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

/** Responds to what Node could not parse as a request, unless a response has already begun. */
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
