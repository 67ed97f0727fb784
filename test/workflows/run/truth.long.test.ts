import { afterAll, describe, expect, test } from 'vitest'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { ENDED, type ExecutionBody, type NodeBody } from '../../support/client.ts'
import { edges, examples } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { meddle, startExample, startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

/** What pollers see of executions that two engines project at once while their rows are rebuilt. */
const target = await keep(startTarget())
const running = await keep(startRunning())
const second = await running.addEngine()
afterAll(() => second.stop())

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const rank = (status: string) => (ENDED.includes(status) ? 2 : status === 'RUNNING' ? 1 : 0)

/** How one response contradicts the one before it, or itself. */
function findFaults(before: ExecutionBody | undefined, now: ExecutionBody): string[] {
  const faults: string[] = []
  const step = (what: string, was: { status: string }, is: { status: string }) => {
    const back = rank(is.status) < rank(was.status)
    const changed = rank(was.status) === 2 && JSON.stringify(is) !== JSON.stringify(was)
    if (back || changed) faults.push(`${what}: ${JSON.stringify(was)} -> ${JSON.stringify(is)}`)
  }
  if (before) step('run', before, now)
  for (const was of before?.nodeExecutions ?? []) {
    const is = now.nodeExecutions.find((node) => node.id === was.id)
    if (!is) faults.push(`${was.nodeId} vanished`)
    else step('node', was, is)
    if (is && is.retryCount < was.retryCount) faults.push(`${was.nodeId} has fewer retries`)
  }
  const outside = ({ startedAt, completedAt }: NodeBody) =>
    (now.startedAt !== null && startedAt < now.startedAt) ||
    (now.completedAt !== null && (completedAt === null || completedAt > now.completedAt))
  for (const node of now.nodeExecutions) if (outside(node)) faults.push(`${node.nodeId} is outside its run`)
  return faults
}

/** Polls an execution every few milliseconds, until `afterMs` after its end. */
async function watch(id: string, afterMs: number): Promise<{ run: ExecutionBody; faults: string[] }> {
  const faults: string[] = []
  let run: ExecutionBody | undefined
  let until = Number.POSITIVE_INFINITY
  while (Date.now() < until) {
    const now: ExecutionBody = await running.read(id)
    faults.push(...findFaults(run, now))
    run = now
    if (ENDED.includes(now.status)) until = Math.min(until, Date.now() + afterMs)
    await pause(5)
  }
  return { run: run!, faults }
}

const cancel = async (id: string) =>
  (await running.request(`/api/executions/${id}/cancel`, { method: 'POST', as: running.admin })).status

describe.each(Object.keys(examples('')))('the example "%s"', (name) => {
  test('never goes back to an earlier state, while two engines project and rebuild it', {
    tags: 'long',
  }, async () => {
    const example = examples(target.url)[name]!
    const id = await startExample(running, example)
    const watched = watch(id, 300)
    const acted = meddle(running, id, example)
    let done = false
    const deps = { store: running.store, client: second.client, sealer: second.sealer }
    const meddling = (async () => {
      while (!done) {
        await Promise.all([
          rebuildExecution(deps, id),
          second.projector.refresh(id),
          running.engine.projector.refresh(id),
        ])
        await pause(30)
      }
    })()
    const { run, faults } = await Promise.all([watched, acted])
      .then(([seen]) => seen)
      .finally(() => {
        done = true
      })
    await meddling
    expect(faults).toEqual([])
    expect(run.status).toBe(example.status)
  })
})

test('an execution whose cancel gets a 200 ends CANCELLED and stays so, however close to its end', {
  tags: 'long',
  timeout: 180_000,
}, async () => {
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  const set = { id: 'set', type: 'SET', config: { values: {} } }
  const call = { id: 'call', type: 'HTTP_REQUEST', config: { url: `${target.url}/slow?ms=40` } }
  const quick = await running.create({ nodes: [start, set], edges: edges('start -> set') })
  const slow = await running.create({
    nodes: [start, call, set],
    edges: edges('start -> call', 'call -> set'),
  })
  const race = async (at: number) => {
    const id = await running.execute(at % 2 ? quick : slow)
    await pause(Math.random() * (at % 2 ? 120 : 400))
    const status = await cancel(id)
    const { run, faults } = await watch(id, 300)
    expect(faults).toEqual([])
    if (status === 200) expect(run).toMatchObject({ status: 'CANCELLED', outputData: null })
    else expect([status, run.status]).toEqual([409, 'SUCCESS'])
  }
  for (let round = 0; round < 10; round++)
    await Promise.all([0, 1, 2, 3, 4].map((at) => race(round * 5 + at)))
})
