import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { teamId } = service
const builder = (await service.signUp('BUILDER')).cookie
const operator = (await service.signUp('OPERATOR')).cookie
const viewer = await service.token('VIEWER')

const start = { id: 'start', type: 'MANUAL_TRIGGER' }
const set = (a: number) => ({ id: 'set', type: 'SET', config: { values: { a } } })
const edges = [{ source: 'start', target: 'set' }]
const graph = (a: number) => ({ nodes: [start, set(a)], edges })
const setOf = ({ nodes }: Body) => nodes.find(({ id }: Body) => id === 'set')?.config.values.a

let count = 0
/** Creates a workflow whose value is 1, with drafts of these values. */
async function create(drafts: number[] = [], more: object = {}) {
  const name = `drafted ${++count}`
  const made = await service.call('POST', '/api/workflows', builder, { teamId, name, ...graph(1) })
  expect(made.status, made.text).toBe(201)
  const path = `/api/workflows/${made.body.id}`
  const ask = (method: string, at = '', json?: object, headers = {}, as = builder) =>
    service.call(method, `${path}${at}`, as, json, headers)
  if (Object.keys(more).length > 0) expect((await ask('PUT', '', more)).status).toBe(200)
  for (const a of drafts) {
    const { status, text } = await ask('PUT', '', { ...graph(a), draft: true })
    expect(status, text).toBe(200)
  }
  return {
    id: made.body.id as string,
    path,
    ask,
    save: (a: number) => ask('PUT', '', { ...graph(a), draft: true }),
  }
}
const match = (answer: { headers: Headers }) => ({ 'If-Match': answer.headers.get('etag')! })

async function auditOf(id: string) {
  const rows = service.store.db
    .selectFrom('auditEntries')
    .select(['action', 'details'])
    .orderBy('seq', 'desc')
  return rows.where('resourceId', '=', id).limit(1).executeTakeFirstOrThrow()
}

test('a draft lives beside what is published until it is published or discarded', async () => {
  const { id, ask, save } = await create([], { active: true })
  const before = await ask('GET')
  expect(before.body).toMatchObject({ version: 1, publishedVersion: 1, draftVersion: null })
  expect((await ask('GET', '?version=draft')).status).toBe(404)
  const none = [await ask('POST', '/publish', {}), await ask('DELETE', '/draft')]
  expect(none.map(({ status }) => status)).toEqual([409, 404])

  // What is the same makes no draft; name and other settings count at once.
  const same = await ask('PUT', '', { ...graph(1), draft: true })
  expect(same.body).toMatchObject({ version: 1, draftVersion: null })
  const saved = await ask('PUT', '', {
    ...graph(2),
    ...{ draft: true, description: 'counts', settings: { strict: true, notes: [], timeoutMs: 5_000 } },
  })
  expect(saved.body).toMatchObject({
    version: 2,
    publishedVersion: 1,
    draftVersion: 2,
    description: 'counts',
  })
  expect(saved.body.settings).toMatchObject({ strict: true, timeoutMs: 5_000 })
  expect(await auditOf(id)).toMatchObject({
    action: 'WORKFLOW_DRAFT_SAVED',
    details: {
      version: 1,
      draft: 2,
      graph: { nodes: { changed: [{ id: 'set', fields: ['config.values'] }] } },
    },
  })
  const live = await ask('GET')
  expect(live.body).toMatchObject({ version: 1, draftVersion: 2, active: true, description: 'counts' })
  expect(live.body.settings).toMatchObject({ strict: false, timeoutMs: 5_000 })
  expect(setOf(live.body)).toBe(1)
  const draft = await ask('GET', '?version=draft')
  expect(draft.body).toEqual(saved.body)
  expect(match(draft)).toEqual(match(saved))
  expect(match(draft)).not.toEqual(match(live))

  // Another draft begins with the last one.
  const third = await ask('PUT', '', { nodes: [start, set(3)], draft: true })
  expect(third.body).toMatchObject({ version: 3, edges, settings: { strict: true } })
  const versions = (await ask('GET', '/versions')).body.content
  expect(
    versions.map(({ version, current, draft, published }: Body) => [version, current, draft, published]),
  ).toEqual([
    [3, false, true, false],
    [2, false, false, false],
    [1, true, false, true],
  ])

  const published = await ask('POST', '/publish', { note: 'Three' }, match(third))
  expect(published.status, published.text).toBe(200)
  expect(published.body).toMatchObject({ version: 3, publishedVersion: 3, draftVersion: null, active: true })
  expect((await ask('GET')).body).toEqual(published.body)
  expect(match(await ask('GET'))).toEqual(match(published))
  expect(await auditOf(id)).toMatchObject({
    action: 'WORKFLOW_PUBLISHED',
    details: { note: 'Three', before: { version: 1 }, after: { version: 3 } },
  })
  const [newest] = (await ask('GET', '/versions')).body.content
  const publisher = { name: 'Ada Byron' }
  expect(newest).toMatchObject({
    current: true,
    draft: false,
    published: true,
    note: 'Three',
    publishedBy: publisher,
  })

  await save(4)
  expect((await ask('DELETE', '/draft')).body).toEqual({ message: 'Draft discarded' })
  expect(await auditOf(id)).toMatchObject({ action: 'WORKFLOW_DRAFT_DISCARDED', details: { draft: 4 } })
  expect((await ask('GET')).body).toMatchObject({ version: 3, draftVersion: null })
  // Its number is not used again, since every process keeps versions by number.
  expect((await save(5)).body.version).toBe(5)
})

