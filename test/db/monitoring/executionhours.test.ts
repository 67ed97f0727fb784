import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { nodeExecutionId, type Projection } from '../../../db/executions/records/projection.ts'
import { saveProjection } from '../../../db/executions/records/save.ts'
import { pruneExecutions } from '../../../db/executions/retention.ts'
import {
  DURATION_BOUNDS,
  type ExecutionHour,
  estimateDuration,
  readExecutionHours,
} from '../../../db/monitoring/executionhours.ts'
import { readExecutionStatistics } from '../../../db/monitoring/executions.ts'
import { foldExecutionHours } from '../../../db/monitoring/foldhours.ts'
import { serviceScope } from '../../../db/scope.ts'
import { createRuns } from '../../support/engine/runs.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { store } = service
const { db } = store
const HOUR_MS = 3_600_000
const startOfHour = (hoursAgo: number) => Math.floor(Date.now() / HOUR_MS) * HOUR_MS - hoursAgo * HOUR_MS

type Run = {
  workflowId: string
  status: string
  trigger: string
  startedAt: number | null
  completedAt: number | null
  retries: number
}

/** A team of its own with workflows. */
async function openTeam(workflows = 1) {
  const team = await service.otherTeam()
  const runs = createRuns({ store, teamId: team.teamId, user: team } as never)
  const workflowIds: string[] = []
  for (let n = 0; n < workflows; n++) workflowIds.push(await runs.addWorkflow())
  return { ...team, workflowIds }
}

