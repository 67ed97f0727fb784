import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A request that a tool has sent. */
type ToolCall = { method: string; path: string; headers: IncomingHttpHeaders; body: string }

type Answer = (call: ToolCall, request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/** A loopback server for the requests of tools. It answers with what it was sent, unless `answer` says otherwise. */
export async function startLoopback() {
  const calls: ToolCall[] = []
  const echo: Answer = (call, _, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ path: call.path, body: call.body }))
  }
  const state = { answer: echo }
  const server = createServer(async (request, response) => {
    response.on('error', () => {})
    const { method = '', url = '', headers } = request
    const call = { method, path: url, headers, body: await text(request).catch(() => '') }
    calls.push(call)
    await state.answer(call, request, response)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    answer(answer: Answer = echo) {
      state.answer = answer
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