test('a save that publishes leaves a draft alone, which is then published as a new version', async () => {
  const { ask, save } = await create([2])
  const draft = await ask('GET', '?version=draft')
  expect(draft.body.draftBase).toBe(1)
  const put = await ask('PUT', '', graph(3), match(await ask('GET')))
  expect(put.body).toMatchObject({ version: 3, publishedVersion: 3, draftVersion: 2 })
  const after = await ask('GET', '?version=draft')
  expect(after.body).toMatchObject({ version: 2, publishedVersion: 3 })
  expect(match(after)).toEqual(match(draft))
  const published = await ask('POST', '/publish', {}, match(draft))
  expect(published.body).toMatchObject({ version: 4, publishedVersion: 4, draftVersion: null })
  expect(setOf(published.body)).toBe(2)
  expect((await ask('GET', '/versions')).body.content[0]).toMatchObject({ version: 4, restoredFrom: 2 })
  // What was published when the draft began is known, however often both are saved since.
  expect((await save(5)).body).toMatchObject({ draftVersion: 5, draftBase: 4 })
  await ask('PUT', '', graph(6))
  expect((await save(7)).body).toMatchObject({ draftVersion: 7, publishedVersion: 6, draftBase: 4 })
  expect((await ask('GET')).body).toMatchObject({ draftVersion: 7, draftBase: 4 })
  expect((await ask('POST', '/publish', {})).body).toMatchObject({ version: 7, draftBase: null })
})

test('any other version is published as a new one, and the draft stays', async () => {
  const { id, ask } = await create([2], { ...graph(5) })
  expect((await ask('POST', '/publish', { version: 9 })).status).toBe(404)
  const back = await ask('POST', '/publish', { version: 1, note: 'Back', active: true })
  expect(back.body).toMatchObject({ version: 4, draftVersion: 3, active: true })
  expect(setOf(back.body)).toBe(1)
  expect((await ask('GET', '/versions')).body.content[0]).toMatchObject({ restoredFrom: 1, note: 'Back' })
  expect(await auditOf(id)).toMatchObject({ action: 'WORKFLOW_PUBLISHED', details: { restored: 1 } })
  expect((await ask('POST', '/publish', { version: 4, active: false })).body).toMatchObject({
    version: 4,
    active: false,
  })
  const restored = await ask('POST', '/versions/2/restore')
  expect(restored.body).toMatchObject({ version: 5, draftVersion: 3 })
  const named = await ask('POST', '/publish', { version: 3 })
  expect(named.body).toMatchObject({ draftVersion: null, version: 6 })
})

