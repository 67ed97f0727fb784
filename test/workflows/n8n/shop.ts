import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

type Call = { method: string; url: string; headers: Record<string, unknown>; body: unknown }

const USERS: Record<string, object> = {
  1: { id: 1, city: 'Paris', points: 10 },
  2: { id: 2, city: 'Oslo', points: 20 },
  3: { id: 3, city: 'Paris', points: 30 },
}

/** The API that the documents in this folder call: tests replace http://api.test by its address. */
export async function startShop() {
  const calls: Call[] = []
  let busy = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const { method = '', url = '', headers } = request
    calls.push({ method, url, headers, body: text === '' ? null : JSON.parse(text) })
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const path = url.split('?')[0]!
    const user = USERS[path.replace('/users/', '')]
    if (user) return answer(200, user)
    if (path === '/users') {
      const users = ['Ada', 'Bob', 'Eve'].map((name, i) => ({ id: i + 1, name, active: name !== 'Bob' }))
      return answer(200, { users, total: 3 })
    }
    if (path === '/scores/1') return answer(200, { score: 61 })
    // The first order is refused, so that only a retry succeeds.
    if (path === '/orders' && busy++ < 1) return answer(503, {})
    if (method === 'POST') return answer(201, { id: 'o-1' })
    return answer(404, { error: 'no such thing' })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    async stop(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
