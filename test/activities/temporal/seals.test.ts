import { Writable } from 'node:stream'
import { ApplicationFailure, type Payload } from '@temporalio/common'
import { pino } from 'pino'
import { v7 as uuid } from 'uuid'
import { beforeEach, describe, expect, test } from 'vitest'
import { openPayload } from '../../../activities/temporal/codec.ts'
import { rebuildExecution } from '../../../activities/temporal/rebuild.ts'
import { createFrame } from '../../../workflows/run/frame.ts'
import type { RunInput } from '../../../workflows/run/messages.ts'
import { createForger, plain, sealFor } from '../../support/engine/forger.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'
import { makeKeys } from '../../support/service.ts'
import { until } from '../../support/until.ts'

/** Why payloads were refused, as the service logs it. */
let refusals: string[] = []
/** What the sweeper could not do. */
let faults: string[] = []
const log = pino(
  { level: 'warn' },
  new Writable({
    write(line, _, done) {
      const { msg, reason } = JSON.parse(String(line))
      if (msg === 'a payload in Temporal is refused') refusals.push(reason)
      else if (/^the (sweeper failed|errands that are due)/.test(msg)) faults.push(msg)
      done()
    },
  }),
)
beforeEach(() => {
  refusals = []
})

const target = await startTarget()
const running = await keep(startRunning({ log }))
const { sealer } = running.engine
const forger = createForger(running.engine)

const NOT_SEALED = 'it is not sealed'
const OF_ANOTHER = 'it was sealed for another run, or altered'

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const waiting = {
  nodes: [
    start,
    { id: 'paid', type: 'WAIT_FOR_EVENT', config: { name: 'paid' } },
    { id: 'after', type: 'SET', config: { values: { got: '{{ $input }}' } } },
  ],
  edges: edges('start -> paid', 'paid -> after'),
}
/** A node whose first attempt hangs until the target lets go of it. */
const hanging = (more: object = {}, path = 'hang') => ({
  nodes: [
    start,
    { id: 'call', type: 'HTTP_REQUEST', config: { method: 'POST', url: `${target.url}/${path}` }, ...more },
    { id: 'after', type: 'SET', config: { values: { got: '{{ $input }}' } } },
  ],
  edges: edges('start -> call', 'call -> after'),
})
const calls = (run: string) => target.calls.filter(({ key }) => key?.startsWith(run)).length

/** Starts a run that waits for the event `paid`. */
async function startWaiting(): Promise<string> {
  const id = await running.execute(await running.create(waiting))
  await isWaiting(id)
  return id
}
const isWaiting = (id: string) =>
  running.until(id, (run) => run.nodeExecutions.some(({ nodeId }) => nodeId === 'paid'))
const pay = (id: string) => running.ask('POST', `/api/executions/${id}/events/paid`, { amount: 5 })

/** Starts a run with a call that hangs. */
async function startHanging(more?: object): Promise<string> {
  const id = await running.execute(await running.create(hanging(more)))
  await until(() => calls(id) === 1)
  return id
}
const release = () => {
  for (const response of target.hanging) response.destroy()
}

/** What a run of the service was given. */
async function readRunInput(id: string): Promise<RunInput> {
  const payload = await openPayload(
    sealer,
    { namespace: 'default', workflowId: id },
    await forger.readInput(id),
  )
  return JSON.parse(Buffer.from(payload.data!).toString())
}

const endOf = (id: string) =>
  forger.client.workflow
    .getHandle(id)
    .result()
    .then(() => 'COMPLETED')
    .catch(() => 'FAILED')

