import { expect, test } from 'vitest'
import { addExecution } from '../../../db/executions/starts/add.ts'
import { readStartable } from '../../../db/executions/starts/startable.ts'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const builder = (await service.signUp('BUILDER')).cookie
const operator = (await service.signUp('OPERATOR')).cookie
const viewer = await service.token('VIEWER')

const start = { id: 'start', type: 'MANUAL_TRIGGER' }
const set = (values: object) => ({ id: 'set', type: 'SET', config: { values } })
const edges = [{ source: 'start', target: 'set' }]

let count = 0
/**
 * Creates a workflow by saving `graphs` one after the other; returns its id, its path and that of its
 * versions.
 */
async function create(...graphs: object[]) {
  const json = { teamId: service.teamId, name: `versioned ${++count}`, ...graphs[0] }
  const made = await service.call('POST', '/api/workflows', builder, json)
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const path = `/api/workflows/${made.body.id}`
  for (const graph of graphs.slice(1)) {
    const { status, body } = await service.call('PUT', path, builder, graph)
    expect(status, JSON.stringify(body)).toBe(200)
  }
  return { id: made.body.id as string, path, versions: `${path}/versions` }
}

const execute = async (path: string) =>
  (await service.call('POST', `${path}/execute`, operator, { teamId: service.teamId })).body
    .executionId as string

const audit = (id: string) =>
  service.store.db
    .selectFrom('auditEntries')
    .select(['action', 'details'])
    .where('resourceId', '=', id)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow()

test('every saved graph can be read as its version', async () => {
  const { id, path, versions } = await create(
    { nodes: [start] },
    { nodes: [start, set({ a: 1 })], edges },
    { name: `versioned ${count} renamed` },
    { nodes: [start, set({ a: 2 })] },
  )
  await execute(path)
  const { body } = await service.call('GET', versions, viewer)
  expect(body).toMatchObject({ totalElements: 3, totalPages: 1, number: 0, size: 20 })
  const common = {
    createdAt: expect.stringMatching(/Z$/),
    createdBy: { id: expect.any(String), name: 'Ada Byron' },
    restoredFrom: null,
    expressions: 2,
    strict: false,
    draft: false,
    published: true,
    publishedAt: expect.stringMatching(/Z$/),
    publishedBy: { id: expect.any(String), name: 'Ada Byron' },
    note: null,
  }
  expect(body.content).toEqual([
    { ...common, version: 3, nodeCount: 2, current: true, inUse: true },
    { ...common, version: 2, nodeCount: 2, current: false, inUse: false },
    { ...common, version: 1, nodeCount: 1, current: false, inUse: false },
  ])
  const page = await service.call('GET', `${versions}?page=1&size=2`, viewer)
  expect(page.body.content.map((item: Body) => item.version)).toEqual([1])
  const second = await service.call('GET', `${versions}/2`, viewer)
  expect(second.body).toMatchObject({ workflowId: id, version: 2, edges })
  expect(second.body.nodes[1].config).toEqual({ values: { a: 1 } })
  expect((await service.call('GET', `${versions}/4`, viewer)).status).toBe(404)
  expect((await service.call('GET', `${versions}/0`, viewer)).status).toBe(400)
  expect((await service.call('GET', `${versions}/x`, viewer)).status).toBe(400)
  const nowhere = `/api/workflows/${crypto.randomUUID()}/versions`
  expect((await service.call('GET', nowhere, viewer)).status).toBe(404)
  const stranger = await service.otherTeam()
  for (const at of [versions, `${versions}/1`, `${versions}/1/diff/2`]) {
    expect((await service.call('GET', at, stranger.cookie)).status).toBe(403)
  }
})

