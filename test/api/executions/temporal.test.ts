import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createClient } from '../../support/client.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const temporalUi = { url: 'https://temporal.example.com/ui', namespace: 'two words' }
const service = await keep(startService({ temporalUi }))
const client = createClient({
  send: (path, init) => service.request(path, { as: service.admin, ...init }),
  teamId: service.teamId,
})

test("the instance's admin is told where an execution is in Temporal's UI, an ADMIN of its team is not", async () => {
  const { cookie } = await service.signUp('ADMIN')
  const id = await client.execute(
    await client.create({ nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }], edges: [] }),
  )
  const path = `/api/executions/${id}`
  expect((await service.call('GET', path, service.admin)).body.temporal).toBeNull()
  const runId = '0199b1c2-1111-7000-8000-000000000000'
  await sql`update executions set run_id = ${runId} where id = ${id}`.execute(service.store.db)
  const runs = `${temporalUi.url}/namespaces/two%20words/workflows`
  expect((await service.call('GET', path, service.admin)).body.temporal).toEqual({
    namespace: 'two words',
    workflowId: id,
    runId,
    url: `${runs}/${id}/${runId}/history`,
    runsUrl: `${runs}?query=WorkflowId%3D%22${id}%22`,
  })
  expect((await service.call('GET', path, cookie)).body.temporal).toBeNull()
  const token = await service.token('ADMIN')
  expect((await service.call('GET', path, token)).body.temporal).toBeNull()
})