test('a draft may be unfinished, but what is active must be valid', async () => {
  const { ask } = await create([], { active: true })
  const nodes = [
    { id: 'a', type: 'NO_OP' },
    { id: 'b', type: 'NO_OP' },
  ]
  const saved = await ask('PUT', '', { nodes, edges: [], draft: true, name: `drafted ${++count}` })
  expect(saved.status, saved.text).toBe(200)
  const refused = await ask('POST', '/publish', {})
  expect(refused.status).toBe(400)
  expect(refused.body.errors.length).toBeGreaterThan(0)
  expect((await ask('GET')).body).toMatchObject({ version: 1, draftVersion: 2 })
  // Switched off with it, it need not be.
  expect((await ask('POST', '/publish', { active: false })).body).toMatchObject({ version: 2, active: false })
  expect((await ask('POST', '/publish', { version: 2, active: true })).status).toBe(400)
  expect((await ask('PUT', '', { nodes: [{ id: 'a', type: 'NONSENSE' }], draft: true })).status).toBe(400)
  await ask('PUT', '', { ...graph(1), draft: true })
  // Active counts at once, so it is about what is published.
  expect((await ask('PUT', '', { active: true, draft: true })).status).toBe(400)
})

test('a draft names credentials of the team only, also when it is published', async () => {
  const credential = async (name: string) =>
    (
      await service.call('POST', '/api/credentials', builder, {
        teamId,
        name,
        type: 'HTTP_BEARER',
        data: { token: 'x' },
      })
    ).body.id as string
  const mine = await credential('drafted')
  const call = {
    id: 'call',
    type: 'HTTP_REQUEST',
    config: { url: 'https://example.com', credentialId: mine },
  }
  const { id, ask } = await create()
  const wrong = { ...call, config: { ...call.config, credentialId: crypto.randomUUID() } }
  expect((await ask('PUT', '', { nodes: [start, wrong], edges: [], draft: true })).status).toBe(400)
  const saved = await ask('PUT', '', { nodes: [start, call], edges: [], draft: true })
  expect(saved.status, saved.text).toBe(200)
  const usage = await service.call('GET', `/api/credentials/${mine}/usage`, builder)
  expect(usage.body.content).toEqual([
    expect.objectContaining({ workflowId: id, inDraft: true, nodes: [], versions: 1 }),
  ])
  expect((await service.call('DELETE', `/api/credentials/${mine}`, builder)).status).toBe(200)
  const refused = await ask('POST', '/publish', {})
  expect(refused.body.errors).toEqual([expect.objectContaining({ path: 'nodes[1].config.credentialId' })])
})

test('each state has its tag, which tells changes of it from changes of the other', async () => {
  const { ask, save } = await create()
  const first = match(await ask('GET'))
  // Without a draft the first save goes by what is published.
  expect((await ask('PUT', '', { ...graph(2), draft: true }, first)).status).toBe(200)
  const draft = match(await ask('GET', '?version=draft'))
  // That one had not seen the draft; one that publishes need not.
  expect((await ask('PUT', '', { ...graph(3), draft: true }, first)).status).toBe(412)
  expect((await ask('POST', '/publish', {}, first)).status).toBe(412)
  expect((await ask('DELETE', '/draft', undefined, first)).status).toBe(412)
  expect((await ask('PUT', '', { description: 'x' }, draft)).status).toBe(412)
  expect((await ask('PUT', '', { description: 'new' }, first)).status).toBe(200)
  // Its description is shown with the draft too.
  expect((await ask('PUT', '', { ...graph(3), draft: true }, draft)).status).toBe(412)
  const now = match(await ask('GET', '?version=draft'))
  const both = match(await ask('GET'))
  await save(4)
  for (const old of [now, both]) expect((await ask('POST', '/publish', {}, old)).status).toBe(412)
  expect((await ask('POST', '/publish', {}, match(await ask('GET')))).status).toBe(200)
})

