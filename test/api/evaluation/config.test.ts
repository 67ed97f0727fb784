import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { teamId, admin } = service

async function createWorkflow(): Promise<string> {
  const nodes = [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }]
  const json = { teamId, name: crypto.randomUUID(), nodes, edges: [] }
  const created = await service.call('POST', '/api/workflows', admin, json)
  expect(created.status, created.text).toBe(201)
  return created.body.id
}

async function createCredential(type = 'OPENAI'): Promise<string> {
  const json = { teamId, name: crypto.randomUUID(), type, data: { apiKey: 'sk-1234567890' } }
  return (await service.call('POST', '/api/credentials', admin, json)).body.id
}

const ofWorkflow = (id: string) => `/api/monitoring/workflow/${id}/eval-config`
const OF_TEAM = `/api/monitoring/teams/${teamId}/eval-config`
const DIMENSIONS = `/api/monitoring/teams/${teamId}/eval-dimensions`

test('a workflow that says nothing has nulls everywhere, and the defaults count', async () => {
  const workflowId = await createWorkflow()
  const { status, body } = await service.call('GET', ofWorkflow(workflowId), admin)
  expect(status).toBe(200)
  expect(body).toEqual({
    ...{
      workflowId,
      id: null,
      evalEnabled: null,
      evalProvider: null,
      evalModel: null,
      evalCredentialId: null,
    },
    ...{ evalSamplingRate: null, evalDimensions: null, evalFailureThreshold: null, evalNotifyFailures: null },
    ...{ createdAt: null, updatedAt: null },
    effective: {
      ...{ evalEnabled: false, evalProvider: null, evalModel: null, evalCredentialId: null },
      ...{ evalSamplingRate: 10, evalDimensions: ['groundedness', 'relevance', 'safety'] },
      ...{ evalFailureThreshold: 3, evalNotifyFailures: false },
    },
  })
})

test('a change keeps what it does not name, and a deletion brings back what the team says', async () => {
  const workflowId = await createWorkflow()
  const path = ofWorkflow(workflowId)
  const judge = { evalProvider: 'openai', evalModel: 'judge', evalCredentialId: await createCredential() }
  await service.call('PUT', OF_TEAM, admin, { ...judge, evalSamplingRate: 40 })
  const first = await service.call('PUT', path, admin, { evalEnabled: true, evalFailureThreshold: 3.25 })
  expect(first.status, first.text).toBe(200)
  const second = await service.call('PUT', path, admin, { evalSamplingRate: 7 })
  expect(second.body).toMatchObject({
    ...{ id: first.body.id, evalEnabled: true, evalFailureThreshold: 3.25, evalSamplingRate: 7 },
    effective: { ...judge, evalEnabled: true, evalSamplingRate: 7 },
  })
  const back = await service.call('PUT', path, admin, { evalSamplingRate: null })
  expect(back.body.effective.evalSamplingRate).toBe(40)
  expect(await service.call('DELETE', path, admin)).toMatchObject({ status: 204, body: null })
  expect(await service.call('DELETE', path, admin)).toMatchObject({ status: 204 })
  const gone = await service.call('GET', path, admin)
  expect(gone.body).toMatchObject({ id: null, effective: { evalEnabled: false, evalSamplingRate: 40 } })
  expect(await service.call('DELETE', OF_TEAM, admin)).toMatchObject({ status: 204 })
})

test('a judge that cannot work is refused, and all that lacks is named', async () => {
  const path = ofWorkflow(await createWorkflow())
  const bare = await service.call('PUT', path, admin, { evalEnabled: true })
  expect(bare.status).toBe(400)
  for (const key of ['evalProvider', 'evalModel', 'evalCredentialId']) expect(bare.text).toContain(key)
  const evalCredentialId = await createCredential('ANTHROPIC')
  const other = await service.call('PUT', path, admin, { evalProvider: 'openai', evalCredentialId })
  expect(other.status).toBe(400)
  expect(other.text).toContain('must be of the type OPENAI')
  const none = await service.call('PUT', path, admin, { evalCredentialId: crypto.randomUUID() })
  expect(none.text).toContain('must be a credential of this team')
})

test.each([
  { evalSamplingRate: 101 },
  { evalSamplingRate: 1.5 },
  { evalFailureThreshold: 0.99 },
  { evalFailureThreshold: 5.01 },
  { evalFailureThreshold: 3.333 },
  { evalProvider: 'OPENAI' },
  { evalDimensions: [] },
  { evalDimensions: ['safety', 'safety'] },
  { evalDimensions: ['tone-of-nobody'] },
])('refuses %j', async (json) => {
  const { status, body } = await service.call('PUT', ofWorkflow(await createWorkflow()), admin, json)
  expect(status).toBe(400)
  expect(body.errors[0].path).toMatch(new RegExp(`^${Object.keys(json)[0]}`))
})

test('a team has dimensions of its own, which its workflows may name', async () => {
  const dimensions = [{ name: 'tone', rubric: 'How friendly it is.' }]
  expect((await service.call('PUT', DIMENSIONS, admin, { dimensions })).body).toEqual({ dimensions })
  expect((await service.call('GET', DIMENSIONS, admin)).body).toEqual({ dimensions })
  const path = ofWorkflow(await createWorkflow())
  expect((await service.call('PUT', path, admin, { evalDimensions: ['tone', 'safety'] })).status).toBe(200)
  const taken = { dimensions: [{ name: 'safety', rubric: 'Mine.' }] }
  expect((await service.call('PUT', DIMENSIONS, admin, taken)).status).toBe(400)
})

test('a credential that a judge is asked with is not deleted by accident', async () => {
  const evalCredentialId = await createCredential()
  await service.call('PUT', ofWorkflow(await createWorkflow()), admin, { evalCredentialId })
  const path = `/api/credentials/${evalCredentialId}`
  expect((await service.call('DELETE', path, admin)).status).toBe(409)
  expect((await service.call('DELETE', `${path}?force=true`, admin)).status).toBe(200)
})
