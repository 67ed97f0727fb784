import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { nameSchedule } from '../../../activities/schedules/schedules.ts'
import { bundleWorkflows, VERSIONED_ENTRY } from '../../../worker/engine/bundle.ts'
import type { Engine } from '../../../worker/engine/engine.ts'
import { edges } from '../../support/engine/graphs.ts'
import { addModelCalls, modelCallGraph } from '../../support/engine/models/calls.ts'
import { type Launched, launch } from '../../support/engine/process.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { until } from '../../support/until.ts'

afterAll(addModelCalls())
const run = promisify(execFile)
const LATER = fileURLToPath(new URL('../../support/engine/laterbundle.ts', import.meta.url))

const target = await keep(startTarget())
const running = await keep(startRunning({ continueAfterEvents: 40 }))
const { client } = running.engine
const { taskQueue } = running
const { current, byId } = running.store.keys
const env = {
  DATABASE_URL: running.database.url,
  TEMPORAL_ADDRESS: inject('temporalAddress'),
  TASK_QUEUE: taskQueue,
  PERDURE_KEYS: `${current}:${byId.get(current)!.toString('base64')}`,
}

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const go = { id: 'go', type: 'WAIT_FOR_EVENT', config: { name: 'go' } }
const set = { id: 'set', type: 'SET', config: { values: { n: 1 } } }
const short = { nodes: [start, set], edges: edges('start -> set') }
const waiting = { nodes: [start, go, set], edges: edges('start -> go', 'go -> set') }
const looping = {
  nodes: [
    start,
    go,
    { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1..30] }}' } },
    { id: 'call', type: 'HTTP_REQUEST', parentId: 'each', config: { url: `${target.url}/ok` } },
  ],
  edges: edges('start -> go', 'go -> each'),
}
const ticking = {
  nodes: [{ id: 'tick', type: 'SCHEDULE_TRIGGER', config: { cron: '0 0 1 1 *' } }, go],
  edges: edges('tick -> go'),
}

/** The versions of the processes, by their ids. */
const nameOf = new Map<string, string>([
  [randomUUID(), 'v1'],
  [randomUUID(), 'v2'],
])

let v1: Engine
let v2: Engine

async function perdure(...args: string[]): Promise<{ code: unknown; output: string }> {
  const command = launch(['worker/cli.ts', 'deployment', ...args], env)
  return { code: await command.ended, output: command.output() }
}

async function setCurrent(...args: string[]): Promise<void> {
  expect(await perdure('set-current', ...args)).toMatchObject({ code: 0 })
}

/** The lines of `deployment show`, by build id. */
async function show(): Promise<Map<string, string>> {
  const { output } = await perdure('show')
  return new Map(output.split('\n').map((line) => [line.split(' ')[0]!, line]))
}

/** The version that carried out each workflow task, for every Temporal run of a workflow. */
async function readVersions(workflowId: string): Promise<string[][]> {
  const chain: string[][] = []
  for (let runId: string | undefined, more = true; more; ) {
    const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory()
    const versions = (events ?? []).flatMap(({ workflowTaskCompletedEventAttributes: task }) =>
      task ? [task.deploymentVersion?.buildId ?? 'none'] : [],
    )
    chain.unshift([...new Set(versions)])
    runId = events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? undefined
    more = Boolean(runId)
  }
  return chain
}

/** The version whose worker made each call of a run. */
async function readCallers(workflowId: string) {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory()
  return (events ?? []).flatMap(({ activityTaskStartedEventAttributes: task }) =>
    task ? [nameOf.get(task.identity!.split(' ')[1]!)] : [],
  )
}

/** Executes something short through the process of `engine`, and returns which version carried it out. */
async function tryOne(engine: Engine): Promise<string> {
  running.use(engine)
  const run = await running.run(short)
  expect(run.status).toBe('SUCCESS')
  return (await readVersions(run.id)).join()
}

async function startWaiting(graph: Parameters<typeof running.create>[0]): Promise<string> {
  const id = await running.execute(await running.create(graph))
  await waits(id)
  return id
}
const waits = (id: string) =>
  running.until(id, (run) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'go'))
