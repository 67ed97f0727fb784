import { once } from 'node:events'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import type { Config } from '../../worker/config.ts'
import { connectClient } from '../../worker/temporal.ts'

const [UNIMPLEMENTED, UNAVAILABLE] = [12, 14]

/** A Temporal that answers, and can do nothing at the moment. */
const server = createServer()
let calls = 0
server.on('stream', (stream, headers) => {
  const connects = String(headers[':path']).endsWith('/GetSystemInfo')
  if (!connects) calls += 1
  const status = connects ? UNIMPLEMENTED : UNAVAILABLE
  const answer = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': String(status) }
  stream.respond(answer, { endStream: true })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
afterAll(() => server.close())

test('a call that would be tried again after its connection was closed ends, and its error ends no process', async () => {
  const { port } = server.address() as AddressInfo
  const connection = connectClient({ temporal: { address: `127.0.0.1:${port}` } } as Config)
  const uncaught: unknown[] = []
  const note = (error: unknown) => uncaught.push(error)
  process.on('uncaughtExceptionMonitor', note)
  try {
    const call = connection.workflowService.describeNamespace({ namespace: 'default' })
    const failed = expect(call).rejects.toMatchObject({
      code: 1,
      details: expect.stringContaining('shut down'),
    })
    await expect.poll(() => calls).toBeGreaterThan(0)
    await connection.close()
    await failed
    expect(uncaught).toEqual([])
  } finally {
    process.off('uncaughtExceptionMonitor', note)
  }
})
