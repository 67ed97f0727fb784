import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { findAccessToken } from '../../../../activities/credentials/oauth/token.ts'
import { openDatabase } from '../../../../db/connection.ts'
import { openTeamCredential } from '../../../../db/credentials/open.ts'
import { launch } from '../../../support/engine/process.ts'
import { keep } from '../../../support/keep.ts'
import { nodeOf, startRunning } from '../../../support/running.ts'
import { useLoopback } from '../../../support/servers/loopback.ts'
import { respond, startTokenServer } from '../../../support/servers/tokens.ts'
import { until } from '../../../support/until.ts'

const host = await keep(startRunning())
const server = await keep(startTokenServer())
const { store, teamId } = host
const { local: http } = useLoopback()
beforeEach(() => server.reset())

async function make(data: object = server.data, more?: 'ended'): Promise<string> {
  const input = { name: randomUUID(), type: 'OAUTH2', teamId, data }
  const { id } = await host.ask<{ id: string }>('POST', '/api/credentials', input)
  if (more)
    await sql`update credentials set expires_at = now() - interval '1 minute' where id = ${id}`.execute(
      store.db,
    )
  return id
}

const graphOf = (credentialId: string, config: object = {}, more: object = {}) => ({
  nodes: [
    { id: 'a', type: 'MANUAL_TRIGGER', config: {} },
    {
      id: 'b',
      type: 'HTTP_REQUEST',
      config: { method: 'POST', url: `${server.url}/api`, body: { n: 1 }, credentialId, ...config },
      ...more,
    },
  ],
  edges: [{ source: 'a', target: 'b' }],
})

test('a request with an effect that gets 401 is sent once more with a new token, which is seen nowhere', async () => {
  server.state.takes = new Set()
  const run = await host.run(graphOf(await make()))
  expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
  expect(server.calls.map(({ status, token, body }) => `${status} ${token} ${body}`)).toEqual([
    '401 access-1 {"n":1}',
    '200 access-2 {"n":1}',
  ])
  expect(nodeOf(run, 'b').outputData).toMatchObject({ body: { hello: 'you', token: '[redacted]' } })
  const requests = await host
    .ask('GET', `/api/executions/${run.id}/nodes/${nodeOf(run, 'b').id}/requests`)
    .catch(() => ({}))
  for (const shown of [run, requests])
    expect(JSON.stringify(shown)).not.toMatch(/access-\d|refresh-\d|client-secret/)
})

test('a server that takes no token gets two requests, and the node fails for good', async () => {
  server.state.misbehave = (res) => respond(res, 200, { access_token: 'useless', expires_in: 3_600 })
  server.state.takes = new Set()
  const run = await host.run(graphOf(await make(), {}, { retry: { maxAttempts: 3, intervalMs: 100 } }))
  expect(run.status).toBe('FAILED')
  expect(nodeOf(run, 'b')).toMatchObject({
    retryCount: 0,
    errorMessage: expect.stringContaining('responded with 401'),
  })
  expect([server.calls.length, server.asked.length]).toEqual([2, 1])
})

test('many executions in two workers, and tests of the credential, renew it once', async () => {
  const opened = openDatabase(host.database.url, { max: 8, name: 'another' })
  const second = await host.addEngine({ store: { ...store, db: opened.db } })
  try {
    server.state.hold = () => sleep(1_500)
    const id = await make(server.data, 'ended')
    const workflow = await host.create(graphOf(id))
    const ids = await Promise.all(Array.from({ length: 16 }, () => host.execute(workflow)))
    await until(() => server.asked.length > 0)
    const tests = [1, 2].map(() =>
      host.ask<{ status: string }>('POST', `/api/credentials/${id}/test?teamId=${teamId}`),
    )
    const runs = await Promise.all(ids.map((id) => host.ended(id)))
    expect(new Set(runs.map(({ status }) => status))).toEqual(new Set(['SUCCESS']))
    expect((await Promise.all(tests)).map(({ status }) => status)).toEqual(['SUCCESS', 'SUCCESS'])
    expect(server.asked).toHaveLength(1)
    expect(server.calls.map(({ token }) => token)).toEqual(Array.from({ length: 16 }, () => 'access-2'))
  } finally {
    await second.stop()
    await opened.close()
  }
})

test('a token server that fails for a while only delays the node', async () => {
  server.state.misbehave = (res) => respond(res, 503, {})
  const id = await host.execute(
    await host.create(
      graphOf(await make(server.data, 'ended'), {}, { retry: { maxAttempts: 5, intervalMs: 100 } }),
    ),
  )
  await host.until(id, (run) => run.nodeExecutions.some(({ retryCount }) => retryCount > 0))
  server.state.misbehave = undefined
  const run = await host.ended(id)
  expect([run.status, nodeOf(run, 'b').retryCount > 0]).toEqual(['SUCCESS', true])
})

test('a credential that cannot be renewed, or is not connected, fails its nodes for good', async () => {
  const revoked = await make({ ...server.data, refreshToken: 'revoked' }, 'ended')
  const { accessToken: _, refreshToken: __, ...unconnected } = server.data
  for (const [id, said] of [
    [revoked, /^The credential .* cannot be used: it got invalid_grant from .*Connect it again$/],
    [revoked, /^The credential .* cannot be used: it got invalid_grant from .*Connect it again$/],
    [await make(unconnected), /^The credential .* is not connected: /],
  ] as const) {
    const run = await host.run(graphOf(id, {}, { retry: { maxAttempts: 3, intervalMs: 100 } }))
    expect([run.status, nodeOf(run, 'b').retryCount]).toEqual(['FAILED', 0])
    expect(run.errorMessage).toMatch(said)
  }
  expect([server.asked.length, server.calls.length]).toEqual([1, 0])
})

test('another process renews when the one that began with it was killed', { tags: 'long' }, async () => {
  const id = await make(server.data, 'ended')
  server.state.hold = () => new Promise(() => {})
  const { current, byId } = store.keys
  const from = (path: string) => JSON.stringify(new URL(`../../../../${path}`, import.meta.url).href)
  const script = `
    import { findAccessToken } from ${from('activities/credentials/oauth/token.ts')}
    import { createHttpClient } from ${from('activities/http/http.ts')}
    import { openDatabase } from ${from('db/connection.ts')}
    const { DATABASE, KEY, ID, TEAM } = process.env
    const { db } = openDatabase(DATABASE, { max: 2, name: 'doomed' })
    const keys = { current: ${JSON.stringify(current)}, byId: new Map([[${JSON.stringify(current)}, Buffer.from(KEY, 'hex')]]) }
    const http = createHttpClient({ allowLoopback: true, allow: [] })
    await findAccessToken({ store: { db, keys }, http }, { id: ID, teamId: TEAM })`
  const doomed = launch(['--input-type=module', '-e', script], {
    DATABASE: host.database.url,
    KEY: byId.get(current)!.toString('hex'),
    ID: id,
    TEAM: teamId,
  })
  await doomed.until(() => server.asked.length === 1)
  doomed.kill('SIGKILL')
  await doomed.ended
  server.state.hold = async () => {}
  expect(await findAccessToken({ store, http }, { id, teamId })).toBe('access-2')
  expect((await openTeamCredential(store, teamId, id)).data.refreshToken).toBe('refresh-2')
  expect(server.asked).toHaveLength(2)
})
