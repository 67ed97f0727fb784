import { ScheduleNotFoundError, ScheduleOverlapPolicy } from '@temporalio/client'
import { msToTs } from '@temporalio/common/lib/time.js'
import { afterAll, expect, test, vi } from 'vitest'
import { listRegisteredDigests, nameSchedule } from '../../../activities/schedules/schedules.ts'
import { nameFiring } from '../../../db/schedules/schedules.ts'
import type { Engine } from '../../../worker/engine/engine.ts'
import { parseCron } from '../../../workflows/cron/cron.ts'
import { listInstants, walkInstants } from '../../../workflows/cron/instants.ts'
import { listClockChanges } from '../../../workflows/cron/zones.ts'
import type { ExecutionBody } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'

const running = await keep(startRunning())
afterAll(async () => {
  // A schedule that remained would fire for ever in a Temporal that outlives the test.
  for (const [workflowId, schedules] of await listRegisteredDigests({
    client: client(),
    taskQueue: running.taskQueue,
  })) {
    for (const nodeId of schedules.keys()) {
      // Temporal's list is late: it may still have one that a test has deleted.
      await handleOf(workflowId, nodeId)
        .delete()
        .catch((error) => {
          if (!(error instanceof ScheduleNotFoundError)) throw error
        })
    }
  }
})

type Node = { id: string; type: string; config: Record<string, unknown> }
type ScheduleAnswer = {
  nodeId: string
  cron: string
  timezone: string
  registered: boolean
  nextRuns: string[]
  lastRun: { executionId: string; scheduledAt: string; status: string } | null
  firings: number
  skipped: number
}

/** Due once a year, so that only the tests make it fire. */
const YEARLY = '0 0 1 1 *'
const trigger = (id: string, more: Record<string, unknown> = {}): Node => ({
  id,
  type: 'SCHEDULE_TRIGGER',
  config: { cron: YEARLY, ...more },
})
const quick = (...triggers: Node[]) => ({
  nodes: [...triggers, { id: 'set', type: 'SET', config: { values: { at: '{{ $trigger.scheduledAt }}' } } }],
  edges: edges(`${triggers.map(({ id }) => id).join(' ')} -> set`),
})

/** A graph whose executions wait until they are cancelled, or for half a minute. */
const slow = (overlap: string) => ({
  nodes: [trigger('tick', { overlap }), { id: 'wait', type: 'WAIT', config: { durationMs: 30_000 } }],
  edges: edges('tick -> wait'),
})

const client = () => running.engine.client
const handleOf = (workflowId: string, nodeId: string) =>
  client().schedule.getHandle(nameSchedule(running.taskQueue, workflowId, nodeId))

/** Changes a workflow and waits until Temporal has been told: the response waits a second at most. */
async function change(id: string, patch: object): Promise<void> {
  await running.ask('PUT', `/api/workflows/${id}`, patch)
  await isTold(id)
}

const activate = (id: string, active = true) => change(id, { active })
const isTold = (id: string) => eventually(async () => expect(await queued(id)).toEqual([]))
const list = (id: string) => running.ask<ScheduleAnswer[]>('GET', `/api/workflows/${id}/schedules`)

async function createActive(graph: { nodes: Node[]; edges: ReturnType<typeof edges> }): Promise<string> {
  const id = await running.create(graph)
  await activate(id)
  return id
}

const slotOf = (year: number) => `${year}-01-01T00:00:00.000Z`

/** The Temporal workflow that the schedule starts for a year's slot. */
const firingOf = (workflowId: string, nodeId: string, year: number) =>
  client().workflow.getHandle(
    `${nameSchedule(running.taskQueue, workflowId, nodeId)}-${slotOf(year).replace('.000', '')}`,
  )
const statusOf = async (firing: ReturnType<typeof firingOf>) => (await firing.describe()).status.name

/** Makes the slots of these years fire now. Returns the ids of their executions. */
async function fire(
  workflowId: string,
  nodeId: string,
  years: number[],
  overlap?: ScheduleOverlapPolicy,
): Promise<string[]> {
  const spans = years.map((year) => {
    const at = Date.parse(slotOf(year))
    return { start: new Date(at - 1_000), end: new Date(at + 1_000), ...(overlap ? { overlap } : {}) }
  })
  await handleOf(workflowId, nodeId).backfill(spans)
  return years.map((year) => nameFiring(workflowId, nodeId, slotOf(year)))
}

