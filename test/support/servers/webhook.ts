import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A request that a receiver of webhooks has got. */
type ReceivedHook = { url: string; headers: IncomingHttpHeaders; body: string }

/** What it answers; undefined: nothing, ever. */
export type HookAnswer = { status: number; headers?: Record<string, string> } | undefined

/** Starts a loopback receiver of webhooks. `answer` is asked for each request, with how many came before it. */
export async function startHookReceiver(answer: (at: number) => HookAnswer = () => ({ status: 200 })) {
  const hooks: ReceivedHook[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      hooks.push({ url: request.url ?? '', headers: request.headers, body })
      const said = answer(hooks.length - 1)
      if (said) response.writeHead(said.status, said.headers ?? {}).end('ok')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hooks/T0/B0/a-secret-path`,
    host: `127.0.0.1:${port}`,
    hooks,
    async stop(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
