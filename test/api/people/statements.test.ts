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
  let least: string[] = []
  // On a slow machine a minute may end meanwhile, or the proof that the bus hears come late: the best try counts.
  const isLeast = async () => {
    await ask()
    await until(() => performance.now() - bus.heardUntil() < 300)
    const statements = await listStatements('test', async () =>
      expect((await ask()).status).toBeLessThan(300),
    )
    if (least.length === 0 || statements.length < least.length) least = statements
    return least.length <= expected.length
  }
  await until(isLeast, { explain: () => least })
  expect(least).toEqual(expected.map((one) => expect.stringMatching(one)))
})