/** Waits until Temporal knows that all firings of a schedule have ended. */
const isIdle = (workflowId: string, nodeId: string) =>
  eventually(async () =>
    expect((await handleOf(workflowId, nodeId).describe()).info.runningActions).toHaveLength(0),
  )

/** Waits until the execution exists and `holds` returns true for it. */
async function appears(
  id: string,
  holds: (run: ExecutionBody) => boolean = () => true,
): Promise<ExecutionBody> {
  await eventually(async () => {
    const answer = await running.request(`/api/executions/${id}`, { as: running.admin })
    expect(answer.status).toBe(200)
  })
  return running.until(id, holds)
}

const ended = (id: string) => appears(id, (run) => ['SUCCESS', 'FAILED', 'CANCELLED'].includes(run.status))

async function eventually(check: () => Promise<void>, withinMs = 80_000): Promise<void> {
  const giveUp = Date.now() + withinMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (Date.now() > giveUp) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

/** Those of the node ids that Temporal has schedules of, read one by one because its list lags behind. */
async function registered(workflowId: string, ...nodeIds: string[]): Promise<string[]> {
  const found = await running.engine.describeSchedules(workflowId, nodeIds)
  return found.map(({ nodeId }) => nodeId)
}

async function countExecutions(workflowId: string): Promise<number> {
  const path = `/api/executions/team/${running.teamId}?workflowId=${workflowId}`
  return (await running.ask<{ totalElements: number }>('GET', path)).totalElements
}

const queued = async (subjectId: string) =>
  running.store.db
    .selectFrom('outbox')
    .select(['kind', 'attempts'])
    .where('subjectId', '=', subjectId)
    .execute()

test('a wrong cron expression, time zone or policy is refused when the graph is saved', async () => {
  const config = { cron: '60 0 0 13 8', timezone: '+01:00', overlap: 'queue', catchupWindowMs: 1 }
  const nodes = [{ id: 'tick', type: 'SCHEDULE_TRIGGER', config }]
  const json = { name: 'Wrong', teamId: running.teamId, nodes }
  const answer = await running.request('/api/workflows', { method: 'POST', as: running.admin, json })
  const { errors } = (await answer.json()) as { errors: { path: string; message: string }[] }
  expect(answer.status).toBe(400)
  expect(errors.map(({ path, message }) => `${path.replace('nodes[0].config.', '')}: ${message}`)).toEqual([
    'cron: minute: "60" is not a number from 0 to 59',
    'cron: day of month: "0" is not a number from 1 to 31',
    expect.stringMatching(/^cron: month: "13" is not a number from 1 to 12 or one of JAN, /),
    expect.stringMatching(/^cron: day of week: "8" is not a number from 0 to 7 or one of SUN, /),
    'timezone: must be a time zone such as Europe/Berlin',
    expect.stringMatching(/^overlap: must be one of skip, /),
    'catchupWindowMs: must be at least 10000 (10 s)',
  ])
})

test('schedules follow the activation, graph, settings and deletion of their workflow', async () => {
  const id = await running.create(quick(trigger('a'), trigger('b', { cron: '0 2 * * *' })))
  expect(await registered(id, 'a', 'b')).toEqual([])
  expect((await list(id)).map(({ nodeId, registered }) => [nodeId, registered])).toEqual([
    ['a', false],
    ['b', false],
  ])

  await activate(id)
  const [, b] = await list(id)
  expect(b).toMatchObject({ registered: true, timezone: 'UTC', lastRun: null, firings: 0 })
  expect(b!.nextRuns).toHaveLength(5)
  expect(b!.nextRuns[0]).toMatch(/T02:00:00.000Z$/)

  await change(id, { settings: { timezone: 'Asia/Tokyo' } })
  expect((await list(id))[1]).toMatchObject({
    timezone: 'Asia/Tokyo',
    nextRuns: expect.arrayContaining([expect.stringMatching(/T17:00:00.000Z$/)]),
  })

  await change(id, quick(trigger('a', { timezone: 'UTC' }), trigger('c')))
  expect(await registered(id, 'a', 'b', 'c')).toEqual(['a', 'c'])
  await running.ask('POST', `/api/workflows/${id}/versions/1/restore`)
  await isTold(id)
  expect(await registered(id, 'a', 'b', 'c')).toEqual(['a', 'b'])

  await activate(id, false)
  expect(await registered(id, 'a', 'b', 'c')).toEqual([])
  await activate(id)
  expect(await registered(id, 'a', 'b')).toEqual(['a', 'b'])
  await running.ask('DELETE', `/api/workflows/${id}`)
  await isTold(id)
  expect(await registered(id, 'a', 'b')).toEqual([])
})

const planOf = (text: string, timezone = 'UTC') => ({ cron: parseCron(text).cron, timezone })
const show = (all: Iterable<number>) => [...all].map((at) => new Date(at).toISOString())

test('Temporal reads the expressions as cron does, even if both day fields are restricted', async () => {
  const all = [
    '5 4 13 * FRI',
    '0 12 */2 * 1',
    '*/7 3 * JAN-mar,7 *',
    '30 23 31 * *',
    '0 0 * * 7',
    '59 23 * FEB 1-5/2',
    '0 8 L * *',
    '0 8 LW,15W * *',
    '0 8 * * 5L,1#2',
  ]
  const id = await createActive(quick(...all.map((cron, at) => trigger(`t${at}`, { cron }))))
  const expected = all.map((cron) => {
    const coming = walkInstants(planOf(cron), Date.now() + 1)
    return show(Array.from({ length: 5 }, () => coming.next().value!))
  })
  expect((await list(id)).map(({ nextRuns }) => nextRuns)).toEqual(expected)
})

/** When Temporal will fire a schedule, by its own word. */
async function listMatching(workflowId: string, nodeId: string, from: number, to: number): Promise<string[]> {
  const { startTime } = await client().workflowService.listScheduleMatchingTimes({
    namespace: client().options.namespace,
    scheduleId: nameSchedule(running.taskQueue, workflowId, nodeId),
    startTime: msToTs(from),
    endTime: msToTs(to),
  })
  return show((startTime ?? []).map(({ seconds }) => Number(seconds) * 1_000))
}

const CHANGING = [
  ['30 1 7 11 *', 'America/New_York'],
  ['30 2 * * *', 'Europe/Berlin'],
  ['0,15,30 0-3 * * *', 'Europe/Berlin'],
  ['*/15 2 31 10 *', 'Europe/Berlin'],
  ['*/15 * * * *', 'Europe/Berlin'],
  ['*/15 1-3 * * 0', 'Europe/Berlin'],
  ['*/20 * * * 0', 'America/St_Johns'],
  ['0 0 * * *', 'Africa/Cairo'],
  ['30 */2 * * *', 'Asia/Jerusalem'],
  ['15,45 1,2 * * *', 'Australia/Lord_Howe'],
  ['*/15 * * * *', 'Australia/Lord_Howe'],
  ['30 1-3 L * 7L', 'Antarctica/Troll'],
  ['45 2 * * *', 'Pacific/Chatham'],
  ['0 0,23 * * *', 'America/Santiago'],
  ['0 0 * * *', 'America/Havana'],
  // Its rules changed in many years: Temporal's own may be older than ours.
  ['0 5 * * *', 'Europe/Chisinau'],
] as const

test('Temporal fires as the rule of cron says in all changes of the clocks of the next ten years', async () => {
  const id = await createActive(
    quick(...CHANGING.map(([cron, timezone], at) => trigger(`t${at}`, { cron, timezone }))),
  )
  const year = new Date().getUTCFullYear()
  for (const [at, [cron, timezone]] of CHANGING.entries()) {
    const changes = listClockChanges(timezone, Date.now(), Date.UTC(year + 11))
    expect(changes.length).toBeGreaterThan(18)
    // Each change of the next three years, and then every third.
    for (const { at: change } of changes.filter((_, nth) => nth < 6 || nth % 3 === 0)) {
      const span = [change - 90_000_000, change + 90_000_000] as const
      // Temporal's span begins after its start and has its end.
      const expected = listInstants(planOf(cron, timezone), span[0] + 1, span[1] + 1)
      expect([cron, timezone, await listMatching(id, `t${at}`, ...span)]).toEqual([
        cron,
        timezone,
        show(expected),
      ])
    }
  }
})

test("Temporal keeps to this process's rules of a time zone, not to those of its own machine", async () => {
  const zone = 'Africa/Casablanca'
  const id = await createActive(quick(trigger('tick', { cron: '0 9 * * *', timezone: zone })))
  const { schedule } = await client().workflowService.describeSchedule({
    namespace: client().options.namespace,
    scheduleId: nameSchedule(running.taskQueue, id, 'tick'),
  })
  expect(Buffer.from(schedule!.spec!.timezoneData!).subarray(0, 5).toString()).toBe('TZif2')
  const coming = walkInstants(planOf('0 9 * * *', zone), Date.now() + 1)
  expect((await list(id))[0]!.nextRuns).toEqual(show(Array.from({ length: 5 }, () => coming.next().value!)))
})

test('the schedules of a deleted team are deleted', async () => {
  const team = await running.ask<{ id: string }>('POST', '/api/teams', { name: 'Short-lived' })
  const json = { name: 'Ticks', teamId: team.id, ...quick(trigger('tick')) }
  const { id } = await running.ask<{ id: string }>('POST', '/api/workflows', json)
  await activate(id)
  expect(await registered(id, 'tick')).toEqual(['tick'])
  await running.ask('DELETE', `/api/teams/${team.id}`)
  expect(await queued(id)).toEqual([{ kind: 'SCHEDULE', attempts: 1 }])
  await running.store.db
    .updateTable('outbox')
    .set({ dueAt: new Date(0) })
    .where('subjectId', '=', id)
    .execute()
  await running.engine.sweep()
  expect(await registered(id, 'tick')).toEqual([])
})

test('every firing starts an execution of the current version, and a slot only one', async () => {
  const id = await createActive(quick(trigger('a', { timezone: 'UTC' }), trigger('b')))
  const [first = ''] = await fire(id, 'a', [2001])
  const run = await ended(first)
  // Temporal shares its workers fairly between teams by this key.
  const { raw } = await running.engine.client.workflow.getHandle(first).describe()
  expect(raw.workflowExecutionInfo?.priority?.fairnessKey).toBe(running.teamId)
  expect(run).toMatchObject({
    status: 'SUCCESS',
    trigger: 'SCHEDULE',
    workflowVersion: 1,
    outputData: { at: slotOf(2001) },
    inputData: { scheduledAt: slotOf(2001), cron: YEARLY, timezone: 'UTC', nodeId: 'a' },
  })
  expect(run.inputData.firedAt).toMatch(/^20.*Z$/)
  expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).toEqual(['a', 'set'])

  await change(id, quick(trigger('a', { timezone: 'UTC' }), trigger('c')))
  // Temporal skips a firing while another one is under way, or begins together with it.
  await isIdle(id, 'a')
  await fire(id, 'a', [2001])
  await eventually(async () => expect((await list(id))[0]).toMatchObject({ firings: 2 }))
  const [second = ''] = await fire(id, 'a', [2002], ScheduleOverlapPolicy.ALLOW_ALL)
  expect(await ended(second)).toMatchObject({ status: 'SUCCESS', workflowVersion: 2 })
  await eventually(async () => {
    const [a] = await list(id)
    expect(a).toMatchObject({
      firings: 3,
      lastRun: { executionId: second, scheduledAt: slotOf(2002), status: 'SUCCESS' },
    })
  })
  expect(await countExecutions(id)).toBe(2)

  // An execution that is started by hand has no slot: its data is the caller's.
  expect(await running.ended(await running.execute(id, { scheduledAt: 'now' }))).toMatchObject({
    status: 'SUCCESS',
    outputData: { at: 'now' },
  })
})

