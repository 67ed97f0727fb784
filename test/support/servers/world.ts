import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** How a server answers a request. `count` is the number of this request among those of its path, from 1. */
export type Answer = (given: {
  request: IncomingMessage
  body: string
  response: ServerResponse
  count: number
}) => unknown

/** Starts a loopback server that answers each path as `answers` says, and others as `otherwise` does: with 404. */
export async function startWorld(
  answers: Record<string, Answer>,
  otherwise: (request: IncomingMessage, response: ServerResponse) => unknown = (_, response) =>
    response.writeHead(404).end(),
) {
  const counts = new Map<string, number>()
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const path = request.url!.split('?')[0]!
    const count = (counts.get(path) ?? 0) + 1
    counts.set(path, count)
    const answer = answers[path]
    if (answer) answer({ request, body, response, count })
    else otherwise(request, response)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    /** How many requests have come for a path. */
    countOf: (path: string) => counts.get(path) ?? 0,
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
