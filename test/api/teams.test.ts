import { afterAll, beforeAll, expect, test } from 'vitest'
import { verifyAudit } from '../../db/verify.ts'
import { edges } from '../graphs.ts'
import { type Running, startRunning } from '../running.ts'

let service: Running
beforeAll(async () => {
  service = await startRunning()
})
afterAll(() => service.stop())

type Json = Record<string, unknown>
const call = async (method: string, path: string, as?: string, json?: unknown) => {
  const answer = await service.request(path, { method, ...(as ? { as } : {}), json })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: (text ? JSON.parse(text) : null) as Json }
}
const makeTeam = async (as: string, name = 'Research') =>
  (await call('POST', '/api/teams', as, { name })).body.id as string

test('whoever makes a team is its ADMIN, and finds it in the list and in detail', async () => {
  const ada = await service.signUp()
  expect((await call('GET', '/api/teams', ada.cookie)).body).toEqual([])
  const made = await call('POST', '/api/teams', ada.cookie, {
    name: ' Research ',
    description: 'What for',
    plan: 'FREE',
    id: 'mine',
  })
  const { id } = made.body as { id: string }
  expect([made.status, made.headers.get('location')]).toEqual([201, `/api/teams/${id}`])
  const createdAt = expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/)
  expect(made.body).toEqual({ id, name: 'Research', description: 'What for', createdAt })
  expect((await call('GET', '/api/teams', ada.cookie)).body).toEqual([
    { id, name: 'Research', memberCount: 1, plan: 'ENTERPRISE', role: 'ADMIN', createdAt },
  ])
  const workflow = { name: 'w', teamId: id }
  expect((await call('POST', '/api/workflows', ada.cookie, workflow)).status).toBe(201)
  expect((await call('GET', `/api/teams/${id}`, ada.cookie)).body).toEqual({
    id,
    name: 'Research',
    description: 'What for',
    memberCount: 1,
    workflowCount: 1,
    credentialCount: 0,
    plan: 'ENTERPRISE',
    createdAt,
    updatedAt: createdAt,
  })
  expect((await call('POST', '/api/teams', ada.cookie, { name: 'Bare' })).body.description).toBeNull()
})

test('a team is changed by its ADMIN alone: what is given, and nothing else', async () => {
  const ada = await service.signUp()
  const id = await makeTeam(ada.cookie)
  const before = (await call('GET', `/api/teams/${id}`, ada.cookie)).body
  const renamed = await call('PUT', `/api/teams/${id}`, ada.cookie, { ...before, name: 'Labs', plan: 'FREE' })
  expect(renamed.status).toBe(200)
  expect(renamed.body).toEqual({ ...before, name: 'Labs', updatedAt: expect.any(String) })
  expect(Date.parse(renamed.body.updatedAt as string)).toBeGreaterThan(Date.parse(before.updatedAt as string))
  const same = await call('PUT', `/api/teams/${id}`, ada.cookie, {})
  expect(same.body).toEqual(renamed.body)
  const cleared = await call('PUT', `/api/teams/${id}`, ada.cookie, { description: null })
  expect(cleared.body.description).toBeNull()
  for (const json of [
    { name: '' },
    { name: ' ' },
    { name: null },
    { name: 'x'.repeat(201) },
    { description: 5 },
  ])
    expect([json, (await call('PUT', `/api/teams/${id}`, ada.cookie, json)).status]).toEqual([json, 400])
  expect((await call('POST', '/api/teams', ada.cookie, {})).status).toBe(400)
  const builder = await service.signUp('BUILDER', id)
  const stranger = await service.signUp()
  for (const as of [builder.cookie, stranger.cookie, await service.token('BUILDER', ada.cookie, id)]) {
    expect((await call('PUT', `/api/teams/${id}`, as, { name: 'x' })).status).toBe(403)
    expect((await call('DELETE', `/api/teams/${id}`, as)).status).toBe(403)
  }
  expect((await call('GET', `/api/teams/${id}`, stranger.cookie)).status).toBe(403)
  expect((await call('GET', `/api/teams/${id}`, builder.cookie)).status).toBe(200)
  expect((await call('GET', `/api/teams/${crypto.randomUUID()}`, ada.cookie)).status).toBe(404)
  expect((await call('GET', '/api/teams/1', ada.cookie)).status).toBe(400)
})