/** Firings of a deleted workflow. The last test checks that they are gone, because Temporal takes a while. */
const deleted: ReturnType<typeof firingOf>[] = []

test('the policy skip skips slots while an execution is open, but not once it is cancelled', async () => {
  const id = await createActive(slow('skip'))
  const [first = ''] = await fire(id, 'tick', [2001], ScheduleOverlapPolicy.SKIP)
  await appears(first, (run) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'wait'))
  const [second = ''] = await fire(id, 'tick', [2002], ScheduleOverlapPolicy.SKIP)
  await eventually(async () => expect((await list(id))[0]).toMatchObject({ firings: 1, skipped: 1 }))
  expect((await running.request(`/api/executions/${second}`, { as: running.admin })).status).toBe(404)

  await running.ask('POST', `/api/executions/${first}/cancel`)
  expect(await ended(first)).toMatchObject({ status: 'CANCELLED' })
  await isIdle(id, 'tick')
  const [third = ''] = await fire(id, 'tick', [2003], ScheduleOverlapPolicy.SKIP)
  await appears(third, (run) => run.status === 'RUNNING')
  await running.ask('DELETE', `/api/workflows/${id}`)
  deleted.push(firingOf(id, 'tick', 2001), firingOf(id, 'tick', 2003))
})

test('terminating a firing in Temporal cancels its execution', async () => {
  const id = await createActive(slow('skip'))
  const [runId = ''] = await fire(id, 'tick', [2001])
  await appears(runId, (run) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'wait'))
  await firingOf(id, 'tick', 2001).terminate('by hand')
  expect(await ended(runId)).toMatchObject({ status: 'CANCELLED' })
})