test('two versions are compared by node, path and edge', async () => {
  const config = (more: object) => ({ cases: [{ handle: 'a', condition: '$input.n > 1', ...more }] })
  const { versions } = await create(
    {
      nodes: [
        start,
        { id: 'switch', type: 'SWITCH', config: config({}) },
        { id: 'old', type: 'NO_OP' },
        set({ a: 1, b: [1, 2], c: null }),
      ],
      edges: [{ source: 'start', target: 'switch' }, { source: 'start', target: 'old' }, ...edges],
    },
    {
      nodes: [
        { id: 'new', type: 'NO_OP' },
        start,
        { ...set({ a: 1, b: [1, 3, { x: 1 }], d: true }), name: 'Values', timeoutMs: 500 },
        { id: 'switch', type: 'SWITCH', config: config({ condition: '$input.n > 2' }) },
      ],
      edges: [
        ...edges,
        { source: 'start', target: 'switch' },
        { source: 'switch', sourceHandle: 'a', target: 'new' },
      ],
    },
  )
  const { body } = await service.call('GET', `${versions}/1/diff/2`, viewer)
  expect(body).toEqual({
    from: 1,
    to: 2,
    notes: { added: [], removed: [], changed: [] },
    nodes: {
      added: [expect.objectContaining({ id: 'new' })],
      removed: [expect.objectContaining({ id: 'old' })],
      changed: [
        {
          id: 'set',
          name: 'Values',
          changes: [
            { path: 'name', from: 'Set 1', to: 'Values' },
            { path: 'config.values.b[1]', from: 2, to: 3 },
            { path: 'config.values.b[2]', to: { x: 1 } },
            { path: 'config.values.c', from: null },
            { path: 'config.values.d', to: true },
            { path: 'timeoutMs', to: 500 },
          ],
        },
        {
          id: 'switch',
          name: 'Switch 1',
          changes: [{ path: 'config.cases[0].condition', from: '$input.n > 1', to: '$input.n > 2' }],
        },
      ],
      reordered: true,
    },
    edges: {
      added: [expect.objectContaining({ source: 'switch', sourceHandle: 'a', target: 'new' })],
      removed: [expect.objectContaining({ source: 'start', target: 'old' })],
      reordered: true,
    },
  })
  const same = await service.call('GET', `${versions}/2/diff/2`, viewer)
  expect(same.body).toEqual({
    from: 2,
    to: 2,
    notes: { added: [], removed: [], changed: [] },
    nodes: { added: [], removed: [], changed: [], reordered: false },
    edges: { added: [], removed: [], reordered: false },
  })
  expect((await service.call('GET', `${versions}/1/diff/3`, viewer)).status).toBe(404)
})

test('the secrets of old versions are in credentials of their own, so everybody sees that one has changed', async () => {
  const hook = (value?: string) => ({
    id: 'hook',
    type: 'WEBHOOK_TRIGGER',
    config: { path: 'in', ...(value ? { secretHeader: { name: 'X-Key', value } } : {}) },
  })
  const { versions } = await create({ nodes: [hook()] }, { nodes: [hook('one')] }, { nodes: [hook('two')] })
  const shown = async (as: string) => ({
    read: (await service.call('GET', `${versions}/2`, as)).body.nodes[0].config.secretHeader,
    added: (await service.call('GET', `${versions}/1/diff/2`, as)).body.nodes.changed[0].changes,
    changed: (await service.call('GET', `${versions}/2/diff/3`, as)).body.nodes.changed[0].changes,
  })
  const { credentialId: one } = (await shown(builder)).read
  const { credentialId: two } = (await service.call('GET', `${versions}/3`, builder)).body.nodes[0].config
    .secretHeader
  expect([one, two]).toEqual([expect.any(String), expect.any(String)])
  for (const as of [builder, operator, viewer]) {
    expect(await shown(as)).toEqual({
      read: { name: 'X-Key', credentialId: one },
      added: [{ path: 'config.secretHeader', to: { name: 'X-Key', credentialId: one } }],
      changed: [{ path: 'config.secretHeader.credentialId', from: one, to: two }],
    })
  }
})

test('a restore makes a new version with the old graph and changes nothing but the graph', async () => {
  const { id, path, versions } = await create(
    { nodes: [start, set({ a: 1 })], edges, description: 'first' },
    { nodes: [start, set({ a: 2 })], description: 'second', settings: { timeoutMs: 5_000 } },
  )
  const read = await service.call('GET', path, builder)
  const tag = read.headers.get('etag') ?? ''
  const restore = (version: number, as = builder, headers = {}) =>
    service.call('POST', `${versions}/${version}/restore`, as, undefined, headers)
  expect((await restore(1, operator)).status).toBe(403)
  expect((await restore(1, builder, { 'If-Match': '"other"' })).status).toBe(412)
  const { status, body, headers } = await restore(1, builder, { 'If-Match': tag })
  expect(status).toBe(200)
  expect(body).toMatchObject({ version: 3, description: 'second', settings: { timeoutMs: 5_000 }, edges })
  expect(body.nodes[1].config.values).toEqual({ a: 1 })
  expect(headers.get('etag')).not.toBe(tag)
  expect((await service.call('GET', path, builder)).body).toEqual(body)
  expect((await service.call('GET', versions, viewer)).body.content[0]).toMatchObject({
    version: 3,
    restoredFrom: 1,
    current: true,
  })
  expect(await audit(id)).toMatchObject({
    action: 'WORKFLOW_VERSION_RESTORED',
    details: { restored: 1, version: 3 },
  })
  // Restoring the same graph again makes no new version.
  expect((await restore(1)).body.version).toBe(3)
  expect((await restore(9)).status).toBe(404)
})

