import { expect, test } from 'vitest'
import { verifyAudit } from '../../../db/audit/verify/verify.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'

const service = await keep(startRunning())

const makeTeam = async (as: string, name = 'Research') =>
  (await service.call('POST', '/api/teams', as, { name })).body.id as string

test('the creator of a team is its ADMIN, and can list and read it', async () => {
  const ada = await service.signUp()
  expect((await service.call('GET', '/api/teams', ada.cookie)).body).toEqual([])
  const made = await service.call('POST', '/api/teams', ada.cookie, {
    name: ' Research ',
    description: 'What for',
    plan: 'FREE',
    id: 'mine',
  })
  const { id } = made.body as { id: string }
  expect([made.status, made.headers.get('location')]).toEqual([201, `/api/teams/${id}`])
  const createdAt = expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/)
  expect(made.body).toEqual({ id, name: 'Research', description: 'What for', createdAt })
  expect((await service.call('GET', '/api/teams', ada.cookie)).body).toEqual([
    { id, name: 'Research', memberCount: 1, plan: 'ENTERPRISE', role: 'ADMIN', createdAt },
  ])
  const workflow = { name: 'w', teamId: id }
  expect((await service.call('POST', '/api/workflows', ada.cookie, workflow)).status).toBe(201)
  expect((await service.call('GET', `/api/teams/${id}`, ada.cookie)).body).toEqual({
    id,
    name: 'Research',
    description: 'What for',
    memberCount: 1,
    workflowCount: 1,
    credentialCount: 0,
    plan: 'ENTERPRISE',
    chatRetentionDays: null,
    createdAt,
    updatedAt: createdAt,
  })
  expect((await service.call('POST', '/api/teams', ada.cookie, { name: 'Bare' })).body.description).toBeNull()
})

test('only an ADMIN can change a team, and only the given fields change', async () => {
  const ada = await service.signUp()
  const id = await makeTeam(ada.cookie)
  const before = (await service.call('GET', `/api/teams/${id}`, ada.cookie)).body
  const renamed = await service.call('PUT', `/api/teams/${id}`, ada.cookie, {
    ...before,
    name: 'Labs',
    plan: 'FREE',
  })
  expect(renamed.status).toBe(200)
  expect(renamed.body).toEqual({ ...before, name: 'Labs', updatedAt: expect.any(String) })
  expect(Date.parse(renamed.body.updatedAt as string)).toBeGreaterThan(Date.parse(before.updatedAt as string))
  const same = await service.call('PUT', `/api/teams/${id}`, ada.cookie, {})
  expect(same.body).toEqual(renamed.body)
  const cleared = await service.call('PUT', `/api/teams/${id}`, ada.cookie, { description: null })
  expect(cleared.body.description).toBeNull()
  for (const json of [
    { name: '' },
    { name: ' ' },
    { name: null },
    { name: 'x'.repeat(201) },
    { description: 5 },
  ])
    expect([json, (await service.call('PUT', `/api/teams/${id}`, ada.cookie, json)).status]).toEqual([
      json,
      400,
    ])
  expect((await service.call('POST', '/api/teams', ada.cookie, {})).status).toBe(400)
  const builder = await service.signUp('BUILDER', id)
  const stranger = await service.signUp()
  for (const as of [builder.cookie, stranger.cookie, await service.token('BUILDER', ada.cookie, id)]) {
    expect((await service.call('PUT', `/api/teams/${id}`, as, { name: 'x' })).status).toBe(403)
    expect((await service.call('DELETE', `/api/teams/${id}`, as)).status).toBe(403)
  }
  expect((await service.call('GET', `/api/teams/${id}`, stranger.cookie)).status).toBe(403)
  expect((await service.call('GET', `/api/teams/${id}`, builder.cookie)).status).toBe(200)
  expect((await service.call('GET', `/api/teams/${crypto.randomUUID()}`, ada.cookie)).status).toBe(404)
  expect((await service.call('GET', '/api/teams/1', ada.cookie)).status).toBe(400)
})

test('an SDK token sees its own team with its own role, and cannot create teams', async () => {
  const ada = await service.signUp('OPERATOR')
  const id = await makeTeam(ada.cookie)
  for (const role of ['VIEWER', 'ADMIN'] as const) {
    const token = await service.token(role, ada.cookie, id)
    expect((await service.call('GET', '/api/teams', token)).body).toMatchObject([{ id, role }])
    expect((await service.call('GET', `/api/teams/${id}`, token)).status).toBe(200)
    expect((await service.call('GET', `/api/teams/${service.teamId}`, token)).status).toBe(403)
    expect((await service.call('POST', '/api/teams', token, { name: 'x' })).status).toBe(403)
  }
})