test('with the policy cancelOther, a newer firing cancels the execution of an older one', async () => {
  const id = await createActive(slow('cancelOther'))
  const [first = ''] = await fire(id, 'tick', [2001])
  await appears(first, (run) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'wait'))
  const [second = ''] = await fire(id, 'tick', [2002])
  expect(await ended(first)).toMatchObject({ status: 'CANCELLED' })
  await appears(second, (run) => run.status === 'RUNNING')
  await running.ask('DELETE', `/api/workflows/${id}`)
})

test('a firing waits while its execution is queued, and cancels it when it is cancelled', async () => {
  const graph = { ...slow('allowAll'), settings: { concurrency: { limit: 1, policy: 'queue' } } }
  const id = await createActive(graph)
  const [first = ''] = await fire(id, 'tick', [2001])
  await appears(first, (run) => run.status === 'RUNNING')
  const [second = '', third = ''] = await fire(id, 'tick', [2002, 2003])
  await appears(second, (run) => run.status === 'PENDING')
  await appears(third, (run) => run.status === 'PENDING')
  await firingOf(id, 'tick', 2003).cancel()
  expect(await ended(third)).toMatchObject({
    status: 'CANCELLED',
    errorMessage: 'The firing of its schedule was cancelled',
  })
  await running.ask('POST', `/api/executions/${first}/cancel`)
  await appears(second, (run) => run.status === 'RUNNING')
  expect(await statusOf(firingOf(id, 'tick', 2002))).toBe('RUNNING')
  await running.ask('POST', `/api/executions/${second}/cancel`)
  await ended(second)
  await eventually(async () => expect(await statusOf(firingOf(id, 'tick', 2002))).toBe('COMPLETED'))
})