/** Adds executions, each with two records that share its retries, and ends them. */
async function addRuns(teamId: string, runs: Run[]): Promise<string[]> {
  const ids = runs.map(() => crypto.randomUUID())
  const column = <T>(read: (run: Run) => T) => runs.map(read)
  const times = (key: 'startedAt' | 'completedAt') =>
    column(({ [key]: ms }) => (ms === null ? null : new Date(ms).toISOString()))
  await sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
      trigger_node_id, input_data, input_bytes, started_by_kind, created_at)
    select id, ${teamId}, workflow, 'w', 1, 1, 'RUNNING', trigger, 'start', '{}', 2, 'USER', ${new Date(startOfHour(200))}
    from unnest(${ids}::uuid[], ${column(({ workflowId }) => workflowId)}::uuid[],
      ${column(({ trigger }) => trigger)}::text[]) as r (id, workflow, trigger)`.execute(db)
  const records = ids.flatMap((id, at) =>
    [1, 2].map((n) => ({ id, nodeId: `n${n}`, of: runs[at]!.retries, n })),
  )
  await sql`insert into node_executions (id, execution_id, node_id, iteration, node_name, node_type, status, started_at,
      retry_count, settled)
    select id, execution, node, '', 'n', 'NO_OP', 'SUCCESS', now(), retries, true
    from unnest(${records.map(({ id, nodeId }) => nodeExecutionId(id, nodeId, ''))}::uuid[],
      ${records.map(({ id }) => id)}::uuid[], ${records.map(({ nodeId }) => nodeId)}::text[],
      ${records.map(({ of, n }) => Math.floor((of + n - 1) / 2))}::int[]) as r (id, execution, node, retries)`.execute(
    db,
  )
  await sql`update executions e set status = r.status, started_at = r.started, completed_at = r.completed
    from unnest(${ids}::uuid[], ${column(({ status }) => status)}::text[], ${times('startedAt')}::timestamptz[],
      ${times('completedAt')}::timestamptz[]) as r (id, status, started, completed) where e.id = r.id`.execute(
    db,
  )
  return ids
}

/** Counts runs as the module says it does, by hour and workflow. */
function recount(runs: Run[]): ExecutionHour[] {
  const known = new Map<string, ExecutionHour>()
  for (const run of runs) {
    if (run.completedAt === null || ['PENDING', 'RUNNING'].includes(run.status)) continue
    if (['EVALUATION', 'PLAYBOOK'].includes(run.trigger)) continue
    const hour = new Date(Math.floor(run.completedAt / HOUR_MS) * HOUR_MS)
    const key = `${hour.toISOString()} ${run.workflowId}`
    const none = { ended: 0, failed: 0, cancelled: 0, retries: 0 }
    const durations = Array<number>(DURATION_BOUNDS.length + 1).fill(0)
    const one = known.get(key) ?? { workflowId: run.workflowId, hour, ...none, durations }
    known.set(key, one)
    one.ended++
    one.retries += run.retries
    if (run.status === 'FAILED') one.failed++
    if (run.status === 'CANCELLED') one.cancelled++
    if (run.startedAt === null) continue
    const duration = run.completedAt - run.startedAt
    one.durations[DURATION_BOUNDS.filter((bound) => bound <= duration).length]!++
  }
  return [...known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
}

/** In how many hours any of them ended, also of those that do not count. */
const hoursOf = (runs: Run[]) =>
  new Set(runs.flatMap(({ completedAt: ms }) => (ms === null ? [] : [Math.floor(ms / HOUR_MS)]))).size

const SPAN = { from: new Date(startOfHour(120)), to: new Date(startOfHour(-1)) }
const readAll = (teamId: string) => readExecutionHours(db, teamId, SPAN)

/** What is told of the team as a whole, with all its workflows together. */
async function readTotals(teamId: string, workflowId?: string) {
  const scope = serviceScope(store, { kind: 'SYSTEM', id: null, name: 'test' }, [[teamId, 'VIEWER']])
  const { totals, hours } = await readExecutionStatistics(scope, teamId, { ...SPAN, workflowId })
  const sum = (key: 'executions' | 'failed' | 'cancelled' | 'retries') =>
    hours.reduce((all, hour) => all + hour[key], 0)
  expect(totals).toMatchObject({ executions: sum('executions'), retries: sum('retries') })
  return {
    executions: sum('executions'),
    failed: sum('failed'),
    cancelled: sum('cancelled'),
    retries: sum('retries'),
  }
}

const totalsOf = (hours: ExecutionHour[]) => ({
  executions: hours.reduce((sum, { ended }) => sum + ended, 0),
  failed: hours.reduce((sum, { failed }) => sum + failed, 0),
  cancelled: hours.reduce((sum, { cancelled }) => sum + cancelled, 0),
  retries: hours.reduce((sum, { retries }) => sum + retries, 0),
})

/** A generator of numbers below 1 that are the same in each try. */
function createRandom(seed: number) {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

function makeRuns(workflowIds: string[], count: number, seed: number): Run[] {
  const random = createRandom(seed)
  const pick = <T>(values: T[]) => values[Math.floor(random() * values.length)]!
  return Array.from({ length: count }, () => {
    const status = pick(['SUCCESS', 'SUCCESS', 'SUCCESS', 'FAILED', 'CANCELLED', 'RUNNING'])
    const end = Math.floor(startOfHour(100) + random() * 99 * HOUR_MS)
    const hasBegun = status !== 'CANCELLED' || random() < 0.7
    return {
      workflowId: pick(workflowIds),
      status,
      trigger: pick(['API', 'API', 'WEBHOOK', 'EVALUATION', 'PLAYBOOK']),
      startedAt: hasBegun ? end - Math.floor(2 ** (random() * 24)) : null,
      completedAt: status === 'RUNNING' ? null : end,
      retries: pick([0, 0, 1, 5]),
    }
  })
}

test('the buckets of durations are the same in the database', async () => {
  const { rows } = await sql<{ bounds: number[] }>`select duration_bounds()::int8[] as bounds`.execute(db)
  expect(rows[0]!.bounds.map(Number)).toEqual(DURATION_BOUNDS)
})

test('a quantile that is read from the buckets is about that of the durations', () => {
  const random = createRandom(3)
  const durations = Array.from({ length: 5_000 }, () => Math.floor(2 ** (4 + random() * 20)))
  const buckets = Array<number>(DURATION_BOUNDS.length + 1).fill(0)
  for (const one of durations) buckets[DURATION_BOUNDS.filter((bound) => bound <= one).length]!++
  durations.sort((a, b) => a - b)
  for (const fraction of [0.05, 0.5, 0.95, 0.99]) {
    const truth = durations[Math.floor(fraction * durations.length)]!
    expect(Math.abs(estimateDuration(buckets, fraction)! / truth - 1)).toBeLessThan(0.12)
  }
  expect(estimateDuration(Array(88).fill(0), 0.5)).toBeNull()
  expect(estimateDuration([...Array(87).fill(0), 3], 0.5)).toBe(DURATION_BOUNDS.at(-1))
})

test('folded hours are the same as a recount, also when two fold at once', async () => {
  const team = await openTeam(3)
  const runs = makeRuns(team.workflowIds, 400, 17)
  await addRuns(team.teamId, runs)
  const counted = recount(runs)
  expect(await readAll(team.teamId)).toEqual(counted)
  expect(await readTotals(team.teamId)).toEqual(totalsOf(counted))
  const folded = await Promise.all([foldExecutionHours(store), foldExecutionHours(store)])
  expect(folded[0]! + folded[1]!).toBe(hoursOf(runs))
  expect(await readAll(team.teamId)).toEqual(counted)
  expect(await readTotals(team.teamId)).toEqual(totalsOf(counted))
  const [first] = team.workflowIds
  const own = counted.filter(({ workflowId }) => workflowId === first)
  expect(await readTotals(team.teamId, first)).toEqual(totalsOf(own))
  // A second round has nothing to do.
  expect(await foldExecutionHours(store)).toBe(0)
  // What comes later into hours that are folded counts at once, and so does what is changed there.
  const late = makeRuns(team.workflowIds, 30, 99)
  const ids = await addRuns(team.teamId, late)
  expect(await readAll(team.teamId)).toEqual(recount([...runs, ...late]))
  for (const [at, id] of ids.entries()) {
    const run = late[at]!
    if (run.status === 'RUNNING') continue
    Object.assign(run, { status: 'CANCELLED', completedAt: run.completedAt! - 3 * HOUR_MS, startedAt: null })
    const set = { status: 'CANCELLED', completedAt: new Date(run.completedAt!), startedAt: null }
    await db.updateTable('executions').set(set).where('id', '=', id).execute()
  }
  const all = recount([...runs, ...late])
  expect(await readAll(team.teamId)).toEqual(all)
  expect(await readTotals(team.teamId)).toEqual(totalsOf(all))
})

test('executions that are deleted stay in the sums, before and after their hour is folded', async () => {
  const team = await openTeam(2)
  const runs = makeRuns(team.workflowIds, 120, 5)
  const ids = await addRuns(team.teamId, runs)
  const counted = recount(runs)
  await db.deleteFrom('executions').where('id', 'in', ids.slice(0, 40)).execute()
  expect(await readAll(team.teamId)).toEqual(counted)
  await foldExecutionHours(store)
  expect(await readAll(team.teamId)).toEqual(counted)
  await db
    .updateTable('workflows')
    .set({ settings: '{"retention":{"days":1}}' })
    .where('teamId', '=', team.teamId)
    .execute()
  expect(await pruneExecutions(store)).toBeGreaterThan(30)
  await foldExecutionHours(store)
  expect(await readAll(team.teamId)).toEqual(counted)
  // With the workflow, and what it has not folded yet.
  const more = makeRuns(team.workflowIds, 20, 8).map((run) => ({
    ...run,
    startedAt: null,
    ...(run.completedAt === null ? {} : { completedAt: Date.now() - 1_000 }),
  }))
  await addRuns(team.teamId, more)
  const gone = await service.call('DELETE', `/api/workflows/${team.workflowIds[0]}`, team.cookie)
  expect(gone.status).toBe(200)
  const all = recount([...runs, ...more])
  expect(await readAll(team.teamId)).toEqual(all)
  expect(await readTotals(team.teamId)).toEqual(totalsOf(all))
})

test('an execution of which the end is heard late, and its rebuild, count once, with all retries', async () => {
  const team = await openTeam()
  const [workflowId] = team.workflowIds as [string]
  const end = startOfHour(5) + 60_000
  const other = {
    workflowId,
    status: 'SUCCESS',
    trigger: 'API',
    startedAt: end,
    completedAt: end,
    retries: 0,
  }
  await addRuns(team.teamId, [other, { ...other, completedAt: end + 2 * HOUR_MS }])
  const [id] = await addRuns(team.teamId, [
    { ...other, status: 'RUNNING', startedAt: null, completedAt: null },
  ])
  await foldExecutionHours(store)
  const node = (nodeId: string, retryCount: number) => ({
    ...{ id: nodeExecutionId(id!, nodeId, ''), nodeId, nodeName: nodeId, nodeType: 'NO_OP', iteration: '' },
    ...{
      status: 'SUCCESS',
      startedAt: end - 700,
      completedAt: end,
      handle: null,
      errorMessage: null,
      retryCount,
    },
    ...{
      position: 0,
      loop: null,
      givenBy: null,
      notes: null,
      step: null,
      tool: null,
      agent: null,
      waitingUntil: null,
      itemCount: null,
      output: null,
    },
  })
  const projection = {
    ...{
      status: 'FAILED',
      errorMessage: 'no',
      startedAt: end - 700,
      completedAt: end,
      position: 1,
      runId: 'r',
    },
    ...{ lastEventId: 9, recordCount: 2, began: true, nodes: [node('n1', 2), node('n2', 3)] },
  } as unknown as Projection
  const counted = recount([
    other,
    { ...other, completedAt: end + 2 * HOUR_MS },
    { ...other, status: 'FAILED', startedAt: end - 700, retries: 5 },
  ])
  expect(await saveProjection(store, id!, projection, { values: true })).not.toBeNull()
  expect(await readAll(team.teamId)).toEqual(counted)
  expect(await saveProjection(store, id!, projection, { values: true, again: true })).not.toBeNull()
  expect(await readAll(team.teamId)).toEqual(counted)
  expect(await foldExecutionHours(store)).toBe(0)
})

test('whoever folds waits for an execution of a folded hour whose end is not committed yet', async () => {
  const team = await openTeam()
  const [workflowId] = team.workflowIds as [string]
  const end = startOfHour(5) + 60_000
  const run = { workflowId, trigger: 'API', startedAt: end - 50, retries: 1 }
  const [id] = await addRuns(team.teamId, [{ ...run, status: 'RUNNING', completedAt: null }])
  await addRuns(team.teamId, [{ ...run, status: 'SUCCESS', completedAt: end }])
  let folding: Promise<number> | undefined
  await db.transaction().execute(async (tx) => {
    const set = { status: 'SUCCESS', completedAt: new Date(end) }
    await tx.updateTable('executions').set(set).where('id', '=', id!).execute()
    folding = foldExecutionHours(store)
    await expect
      .poll(async () => {
        const { rows } = await sql<{ waits: boolean }>`select exists (
          select from pg_locks where locktype = 'advisory' and not granted) as waits`.execute(tx)
        return rows[0]?.waits
      })
      .toBe(true)
  })
  expect(await folding).toBe(1)
  const ended = { ...run, status: 'SUCCESS', completedAt: end }
  expect(await readAll(team.teamId)).toEqual(recount([ended, ended]))
})

test('a team that is deleted takes its hours along', async () => {
  const team = await openTeam()
  await addRuns(team.teamId, makeRuns(team.workflowIds, 20, 4))
  await foldExecutionHours(store)
  expect((await service.call('DELETE', `/api/teams/${team.teamId}`, team.cookie)).status).toBe(200)
  for (const table of ['executionHours', 'executionHourFolds'] as const)
    expect(await db.selectFrom(table).select('teamId').where('teamId', '=', team.teamId).execute()).toEqual(
      [],
    )
})