test('deleting a team deletes everything in it, ends its runs in Temporal and closes its audit chain', async () => {
  const ada = await service.signUp()
  const id = await makeTeam(ada.cookie, 'Doomed')
  const token = await service.token('ADMIN', ada.cookie, id)
  const graph = {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'wait', type: 'WAIT', config: { durationMs: 3_600_000 } },
    ],
    edges: edges('start -> wait'),
  }
  const workflow = (
    await service.call('POST', '/api/workflows', ada.cookie, { name: 'w', teamId: id, ...graph })
  ).body
  const begin = () =>
    service.call('POST', `/api/workflows/${workflow.id}/execute`, ada.cookie, { teamId: id })
  const run = (await begin()).body.executionId as string
  const read = () => service.call('GET', `/api/executions/${run}`, ada.cookie)
  await expect.poll(async () => (await read()).body.status, { timeout: 80_000 }).toBe('RUNNING')
  const describe = () => service.engine.client.workflow.getHandle(run).describe()
  expect((await describe()).status.name).toBe('RUNNING')

  const [gone, ...late] = await Promise.all([
    service.call('DELETE', `/api/teams/${id}`, ada.cookie),
    ...Array.from({ length: 5 }, begin),
  ])
  expect(gone).toMatchObject({ status: 200, body: { message: 'Team deleted' } })
  // Executions accepted before the deletion were deleted with the team. Later requests were refused.
  for (const { status } of late) expect([202, 403, 404]).toContain(status)
  const runs = [run, ...late.flatMap(({ body }) => (body.executionId ? [body.executionId as string] : []))]
  for (const known of runs) {
    const handle = service.engine.client.workflow.getHandle(known)
    const state = () =>
      handle.describe().then(
        ({ status }) => status.name,
        (error: Error) => error.name,
      )
    // Temporal removes a terminated run some time later; engine.test.ts tests that it does.
    await expect.poll(state, { timeout: 60_000 }).toMatch(/TERMINATED|WorkflowNotFoundError/)
  }
  expect((await read()).status).toBe(404)
  expect((await service.call('GET', `/api/teams/${id}`, ada.cookie)).status).toBe(404)
  expect((await service.call('DELETE', `/api/teams/${id}`, ada.cookie)).status).toBe(404)
  expect((await service.call('GET', '/api/teams', token)).status).toBe(401)
  const { db } = service.store
  for (const table of ['members', 'sdkTokens', 'workflows', 'executions', 'executionCounts'] as const) {
    const left = await db.selectFrom(table).select('teamId').where('teamId', '=', id).execute()
    expect([table, left]).toEqual([table, []])
  }
  const verification = await verifyAudit(service.store, id)
  expect(verification).toMatchObject({ closed: true, findings: [], entries: verification.last!.seq })
  const entries = await db
    .selectFrom('auditEntries')
    .select(['action', 'details'])
    .where('teamId', '=', id)
    .orderBy('seq')
    .execute()
  expect(entries.map(({ action }) => action)).toEqual([
    'TEAM_CREATED',
    'SDK_TOKEN_CREATED',
    'WORKFLOW_CREATED',
    'TEAM_DELETED',
  ])
  expect(entries.at(-1)?.details).toMatchObject({ name: 'Doomed', memberCount: 1, workflowCount: 1 })
})

test('TEAM_DELETED is the last entry: concurrent writes come before it or find no team', async () => {
  const ada = await service.signUp()
  for (let round = 0; round < 5; round++) {
    const id = await makeTeam(ada.cookie)
    const responses = await Promise.all([
      ...[1, 2, 3].map((i) =>
        service.call('POST', '/api/workflows', ada.cookie, { name: `w${i}`, teamId: id }),
      ),
      service.call('DELETE', `/api/teams/${id}`, ada.cookie),
      service.call('DELETE', `/api/teams/${id}`, ada.cookie),
      ...[1, 2].map((i) => service.call('PUT', `/api/teams/${id}`, ada.cookie, { name: `n${i}` })),
      service.call('POST', `/api/teams/${id}/sdk-tokens`, ada.cookie, { name: 't', role: 'Viewer' }),
    ])
    const statuses = responses.map(({ status }) => status)
    expect(statuses.slice(3, 5).sort()).toEqual([200, 404])
    // 403 if the caller's right was read after the team was deleted, but its existence before.
    for (const status of statuses) expect([200, 201, 403, 404]).toContain(status)
    expect(await verifyAudit(service.store, id)).toMatchObject({ closed: true, findings: [] })
  }
})

test('a person creates 20 teams and no more, also with many requests at once; the admin is not limited', async () => {
  const ada = await service.signUp()
  const create = (as: string) => service.call('POST', '/api/teams', as, { name: 'Many' })
  const responses = await Promise.all(Array.from({ length: 24 }, () => create(ada.cookie)))
  const statuses = responses.map(({ status }) => status).sort()
  expect(statuses).toEqual([...Array(20).fill(201), ...Array(4).fill(409)])
  const refused = await create(ada.cookie)
  expect([refused.status, refused.body.message]).toEqual([409, expect.stringContaining('20 teams')])
  const { id } = responses.find(({ status }) => status === 201)!.body
  expect((await service.call('DELETE', `/api/teams/${id}`, ada.cookie)).status).toBe(200)
  expect((await create(ada.cookie)).status).toBe(201)
  const teams = Array.from({ length: 20 }, () => ({
    id: crypto.randomUUID(),
    name: 'Of the admin',
    createdBy: service.user.id,
  }))
  await service.store.db.insertInto('teams').values(teams).execute()
  expect((await create(service.admin)).status).toBe(201)
})

test('a new team gets the default plan of the installation', async () => {
  const { startService } = await import('../../support/service.ts')
  const other = await startService({ defaultPlan: 'BUSINESS' })
  const { id } = (await other.call('POST', '/api/teams', other.admin, { name: 'B' })).body
  const detail = (await other.call('GET', `/api/teams/${id}`, other.admin)).body
  expect(detail.plan).toBe('BUSINESS')
  await other.stop()
})
