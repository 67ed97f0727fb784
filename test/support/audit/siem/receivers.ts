import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { CERT, KEY } from '../../servers/certificate.ts'

/** An event as it arrives over HTTP. */
type Event = { event: { sequence: number; action: string }; [key: string]: unknown }

/** A batch as it arrived: `concurrent` is how many were under way with it. */
type Batch = { events: Event[]; seqs: number[]; headers: IncomingMessage['headers']; concurrent: number }

/**
 * Starts a receiver of JSON on loopback. `answer` decides on the status of each batch, after all of it has arrived; a batch
 * counts as taken from then on, whether or not its sender hears of it.
 */
export async function startJsonReceiver(
  answer: (batch: Batch, at: number) => Promise<number> | number = () => 200,
) {
  const batches: Batch[] = []
  let under = 0
  let react = answer
  const server = createServer(async (request, response) => {
    under++
    response.once('close', () => under--)
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const events = JSON.parse(Buffer.concat(parts).toString()) as Event[]
    const seqs = events.map(({ event }) => event.sequence)
    const batch = { events, seqs, headers: request.headers, concurrent: under }
    batches.push(batch)
    response.writeHead(await react(batch, batches.length)).end('{"token":"an answer that nobody reads"}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/ingest`,
    batches,
    seqs: () => batches.flatMap(({ seqs }) => seqs),
    /** Answers in another way from now on. */
    answer(next: typeof answer) {
      react = next
    },
    async stop(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/**
 * Starts a receiver of syslog over TLS on loopback, which reads frames with their length before them. `cut` decides for each
 * connection, from 1, after how many bytes it is destroyed.
 */
export async function startSyslogReceiver({
  cert = CERT,
  cut = (_at: number) => Number.POSITIVE_INFINITY,
} = {}) {
  const messages: string[] = []
  const open = new Set<TLSSocket>()
  let connections = 0
  const server = createTlsServer({ cert, key: KEY }, (socket) => {
    const most = cut(++connections)
    let rest: Buffer = Buffer.alloc(0)
    let bytes = 0
    open.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => open.delete(socket))
    socket.on('data', (part) => {
      bytes += part.length
      if (bytes > most) return socket.destroy()
      rest = Buffer.concat([rest, part])
      for (;;) {
        const [, length] = /^(\d+) /.exec(rest.subarray(0, 12).toString('latin1')) ?? []
        if (length === undefined) return
        const begin = length.length + 1
        if (rest.length < begin + Number(length)) return
        messages.push(rest.subarray(begin, begin + Number(length)).toString())
        rest = rest.subarray(begin + Number(length))
      }
    })
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    messages,
    connections: () => connections,
    /** The numbers of the entries in the order in which they arrived. */
    seqs: () => messages.map((message) => Number(/ seq="(\d+)"/.exec(message)?.[1])),
    async stop(): Promise<void> {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
