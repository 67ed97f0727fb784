import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { openTeamCredential } from '../../../db/credentials/open.ts'
import { moveStoredSecrets } from '../../../db/secrets/olderversions.ts'
import { readGraph } from '../../../workflows/graph/read.ts'
import { workInTurns } from '../../../workflows/turns.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import type { Body } from '../../support/service.ts'

const host = await keep(startRunning())
const { teamId } = host

type Seen = { method: string; url: string; headers: Record<string, unknown> }
const seen: Seen[] = []
const server = createServer((req, res) => {
  const { method = '', url = '', headers } = req
  seen.push({ method, url, headers })
  res.setHeader('content-type', 'application/json').end('{"ok":true}')
}).listen(0, '127.0.0.1')
await once(server, 'listening')
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
const place = `127.0.0.1:${(server.address() as AddressInfo).port}`

/** Each request with the credential that it needs. The path is what the server tells them apart by. */
const CASES: [path: string, config: (url: string) => object, type: string][] = [
  ['bearer', (url) => ({ url, headers: { Authorization: 'Bearer tok-en.1', Accept: 'a/b' } }), 'HTTP_BEARER'],
  ['basic', (url) => ({ url, headers: { authorization: `Basic ${btoa('ada:pa:ss')}` } }), 'HTTP_BASIC'],
  ['odd', (url) => ({ url, headers: { Authorization: 'bearer tok-en.2' } }), 'HTTP_HEADER'],
  ['digits', (url) => ({ url, headers: { 'X-Api-Key': 123456 } }), 'HTTP_HEADER'],
  ['user', (url) => ({ url: url.replace('//', '//ada:p%40ss@') }), 'HTTP_BASIC'],
  ['url', (url) => ({ url: `${url}?a=1&api_key=k%2Be+y&b={{ $input.b }}#x` }), 'HTTP_QUERY'],
  ['query', (url) => ({ url, query: { a: 'x y', token: 't/ok=en' } }), 'HTTP_QUERY'],
]
const NODES = [
  { id: 'start', type: 'MANUAL_TRIGGER' },
  ...CASES.map(([path, config]) => ({
    id: path,
    type: 'HTTP_REQUEST',
    config: config(`http://${place}/${path}`),
  })),
  { id: 'sign', type: 'CRYPTO', config: { operation: 'hmac', value: 'x', secret: 'signing secret' } },
  {
    id: 'two',
    type: 'HTTP_REQUEST',
    config: {
      url: `http://${place}/two`,
      headers: { Authorization: 'Bearer tok-en.1', 'X-Api-Key': 'second' },
    },
  },
  {
    id: 'open',
    type: 'HTTP_REQUEST',
    config: { url: 'http://{{ $vars.there }}/open', headers: { 'X-Api-Key': 'nowhere' } },
  },
]
const EDGES = NODES.slice(1).map(({ id }) => ({ source: 'start', target: id }))

let count = 0
/** Creates a workflow as a release stored it that left secrets in graphs. */
async function createOld(nodes = NODES, edges = EDGES): Promise<string> {
  const bare = nodes.map(({ id }) => ({ id, type: id === 'start' ? 'MANUAL_TRIGGER' : 'NO_OP' }))
  const json = { teamId, name: `old ${++count}`, nodes: bare, edges }
  const { id } = await host.ask<Body>('POST', '/api/workflows', json)
  const read = readGraph({ nodes, edges, expressions: 2, imported: true }, randomUUID)
  const stored = (await workInTurns(read, '')).graph.nodes
  await sql`update workflow_versions set nodes = ${JSON.stringify(stored)}::json, secrets_moved = false
    where workflow_id = ${id}`.execute(host.store.db)
  return id
}

const shown = (requests: Seen[]) =>
  requests
    .map(({ method, url, headers }) => {
      const { pathname, searchParams, hash } = new URL(url, 'http://x')
      return { method, pathname, query: [...searchParams].sort(), hash, headers }
    })
    .sort((a, b) => (a.pathname < b.pathname ? -1 : 1))

