import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { ENDED, nodeOf, type RunAnswer } from '../client.ts'
import { edges } from '../graphs.ts'
import { startTarget, type Target } from '../target.ts'
import { createAsks, createFamilies } from './asks.ts'
import { createFirings } from './firings.ts'
import { type Installation, startInstallation } from './installation.ts'
import { createLoops, createPureLoops, type Kind } from './kinds.ts'
import { callsOf, checkRuns, loadGraph, type Sent, send } from './load.ts'

let host: Installation
let target: Target
let work: { workflowId: string; teamId: string }
let hanging: string
let kinds: Kind[]
let numbers = 0
/** Every run of this file as it was when it had ended. */
const all: RunAnswer[] = []

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
  kinds = [
    await createLoops(host, target),
    await createPureLoops(host),
    await createFirings(host, target),
    await createAsks(host, target),
    await createFamilies(host, target),
  ]
}, 180_000)
afterAll(async () => {
  await host?.stop()
  await target?.stop()
}, 60_000)

const sendMany = (count: number) =>
  Promise.all(Array.from({ length: count }, () => send(host.post, work, ++numbers)))

/** How many of these runs' nodes are being called right now. */
const inFlight = (runs: Sent[], nodeId: string) =>
  runs.filter((run) => callsOf(target, run.id, nodeId).some((call) => !call.answered)).length

/**
 * Breaks something while 20 runs are under way (some near their end, some inside their first calls, some being
 * accepted) beside two that are being cancelled and some of each other kind, waits until it works again, and holds
 * every run to its promise.
 */
async function survive(
  { annotate }: Pick<TestContext, 'annotate'>,
  strike: () => Promise<() => Promise<unknown>>,
): Promise<{ runs: RunAnswer[]; repeated: number }> {
  const hangingBefore = target.hanging.size
  const cancelled = await host.execute(hanging)
  const racing = await host.execute(hanging)
  await Promise.all(kinds.map((kind) => kind.early?.()))
  const early = await sendMany(8)
  await target.until(() => inFlight(early, 'after') >= 3)
  await Promise.all(kinds.map((kind) => kind.middle?.()))
  const middle = await sendMany(8)
  await target.until(() => inFlight(middle, 'once') >= 4)
  await Promise.all(kinds.map((kind) => kind.late?.()))
  await target.until(() => [cancelled, racing].every((id) => callsOf(target, id, 'hang').length > 0))
  await host.ask('POST', `/api/executions/${cancelled}/cancel`)
  const late = sendMany(4)
  late.catch(() => {})
  const raced = host.post(`/api/executions/${racing}/cancel`).then(
    (answer) => answer.status,
    () => undefined,
  )

  const brokenAt = Date.now()
  const flying = inFlight([...early, ...middle], 'call') + inFlight([...early, ...middle], 'once')
  const recovered = await strike()
  await recovered()
  const readyAfter = Date.now() - brokenAt
  const sent = [...early, ...middle, ...(await late)]
  const { ended, repeated } = await checkRuns(host, target, sent, brokenAt)
  const others: RunAnswer[] = []
  const noted: string[] = []
  for (const kind of kinds) {
    const runs = await kind.check(brokenAt)
    const across = runs.filter((run) => isAcross({ ...run, startedAt: run.createdAt }, brokenAt)).length
    noted.push(`${across} of ${runs.length} ${kind.name}`)
    others.push(...runs)
  }
  const shownAfter = Date.now() - brokenAt
  const endedAfter = Math.max(...[...ended, ...others].map((run) => Date.parse(run.completedAt!))) - brokenAt
  // What ended while its rows could not be written is shown soon after, not when the sweeper comes by.
  expect(shownAfter).toBeLessThan(Math.max(readyAfter, endedAfter) + 10_000)

  // Some runs were in their wait when it broke, and waited on.
  const waiting = [...ended, ...others]
    .flatMap((run) => run.nodeExecutions.filter(({ nodeId }) => nodeId === 'wait'))
    .filter((node) => isAcross(node, brokenAt))
  expect(waiting.length).toBeGreaterThan(0)

  if ((await raced) !== 200) {
    // Not accepted, so still to be asked for; 409 says that it was accepted all the same.
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
  const again = sent.filter((run) => run.attempts > 1).length
  await annotate(
    `ready after ${readyAfter} ms, the last of ${sent.length} runs ended after ${endedAfter} ms (shown: ${shownAfter}); ` +
      `${flying} calls in flight, ${repeated} made twice; ${waiting.length} waits across; ${again} requests repeated; ` +
      `under way: ${noted.join(', ')}; ` +
      `the racing cancel: ${await raced}`,
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

describe('kill -9 while 20 runs are under way', { timeout: 180_000 }, () => {
  test('of API and worker', async (context) => {
    await survive(context, () => strikeOne('service'))
  })

  test('of Temporal', async (context) => {
    await survive(context, () => strikeOne('temporal'))
  })

  test('of PostgreSQL: no call is made twice', async (context) => {
    const { repeated } = await survive(context, () => strikeOne('postgres'))
    expect(repeated).toBe(0)
  })

  test('of one PostgreSQL backend, which makes PostgreSQL drop all: no call is made twice', async (context) => {
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

  test('of everything at once, supervisor included, and a new start', async (context) => {
    await survive(context, async () => {
      await host.killAll()
      return host.boot
    })
  })

  test('after all that every run is as it was when it ended, and there is none besides', async () => {
    for (const run of all) {
      expect(ENDED).toContain(run.status)
      expect(await host.read(run.id)).toEqual(run)
    }
    const count = async (workflowId: string) => {
      const path = `/api/executions?workflowId=${workflowId}&size=1`
      return (await host.ask<{ totalElements: number }>('GET', path)).totalElements
    }
    expect(await count(work.workflowId)).toBe(numbers)
    const workflows = [work.workflowId, hanging, ...kinds.flatMap(({ workflowIds }) => workflowIds)]
    const counts = await Promise.all(workflows.map(count))
    expect(counts.reduce((sum, one) => sum + one)).toBe(all.length)
  })
})

/** The backends that serve our connections, children of this postmaster. */
function findBackends(postmaster: number): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((entry) => {
      try {
        const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
        const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]
        if (Number(parent) !== postmaster) return false
        return readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes('127.0.0.1(')
      } catch {
        return false
      }
    })
    .map(Number)
}
