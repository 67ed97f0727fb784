import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A request that the target received: `at` is its time in epoch ms, `key` its Idempotency-Key, `answered`
 * whether the whole response was sent, and `answeredAt` when, in epoch ms.
 */
export type Call = {
  path: string
  key: string | undefined
  traceparent: string | undefined
  tracestate: string | undefined
  at: number
  answered: boolean
  answeredAt?: number
}

export type Target = Awaited<ReturnType<typeof startTarget>>

/** Starts a loopback server that stands for the outside world and records its requests. */
export async function startTarget() {
  const calls: Call[] = []
  const counts = new Map<string, number>()
  const hanging = new Set<ServerResponse>()
  const waiters: (() => void)[] = []

  const respond = (
    response: ServerResponse,
    status: number,
    body: string | Buffer,
    type = 'application/json',
  ) => {
    response.writeHead(status, { 'content-type': type }).end(body)
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://target')
    const key = url.searchParams.get('key') ?? ''
    const sent = request.headers['idempotency-key'] as string | undefined
    const traceparent = request.headers.traceparent as string | undefined
    const tracestate = request.headers.tracestate as string | undefined
    const trace = { traceparent, tracestate }
    const call: Call = { path: url.pathname, key: sent, ...trace, at: Date.now(), answered: false }
    calls.push(call)
    response.once('finish', () => {
      call.answered = true
      call.answeredAt = Date.now()
      for (const wake of waiters.splice(0)) wake()
    })
    for (const wake of waiters.splice(0)) wake()
    const count = (counts.get(url.pathname + key) ?? 0) + 1
    counts.set(url.pathname + key, count)
    switch (url.pathname) {
      case '/ok':
        return respond(response, 200, JSON.stringify({ ok: true, key, count }))
      case '/flaky':
        return respond(response, count <= 2 ? 503 : 200, JSON.stringify({ count }))
      case '/slow':
        await new Promise((resolve) => setTimeout(resolve, Number(url.searchParams.get('ms') ?? 1_000)))
        return respond(
          response,
          Number(url.searchParams.get('status') ?? 200),
          JSON.stringify({ key, text: 'x'.repeat(Number(url.searchParams.get('bytes') ?? 0)) }),
        )
      case '/dirty':
        return respond(response, 200, '{"nul":"a\\u0000b","half":"\\ud800"}')
      case '/big':
        return respond(
          response,
          200,
          JSON.stringify({ text: 'x'.repeat(Number(url.searchParams.get('bytes'))) }),
        )
      case '/hang':
        hanging.add(response)
        response.on('close', () => {
          hanging.delete(response)
          for (const wake of waiters.splice(0)) wake()
        })
        return
      default:
        return respond(response, 404, JSON.stringify({ error: 'no such thing' }))
    }
  }

  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    hanging,
    /**
     * Resolves once `holds` returns true. It is called again whenever a request arrives or its response ends.
     */
    async until(holds: () => boolean): Promise<void> {
      while (!holds()) await new Promise<void>((resolve) => waiters.push(resolve))
    },
    async stop(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