test('an SDK token sees its own team in its own role, and makes none', async () => {
  const ada = await service.signUp('OPERATOR')
  const id = await makeTeam(ada.cookie)
  for (const role of ['VIEWER', 'ADMIN'] as const) {
    const token = await service.token(role, ada.cookie, id)
    expect((await call('GET', '/api/teams', token)).body).toMatchObject([{ id, role }])
    expect((await call('GET', `/api/teams/${id}`, token)).status).toBe(200)
    expect((await call('GET', `/api/teams/${service.teamId}`, token)).status).toBe(403)
    expect((await call('POST', '/api/teams', token, { name: 'x' })).status).toBe(403)
  }
})

test('a deleted team is gone with all that was in it, its run is ended in Temporal, its chain is closed', async () => {
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
  const workflow = (await call('POST', '/api/workflows', ada.cookie, { name: 'w', teamId: id, ...graph }))
    .body
  const begin = () => call('POST', `/api/workflows/${workflow.id}/execute`, ada.cookie, { teamId: id })
  const run = (await begin()).body.executionId as string
  const read = () => call('GET', `/api/executions/${run}`, ada.cookie)
  await expect.poll(async () => (await read()).body.status, { timeout: 20_000 }).toBe('RUNNING')
  const describe = () => service.engine.client.workflow.getHandle(run).describe()
  expect((await describe()).status.name).toBe('RUNNING')

  const [gone, ...late] = await Promise.all([
    call('DELETE', `/api/teams/${id}`, ada.cookie),
    ...Array.from({ length: 5 }, begin),
  ])
  expect(gone).toMatchObject({ status: 200, body: { message: 'Team deleted' } })
  // Those that came before it went with it; no later one is answered as if it had begun.
  for (const { status } of late) expect([202, 403, 404]).toContain(status)
  const runs = [run, ...late.flatMap(({ body }) => (body.executionId ? [body.executionId as string] : []))]
  for (const known of runs) {
    const handle = service.engine.client.workflow.getHandle(known)
    const state = () =>
      handle.describe().then(
        ({ status }) => status.name,
        (error: Error) => error.name,
      )
    // Temporal forgets a run in its own time; that it does so is proved in runs.test.ts.
    await expect.poll(state, { timeout: 60_000 }).toMatch(/TERMINATED|WorkflowNotFoundError/)
  }
  expect((await read()).status).toBe(404)
  expect((await call('GET', `/api/teams/${id}`, ada.cookie)).status).toBe(404)
  expect((await call('DELETE', `/api/teams/${id}`, ada.cookie)).status).toBe(404)
  expect((await call('GET', '/api/teams', token)).status).toBe(401)
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

test('nothing gets behind TEAM_DELETED: of writes at once some come before it, the others find no team', async () => {
  const ada = await service.signUp()
  for (let round = 0; round < 5; round++) {
    const id = await makeTeam(ada.cookie)
    const answers = await Promise.all([
      ...[1, 2, 3].map((i) => call('POST', '/api/workflows', ada.cookie, { name: `w${i}`, teamId: id })),
      call('DELETE', `/api/teams/${id}`, ada.cookie),
      call('DELETE', `/api/teams/${id}`, ada.cookie),
      ...[1, 2].map((i) => call('PUT', `/api/teams/${id}`, ada.cookie, { name: `n${i}` })),
      call('POST', `/api/teams/${id}/sdk-tokens`, ada.cookie, { name: 't', role: 'Viewer' }),
    ])
    const statuses = answers.map(({ status }) => status)
    expect(statuses.slice(3, 5).sort()).toEqual([200, 404])
    // 403: their right was read after the team had gone, its existence before.
    for (const status of statuses) expect([200, 201, 403, 404]).toContain(status)
    expect(await verifyAudit(service.store, id)).toMatchObject({ closed: true, findings: [] })
  }
})

test('a new team is on the default plan of the installation', async () => {
  const { startService } = await import('../service.ts')
  const other = await startService({ defaultPlan: 'BUSINESS' })
  const made = await other.request('/api/teams', { method: 'POST', as: other.admin, json: { name: 'B' } })
  const { id } = (await made.json()) as { id: string }
  const detail = (await (await other.request(`/api/teams/${id}`, { as: other.admin })).json()) as Json
  expect(detail.plan).toBe('BUSINESS')
  await other.stop()
})
