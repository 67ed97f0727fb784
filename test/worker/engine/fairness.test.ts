import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { expect, inject, test } from 'vitest'
import { createMetrics } from '../../../activities/metrics.ts'
import { claimErrands } from '../../../db/outbox.ts'
import { createClient, ENDED, nodeOf } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

const metrics = createMetrics()
const target = await keep(startTarget())
const host = await keep(
  startRunning({ nodesAtOnce: 8, segmentsAtOnce: 8, expressions: { processes: 4, timeoutMs: 200 }, metrics }),
)

const graph = (path: string) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'call', type: 'HTTP_REQUEST', config: { url: target.url + path } },
  ],
  edges: edges('start -> call'),
})

async function joinOther() {
  const { cookie, teamId } = await host.otherTeam()
  return createClient({ teamId, send: (path, init) => host.request(path, { as: cookie, ...init }) })
}

/** Inserts PENDING copies of an execution, with the errands from which the sweeper starts them. */
async function flood(id: string, count: number): Promise<void> {
  await sql`
    with added as (
      insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
        trigger_node_id, input_data, input_bytes, started_by_kind)
      select gen_random_uuid(), team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
        trigger_node_id, input_data, input_bytes, started_by_kind
      from executions, generate_series(1, ${count}) where id = ${id} returning id, team_id)
    insert into outbox (kind, subject_id, team_id, due_at) select 'START', id, team_id, now() from added`.execute(
    host.store.db,
  )
}

test('errands are claimed from the teams in turn, and within a team in their order', async () => {
  const [many, few, one] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  // All of this happens in a transaction that is rolled back, so that the sweeper does not find the errands.
  const rollback = new Error('roll back')
  await expect(
    host.store.db.transaction().execute(async (tx) => {
      const store = { ...host.store, db: tx }
      const insert = async (team: string, count: number, ago: string) => {
        const { rows } = await sql<{ subjectId: string }>`
          insert into outbox (kind, subject_id, team_id, due_at)
          select 'TEST', gen_random_uuid(), ${team}, now() - ${ago}::interval + n * interval '1 millisecond'
          from generate_series(1, ${count}) n returning subject_id`.execute(tx)
        return rows.map((row) => row.subjectId)
      }
      const [a, b, c] = [
        await insert(many, 10_000, '1 hour'),
        await insert(few, 30, '1 minute'),
        await insert(one, 1, '10 seconds'),
      ]
      const take = async () =>
        (await claimErrands(store, 'urgent', 50, 60_000)).map((errand) => errand.subjectId)
      const first = new Set(await take())
      expect(first).toEqual(new Set([...a.slice(0, 25), ...b.slice(0, 24), ...c]))
      expect(new Set(await take())).toEqual(new Set([...a.slice(25, 69), ...b.slice(24)]))
      const began = performance.now()
      for (let n = 0; n < 10; n++) expect(await take()).toHaveLength(50)
      expect(performance.now() - began).toBeLessThan(2_000)
      throw rollback
    }),
  ).rejects.toBe(rollback)
})

// A server named by TEST_TEMPORAL_ADDRESS may not have fairness enabled.
test.skipIf(inject('temporalCli') === '')(
  'a team with very many queued executions does not delay the single execution of another team',
  async () => {
    const id = await host.create(graph('/slow?ms=200'))
    const first = await host.execute(id)
    await host.ended(first)
    const { raw } = await host.engine.client.workflow.getHandle(first).describe()
    expect(raw.workflowExecutionInfo?.priority?.fairnessKey).toBe(host.teamId)
    await flood(first, 400)
    void host.engine.sweep()
    const open = async () => {
      const { rows } = await sql<{ id: string }>`select id from executions where status = 'RUNNING'`.execute(
        host.store.db,
      )
      return rows.map((row) => row.id)
    }
    // Some wait in Temporal for one of the four slots that a team may have, the others in the outbox for their start.
    while ((await open()).length < 150) await sleep(25)
    const other = await joinOther()
    const own = await other.create(graph('/ok'))
    const before = target.calls.length
    // The sweeper starts it, after the others, as it does for an execution whose process died.
    await flood(await other.execute(own), 1)
    const answered = () => target.calls.filter(({ path }) => path === '/ok').length
    const between = () => target.calls.length - before
    await target.until(() => answered() === 2 || between() > 60)
    const left = await open()
    await sql`delete from outbox`.execute(host.store.db)
    const { workflow } = host.engine.client
    await Promise.allSettled(left.map((run) => workflow.getHandle(run).terminate('the test is over')))
    expect(left.length).toBeGreaterThan(80)
    expect(between()).toBeLessThan(60)
  },
)

/** How many attempts (`node`) or segments have given their slot back so far. */
async function countTurnedAway(kind: 'node' | 'segment', from = metrics): Promise<number> {
  const { values } = await from.turnedAway.get()
  return values.find(({ labels }) => labels.kind === kind)!.value
}

const statuses = async (ids: string[], from = host) =>
  (await Promise.all(ids.map(from.read))).map(({ status }) => status)

