import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createMetrics } from '../../../activities/metrics.ts'
import { createProjector } from '../../../activities/temporal/projector.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { until } from '../../support/until.ts'

// Its sweeper would see an open row whose run has ended, and write it.
const running = await keep(startRunning({ sweepEveryMs: 3_600_000 }))

test('the end of a run is written however often that has failed before', async () => {
  const { id } = await running.run({
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }],
    edges: [],
  })
  const { store, engine } = running
  const open = { status: 'RUNNING', runPosition: 0, lastEventId: 0, completedAt: null }
  await store.db.updateTable('executions').set(open).where('id', '=', id).execute()
  const FAILURES = 40
  let failed = 0
  const workflowService = new Proxy(engine.client.workflowService, {
    get(service, key) {
      if (key !== 'getWorkflowExecutionHistory' || failed >= FAILURES) return Reflect.get(service, key)
      return async () => {
        failed++
        throw new Error('14 UNAVAILABLE')
      }
    },
  })
  const client = new Proxy(engine.client, {
    get: (own, key) => (key === 'workflowService' ? workflowService : Reflect.get(own, key)),
  })
  const metrics = createMetrics()
  const lines: { level: number; executionId: string }[] = []
  const log = pino({ level: 'error' }, { write: (line) => lines.push(JSON.parse(line)) })
  const rests = { soonMs: 5, slowlyMs: 10 }
  const projector = createProjector({ store, client, sealer: engine.sealer, log, metrics, rests })
  projector.close(id)
  const status = () =>
    store.db.selectFrom('executions').select('status').where('id', '=', id).executeTakeFirst()
  await until(status, { holds: (row) => row?.status === 'SUCCESS' })
  await projector.stop()
  expect(failed).toBe(FAILURES)
  // From the thirtieth on it is an error for an operator to see, and it goes on.
  expect(lines.filter(({ executionId }) => executionId === id).length).toBe(FAILURES - 29)
  expect((await metrics.closesFailed.get()).values[0]!.value).toBe(FAILURES)
})
