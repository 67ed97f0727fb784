import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Starts a way to a database, `url`, that can be frozen: then it holds all bytes back, and ends no connection. */
export async function startFreezer(database: string) {
  const { hostname, port } = new URL(database)
  const sockets = new Set<Socket>()
  let frozen = false
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from.on('error', () => {}).on('close', () => to.destroy()))
      from.pipe(to)
      if (frozen) from.pause()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(database)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: url.href,
    freeze() {
      frozen = true
      for (const socket of sockets) socket.pause()
    },
    thaw() {
      frozen = false
      for (const socket of sockets) socket.resume()
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