test('an active workflow can only be restored to a version that may be active', async () => {
  const { path, versions } = await create(
    { nodes: [set({ a: 1 })] },
    { nodes: [start, set({ a: 1 })], edges, active: true },
  )
  const refused = await service.call('POST', `${versions}/1/restore`, builder)
  expect(refused.status).toBe(400)
  expect(refused.body.message).toMatch(/needs a trigger/)
  expect((await service.call('GET', path, builder)).body).toMatchObject({ version: 2, active: true })
  await service.call('PUT', path, builder, { active: false })
  expect((await service.call('POST', `${versions}/1/restore`, builder)).body.version).toBe(3)
})

test('a version that is current or has executions cannot be deleted; any other can', async () => {
  const { id, path, versions } = await create({ nodes: [start] }, { nodes: [start, set({ a: 1 })] })
  const run = await execute(path)
  await service.call('PUT', path, builder, { edges })
  const remove = (version: number, as = builder) => service.call('DELETE', `${versions}/${version}`, as)
  expect((await remove(1, operator)).status).toBe(403)
  expect((await remove(3)).body.message).toBe('Version 3 is the published one')
  const kept = await remove(2)
  expect([kept.status, kept.body.message]).toEqual([409, 'Version 2 has executions, so it cannot be deleted'])
  expect((await remove(1)).status).toBe(200)
  expect(await audit(id)).toMatchObject({ action: 'WORKFLOW_VERSION_DELETED', details: { version: 1 } })
  expect((await remove(1)).status).toBe(404)
  expect((await service.call('GET', `${versions}/1`, builder)).status).toBe(404)
  expect((await service.call('POST', `${versions}/1/restore`, builder)).status).toBe(404)
  const left = (await service.call('GET', versions, builder)).body.content
  expect(left.map((item: Body) => item.version)).toEqual([3, 2])
  await service.store.db.deleteFrom('executions').where('id', '=', run).execute()
  expect((await remove(2)).status).toBe(200)
  expect((await service.call('DELETE', path, builder)).status).toBe(200)
})

test('a start whose version is deleted before the execution is inserted creates none', async () => {
  const { id, path, versions } = await create({ nodes: [start] })
  const stale = await readStartable(service.store, id, () => true)
  if (!stale) throw new Error('the workflow is gone')
  await service.call('PUT', path, builder, { nodes: [start, set({ a: 1 })] })
  expect((await service.call('DELETE', `${versions}/1`, builder)).status).toBe(200)
  const by = { kind: 'SYSTEM', id: null, name: 'test' } as const
  const begun = addExecution(service.store, stale, {
    origin: 'WEBHOOK',
    node: stale.graph.nodes[0]!,
    trigger: 'WEBHOOK',
    data: {},
    by,
  })
  await expect(begun).rejects.toMatchObject({ code: 'UNAVAILABLE', retryAfter: 1 })
  const rows = service.store.db.selectFrom('executions').select('id').where('workflowId', '=', id)
  expect(await rows.execute()).toEqual([])
})

test('with starts, new versions and deletions at the same time, no execution lacks its version', async () => {
  const { id, path, versions } = await create({ nodes: [start] })
  const seen = { started: 0, refused: 0, kept: 0, gone: 0 }
  for (let round = 1; round <= 12; round++) {
    const starts = Array.from({ length: 4 }, () =>
      service.call('POST', `${path}/execute`, operator, { teamId: service.teamId }),
    )
    const redrawn = service.call('PUT', path, builder, { nodes: [start, set({ round })] })
    const deletions = Array.from({ length: 3 }, () => service.call('DELETE', `${versions}/${round}`, builder))
    for (const { status } of await Promise.all(starts)) {
      expect([202, 503]).toContain(status)
      seen[status === 202 ? 'started' : 'refused']++
    }
    expect((await redrawn).status).toBe(200)
    for (const { status } of await Promise.all(deletions)) {
      expect([200, 404, 409]).toContain(status)
      seen[status === 409 ? 'kept' : 'gone']++
    }
  }
  expect(seen.started).toBeGreaterThan(0)
  const { db } = service.store
  const runs = await db
    .selectFrom('executions as e')
    .leftJoin('workflowVersions as v', (join) =>
      join.onRef('v.workflowId', '=', 'e.workflowId').onRef('v.version', '=', 'e.workflowVersion'),
    )
    .select(['e.id', 'v.version'])
    .where('e.workflowId', '=', id)
    .execute()
  expect(runs).toHaveLength(seen.started)
  expect(runs.filter((run) => run.version === null)).toEqual([])
})
