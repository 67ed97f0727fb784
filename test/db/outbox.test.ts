import { sql } from 'kysely'
import { expect, test, vi } from 'vitest'
import { markStarted } from '../../db/outbox.ts'
import { createRuns } from '../support/engine/runs.ts'
import { keep } from '../support/keep.ts'
import { startService } from '../support/service.ts'

const service = await keep(startService())
const runs = createRuns(service)

const isWaiting = async () => {
  const { rows } = await sql`select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query ilike '%outbox%'`.execute(
    service.store.db,
  )
  expect(rows).toHaveLength(1)
}

test.for(['RUNNING', 'SUCCESS', 'CANCELLED'])(
  'a start that is marked while somebody else sets the execution to %s finds that status',
  async (status) => {
    const { store } = service
    const run = await runs.addRun()
    const marked = await store.db.transaction().execute(async (tx) => {
      await tx
        .updateTable('executions')
        .set({ status, ...(status === 'RUNNING' ? {} : { completedAt: new Date() }) })
        .where('id', '=', run)
        .execute()
      const marking = markStarted(store, run)
      await vi.waitFor(isWaiting, 20_000)
      return [marking]
    })
    expect(await marked[0]).toMatchObject({ status, settled: false })
  },
)

test('of several calls that mark a start one settles its errand; an unknown start is null', async () => {
  const { store } = service
  const run = await runs.addRun()
  await store.db.insertInto('outbox').values({ kind: 'START', subjectId: run }).execute()
  const marks = await Promise.all([markStarted(store, run), markStarted(store, run), markStarted(store, run)])
  expect(marks.map((mark) => mark?.status)).toEqual(['RUNNING', 'RUNNING', 'RUNNING'])
  expect(marks.filter((mark) => mark?.settled)).toHaveLength(1)
  expect(await markStarted(store, crypto.randomUUID())).toBeNull()
})

test('a start whose row somebody else is changing keeps no other start from being marked', async () => {
  const { store } = service
  const [held, ...others] = await Promise.all(Array.from({ length: 4 }, () => runs.addRun()))
  const marked = await store.db.transaction().execute(async (tx) => {
    await tx.updateTable('executions').set({ status: 'CANCELLED' }).where('id', '=', held!).execute()
    const marking = markStarted(store, held!)
    const marks = await Promise.all(others.map((run) => markStarted(store, run)))
    expect(marks.map((mark) => mark?.status)).toEqual(['RUNNING', 'RUNNING', 'RUNNING'])
    return [marking]
  })
  expect((await marked[0])?.status).toBe('CANCELLED')
})
