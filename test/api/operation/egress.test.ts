import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { INSTANCE_CHAIN } from '../../../db/audit/signing.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, startRunning } from '../../support/running.ts'

const host = await keep(startRunning())
const path = `/api/admin/teams/${host.teamId}/egress`
const NONE = { allow: [], deny: [] }

let port = 0
const sockets = new Set<Socket>()
const server = createServer((request, response) => {
  if (request.url === '/away') response.writeHead(302, { location: `http://127.0.0.2:${port}/` })
  response.end('{"here":true}')
})
beforeAll(async () => {
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
afterEach(async () => {
  await host.call('PUT', path, host.admin, NONE)
})

/** Executes a graph with one request, and returns its node. */
async function callTo(url: string) {
  const id = await host.create({
    nodes: [
      { id: 'start', name: 'Start', type: 'MANUAL_TRIGGER', config: {} },
      {
        id: 'call',
        name: 'Call',
        type: 'HTTP_REQUEST',
        config: { method: 'GET', url },
        retry: { maxAttempts: 1 },
      },
    ],
    edges: [{ source: 'start', target: 'call' }],
  })
  return nodeOf(await host.ended(await host.execute(id)), 'call')
}

test('the admin sets what a team may reach; it holds for the next call, on kept connections too', async () => {
  const url = `http://127.0.0.1:${port}/`
  expect((await host.call('GET', path, host.admin)).body).toEqual({ ...NONE, updatedAt: null })
  expect(await callTo(url)).toMatchObject({ status: 'SUCCESS' })

  const set = await host.call('PUT', path, host.admin, {
    allow: ['10.1.0.0/16', '*.corp.example'],
    deny: ['127.0.0.1'],
  })
  expect(set.body).toMatchObject({ allow: ['10.1.0.0/16', '*.corp.example'], deny: ['127.0.0.1'] })
  expect((await host.call('GET', path, host.admin)).body).toEqual(set.body)
  const refused = await callTo(url)
  expect(refused).toMatchObject({ status: 'FAILED' })
  expect(refused.errorMessage).toContain('127.0.0.1 is a denied address')
  expect(await callTo(`http://127.0.0.2:${port}/`)).toMatchObject({ status: 'SUCCESS' })

  await host.call('PUT', path, host.admin, { allow: [], deny: ['127.0.0.2'] })
  expect(await callTo(url)).toMatchObject({ status: 'SUCCESS' })
  expect(await callTo(`http://127.0.0.1:${port}/away`)).toMatchObject({
    errorMessage: expect.stringContaining('127.0.0.2 is a denied address'),
  })
  await host.call('PUT', path, host.admin, NONE)
  expect(await callTo(`http://127.0.0.1:${port}/away`)).toMatchObject({ status: 'SUCCESS' })
})

test('rules of one team say nothing of another, and go with the team', async () => {
  const other = await host.otherTeam()
  const theirs = `/api/admin/teams/${other.teamId}/egress`
  await host.call('PUT', theirs, host.admin, { allow: [], deny: ['127.0.0.0/8'] })
  expect(await callTo(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 'SUCCESS' })
  expect((await host.call('DELETE', `/api/teams/${other.teamId}`, other.cookie)).status).toBe(200)
  expect(
    await host.store.db.selectFrom('teamEgress').selectAll().where('teamId', '=', other.teamId).execute(),
  ).toEqual([])
})

test('only the instance admin may see and set them, each entry is checked, and each change is noted', async () => {
  const other = await host.otherTeam()
  const theirs = `/api/admin/teams/${other.teamId}/egress`
  for (const method of ['GET', 'PUT'])
    expect((await host.call(method, theirs, other.cookie, method === 'PUT' ? NONE : undefined)).status).toBe(
      403,
    )
  const nobody = `/api/admin/teams/${crypto.randomUUID()}/egress`
  expect((await host.call('GET', nobody, host.admin)).status).toBe(404)
  expect((await host.call('PUT', nobody, host.admin, { allow: ['1.1.1.1'], deny: [] })).status).toBe(404)

  const bad = await host.call('PUT', path, host.admin, {
    allow: ['10.0.0.0/33', 'api.example.com'],
    deny: ['*', '10.1'],
  })
  expect(bad.status).toBe(400)
  expect(bad.body.errors.map((one: { path: string }) => one.path)).toEqual(['allow[0]', 'deny[0]', 'deny[1]'])

  const count = async () =>
    (
      await host.store.db
        .selectFrom('auditEntries')
        .select(['action', 'details', 'resourceId'])
        .where('teamId', '=', INSTANCE_CHAIN)
        .where('action', '=', 'TEAM_EGRESS_UPDATED')
        .where('resourceId', '=', other.teamId)
        .execute()
    ).map(({ details }) => details)
  const rules = { allow: ['10.0.0.9'], deny: ['*.corp.example'] }
  await host.call('PUT', theirs, host.admin, rules)
  await host.call('PUT', theirs, host.admin, rules)
  expect(await count()).toEqual([{ ...rules, before: { allow: [], deny: [] }, after: rules }])
})