async function runIt(id: string) {
  seen.length = 0
  const run = await host.ended(await host.execute(id, { b: 'c' }), 30_000)
  const signed = run.nodeExecutions.find(({ nodeId }) => nodeId === 'sign')?.outputData
  return { signed, requests: shown(seen) }
}

const extract = (workflowId: string, more = {}, as = host.admin) =>
  host.call('POST', '/api/credentials/extract', as, { workflowId, ...more })

test('an extraction makes credentials, a new version, and the same requests', { tags: 'long' }, async () => {
  const id = await createOld()
  const before = await runIt(id)
  expect(before.requests).toHaveLength(CASES.length + 1)
  const dry = await extract(id, { dryRun: true })
  expect([dry.status, dry.body.version]).toEqual([200, 1])
  expect(dry.body.credentials.every((one: Body) => one.id === null)).toBe(true)
  const { status, body, text, headers } = await extract(id)
  expect([status, body.version]).toEqual([200, 2])
  const { rows: entries } = await sql<{ action: string }>`select action from audit_entries
    where request_id = ${headers.get('x-request-id')} order by seq`.execute(host.store.db)
  const made = Array(body.credentials.length).fill('CREDENTIAL_CREATED')
  expect(entries.map(({ action }) => action)).toEqual([...made, 'CREDENTIALS_EXTRACTED'])
  expect(body.credentials.map(({ name, type, paths }: Body) => [name, type, paths])).toEqual(
    dry.body.credentials.map(({ name, type, paths }: Body) => [name, type, paths]),
  )
  expect(body.credentials.map(({ type }: Body) => type)).toEqual([
    ...CASES.map(([, , type]) => type),
    'SIGNATURE',
  ])
  expect(body.credentials[0].paths).toEqual([
    'nodes[1].config.headers.Authorization',
    'nodes[9].config.headers.Authorization',
  ])
  expect(body.problems.map(({ path }: Body) => path)).toEqual([
    'nodes[9].config.headers.X-Api-Key',
    'nodes[10].config.headers.X-Api-Key',
  ])
  for (const secret of ['tok-en', 'pa:ss', 'p@ss', '123456', 't/ok=en', 'signing secret', 'nowhere'])
    expect(text).not.toContain(secret)
  const opened = await openTeamCredential(host.store, teamId, body.credentials[0].id)
  expect(opened.data).toEqual({ token: 'tok-en.1', allowedHosts: [place] })
  const after = await runIt(id)
  expect(after).toEqual(before)
  const again = await extract(id)
  expect(again.body).toMatchObject({ version: 2, credentials: [] })
  const { nodes } = await host.ask<Body>('GET', `/api/workflows/${id}`)
  const saved = await host.ask<Body>('PUT', `/api/workflows/${id}`, { nodes, edges: EDGES })
  expect(saved.version).toBe(2)
})

test('an extraction is for BUILDERs of the team, and of a workflow that there is', async () => {
  const id = await createOld(NODES.slice(0, 2), EDGES.slice(0, 1))
  expect((await extract(id, {}, await host.token('OPERATOR'))).status).toBe(403)
  expect((await extract(id, {}, (await host.otherTeam()).cookie)).status).toBe(403)
  expect((await extract('018f6b1e-0000-7000-8000-000000000000')).status).toBe(404)
  expect((await extract(id, { dryRun: 'yes' })).status).toBe(400)
  expect((await extract(id, {}, await host.token('BUILDER'))).status).toBe(200)
})