const send = (id: string) => running.ask('POST', `/api/executions/${id}/events/go`, {})

describe('workers with DEPLOYMENT_BUILD_ID', () => {
  beforeAll(async () => {
    const [ours, later] = [await bundleWorkflows(VERSIONED_ENTRY), await bundleWorkflows(LATER)]
    const version = (buildId: string) => ({ deploymentName: taskQueue, buildId })
    const [one, two] = nameOf.keys()
    v1 = await running.addEngine({ version: version('v1'), bundle: ours, processId: one })
    v2 = await running.addEngine({ version: version('v2'), bundle: later, processId: two })
    await until(async () => (await show()).has('v2'))
  })
  afterAll(() => Promise.all([v1.stop(), v2.stop()]))

  test('get no run until an operator makes their version current; what began before goes on there', {
    tags: 'long',
  }, async () => {
    const before = await startWaiting(waiting)
    expect(await readVersions(before)).toEqual([['none']])
    expect(await tryOne(running.engine)).toBe('none')
    expect((await perdure('show')).output).toContain('New executions go to the workers without a version')

    await setCurrent('v1')
    expect(await until(() => tryOne(running.engine), { holds: (is) => is !== 'none' })).toBe('v1')
    await send(before)
    expect((await running.ended(before)).status).toBe('SUCCESS')
    expect(await readVersions(before)).toEqual([['none', 'v1']])
    await running.engine.stop()
    running.use(v1)
  })

  test('make the calls to models of their own runs, also when another version is current', {
    tags: 'long',
  }, async () => {
    running.use(v1)
    await until(() => tryOne(v1), { holds: (is) => is === 'v1' })
    const { nodes, edges: after } = modelCallGraph(`${target.url}/ok`)
    const graph = { nodes: [...nodes, go], edges: [...edges('start -> go'), { ...after[0]!, source: 'go' }] }
    const old = await startWaiting(graph)
    await setCurrent('v2')
    await until(() => tryOne(v1), { holds: (is) => is === 'v2' })
    const young = await startWaiting(graph)
    for (const [id, version] of [
      [old, 'v1'],
      [young, 'v2'],
    ] as const) {
      await send(id)
      expect((await running.ended(id)).status).toBe('SUCCESS')
      expect(await readVersions(id)).toEqual([[version]])
      expect(await readCallers(id)).toEqual([version])
    }
    await setCurrent('v1')
  })

  test('keep the runs that they began; others begin on the current version, whichever process asks', {
    tags: 'long',
  }, async () => {
    await until(() => tryOne(v1), { holds: (is) => is === 'v1' })
    const old = await startWaiting(waiting)
    await setCurrent('v2')
    // The process of the old version learns within seconds that it must not ask for eager starts any more.
    await until(() => tryOne(v1), { holds: (is) => is === 'v2' })
    expect(await tryOne(v1)).toBe('v2')
    expect(await tryOne(v2)).toBe('v2')
    expect((await show()).get('v1')).toMatch(/draining .* 1 open/)
    await send(old)
    expect((await running.ended(old)).status).toBe('SUCCESS')
    expect(await readVersions(old)).toEqual([['v1']])
  })

  test('can be rolled back: runs begin on the version before, and those of the later one end where they began', {
    tags: 'long',
  }, async () => {
    running.use(v2)
    const late = await startWaiting(waiting)
    await setCurrent('v1')
    await until(() => tryOne(v2), { holds: (is) => is === 'v1' })
    expect(await tryOne(v1)).toBe('v1')
    await send(late)
    expect((await running.ended(late)).status).toBe('SUCCESS')
    expect(await readVersions(late)).toEqual([['v2']])
  })

  test('give a long run to the current version when it continues as new', { tags: 'long' }, async () => {
    running.use(v1)
    const id = await startWaiting(looping)
    await setCurrent('v2')
    await send(id)
    const run = await running.ended(id)
    expect(run.status).toBe('SUCCESS')
    const chain = await readVersions(id)
    expect(chain.length).toBeGreaterThan(2)
    expect(chain[0]).toEqual(['v1'])
    expect(chain.slice(1)).toEqual(chain.slice(1).map(() => ['v2']))
  })

  test('move a firing of a schedule at once, but not its run', { tags: 'long' }, async () => {
    await setCurrent('v1')
    const workflowId = await running.create(ticking as never)
    await running.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
    const schedule = client.schedule.getHandle(nameSchedule(taskQueue, workflowId, 'tick'))
    await until(() => schedule.describe().then(Boolean, () => false))
    await schedule.trigger()
    const list = () =>
      running.ask<{ content: { id: string }[] }>('GET', `/api/executions?workflowId=${workflowId}`)
    const [run] = await until(async () => (await list()).content, { holds: ({ length }) => length > 0 })
    await waits(run!.id)
    const [action] = (await schedule.describe()).info.recentActions
    await setCurrent('v2')
    await send(run!.id)
    expect((await running.ended(run!.id)).status).toBe('SUCCESS')
    await client.workflow.getHandle(action!.action.workflow.workflowId).result()
    expect(await readVersions(run!.id)).toEqual([['v1']])
    expect(await readVersions(action!.action.workflow.workflowId)).toEqual([['v1', 'v2']])
    await schedule.delete()
  })

  test('lose a run that waits long to the current version, if an operator says so as the guide does', {
    tags: 'long',
  }, async ({ skip }) => {
    const cli = inject('temporalCli')
    skip(cli === '', "Temporal's own tool is not there")
    await setCurrent('v1')
    await until(() => tryOne(v1), { holds: (is) => is === 'v1' })
    const id = await startWaiting(waiting)
    const v3 = await running.addEngine({ version: { deploymentName: taskQueue, buildId: 'v3' } })
    try {
      await until(async () => (await show()).has('v3'))
      await setCurrent('v3')
      await until(async () => /1 open/.test((await show()).get('v1') ?? ''))
      const query = `TemporalWorkerDeploymentVersion = "${taskQueue}:v1" AND ExecutionStatus = "Running"`
      const how = ['--versioning-override-behavior', 'auto_upgrade', '--query', query, '--yes']
      await run(cli, ['workflow', 'update-options', '--address', env.TEMPORAL_ADDRESS, ...how])
      const describe = async () => (await client.workflow.getHandle(id).describe()).raw.workflowExecutionInfo
      await until(async () => Boolean((await describe())?.versioningInfo?.versioningOverride))
      await send(id)
      expect((await running.ended(id)).status).toBe('SUCCESS')
      expect(await readVersions(id)).toEqual([['v1', 'v3']])
    } finally {
      await v3.stop()
    }
  })

  test('are drained when nothing is left on them, which `deployment show` says', { tags: 'long' }, async ({
    skip,
  }) => {
    skip(inject('temporalCli') === '', "with Temporal's own settings it takes minutes")
    await until(async () => (await show()).get('v1') ?? '', {
      holds: (line) => /drained .* 0 open/.test(line),
    })
  })
})

test('a worker process takes its version from the environment; an unknown version cannot be made current', {
  tags: 'long',
}, async () => {
  const worker: Launched = launch(['worker/worker.ts'], { ...env, DEPLOYMENT_BUILD_ID: 'v3.0+a' })
  try {
    expect(await perdure('set-current', 'v4')).toMatchObject({
      code: 1,
      output: expect.stringContaining('DEPLOYMENT_BUILD_ID'),
    })
    await worker.until(async () => (await show()).get('v3.0+a')?.includes('0 open') ?? false)
  } finally {
    worker.kill('SIGTERM')
    await worker.ended
  }
  expect(await perdure('set-current')).toMatchObject({ code: 2 })
  expect(await perdure('set-current', 'v3', '--unversioned')).toMatchObject({ code: 2 })
  await setCurrent('--unversioned')
  expect((await perdure('show')).output).toContain('New executions go to the workers without a version')
})