test('signals that were not sealed for the run are ignored and logged; it goes on to its end', {
  tags: 'long',
}, async () => {
  const [other, id] = [await startWaiting(), await startWaiting()]
  const foreign = { ...sealer, keys: makeKeys() }
  const lost = { ...sealer, keys: { current: 'zz', byId: new Map([['zz', Buffer.alloc(32)]]) } }
  const sealed = await sealFor(sealer, id, 'paid#')
  const unbound = await sealFor({ ...sealer, binds: () => false }, id, 'paid#')
  const data = Buffer.from(sealed.data!)
  const forged: [string, Payload][] = [
    [NOT_SEALED, plain('paid#')],
    [NOT_SEALED, {}],
    [NOT_SEALED, { metadata: { encoding: Buffer.from('none/such') }, data: Buffer.from([1, 2]) }],
    [NOT_SEALED, { ...sealed, data: Buffer.alloc(0) }],
    [NOT_SEALED, { ...sealed, data: Buffer.concat([Buffer.from([9]), data.subarray(1)]) }],
    [OF_ANOTHER, { ...sealed, data: data.with(-1, data.at(-1)! ^ 1) }],
    [OF_ANOTHER, await sealFor(sealer, other, 'paid#')],
    [OF_ANOTHER, await sealFor(foreign, id, 'paid#')],
    ['it is sealed with a key that is not ours', await sealFor(lost, id, 'paid#')],
    [
      'it is sealed with a key that is not ours',
      { ...sealed, data: Buffer.concat([data.subarray(0, 1), Buffer.from('a\0\xff\n'), data.subarray(5)]) },
    ],
    ['it is not bound to a run, as it should be in a run that began this late', unbound],
  ]
  for (const [, payload] of forged) await forger.signal(id, [payload])
  // One that has the seal of this run, but is no nudge; one too many, none at all, and of another name.
  await forger.signal(id, [await forger.readInput(id)])
  await forger.signal(id, [plain(1), sealed, plain(2)])
  await forger.signal(id, [])
  await forger.signal(id, [plain('x')], 'unknown')
  await until(() => new Set(refusals).size >= 4)
  expect(new Set(refusals)).toEqual(new Set(forged.map(([reason]) => reason)))
  expect((await running.read(id)).status).toBe('RUNNING')

  await pay(id)
  const run = await running.ended(id)
  expect({ status: run.status, output: run.outputData }).toEqual({
    status: 'SUCCESS',
    output: { got: { amount: 5 } },
  })
  expect(await forger.countFailures(id)).toBe(0)
  await pay(other)
  expect((await running.ended(other)).status).toBe('SUCCESS')
})

test('queries and updates that others send disturb no run, and are told nothing that is not sealed', async () => {
  const id = await startWaiting()
  const handle = forger.client.workflow.getHandle(id)
  // What a worker answers is sealed, so that who asked cannot read it.
  await expect(handle.query('__stack_trace', 'forged')).rejects.toThrow('binary/encrypted')
  await expect(handle.query('secrets', plain('forged'))).rejects.toThrow()
  await expect(handle.executeUpdate('nudge', { args: ['paid#'] })).rejects.toThrow()
  await pay(id)
  expect((await running.ended(id)).status).toBe('SUCCESS')
  expect(await forger.countFailures(id)).toBe(0)
})

describe('a run that somebody else starts', () => {
  test('ends at once, whatever its input is, and reaches nothing', async () => {
    const own = await running.run(hanging({}, 'ok'))
    const other = await startWaiting()
    const input = await readRunInput(own.id)
    const id = uuid()
    const forged = { ...input, context: { ...input.context, id } }
    const inputs = [plain(forged), await forger.readInput(own.id), await forger.readInput(other), {}]
    const before = target.calls.length
    for (const payload of inputs) {
      const one = uuid()
      await forger.start(one, running.taskQueue, 'runGraph', payload)
      expect(await endOf(one)).toBe('FAILED')
      expect(await forger.countFailures(one)).toBe(0)
    }
    // An execution that has ended is not carried out once more, though Temporal has forgotten its run.
    await forger.start(own.id, running.taskQueue, 'runGraph', await forger.readInput(own.id))
    expect(await endOf(own.id)).toBe('FAILED')
    expect(await running.read(own.id)).toEqual(own)
    await forger.start('not a UUID', running.taskQueue, 'runGraph', plain(forged))
    expect(await endOf('not a UUID')).toBe('FAILED')
    const firing = `schedule:${running.taskQueue}:${input.context.workflowId}:start-2026-01-01T00:00:00Z`
    await forger.start(firing, running.taskQueue, 'fire', plain({ workflowId: own.id, nodeId: 'start' }))
    expect(await endOf(firing)).toBe('FAILED')
    expect(target.calls.length).toBe(before)
    // Their memos do not disturb the search for runs that have closed.
    faults = []
    await running.engine.sweep()
    expect(faults).toEqual([])
    await pay(other)
    await running.ended(other)
  })

  test('in the place of an execution makes that one FAILED, which says why', async () => {
    running.use(undefined)
    const id = await running.execute(await running.create(hanging({}, 'ok')))
    await forger.start(id, running.taskQueue, 'runGraph', plain({ plan: { nodes: [] } }))
    running.use(running.engine)
    const run = await running.ended(id)
    expect(run).toMatchObject({ status: 'FAILED', errorMessage: expect.stringContaining(NOT_SEALED) })
    expect(calls(id)).toBe(0)
    const { client } = running.engine
    await expect(rebuildExecution({ store: running.store, client, sealer }, id)).rejects.toThrow(
      'not started by',
    )
  })
})

