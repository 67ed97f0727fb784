import { expect, test } from 'vitest'
import type { ExecutionBody } from '../../support/client.ts'
import { nodeOf } from '../../support/client.ts'
import { listEvaluators } from '../../support/engine/evaluators.ts'
import { edges } from '../../support/engine/graphs.ts'
import { callsOf } from '../../support/engine/load.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { until } from '../../support/until.ts'

const target = await keep(startTarget())
const host = await keep(startRunning({ expressions: { processes: 2 }, stopGraceMs: 20_000 }))

/** So large that another process has to read it. */
const BYTES = 400_000

/** Executes a POST with a large answer, which is given after `ms`. */
async function post(ms: number, more: object = {}): Promise<string> {
  const id = await host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          retry: { maxAttempts: 1 },
          ...more,
          config: { method: 'POST', url: `${target.url}/slow?ms=${ms}&bytes=${BYTES}` },
        },
      ],
      edges: edges('start -> call'),
    }),
  )
  await target.until(() => callsOf(target, id, 'call').length > 0)
  return id
}

function expectOneCall(run: ExecutionBody): void {
  expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
  const { outputData, retryCount } = nodeOf(run, 'call')
  expect(outputData).toMatchObject({ body: { text: 'x'.repeat(BYTES) } })
  expect([callsOf(target, run.id, 'call').length, retryCount]).toEqual([1, 0])
}

/** Meanwhile no evaluator process can be started. `tries` is how often one was to be. */
async function withoutEvaluators(work: (tries: () => number) => Promise<void>): Promise<void> {
  for (const pid of listEvaluators()) process.kill(pid, 'SIGKILL')
  await until(() => listEvaluators().length === 0)
  const before = Object.getOwnPropertyDescriptor(process, 'execPath')!
  let tries = 0
  const get = () => {
    tries++
    return '/bin/false'
  }
  Object.defineProperty(process, 'execPath', { configurable: true, get })
  try {
    await work(() => tries)
  } finally {
    Object.defineProperty(process, 'execPath', before)
  }
}

/** An answer is given up for the time being once three processes could not be started. */
const GIVEN_UP_TWICE = 7

test.runIf(process.platform === 'linux')(
  'a large answer is kept while no process can be had to read it, and its call is not made again',
  { tags: 'long' },
  async () => {
    let id = ''
    await withoutEvaluators(async (tries) => {
      id = await post(0)
      await until(() => tries() >= GIVEN_UP_TWICE)
    })
    expectOneCall(await host.ended(id))
  },
)

test.runIf(process.platform === 'linux')(
  'until the limit of its node, which counts as its failure, or until the execution is cancelled',
  { tags: 'long' },
  async () => {
    await withoutEvaluators(async (tries) => {
      const limited = await post(0, { timeoutMs: 4_000 })
      const run = await host.ended(limited)
      expect([run.status, nodeOf(run, 'call').errorMessage]).toEqual([
        'FAILED',
        'The node took longer than its limit of 4000 ms',
      ])
      expect(callsOf(target, limited, 'call')).toHaveLength(1)
      const { held } = host.engine.readBudget()
      const before = tries()
      const cancelled = await post(0)
      await until(() => tries() >= before + GIVEN_UP_TWICE)
      expect(host.engine.readBudget().held - held).toBeGreaterThanOrEqual(BYTES)
      await host.ask('POST', `/api/executions/${cancelled}/cancel`)
      expect((await host.ended(cancelled)).status).toBe('CANCELLED')
      expect(callsOf(target, cancelled, 'call')).toHaveLength(1)
      await until(() => host.engine.readBudget().held === held)
    })
  },
)

test('a worker that stops has ended its evaluations, and still reads the answer of a call', {
  tags: 'long',
}, async () => {
  const stopping = await host.addEngine({ evaluationEndMs: 20_000 })
  // Nobody else takes the call, and whoever would take it again comes later.
  await host.engine.stop()
  host.use(stopping)
  const id = await post(3_000)
  const stopped = stopping.stop()
  await until(() => !stopping.isPolling())
  host.use(await host.addEngine())
  await stopped
  expectOneCall(await host.ended(id))
})
