import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startWorkerless } from '../../support/workerless.ts'

const service = await keep(startWorkerless())
const { builder, operator, viewer, create, execute, teamId } = service

type Found = {
  content: { id: string; triggerType: string; errorMessage: string | null }[]
  totalElements: number
  searchedFrom?: string | null
}

async function list(query: Record<string, string>, as = viewer): Promise<Found> {
  const path = `/api/executions/team/${teamId}?${new URLSearchParams(query)}`
  const { status, body } = await service.call('GET', path, as)
  expect(status, JSON.stringify(body)).toBe(200)
  return body as Found
}

const search = async (text: string, as = viewer, more = {}) =>
  (await list({ search: text, ...more }, as)).content.map(({ id }) => id)

async function start(workflowId: string, data: object): Promise<string> {
  return (await execute(workflowId, { teamId, data })).body.executionId
}

/** Changes what an execution is in the database. */
const put = (id: string, values: object) =>
  service.store.db.updateTable('executions').set(values).where('id', '=', id).execute()

test('an execution is found by its id, workflow, error and input, ignoring case', async () => {
  const workflowId = await create({ name: 'Fax zur Zürcher Börse' })
  const one = await start(workflowId, { order: 'A-4711', note: 'He said "yes"\nand went', city: 'ÅRHUS' })
  const two = await start(await create({ name: 'Ping' }), { order: 'B_4712', share: '50% of it' })
  await put(two, { status: 'FAILED', errorMessage: 'connect ECONNREFUSED 10.0.0.7:443' })
  expect(await search('zürcher BÖRSE')).toEqual([one])
  expect(await search('econnrefused 10.0')).toEqual([two])
  expect(await search('a-4711')).toEqual([one])
  expect(await search('"order":"B_4712"')).toEqual([two])
  expect(await search('said "YES"\nand')).toEqual([one])
  expect(await search('århus')).toEqual([one])
  expect(await search(one.slice(-12))).toEqual([one])
  expect(await search(two.toUpperCase())).toEqual([two])
  // Wildcards are plain characters.
  expect(await search('50% OF')).toEqual([two])
  expect(await search('5%of')).toEqual([])
  expect(await search('B_471')).toEqual([two])
  expect(await search('A_4711')).toEqual([])
  expect(await search('\\')).toEqual([one])
  const whole = await list({ search: '471' })
  expect(whole).toMatchObject({ totalElements: 2, searchedFrom: null, content: [{ id: two }, { id: one }] })
  const first = await list({ search: '471', size: '1' })
  expect(first).toMatchObject({ totalElements: 2, content: [{ id: two }] })
  expect(await search('471', viewer, { size: '1', page: '1' })).toEqual([one])
  // The other filters hold too, and so does the workflow's own list.
  expect(await search('471', viewer, { status: 'FAILED' })).toEqual([two])
  expect(await search('471', viewer, { workflowId })).toEqual([one])
  const own = await service.call('GET', `/api/executions?workflowId=${workflowId}&search=471`, viewer)
  expect(own.body).toMatchObject({ totalElements: 1, searchedFrom: null, content: [{ id: one }] })
  expect(await list({})).not.toHaveProperty('searchedFrom')
  const wrong = await service.call('GET', `/api/executions/team/${teamId}?trigger=CRON&search=%00`, viewer)
  expect(wrong.status).toBe(400)
  expect(wrong.body.errors.map(({ path }: { path: string }) => path)).toEqual(['search', 'trigger'])
})

test('a list can be of what one kind of trigger started', async () => {
  const id = await start(await create(), { x: 'by token' })
  await put(id, { trigger: 'SCHEDULE' })
  const found = await list({ trigger: 'SCHEDULE' })
  expect(found).toMatchObject({ totalElements: 1, content: [{ id, triggerType: 'SCHEDULE' }] })
  expect(await search('by token', viewer, { trigger: 'MANUAL' })).toEqual([])
  // By its id too, only if it fits the rest.
  expect(await search(id, viewer, { trigger: 'MANUAL' })).toEqual([])
})

test('what a chat hides from somebody is not found by them', async () => {
  const workflowId = await create({ name: 'Therapist' })
  const id = await start(workflowId, { content: 'my secret is Rumpelstilzchen' })
  const owner = (await service.call('GET', '/api/auth/me', operator)).body.id
  const session = crypto.randomUUID()
  await service.store.db
    .insertInto('agentChatSessions')
    .values({
      id: session,
      teamId,
      workflowId,
      ownerKind: 'USER',
      ownerId: owner,
      title: 'Talk',
      untitled: false,
    })
    .execute()
  await put(id, { chatSessionId: session, trigger: 'CHAT', status: 'FAILED', errorMessage: 'Straw ran out' })
  for (const text of ['rumpelstilz', 'straw RAN']) {
    expect(await search(text, operator)).toEqual([id])
    expect(await search(text, service.admin)).toEqual([id])
    expect(await search(text, builder)).toEqual([])
    expect(await search(text, viewer)).toEqual([])
  }
  // What everybody sees of it, everybody finds it by.
  expect(await search('therapist', builder)).toEqual([id])
  expect(await search(id, viewer)).toEqual([id])
  // Whose chat it was is not known any more.
  await service.store.db.updateTable('executions').set({ chatSessionId: null }).where('id', '=', id).execute()
  expect(await search('rumpelstilz', operator)).toEqual([])
  expect(await search('rumpelstilz', service.admin)).toEqual([id])
})

test('a search that finds too much says how far back it looked, and goes on from there', async () => {
  const old = await start(await create({ name: 'Copied' }), { n: 'needle' })
  await put(old, { createdAt: sql`now() - interval '2 hours'` })
  await sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, status, created_at, completed_at)
    select gen_random_uuid(), team_id, workflow_id, workflow_name, 1, 2, 'API', 'start', '{"n":"Needle"}', 14, 'USER',
      'SUCCESS', now() - n * interval '1 second', now() from executions, generate_series(1, 1200) n
    where id = ${old}`.execute(service.store.db)
  const newest = await list({ search: 'needle', size: '100' })
  expect(newest.totalElements).toBe(1_000)
  const rest = await list({ search: 'needle', to: newest.searchedFrom!, size: '100', page: '2' })
  // The last one of the first thousand is there again: others may have been created in its millisecond.
  expect(rest).toMatchObject({ totalElements: 202, searchedFrom: null })
  expect(rest.content.map(({ id }) => id)).toEqual([expect.any(String), old])
  // An id is looked up, however many are newer.
  expect(await search(old.slice(0, 13))).toContain(old)
})

test('inputs of megabytes are looked through a few at a time', async () => {
  const big = await start(await create({ name: 'Big' }), { n: 1 })
  const text = `"${'x'.repeat(3_000_000)} the end"`
  await sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, status, created_at, completed_at)
    select gen_random_uuid(), team_id, workflow_id, workflow_name, 1, 2, 'API', 'start', ${text}::json, 3000010, 'USER',
      'SUCCESS', now() - n * interval '1 day', now() from executions, generate_series(1, 5) n
    where id = ${big}`.execute(service.store.db)
  const found = new Set<string>()
  for (let to: string | undefined | null; to !== null; ) {
    const some = await list({ search: 'X the end', ...(to ? { to } : {}) })
    // The last one is there again if the time was over after it: others may be of its millisecond.
    for (const one of some.content) found.add(one.id)
    to = some.searchedFrom ?? null
  }
  expect(found.size).toBe(5)
})
