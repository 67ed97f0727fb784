import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'
import { listStatements } from '../../support/statements.ts'
import { until } from '../../support/until.ts'

const service = await keep(startService({ rateLimits: false }))
const { teamId, admin, bus } = service
const token = await service.token('BUILDER')
const made = await service.call('POST', '/api/workflows', admin, {
  ...{ teamId, name: 'counted' },
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } },
  ],
  edges: [],
})
const path = `/api/workflows/${made.body.id}`
await service.call('PUT', path, admin, { active: true })
const { body: run } = await service.call('POST', `${path}/execute`, token, { teamId })

const COUNT = /insert into request_counts/
const START = /insert into executions/
const READ = /^select .* from "executions"/

/** What each request asks PostgreSQL: the engine is not there, which has statements of its own. */
const REQUESTS: [string, () => Promise<{ status: number }>, RegExp[]][] = [
  ['execute by token', () => service.call('POST', `${path}/execute`, token, { teamId }), [COUNT, START]],
  ['execute by cookie', () => service.call('POST', `${path}/execute`, admin, { teamId }), [COUNT, START]],
  ['read by token', () => service.call('GET', `/api/executions/${run.executionId}`, token), [COUNT, READ]],
  ['read by cookie', () => service.call('GET', `/api/executions/${run.executionId}`, admin), [COUNT, READ]],
  ['webhook', () => service.call('POST', `/hooks/${made.body.id}/in`, undefined, { a: 1 }), [COUNT, START]],
]

test.each(REQUESTS)('%s: a count and one statement more', async (_, ask, expected) => {
  await ask()
  // Only while the bus is known to hear, what is in memory counts.
  await until(() => performance.now() - bus.heardUntil() < 300)
  let status = 0
  const statements = await listStatements('test', async () => ({ status } = await ask()))
  expect(status).toBeLessThan(300)
  expect(statements).toEqual(expected.map((one) => expect.stringMatching(one)))
})
