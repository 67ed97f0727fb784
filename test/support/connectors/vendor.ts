import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterEach, expect } from 'vitest'
import { edges } from '../engine/graphs.ts'
import { type Host, nodeOf } from '../running.ts'

/** What a vendor needs of a service: a shared one, or one in processes that can be killed. */
type Caller = Pick<Host, 'teamId' | 'ask' | 'create' | 'execute' | 'ended'>

/** A request that has come to the vendor. */
export type Asked = {
  method: string
  path: string
  query: URLSearchParams
  headers: Record<string, string | string[] | undefined>
  bytes: Buffer
  text: string
  json: Record<string, unknown>
}
/** What the vendor answers. `cut`: it reads the request and hangs up. */
export type Reply =
  | { status?: number; headers?: Record<string, string>; json?: unknown; bytes?: Buffer }
  | 'cut'

/** The secret of every credential here: no record may show it. */
export const SECRET = 'canary-0123456789-secret'

let made = 0

/**
 * A vendor on a loopback address that answers as `reply` says, with a credential for it, and what has been asked. The
 * credential may only go there.
 */
export async function startVendor(
  host: Caller,
  reply: (asked: Asked, count: number) => Reply | Promise<Reply>,
  credential: { type: string; data: object } = { type: 'HTTP_BEARER', data: { token: SECRET } },
) {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const bytes = await buffer(request)
    const url = new URL(request.url ?? '/', 'http://vendor.test')
    const text = bytes.toString()
    const one: Asked = {
      ...{
        method: request.method ?? '',
        path: url.pathname,
        query: url.searchParams,
        headers: request.headers,
      },
      ...{ bytes, text, json: /^\s*[{[]/.test(text) ? JSON.parse(text) : {} },
    }
    asked.push(one)
    const said = await reply(one, asked.length)
    if (said === 'cut') return void request.socket.destroy()
    const { status = 200, headers = {}, json, bytes: body } = said
    const type: Record<string, string> = json === undefined ? {} : { 'content-type': 'application/json' }
    response.writeHead(status, { ...type, ...headers })
    response.end(body ?? (json === undefined ? undefined : JSON.stringify(json)))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const url = `http://${address}`
  const data = { ...credential.data, allowedHosts: [address] }
  const body = { teamId: host.teamId, name: `connector ${++made}`, type: credential.type, data }
  const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', body)

  /** The graph of one action. */
  const graph = (config: object, more: object = {}) => ({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      {
        ...{ id: 'act', type: 'CONNECTOR' },
        retry: { maxAttempts: 3, initialIntervalMs: 10, maxIntervalMs: 10 },
        config: { server: url, credentialId, ...config },
        ...more,
      },
    ],
    edges: edges('start -> act'),
  })

  return {
    ...{ asked, credentialId, url, graph },
    async stop() {
      server.closeAllConnections()
      server.close()
    },
    /** Carries out an action in an execution, to its end. `data` is what the trigger outputs. */
    async act(config: object, { data = {}, ...more }: { data?: object } & Record<string, unknown> = {}) {
      const id = await host.execute(await host.create(graph(config, more) as never), data as never)
      const ended = await host.ended(id)
      expect(JSON.stringify(ended)).not.toContain(SECRET)
      const { status, errorMessage, outputData, retryCount } = nodeOf(ended, 'act')
      // biome-ignore lint/suspicious/noExplicitAny: answers are what a service says
      return { id, status, error: errorMessage ?? '', output: outputData as any, retries: retryCount }
    },
  }
}

/** Starts vendors that end after the test they were started in. */
export function useVendors(host: Caller) {
  const open: { stop(): Promise<unknown> }[] = []
  afterEach(async () => {
    for (const one of open.splice(0)) await one.stop()
  })
  return async (...given: Tail<Parameters<typeof startVendor>>) => {
    const vendor = await startVendor(host, ...given)
    open.push(vendor)
    return vendor
  }
}

type Tail<T extends unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never
