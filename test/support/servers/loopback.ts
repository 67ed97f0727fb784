import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { afterAll, afterEach, expect } from 'vitest'
import type { EgressOptions } from '../../../activities/egress/egress.ts'
import { createHttpClient } from '../../../activities/http/http.ts'
import { HttpError, type HttpErrorKind } from '../../../activities/http/httperror.ts'

export const LOCAL = { allowLoopback: true, allow: [] }

/**
 * Offers loopback servers and HTTP clients to the tests
 * of a file. What a test opens is closed after the test.
 */
export function useLoopback() {
  const open: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of open.splice(0)) await close()
  })

  const local = createHttpClient(LOCAL)
  afterAll(() => local.close())

  function clientOf(options: EgressOptions) {
    const client = createHttpClient(options)
    open.push(() => client.close())
    return client
  }

  async function serve(listener: RequestListener, host = '127.0.0.1') {
    const server: Server = createServer(listener).listen(0, host)
    await once(server, 'listening')
    open.push(() => {
      server.closeAllConnections()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    return { server, port, url: `http://${host.includes(':') ? `[${host}]` : host}:${port}` }
  }

  async function serveTcp(onSocket: (socket: Socket) => void) {
    const sockets = new Set<Socket>()
    const server = createTcpServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      onSocket(socket)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    open.push(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const get = (url: string, more: object = {}) => local.request({ method: 'GET', url, ...more })

  return { open, local, clientOf, serve, serveTcp, get }
}

async function failure(promise: Promise<unknown>): Promise<HttpError> {
  const error = await promise.then(
    () => new Error('it did not fail'),
    (error) => error,
  )
  expect(error).toBeInstanceOf(HttpError)
  return error
}

export async function expectKind(promise: Promise<unknown>, kind: HttpErrorKind) {
  const error = await failure(promise)
  expect(`${error.kind} (${error.message})`).toMatch(new RegExp(`^${kind} `))
  return error
}

export const text = (body: Uint8Array) => Buffer.from(body).toString()
