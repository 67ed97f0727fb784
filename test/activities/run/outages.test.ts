import { ApplicationFailure } from '@temporalio/common'
import { pino } from 'pino'
import { afterEach, expect, test } from 'vitest'
import { createMetrics } from '../../../activities/metrics.ts'
import { NodeFailure } from '../../../activities/nodes/kit/failure.ts'
import { retryOutages } from '../../../activities/run/outages.ts'
import { Fault } from '../../../db/fault.ts'
import { notBuilt } from '../../../db/operation/outage.ts'
import { type ExecutionBody, nodeOf } from '../../support/client.ts'
import { onServer } from '../../support/database.ts'
import { listEvaluators } from '../../support/engine/evaluators.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startTarget } from '../../support/servers/target.ts'

const metrics = createMetrics()
const lines: { level: number; msg: string; err?: { message: string }; nodeId?: string }[] = []
const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
const target = await keep(startTarget())
const host = await keep(startRunning({ metrics, log, patienceMs: 500, expressions: { processes: 1 } }))

const SAID = 'cannot execute INSERT INTO blobs (sealed) VALUES'

/** Makes PostgreSQL refuse each output that is stored, with this SQLSTATE. */
async function refuse(state: string): Promise<void> {
  await onServer(
    host.database.url,
    `create or replace function refuse() returns trigger language plpgsql as $$
       begin raise exception '${SAID}' using errcode = '${state}'; end $$;
     create or replace trigger refuse before insert on blobs for each row execute function refuse()`,
  )
}

const allow = () => onServer(host.database.url, 'drop trigger if exists refuse on blobs')
afterEach(allow)

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const post = (key: string, ms = 0, more: object = {}) => ({
  nodes: [
    start,
    {
      id: 'node',
      type: 'HTTP_REQUEST',
      ...more,
      config: { method: 'POST', url: `${target.url}/slow?key=${key}&bytes=100000&ms=${ms}` },
    },
  ],
  edges: edges('start -> node'),
})
const compute = (more: object = {}) => ({
  nodes: [
    start,
    { id: 'node', type: 'SET', ...more, config: { values: { text: "{{ $pad('x', 100000) }}" } } },
  ],
  edges: edges('start -> node'),
})
const callsOf = (id: string) => target.calls.filter((call) => call.key === `${id}:node`)
const countInternal = async () => (await metrics.internalErrors.get()).values[0]!.value

/** Expects that the node failed, that its record says nothing of SQL, and that the log has it. */
async function expectInternal(run: ExecutionBody, work: { counted: number; logged: number }) {
  expect([run.status, nodeOf(run, 'node').status]).toEqual(['FAILED', 'FAILED'])
  const message = 'The service failed while it carried out this node; its log has the cause'
  expect(nodeOf(run, 'node').errorMessage).toBe(message)
  const { rows } = await host.store.db
    .selectFrom('nodeExecutions')
    .selectAll()
    .where('executionId', '=', run.id)
    .execute()
    .then((found) => ({ rows: JSON.stringify([run, found]) }))
  expect(rows).not.toContain('INSERT')
  expect(await countInternal()).toBe(work.counted + 1)
  const told = lines.slice(work.logged).filter(({ level }) => level === 50)
  expect(told).toMatchObject([{ nodeId: 'node', err: { message: SAID } }])
}

const look = async () => ({ counted: await countInternal(), logged: lines.length })

test('a refusal by PostgreSQL that cannot pass fails the node at once, without another call', async () => {
  const before = await look()
  await refuse('22P05')
  const more = { retry: { maxAttempts: 3, initialIntervalMs: 1 } }
  const run = await host.run(post('final', 0, more))
  await expectInternal(run, before)
  expect(callsOf(run.id)).toHaveLength(1)
})

test('a refusal by PostgreSQL that cannot pass fails a computing node at once, and its onError is done', async () => {
  const before = await look()
  await refuse('42P01')
  await expectInternal(await host.run(compute()), before)
  const handled = await host.run(compute({ onError: 'CONTINUE' }))
  expect(handled).toMatchObject({
    status: 'SUCCESS',
    outputData: { error: { type: 'InternalError', nodeId: 'node' } },
  })
})

test('an error that nobody knows fails a computing node once patience is over', async () => {
  const before = await look()
  await refuse('XX000')
  await expectInternal(await host.run(compute()), before)
})

test.each(['25006', '40001', '53100', '55006', '57014', '58030'])(
  'what PostgreSQL says of itself (%s) is waited for, and counts nowhere',
  async (state) => {
    const before = await look()
    await refuse(state)
    const once = { retry: { maxAttempts: 1 } }
    const ids = [await host.execute(await host.create(post(state, 0, once)))]
    ids.push(await host.execute(await host.create(compute())))
    await target.until(() => callsOf(ids[0]!).some(({ answered }) => answered))
    await expect
      .poll(() => lines.slice(before.logged).filter(({ msg }) => msg.includes('segment failed')).length)
      .toBeGreaterThan(2)
    await allow()
    for (const id of ids) {
      const run = await host.ended(id)
      expect([run.status, nodeOf(run, 'node').retryCount]).toEqual(['SUCCESS', 0])
    }
    expect(callsOf(ids[0]!)).toHaveLength(1)
    expect(await countInternal()).toBe(before.counted)
  },
)