test('neither what is published nor the draft can be deleted; fifty older drafts stay, and those with executions', async () => {
  const { id, ask, save } = await create([2, 3])
  const execution = await ask('POST', '/execute', { teamId, version: 2 })
  expect(execution.status, execution.text).toBe(202)
  expect((await ask('DELETE', '/versions/1')).body.message).toMatch(/published/)
  expect((await ask('DELETE', '/versions/3')).body.message).toMatch(/draft/)
  expect((await ask('DELETE', '/versions/2')).body.message).toMatch(/executions/)
  for (let a = 4; a <= 56; a++) await save(a)
  const rows = await sql<{ version: number }>`select version from workflow_versions where workflow_id = ${id}
    order by version`.execute(service.store.db)
  const kept = rows.rows.map(({ version }) => version)
  expect(kept.slice(0, 3)).toEqual([1, 2, 6])
  expect(kept).toHaveLength(2 + 50 + 1)
  expect((await ask('DELETE', '/versions/6')).status).toBe(200)
})

test('saves of drafts and publications at the same time come one after the other', async () => {
  const { id, ask, save } = await create([2])
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, at) =>
      at % 3 === 0
        ? ask('POST', '/publish', {})
        : at % 3 === 1
          ? save(10 + at)
          : ask('PUT', '', graph(10 + at)),
    ),
  )
  for (const { status, text } of answers) expect([200, 409], text).toContain(status)
  const row = await service.store.db
    .selectFrom('workflows')
    .select(['version', 'draftVersion', 'lastDraft'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const { content } = (await ask('GET', '/versions?size=100')).body
  const numbers = content.map(({ version }: Body) => version)
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(Math.max(...numbers)).toBe(Math.max(row.version, row.lastDraft!))
  const flags = content.filter(({ draft, current }: Body) => draft || current)
  expect(flags.map(({ version }: Body) => version).sort()).toEqual(
    [row.version, row.draftVersion].filter((one) => one !== null).sort(),
  )
})

test('a process of the release before starts what is published, and cannot touch the draft', async () => {
  const { id, ask, save } = await create([2, 3])
  const { db } = service.store
  await ask('DELETE', '/draft')
  await save(4)
  // As that release saves a graph, restores a version and moves secrets: the number after the published one.
  const saveAsBefore = (version: number) =>
    db.transaction().execute(async (tx) => {
      await sql`select id, name, version, settings from workflows where id = ${id} for update`.execute(tx)
      await sql`insert into workflow_versions (workflow_id, version, nodes, edges, expressions, strict, node_count,
          approver_ids, notes, created_by, restored_from, secrets_moved)
        values (${id}, ${version}, '[]', '[]', 2, false, 0, null, '[]', null, null, true)`.execute(tx)
      await sql`update workflows set name = name, active = active, settings = settings, version = ${version},
        updated_at = now() where id = ${id}`.execute(tx)
    })
  const draft = await ask('GET', '?version=draft')
  for (const version of [2, 3, 4])
    await expect(saveAsBefore(version)).rejects.toThrow(/draft of the workflow/)
  const deleteAsBefore = sql`delete from workflow_versions where workflow_id = ${id} and version = 4`
  await expect(deleteAsBefore.execute(db)).rejects.toThrow(/workflows_draft_fkey/)
  // A change of the name, as that release makes it.
  await sql`update workflows set name = ${`drafted ${++count}`}, version = 1 where id = ${id}`.execute(db)
  expect((await ask('GET', '?version=draft')).body).toMatchObject({ version: 4, nodes: draft.body.nodes })
  expect((await ask('GET')).body).toMatchObject({ version: 1, draftVersion: 4 })
  expect((await ask('POST', '/publish', {})).body.version).toBe(4)
  await saveAsBefore(5)
  expect((await ask('GET')).body).toMatchObject({
    version: 5,
    publishedVersion: 5,
    draftVersion: null,
    nodes: [],
  })
  expect((await save(6)).body.version).toBe(6)
})