test('stored versions are migrated in place, while an execution of them goes on', {
  tags: 'long',
}, async () => {
  const wait = { id: 'wait', type: 'WAIT_FOR_EVENT', config: { name: 'go' } }
  const sign = NODES.find(({ id }) => id === 'sign')!
  const call = NODES[1]!
  const nodes = [NODES[0]!, wait, sign, call]
  const edges = [
    { source: 'start', target: 'wait' },
    { source: 'wait', target: 'sign' },
    { source: 'sign', target: 'bearer' },
  ].map((edge) => ({ sourceHandle: null, ...edge }))
  const id = await createOld(nodes as typeof NODES, edges)
  const [first, second] = [await host.execute(id), await host.execute(id)]
  for (const run of [first, second])
    await host.until(run, ({ nodeExecutions }) => nodeExecutions.some(({ nodeId }) => nodeId === 'wait'))
  // The same again by several processes, and by one that is ended at once.
  const ended = new AbortController()
  ended.abort()
  expect(await moveStoredSecrets(host.store, ended.signal)).toMatchObject({ credentials: 0 })
  const moved = await Promise.all([moveStoredSecrets(host.store), moveStoredSecrets(host.store)])
  expect(moved.flatMap(({ failed }) => failed)).toEqual([])
  const stored = await sql<{
    text: string
    left: boolean
  }>`select nodes::text as text, not secrets_moved as left
    from workflow_versions where workflow_id = ${id}`.execute(host.store.db)
  expect(stored.rows).toHaveLength(1)
  expect(stored.rows[0]!.left).toBe(false)
  expect(stored.rows[0]!.text).not.toMatch(/signing secret|tok-en/)
  const named = await sql`select from version_credentials where workflow_id = ${id}`.execute(host.store.db)
  expect(named.rows).toHaveLength(2)
  expect((await moveStoredSecrets(host.store)).credentials).toBe(0)

  // One goes on in the process that has the version in memory, the other in one that reads it anew.
  seen.length = 0
  await host.ask('POST', `/api/executions/${first}/events/go`, {})
  const one = await host.ended(first)
  await host.engine.stop()
  const { openDatabase } = await import('../../../db/connection.ts')
  const other = openDatabase(host.database.url, { max: 5, name: 'test other' })
  const engine = await host.addEngine({ store: { ...host.store, db: other.db } })
  host.use(engine)
  try {
    await host.ask('POST', `/api/executions/${second}/events/go`, {})
    const two = await host.ended(second, 30_000)
    const third = await host.execute(id)
    await host.until(third, ({ nodeExecutions }) => nodeExecutions.some(({ nodeId }) => nodeId === 'wait'))
    await host.ask('POST', `/api/executions/${third}/events/go`, {})
    const runs = [one, two, await host.ended(third, 30_000)]
    const outputs = runs.map((run) => run.nodeExecutions.find(({ nodeId }) => nodeId === 'sign')?.outputData)
    expect(runs.map(({ status, errorMessage }) => [status, errorMessage])).toEqual(
      runs.map(() => ['SUCCESS', null]),
    )
    expect(new Set(outputs.map((output) => JSON.stringify(output))).size).toBe(1)
    expect(seen.map(({ headers }) => headers.authorization)).toEqual(seen.map(() => 'Bearer tok-en.1'))
    expect(seen).toHaveLength(3)
  } finally {
    await engine.stop()
    await other.close()
  }
})

test('the draft of a workflow has its secrets moved too, and equal ones share a credential', async () => {
  const at = (host: string, key: string) => ({
    ...{ id: host, type: 'HTTP_REQUEST' },
    config: { url: `http://${place}/${host}`, headers: { 'X-Api-Key': key } },
  })
  const nodes = [NODES[0]!, at('one', 'shared key')] as typeof NODES
  const id = await createOld(nodes, [{ source: 'start', target: 'one' }])
  await sql`insert into workflow_versions (workflow_id, version, nodes, edges, expressions, node_count, notes, draft)
    select workflow_id, 2, replace(nodes::text, 'GET', 'POST')::json, edges, expressions, node_count, notes, true
    from workflow_versions where workflow_id = ${id}`.execute(host.store.db)
  await sql`update workflows set draft_version = 2, last_draft = 2 where id = ${id}`.execute(host.store.db)
  const { body } = await extract(id)
  expect(body).toMatchObject({ version: 3, draftVersion: 4, problems: [] })
  expect(body.credentials).toHaveLength(1)
  const read = (query: string) => host.ask<Body>('GET', `/api/workflows/${id}${query}`)
  for (const { nodes } of [await read(''), await read('?version=draft')])
    expect(nodes[1].config).toMatchObject({ credentialId: body.credentials[0].id, headers: {} })
  expect(await read('')).toMatchObject({ version: 3, draftVersion: 4 })
  expect((await extract(id)).body).toMatchObject({ version: 3, draftVersion: 4, credentials: [] })
})