test('PostgreSQL that takes no changes while a call is answered costs no second call', {
  tags: 'long',
}, async () => {
  const name = new URL(host.database.url).pathname.slice(1)
  const kick = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`
  const id = await host.execute(await host.create(post('readonly', 1_500, { retry: { maxAttempts: 3 } })))
  await target.until(() => callsOf(id).length === 1)
  await onServer(host.database.url, `alter database ${name} set default_transaction_read_only = on; ${kick}`)
  try {
    await target.until(() => callsOf(id)[0]!.answered)
    // Longer than three attempts would last.
    await new Promise((resolve) => setTimeout(resolve, 4_000))
  } finally {
    await onServer(
      `${host.database.url}?options=-c%20default_transaction_read_only%3Doff`,
      `alter database ${name} reset default_transaction_read_only; ${kick}`,
    )
  }
  const run = await host.ended(id)
  expect([run.status, nodeOf(run, 'node').retryCount]).toEqual(['SUCCESS', 0])
  expect(callsOf(id)).toHaveLength(1)
})

test.runIf(process.platform === 'linux')(
  'evaluators that get no processor time fail no node but by its own limit',
  { tags: 'long' },
  async () => {
    const heavy = (more: object) => ({
      nodes: [start, { id: 'node', type: 'SET', ...more, config: { values: { n: '{{ $sum([1..9]) }}' } } }],
      edges: edges('start -> node'),
    })
    expect((await host.run(heavy({}))).status).toBe('SUCCESS')
    const send = (signal: 'SIGSTOP' | 'SIGCONT') => {
      for (const pid of listEvaluators()) process.kill(pid, signal)
    }
    try {
      send('SIGSTOP')
      const limited = await host.run(heavy({ timeoutMs: 1_500, retry: { maxAttempts: 1 } }))
      expect([limited.status, nodeOf(limited, 'node').errorMessage]).toEqual([
        'FAILED',
        'The node took longer than its limit of 1500 ms',
      ])
      for (const more of [{}, { timeoutMs: 60_000, retry: { maxAttempts: 1 } }]) {
        send('SIGCONT')
        expect((await host.run(heavy({}))).status).toBe('SUCCESS')
        send('SIGSTOP')
        const patient = await host.execute(await host.create(heavy(more)))
        // Three times the limit of an expression.
        await new Promise((resolve) => setTimeout(resolve, 3_000))
        expect((await host.read(patient)).status).toBe('RUNNING')
        send('SIGCONT')
        expect(nodeOf(await host.ended(patient), 'node')).toMatchObject({
          outputData: { n: 45 },
          retryCount: 0,
        })
      }
    } finally {
      send('SIGCONT')
    }
  },
)

const refusal = (code: string) => Object.assign(new Error('INSERT'), { code, severity: 'ERROR' })

/** What retryOutages makes of these errors in turn, and how often it tries. */
async function retry(errors: unknown[], patienceMs: number) {
  let tries = 0
  const signal = AbortSignal.timeout(20_000)
  const work = async () => {
    const error = errors[tries++]
    if (error) throw error
    return 'done'
  }
  const outcome = await retryOutages(signal, work, { patienceMs }).catch((error) => error)
  return { outcome, tries }
}

test('the same goes for work beside a node: outages pass, unknown errors for a while, final ones never', async () => {
  const internal = { type: 'InternalError', retryable: false, message: expect.not.stringContaining('INSERT') }
  const away = [refusal('25006'), refusal('57P01')]
  expect(await retry(away, 0)).toEqual({ outcome: 'done', tries: 3 })
  const unknown = [refusal('XX000'), refusal('28P01')]
  expect(await retry(unknown, 60_000)).toEqual({ outcome: 'done', tries: 3 })
  expect(await retry([...unknown, ...unknown, ...unknown], 100)).toMatchObject({
    outcome: internal,
    tries: 2,
  })
  // An outage in between begins the patience anew.
  expect(await retry([refusal('XX000'), refusal('08006'), refusal('XX000')], 100)).toMatchObject({ tries: 4 })
  for (const final of [
    refusal('42601'),
    refusal('22001'),
    notBuilt(new RangeError('Invalid string length')),
    new TypeError('x is not a function'),
  ])
    expect(await retry([final], 60_000)).toMatchObject({ outcome: { ...internal, cause: final }, tries: 1 })
  for (const own of [
    new NodeFailure('too large', { type: 'OutputTooLarge' }),
    new Fault('NOT_FOUND', 'deleted'),
    ApplicationFailure.create({ message: 'ended' }),
    refusal('23503'),
  ])
    expect(await retry([own], 60_000)).toEqual({ outcome: own, tries: 1 })
})
