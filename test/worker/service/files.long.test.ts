import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { startInstallation } from '../../support/engine/installation.ts'
import { keep } from '../../support/keep.ts'

const MEGABYTE = 1024 * 1024
const SIZE = 64 * MEGABYTE
const CHUNK = randomBytes(MEGABYTE)
const PARTS = SIZE / MEGABYTE

/** The bytes of the file, of which nobody here holds more than one part. */
function* parts() {
  for (let i = 0; i < PARTS; i++) yield CHUNK
}

async function digest(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const part of stream) hash.update(part)
  return hash.digest('hex')
}

const HASH = await digest(
  (async function* () {
    yield* parts()
  })(),
)

/** A server that tells the hash of what it is sent, and gives the file. */
const seen: string[] = []
const server = createServer(async (incoming, outgoing) => {
  if (incoming.method === 'POST') {
    seen.push(await digest(incoming))
    outgoing.end('{}')
    return
  }
  outgoing.setHeader('content-length', SIZE)
  for (const part of parts()) if (!outgoing.write(part)) await once(outgoing, 'drain')
  outgoing.end()
})
await once(server.listen(0, '127.0.0.1'), 'listening')
await keep(
  Promise.resolve({
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }),
)
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const host = await keep(startInstallation({ EGRESS_ALLOW: '127.0.0.0/8' }))

/** A process and those that it has started: the API and the worker may be one or several of them. */
function listFamily(pid: number): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const parentOf = (name: string) => {
    try {
      return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))?.[1])
    } catch {
      return 0
    }
  }
  const family = [pid]
  for (const member of family) family.push(...all.filter((name) => parentOf(name) === member).map(Number))
  return family
}

function readMemory(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

test('a file of 64 MB goes through a webhook, HTTP and the answer in flat memory', {
  tags: 'long',
  timeout: 300_000,
}, async () => {
  const hook = {
    id: 'hook',
    type: 'WEBHOOK_TRIGGER',
    config: { path: 'in', files: {}, responseMode: 'responseNode', responseTimeoutMs: 300_000 },
  }
  const send = {
    id: 'send',
    type: 'HTTP_REQUEST',
    config: {
      url: base,
      method: 'POST',
      bodyType: 'file',
      body: '{{ $trigger.body }}',
      timeoutMs: 200_000,
    },
  }
  const get = {
    id: 'get',
    type: 'HTTP_REQUEST',
    config: { url: base, responseType: 'file', timeoutMs: 200_000 },
  }
  const answer = {
    id: 'answer',
    type: 'RESPOND_TO_WEBHOOK',
    config: { as: 'file', body: '{{ $nodes.get.body }}' },
  }
  const id = await host.create({
    nodes: [hook, send, get, answer] as never,
    edges: edges('hook -> send', 'send -> get', 'get -> answer'),
  })
  await host.ask('PUT', `/api/workflows/${id}`, { active: true })
  const service = host.holder().children.service.pid
  const fire = async () => {
    const sent = request(`${host.url}/hooks/${id}/in`, {
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream', 'content-length': SIZE },
    })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    for (const part of parts()) if (!sent.write(part)) await once(sent, 'drain')
    sent.end()
    const [response] = await answered
    return { status: response.statusCode, hash: await digest(response) }
  }
  // Once before it is measured, so that all code is loaded and all buffers are there.
  expect(await fire()).toEqual({ status: 200, hash: HASH })
  const family = listFamily(service)
  const before = new Map(family.map((pid) => [pid, readMemory(pid)]))
  const growth = new Map<number, number>()
  const timer = setInterval(() => {
    for (const [pid, was] of before) {
      try {
        growth.set(pid, Math.max(growth.get(pid) ?? 0, readMemory(pid) - was))
      } catch {
        // A process that evaluates expressions ends when it has nothing to do.
      }
    }
  }, 50)
  try {
    expect(await fire()).toEqual({ status: 200, hash: HASH })
  } finally {
    clearInterval(timer)
  }
  expect(seen).toEqual([HASH, HASH])
  const most = Math.max(...growth.values())
  expect(growth.size).toBeGreaterThan(0)
  expect(most).toBeLessThan(SIZE)
})