/** Ends everything that hangs, again and again, until all executions have ended. */
async function release(ids: string[]): Promise<void> {
  while (!(await statuses(ids)).every((status) => ENDED.includes(status))) {
    for (const response of target.hanging) response.end('{}')
    await sleep(25)
  }
}

test('hanging calls of a team hold half of the slots and no more, and what is turned away counts nowhere', {
  tags: 'long',
}, async () => {
  const hang = (id: string) => ({
    id,
    type: 'HTTP_REQUEST',
    config: { url: `${target.url}/hang` },
    retry: { maxAttempts: 1 },
  })
  const nodes = [start, hang('a'), hang('b'), hang('c')]
  // The branches of one run come to the worker eagerly, without Temporal's queue, in which teams take turns.
  const id = await host.create({ nodes, edges: edges('start -> a', 'start -> b', 'start -> c') })
  const runs = await Promise.all(Array.from({ length: 8 }, () => host.execute(id)))
  await target.until(() => target.hanging.size === 4)
  // All others are turned away once and some of them again.
  while ((await countTurnedAway('node')) < 28) await sleep(25)
  expect(target.hanging.size).toBe(4)
  expect(host.engine.readSlots().node[0]).toBeLessThan(8)

  const other = await joinOther()
  const single = await other.ended(await other.execute(await other.create(graph('/ok'))))
  expect(single.status).toBe('SUCCESS')
  expect(nodeOf(single, 'call')).toMatchObject({ status: 'SUCCESS', retryCount: 0 })
  expect(target.hanging.size).toBe(4)
  expect(await statuses(runs)).toEqual(Array(8).fill('RUNNING'))

  const open = await Promise.all(runs.map(host.read))
  for (const run of open) {
    for (const node of run.nodeExecutions.slice(1))
      expect(node).toMatchObject({ status: 'RUNNING', retryCount: 0, errorMessage: null })
  }
  const most = Math.max(...target.calls.map(() => target.hanging.size))
  expect(most).toBeLessThanOrEqual(4)
  await release(runs)
  const turnedAway = await countTurnedAway('node')
  for (const run of await Promise.all(runs.map((run) => host.ended(run)))) {
    expect(run.status).toBe('SUCCESS')
    for (const node of run.nodeExecutions)
      expect(node).toMatchObject({ status: 'SUCCESS', retryCount: 0, errorMessage: null })
  }
  // Every call was made once, although many attempts of a node with a single one were turned away before.
  expect(target.calls.filter(({ path }) => path === '/hang')).toHaveLength(24)
  expect(turnedAway).toBeGreaterThanOrEqual(28)
})

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

/** Nodes in a row that compute until their limit of processor time is over. */
const heavyGraph = (...ids: string[]) => ({
  nodes: [
    start,
    ...ids.map((id) => ({
      id,
      type: 'SET',
      config: { values: { x: '{{ ($f := function() { $f() }; $f()) }}' } },
      onError: 'CONTINUE',
    })),
  ],
  edges: edges(...ids.map((id, at) => `${at === 0 ? 'start' : ids[at - 1]} -> ${id}`)),
})

test('heavy expressions of a team hold a slot for each of its processes and no more', {
  tags: 'long',
}, async () => {
  const metrics = createMetrics()
  const endless = await startRunning({ metrics, expressions: { processes: 4, timeoutMs: 60_000 } })
  try {
    const id = await endless.create(heavyGraph('heavy'))
    const runs = await Promise.all(Array.from({ length: 8 }, () => endless.execute(id)))
    while ((await countTurnedAway('segment', metrics)) < 6) await sleep(10)
    while (endless.engine.readSlots().segment[0] > 2) await sleep(5)

    // Another team's run finds slots and processes, for what is plain and what is not.
    const { cookie, teamId } = await endless.otherTeam()
    const send = (path: string, init: object) => endless.request(path, { as: cookie, ...init })
    const other = createClient({ teamId, send })
    const plain = { id: 'set', type: 'SET', config: { values: { x: '{{ 1 + 1 }}' } } }
    const sum = { id: 'sum', type: 'SET', config: { values: { x: '{{ $sum([1, 2]) }}' } } }
    const single = await other.run({ nodes: [start, plain, sum], edges: edges('start -> set', 'set -> sum') })
    expect(single).toMatchObject({ status: 'SUCCESS', outputData: { x: 3 } })
    while (endless.engine.readSlots().segment[0] > 2) await sleep(5)
    expect(await statuses(runs, endless)).toEqual(Array(8).fill('RUNNING'))

    // A call that waits for a process holds its room for the answer; cancelled, it gives that back at once.
    const call = { id: 'call', type: 'HTTP_REQUEST', config: { url: `${target.url}/ok?n={{ $sum([1]) }}` } }
    const waits = await endless.execute(
      await endless.create({ nodes: [start, call], edges: edges('start -> call') }),
    )
    while (endless.engine.readBudget().held === 0) await sleep(10)
    await endless.ask('POST', `/api/executions/${waits}/cancel`)
    while (endless.engine.readBudget().held > 0) await sleep(10)
  } finally {
    await endless.stop()
  }
})

