import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { ENDED, type ExecutionBody, nodeOf } from '../../support/client.ts'
import { createFiringScenario } from '../../support/engine/firings.ts'
import { edges } from '../../support/engine/graphs.ts'
import { type Installation, startInstallation } from '../../support/engine/installation.ts'
import { callsOf, checkRuns, loadGraph, type Sent, send } from '../../support/engine/load.ts'
import { createFamilyScenario, createPauseScenario } from '../../support/engine/pauses.ts'
import { createLoopScenario, createPureLoopScenario, type Scenario } from '../../support/engine/scenarios.ts'
import { startTarget, type Target } from '../../support/servers/target.ts'

let host: Installation
let target: Target
let work: { workflowId: string; teamId: string }
let hanging: string
let scenarios: Scenario[]
let numbers = 0
/** Every execution of this file, as it was read after its end. */
const all: ExecutionBody[] = []
/** How often the service was struck, and how often all was well afterwards. */
let tries = 0
let survived = 0

beforeAll(async () => {
  target = await startTarget()
  host = await startInstallation()
  work = { workflowId: await host.create(loadGraph(target.url)), teamId: host.teamId }
  hanging = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'hang', type: 'HTTP_REQUEST', config: { method: 'POST', url: `${target.url}/hang` } },
    ],
    edges: edges('start -> hang'),
  })
  scenarios = [
    await createLoopScenario(host, target),
    await createPureLoopScenario(host),
    await createFiringScenario(host, target),
    await createPauseScenario(host, target),
    await createFamilyScenario(host, target),
  ]
}, 180_000)
afterAll(async () => {
  await host?.stop()
  await target?.stop()
}, 60_000)

const sendMany = (count: number) =>
  Promise.all(Array.from({ length: count }, () => send(host.post, work, ++numbers)))

/** In how many of these executions a call by the node is in progress. */
const inFlight = (runs: Sent[], nodeId: string) =>
  runs.filter((run) => callsOf(target, run.id, nodeId).some((call) => !call.answered)).length

/**
 * Breaks something while 20 executions are in progress (some near their end, some in their first calls, some
 * being accepted), besides two that are being cancelled and some of every other kind. Then waits until the
 * service works again, and checks that every execution ended as it should.
 */
async function survive(
  { annotate }: Pick<TestContext, 'annotate'>,
  strike: () => Promise<() => Promise<unknown>>,
): Promise<{ runs: ExecutionBody[]; repeated: number }> {
  tries++
  const hangingBefore = target.hanging.size
  const cancelled = await host.execute(hanging)
  const racing = await host.execute(hanging)
  await Promise.all(scenarios.map((scenario) => scenario.early?.()))
  const early = await sendMany(8)
  await target.until(() => inFlight(early, 'after') >= 3)
  await Promise.all(scenarios.map((scenario) => scenario.middle?.()))
  const middle = await sendMany(8)
  await target.until(() => inFlight(middle, 'once') >= 4)
  await Promise.all(scenarios.map((scenario) => scenario.late?.()))
  await target.until(() => [cancelled, racing].every((id) => callsOf(target, id, 'hang').length > 0))
  await host.ask('POST', `/api/executions/${cancelled}/cancel`)
  const late = sendMany(4)
  late.catch(() => {})
  const raced = host.post(`/api/executions/${racing}/cancel`).then(
    (response) => response.status,
    () => undefined,
  )

  const brokenAt = Date.now()
  const flying = inFlight([...early, ...middle], 'call') + inFlight([...early, ...middle], 'once')
  const recovered = await strike()
  await recovered()
  const readyAfter = Date.now() - brokenAt
  const sent = [...early, ...middle, ...(await late)]
  const { ended, repeated } = await checkRuns(host, target, sent, brokenAt)
  const others: ExecutionBody[] = []
  const noted: string[] = []
  for (const scenario of scenarios) {
    const runs = await scenario.check(brokenAt)
    const across = runs.filter((run) => isAcross({ ...run, startedAt: run.createdAt }, brokenAt)).length
    noted.push(`${across} of ${runs.length} ${scenario.name}`)
    others.push(...runs)
  }
  const shownAfter = Date.now() - brokenAt
  const endedAfter = Math.max(...[...ended, ...others].map((run) => Date.parse(run.completedAt!))) - brokenAt
  // What ended while its rows could not be written is shown
  // soon afterwards, before the sweeper would find it.
  expect(shownAfter).toBeLessThan(Math.max(readyAfter, endedAfter) + 10_000)

  // Some executions were waiting when it broke, and went on waiting.
  const waiting = [...ended, ...others]
    .flatMap((run) => run.nodeExecutions.filter(({ nodeId }) => nodeId === 'wait'))
    .filter((node) => isAcross(node, brokenAt))
  expect(waiting.length).toBeGreaterThan(0)

  if ((await raced) !== 200) {
    // The cancel got no response, so repeat it; 409 says that it had been accepted nevertheless.
    await expect
      .poll(async () => (await host.post(`/api/executions/${racing}/cancel`)).status, { timeout: 30_000 })
      .toBeOneOf([200, 409])
  }
  for (const id of [cancelled, racing]) {
    const run = await host.ended(id, 60_000)
    expect(run.status).toBe('CANCELLED')
    expect(nodeOf(run, 'hang').status).toBe('CANCELLED')
    ended.push(run)
  }
  await target.until(() => target.hanging.size <= hangingBefore)
  all.push(...ended, ...others)
  survived++
  const again = sent.filter((run) => run.attempts > 1).length
  await annotate(
    `ready after ${readyAfter} ms, the last of ${sent.length} executions ended after ${endedAfter} ms (shown: ` +
      `${shownAfter}); ${flying} calls in progress, ${repeated} made twice; ${waiting.length} waits across the ` +
      `failure; ${again} requests repeated; executions across the failure: ${noted.join(', ')}; ` +
      `status of the racing cancel: ${await raced}`,
  )
  return { runs: ended, repeated }
}

