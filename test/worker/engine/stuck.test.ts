import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker'
import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, inject, test } from 'vitest'
import { createMetrics } from '../../../activities/metrics.ts'
import { watchProcess } from '../../../worker/service/gauges.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { until } from '../../support/until.ts'

const lines: { msg: string; level: number; executionId?: string }[] = []
const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
const STUCK_AFTER_MS = 3_000
const workflowsPath = fileURLToPath(new URL('../../support/engine/broken.ts', import.meta.url))
const bundle = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('WARN') })
const metrics = createMetrics()
const host = await keep(startRunning({ bundle, stuckAfterMs: STUCK_AFTER_MS, log, metrics }))
const { store } = host
let { engine } = host
watchProcess(metrics, { store, pool: { totalCount: 0, idleCount: 0, waitingCount: 0 }, poolSize: 1 })

const graph = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'set', type: 'SET', config: { values: { done: true } } },
  ],
  edges: edges('start -> set'),
}

/** Executes a workflow, whose executions are checked at each round of the sweeper. */
async function startStuck(
  settings: Record<string, unknown> = {},
): Promise<{ id: string; workflowId: string }> {
  const workflowId = await host.create({ ...graph, settings })
  const id = await host.execute(workflowId)
  await until(
    async () =>
      (await engine.client.workflow.getHandle(id).describe()).raw.pendingWorkflowTask?.attempt !== 1,
  )
  return { id, workflowId }
}

const checkNow = async (id: string) => {
  await sql`update executions set checked_at = now() - interval '1 hour' where id = ${id}`.execute(store.db)
  await engine.sweep()
}

test('a stuck execution stays RUNNING, with a message, an error in the log and a gauge, until it can go on', {
  tags: 'long',
}, async () => {
  const { id } = await startStuck()
  const stuck = await until(
    async () => {
      await checkNow(id)
      return host.read(id)
    },
    { holds: ({ errorMessage }) => errorMessage !== null },
  )
  expect(stuck.errorMessage).toMatch(/^The execution cannot go on: its workflow code failed \d+ times$/)
  await checkNow(id)
  expect((await host.read(id)).status).toBe('RUNNING')
  expect(lines.filter(({ executionId, msg }) => executionId === id && msg.includes('is stuck'))).toHaveLength(
    1,
  )
  expect(await metrics.registry.metrics()).toMatch(/^perdure_runs_stuck 1$/m)
  // Time alone does not end it.
  await until(async () => {
    const task = (await engine.client.workflow.getHandle(id).describe()).raw.pendingWorkflowTask
    const since = Number(task?.originalScheduledTime?.seconds) * 1_000
    return Date.now() - since > 2 * STUCK_AFTER_MS
  })
  await checkNow(id)
  expect((await host.read(id)).status).toBe('RUNNING')
  // The next release can carry it on.
  const mended = await host.addEngine({ bundle: { codePath: inject('workflowBundle') } })
  await engine.stop()
  host.use(mended)
  const ended = await host.ended(id, 90_000)
  expect([ended.status, ended.errorMessage]).toEqual(['SUCCESS', null])
  const broken = await host.addEngine()
  await mended.stop()
  host.use(broken)
  engine = broken
})

test('a stuck execution that is cancelled ends CANCELLED, with the reason', async () => {
  const { id } = await startStuck()
  await host.ask('POST', `/api/executions/${id}/cancel`)
  const ended = await host.ended(id)
  expect(ended.status).toBe('CANCELLED')
  expect(ended.errorMessage).toMatch(
    /^The execution could not go on, and it was cancelled: no worker did a workflow task of it for \d+ s$/,
  )
  await until(async () => {
    const errands = await sql`select from outbox where subject_id = ${id}`.execute(store.db)
    return errands.rows.length === 0
  })
})

test('a stuck execution ends CANCELLED some time after its own time limit', { tags: 'long' }, async () => {
  const { id } = await startStuck({ timeoutMs: 1_000 })
  const ended = await until(
    async () => {
      await checkNow(id)
      return host.read(id)
    },
    { holds: ({ status }) => status !== 'RUNNING' },
  )
  expect(ended.status).toBe('CANCELLED')
  expect(ended.errorMessage).toMatch(/^The execution could not go on, and it has exceeded its time limit: /)
})

test('a stuck execution ends in Temporal with its workflow', async () => {
  const { id, workflowId } = await startStuck()
  await host.ask('DELETE', `/api/workflows/${workflowId}`)
  await until(async () => {
    const run = await engine.client.workflow
      .getHandle(id)
      .describe()
      .catch(() => null)
    return run?.status.name !== 'RUNNING'
  })
})