describe('an attempt that somebody else answers', () => {
  const refused = (reason: string) => ({
    status: 'FAILED',
    errorMessage: expect.stringContaining(reason),
    nodeExecutions: [{ nodeId: 'start' }, { nodeId: 'call', status: 'FAILED' }],
  })

  test('ends the run, even if its node goes on after errors', async () => {
    const output = { output: { v: { forged: true }, bytes: 15 }, handle: null }
    const id = await startHanging({ onError: 'CONTINUE' })
    await forger.complete(id, 'call', plain(output))
    expect(await running.ended(id)).toMatchObject(refused(NOT_SEALED))

    const copied = await startHanging({ onError: 'CONTINUE' })
    await forger.complete(copied, 'call', await sealFor(sealer, id, output))
    expect(await running.ended(copied)).toMatchObject(refused(OF_ANOTHER))
    release()
  })

  test('so does a failure that is not sealed', async () => {
    const id = await startHanging({ onError: 'CONTINUE' })
    const failure = ApplicationFailure.nonRetryable('all is well', 'Http404')
    await forger.client.activity.fail({ workflowId: id, activityId: 'call' }, failure)
    expect(await running.ended(id)).toMatchObject(refused('a failure that is not sealed: all is well'))
    release()
  })

  test('so does a heartbeat that is not sealed, at the next attempt', async () => {
    const id = await startHanging({ retry: { maxAttempts: 3, initialIntervalMs: 1 } })
    await forger.heartbeat(id, 'call', plain({ failures: -1_000 }))
    const failure = ApplicationFailure.retryable('once more')
    await forger.client.activity.fail({ workflowId: id, activityId: 'call' }, failure)
    expect(await running.ended(id)).toMatchObject(refused(NOT_SEALED))
    expect(calls(id)).toBe(1)
    release()
  })
})

test('a run that is not what its execution says reaches nothing, though the service sealed its input', async () => {
  const own = await running.run(hanging({}, 'ok'))
  const other = await running.run(hanging({}, 'ok'))
  const input = await readRunInput(own.id)
  const { workflowId } = (await readRunInput(other.id)).context
  const before = target.calls.length
  const attempt = async (id: string, context: object, more: Partial<RunInput> = {}) => {
    const forged = { ...input, ...more, context: { ...input.context, ...context } }
    const handle = await running.engine.client.workflow.start('runGraph', {
      workflowId: id,
      taskQueue: running.taskQueue,
      args: [forged],
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    })
    return handle.result().catch(({ cause }) => `${cause.type}: ${cause.message}`)
  }
  const nobody = uuid()
  const alias = uuid()
  expect(await attempt(nobody, { id: nobody })).toMatch(/^RunRefused: .*no execution of this run/)
  expect(await attempt(alias, {})).toMatch(/^RunRefused: .*belongs to the execution/)
  expect(await attempt(own.id, { workflowId })).toMatch(/^RunRefused: .*another workflow/)
  expect(await attempt(own.id, { version: 7 })).toMatch(/^RunRefused: .*another workflow or version/)
  // As if it had been continued as new before the call.
  const root = { ...createFrame('', '', 0), outcomes: { start: { handle: null } } }
  const carried = { startedAt: Date.now(), deadline: null, root, nudges: [] }
  expect(await attempt(own.id, {}, { carried })).toMatch(/^RunRefused: .*has ended already/)
  expect(target.calls.length).toBe(before)
})