function isAcross(node: { startedAt: string; completedAt: string | null }, at: number): boolean {
  return Date.parse(node.startedAt) < at && Date.parse(node.completedAt!) > at
}

async function strikeOne(name: 'service' | 'temporal' | 'postgres') {
  const was = host.kill(name)
  return () => host.recovered(name, was)
}

describe('20 executions survive a kill -9', () => {
  test('of API and worker', async (context) => {
    await survive(context, () => strikeOne('service'))
  })

  // outage.test.ts kills Temporal and PostgreSQL too, with fewer executions in progress.
  test('of Temporal', { tags: 'long' }, async (context) => {
    await survive(context, () => strikeOne('temporal'))
  })

  test('of PostgreSQL: no call is made twice', { tags: 'long' }, async (context) => {
    const { repeated } = await survive(context, () => strikeOne('postgres'))
    expect(repeated).toBe(0)
  })

  test('of one PostgreSQL backend, after which PostgreSQL ends all: no call is made twice', {
    tags: 'long',
  }, async (context) => {
    const { repeated } = await survive(context, async () => {
      const postmaster = host.holder().children.postgres.pid
      const before = findBackends(postmaster)
      expect(before.length).toBeGreaterThan(0)
      process.kill(before[0]!, 'SIGKILL')
      return () =>
        expect
          .poll(
            async () => {
              const now = findBackends(postmaster)
              return before.every((pid) => !now.includes(pid)) && (await host.isReady())
            },
            { timeout: 60_000 },
          )
          .toBe(true)
    })
    expect(repeated).toBe(0)
  })

  test('of all processes at once, including the supervisor, followed by a new start', {
    tags: 'long',
  }, async (context) => {
    await survive(context, async () => {
      await host.killAll()
      return host.boot
    })
  })

  test('afterwards every execution still reads as it did after its end, and there are no others', async () => {
    for (const run of all) {
      expect(ENDED).toContain(run.status)
      expect(await host.read(run.id)).toEqual(run)
    }
    const count = async (workflowId: string) => {
      const path = `/api/executions?workflowId=${workflowId}&size=1`
      return (await host.ask<{ totalElements: number }>('GET', path)).totalElements
    }
    expect(await count(work.workflowId)).toBe(numbers)
    const workflows = [work.workflowId, hanging, ...scenarios.flatMap(({ workflowIds }) => workflowIds)]
    const counts = await Promise.all(workflows.map(count))
    // A try that has failed and was made again leaves executions that nobody has read.
    if (tries === survived) expect(counts.reduce((sum, one) => sum + one)).toBe(all.length)
  })
})

/** The pids of this postmaster's backends that serve our connections. */
function findBackends(postmaster: number): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((entry) => {
      try {
        const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
        const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]
        if (Number(parent) !== postmaster) return false
        // The service comes over the socket.
        return / (127\.0\.0\.1\(|\[local\])/.test(readFileSync(`/proc/${entry}/cmdline`, 'utf8'))
      } catch {
        return false
      }
    })
    .map(Number)
}