test('a draft is tried by a BUILDER, and its execution says so; everything else executes what is published', async () => {
  const { id, ask } = await create([2])
  const execute = (more: object, as = builder) => ask('POST', '/execute', { teamId, ...more }, {}, as)
  const read = async (answer: Body) =>
    (await service.call('GET', `/api/executions/${answer.body.executionId}`, viewer)).body
  expect((await execute({ version: 'draft' }, operator)).status).toBe(403)
  expect((await execute({ version: 1 }, operator)).status).toBe(403)
  for (const version of [0, 1.5, 'newest', null]) expect((await execute({ version })).status).toBe(400)
  expect((await execute({ version: 9 })).status).toBe(404)
  expect(await read(await execute({}, operator))).toMatchObject({ workflowVersion: 1, draft: false })
  expect(await read(await execute({ version: 1 }))).toMatchObject({ workflowVersion: 1, draft: false })
  const tried = await execute({ version: 'draft' })
  expect(await read(tried)).toMatchObject({ workflowVersion: 2, draft: true, nodeExecutions: [] })
  const alone = (version?: unknown) => ask('POST', '/nodes/set/run', { version })
  expect(await read(await alone())).toMatchObject({ workflowVersion: 1, draft: false })
  expect(await read(await alone('draft'))).toMatchObject({ workflowVersion: 2, draft: true })
  expect(await read(await alone(2))).toMatchObject({ workflowVersion: 2, draft: true })
  const { content } = (await service.call('GET', `/api/executions?workflowId=${id}`, viewer)).body
  expect(content.map(({ draft }: Body) => draft)).toEqual([true, true, false, true, false, false])

  // The same key with another version is another request.
  const key = { 'Idempotency-Key': crypto.randomUUID() }
  const keyed = (version: unknown) => ask('POST', '/execute', { teamId, version }, key)
  const [one, two] = [await keyed('draft'), await keyed('draft')]
  expect(two.body.executionId).toBe(one.body.executionId)
  expect((await keyed(1)).status).toBe(409)

  await ask('DELETE', '/draft')
  for (const answer of [await execute({ version: 'draft' }), await alone('draft')]) {
    expect(answer.status).toBe(409)
    expect(answer.body.message).toMatch(/no draft/)
  }
  // A test stays one for who repeats it, and needs the same right.
  await service.call('POST', `/api/executions/${tried.body.executionId}/cancel`, builder)
  // Nor does a retry of many make it again, unless it is named.
  const retryAll = async (filter: object) =>
    (
      await service.call('POST', `/api/executions/team/${teamId}/retry`, builder, {
        filter,
        version: 'current',
      })
    ).body
  expect(await retryAll({ workflowId: id })).toMatchObject({ matched: 0 })
  expect(await retryAll({ ids: [tried.body.executionId] })).toMatchObject({ matched: 1, retried: 1 })
  const rerun = (version: string, as: string) =>
    service.call('POST', `/api/executions/${tried.body.executionId}/rerun`, as, { version })
  expect((await rerun('same', operator)).status).toBe(403)
  expect(await read(await rerun('same', builder))).toMatchObject({ workflowVersion: 2, draft: true })
  expect(await read(await rerun('current', operator))).toMatchObject({ workflowVersion: 1, draft: false })
})

test('an export has what is published, or the draft', async () => {
  const { ask } = await create([2])
  const [live, draft] = [await ask('GET', '/export'), await ask('GET', '/export?version=draft')]
  expect([setOf(live.body), setOf(draft.body)]).toEqual([1, 2])
  expect((await ask('GET', '/versions/1/diff/2')).body.nodes.changed).toHaveLength(1)
})

test('only a BUILDER of the team saves, publishes and discards drafts', async () => {
  const { ask } = await create([2])
  const stranger = await service.otherTeam()
  const requests: [string, string, object?][] = [
    ['PUT', '', { ...graph(3), draft: true }],
    ['POST', '/publish', {}],
    ['POST', '/publish', { version: 1 }],
    ['DELETE', '/draft'],
  ]
  for (const [method, at, json] of requests)
    for (const as of [operator, viewer, stranger.cookie])
      expect((await ask(method, at, json, {}, as)).status, `${method} ${at}`).toBe(403)
  expect((await ask('GET', '?version=draft', undefined, {}, stranger.cookie)).status).toBe(403)
  expect((await ask('GET', '?version=draft', undefined, {}, viewer)).status).toBe(200)
  for (const [method, at] of [
    ['POST', 'publish'],
    ['DELETE', 'draft'],
  ] as const)
    expect(
      (await service.call(method, `/api/workflows/${crypto.randomUUID()}/${at}`, builder, {})).status,
    ).toBe(404)
  expect((await ask('POST', '/publish', { version: 'x', note: 1, active: 'yes' })).body.errors).toHaveLength(
    3,
  )
})