test('executions whose segments gave their slots back end as all others', { tags: 'long' }, async () => {
  const id = await host.create(heavyGraph('one', 'two'))
  const before = await countTurnedAway('segment')
  const runs = await Promise.all(Array.from({ length: 5 }, () => host.execute(id)))
  for (const one of runs) {
    const run = await host.ended(one, 60_000)
    expect(run.status).toBe('SUCCESS')
    expect(run.nodeExecutions.map(({ nodeId }) => nodeId)).toEqual(['start', 'one', 'two'])
    for (const nodeId of ['one', 'two'])
      expect(nodeOf(run, nodeId)).toMatchObject({
        status: 'FAILED',
        retryCount: 0,
        errorMessage: expect.stringMatching(/took longer than 0.2 s of processor time/),
      })
  }
  expect(await countTurnedAway('segment')).toBeGreaterThanOrEqual(before + 3)
})

test('attempts that find no process for a while give their slots back, which counts nowhere', {
  tags: 'long',
}, async () => {
  const metrics = createMetrics()
  const expressions = { processes: 2, timeoutMs: 400, patienceMs: 50 }
  const brief = await startRunning({ expressions, metrics })
  try {
    const { nodes, edges } = heavyGraph('heavy')
    // A node with a retry of its own is an attempt instead of a step in a segment.
    const [first, heavy] = nodes
    const retry = { maxAttempts: 1 }
    const id = await brief.create({ nodes: [first!, { ...heavy!, retry }], edges })
    const runs = await Promise.all([1, 2, 3, 4].map(() => brief.execute(id)))
    for (const one of runs) {
      const node = nodeOf(await brief.ended(one, 60_000), 'heavy')
      expect(node).toMatchObject({
        status: 'FAILED',
        retryCount: 0,
        errorMessage: expect.stringMatching(/took longer than 0.4 s of processor time/),
      })
    }
    expect(await countTurnedAway('node', metrics)).toBeGreaterThanOrEqual(3)
  } finally {
    await brief.stop()
  }
})

test('a run that continues as new while it waits for its turn goes on waiting, and ends as all others', {
  tags: 'long',
}, async () => {
  const expressions = { processes: 2, timeoutMs: 400 }
  const brief = await startRunning({ expressions, continueAfterEvents: 14 })
  try {
    const id = await brief.create(heavyGraph('one'))
    const runs = await Promise.all([1, 2, 3, 4].map(() => brief.execute(id)))
    let continued = 0
    for (const one of runs) {
      const run = await brief.ended(one, 60_000)
      expect(run.status).toBe('SUCCESS')
      expect(run.nodeExecutions.map(({ nodeId, status }) => [nodeId, status])).toEqual([
        ['start', 'SUCCESS'],
        ['one', 'FAILED'],
      ])
      const { events } = await brief.engine.client.workflow.getHandle(one).fetchHistory()
      if (events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId) continued++
    }
    expect(continued).toBeGreaterThan(0)
  } finally {
    await brief.stop()
  }
})

/** The pids of all evaluator processes of this one. */
function listEvaluators(): number[] {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
  const isEvaluator = (pid: string) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('expressions/child.ts')
  return children.filter(isEvaluator).map(Number)
}

function signalEvaluators(signal: 'SIGSTOP' | 'SIGCONT'): void {
  for (const pid of listEvaluators()) process.kill(pid, signal)
}

test.runIf(process.platform === 'linux')(
  'how long a node waits for a process does not count in its time limit',
  { tags: 'long' },
  async () => {
    const limit = 2_000
    const others = listEvaluators().length
    const patient = await startRunning({ expressions: { processes: 4 } })
    // A node with a retry of its own is an attempt, which waits, instead of a step in a segment.
    const sum = (id: string, more = {}) => ({
      id,
      type: 'SET',
      config: { values: { sum: '{{ $sum([1, 2]) }}' } },
      retry: { maxAttempts: 1 },
      ...more,
    })
    const hogs = await patient.create({
      nodes: [start, sum('a'), sum('b')],
      edges: edges('start -> a', 'start -> b'),
    })
    const waits = await patient.create({
      nodes: [start, sum('waits', { timeoutMs: limit })],
      edges: edges('start -> waits'),
    })
    // Both processes that the team may have are up, and stopped when they get their jobs. One is enough for two jobs
    // that come one after the other.
    do await patient.ended(await patient.execute(hogs))
    while (listEvaluators().length < others + 2)
    signalEvaluators('SIGSTOP')
    try {
      const first = await patient.execute(hogs)
      await patient.until(first, (run) => run.nodeExecutions.length === 3)
      await sleep(500)
      const id = await patient.execute(waits)
      await patient.until(id, (run) => run.nodeExecutions.length === 2)
      await sleep(limit + 500)
      expect((await patient.read(id)).status).toBe('RUNNING')
      signalEvaluators('SIGCONT')
      expect(nodeOf(await patient.ended(id), 'waits')).toMatchObject({ status: 'SUCCESS', retryCount: 0 })
    } finally {
      signalEvaluators('SIGCONT')
      await patient.stop()
    }
  },
)