test('a firing of a workflow that is no longer active starts nothing', async () => {
  const id = await createActive(quick(trigger('tick')))
  await running.store.db.updateTable('workflows').set({ active: false }).where('id', '=', id).execute()
  await fire(id, 'tick', [2001])
  await eventually(async () => {
    expect(await statusOf(firingOf(id, 'tick', 2001))).toBe('COMPLETED')
  })
  expect(await countExecutions(id)).toBe(0)
})

test('slots that fire while no worker and no API runs are executed when they are back', async () => {
  const id = await createActive(quick(trigger('tick', { overlap: 'bufferAll' })))
  running.use(undefined)
  await running.engine.stop()
  const slots = [2001, 2002, 2003]
  const ids = await fire(id, 'tick', slots)
  await eventually(async () =>
    expect((await handleOf(id, 'tick').describe()).info.runningActions).toHaveLength(1),
  )
  const [one, two] = (await Promise.all([running.addEngine(), running.addEngine()])) as [Engine, Engine]
  running.use(one)
  running.engine = one
  try {
    for (const [at, runId] of ids.entries()) {
      expect(await ended(runId)).toMatchObject({ status: 'SUCCESS', outputData: { at: slotOf(slots[at]!) } })
    }
    expect(await countExecutions(id)).toBe(3)

    // Two engines at once restore a schedule that was deleted by hand, and delete one that has no workflow.
    // One of another task queue stays.
    await handleOf(id, 'tick').delete()
    const orphan = nameSchedule(running.taskQueue, crypto.randomUUID(), 'tick')
    const foreign = nameSchedule(`${running.taskQueue}:other`, crypto.randomUUID(), 'tick')
    const action = { type: 'startWorkflow' as const, workflowType: 'fire', taskQueue: 'nobody' }
    for (const scheduleId of [orphan, foreign])
      await client().schedule.create({ scheduleId, spec: {}, action })
    await eventually(async () => {
      await Promise.all([one.reconcile(), two.reconcile()])
      expect(await registered(id, 'tick')).toEqual(['tick'])
      await expect(client().schedule.getHandle(orphan).describe()).rejects.toMatchObject({
        name: 'ScheduleNotFoundError',
      })
    })
    await expect(client().schedule.getHandle(foreign).describe()).resolves.toBeDefined()
    await client().schedule.getHandle(foreign).delete()
  } finally {
    await two.stop()
  }
})

test('an activation while Temporal is away is carried out later, with the changes made since', async () => {
  const id = await running.create(quick(trigger('a')))
  running.use(undefined)
  await running.ask('PUT', `/api/workflows/${id}`, { active: true })
  const away = await running.request(`/api/workflows/${id}/schedules`, { as: running.admin })
  expect(away.status).toBe(503)
  await running.ask('PUT', `/api/workflows/${id}`, quick(trigger('b')))
  running.use(running.engine)
  expect(await queued(id)).toEqual([{ kind: 'SCHEDULE', attempts: 1 }])
  await running.store.db
    .updateTable('outbox')
    .set({ dueAt: new Date(0) })
    .where('subjectId', '=', id)
    .execute()
  await running.engine.sweep()
  expect(await registered(id, 'a', 'b')).toEqual(['b'])
  expect(await queued(id)).toEqual([])
})

test('a process whose call fails after another one has settled the errand tells Temporal again', async () => {
  const id = await createActive(quick(trigger('a')))
  expect(await registered(id, 'a')).toEqual(['a'])
  // Temporal removes the schedule for the one that fails, which does not hear of it.
  const gone = { removed: false }
  const { schedule } = client()
  const getHandle = vi.spyOn(schedule, 'getHandle').mockImplementation((name) => {
    getHandle.mockRestore()
    const handle = schedule.getHandle(name)
    return {
      ...handle,
      async delete() {
        await handle.delete()
        await running.store.db.deleteFrom('outbox').where('subjectId', '=', id).execute()
        gone.removed = true
        throw new Error('no answer')
      },
    }
  })
  await running.ask('PUT', `/api/workflows/${id}`, { active: false })
  expect(gone.removed).toBe(true)
  expect(await queued(id)).toMatchObject([{ kind: 'SCHEDULE' }])
  await activate(id)
  expect(await registered(id, 'a')).toEqual(['a'])
})

test('after many simultaneous changes, the schedules are those of the last one', async () => {
  const id = await running.create(quick(trigger('a')))
  const changes = Array.from({ length: 12 }, (_, n) =>
    running.ask('PUT', `/api/workflows/${id}`, { active: n % 3 !== 2, ...quick(trigger(n % 2 ? 'a' : 'b')) }),
  )
  await Promise.all(changes)
  const { active, nodes } = await running.ask<{ active: boolean; nodes: Node[] }>(
    'GET',
    `/api/workflows/${id}`,
  )
  await isTold(id)
  // A change that tells Temporal after the last one has finds that its state is outdated, and tells it again.
  await eventually(async () => {
    expect(await registered(id, 'a', 'b')).toEqual(active ? [nodes[0]!.id] : [])
  })
})

test("the firings of a deleted workflow's executions are removed from Temporal", async () => {
  expect(deleted).toHaveLength(2)
  for (const firing of deleted) {
    await eventually(async () => {
      await expect(firing.describe()).rejects.toMatchObject({ name: 'WorkflowNotFoundError' })
    }, 60_000)
  }
}, 90_000)
