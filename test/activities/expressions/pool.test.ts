import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createEvaluator } from '../../../activities/expressions/evaluator.ts'
import type { EvaluatorJob, EvaluatorReply, ExpressionJob } from '../../../activities/expressions/job.ts'
import { createEvaluatorPool, type PoolAsker } from '../../../activities/expressions/pool.ts'
import { type ProcessEnd, startEvaluatorProcess } from '../../../activities/expressions/process.ts'
import { listEvaluators } from '../../support/engine/evaluators.ts'

const LOOP = '($f := function() { $f() }; $f())'

const job = (text: string): ExpressionJob => ({ roots: '{}', sources: [{ text, context: false, rules: 1 }] })

/** Starts one process, and lists what it tells. */
async function startProcess(timeoutMs: number, farMs?: number) {
  const replies: EvaluatorReply[] = []
  let wake = () => {}
  const ended = Promise.withResolvers<ProcessEnd>()
  const started = startEvaluatorProcess(
    { timeoutMs, heapMb: 128, maxChars: 1_000, farMs },
    {
      reply(reply) {
        replies.push(reply)
        wake()
      },
      end: ended.resolve,
    },
  )
  const replied = async (count: number) => {
    while (replies.length < count) await new Promise<void>((resolve) => (wake = resolve))
    return replies[count - 1]!
  }
  await replied(1)
  return { ...started, pid: started.pid!, replied, ended: ended.promise }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test.runIf(process.platform === 'linux')(
  'evaluator processes work behind the service, at nice 10',
  async () => {
    const started = await startProcess(1_000)
    const nices = readdirSync(`/proc/${started.pid}/task`).map((task) => {
      const text = readFileSync(`/proc/${started.pid}/task/${task}/stat`, 'utf8')
      return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[16])
    })
    await started.end()
    expect(nices.length).toBeGreaterThan(1)
    expect(new Set(nices)).toEqual(new Set([10]))
  },
)

test.runIf(process.platform === 'linux')(
  'only the processor time of a process counts, not what others on the machine do meanwhile',
  async () => {
    const started = await startProcess(300)
    // As good as a machine on which others take all processors for three times the limit.
    process.kill(started.pid, 'SIGSTOP')
    started.send(job('$sum([1..1000])'))
    await sleep(1_000)
    process.kill(started.pid, 'SIGCONT')
    expect(await started.replied(2)).toEqual({ kind: 'values', values: ['500500'] })
    started.send(job(LOOP))
    await sleep(50)
    process.kill(started.pid, 'SIGSTOP')
    await sleep(1_000)
    process.kill(started.pid, 'SIGCONT')
    expect(await started.replied(3)).toMatchObject({ kind: 'error', cause: 'TIMEOUT' })
    await started.end()
  },
)

test.runIf(process.platform === 'linux')(
  'a process that gets no processor time at all is ended, and that is no fault of the expression',
  async () => {
    const started = await startProcess(50, 1)
    process.kill(started.pid, 'SIGSTOP')
    started.send(job('1'))
    expect(await started.ended).toMatchObject({ late: false, starved: true, signal: 'SIGKILL' })
  },
)

test.runIf(process.platform === 'linux')(
  'where processor time cannot be read, a conversion and an answer end at their own limits, not by the clock',
  { tags: 'long' },
  async () => {
    const platform = Object.getOwnPropertyDescriptor(process, 'platform')!
    const answer = { status: 200, headers: {}, body: Buffer.from('{}'), responseType: 'json' }
    const jobs: EvaluatorJob[] = [{ conversion: { kind: 'xml', parse: '<a/>' } }, { answer }]
    // What they may take is far longer than the clock gives to an expression.
    const started = await Promise.all(jobs.map(() => startProcess(1)))
    Object.defineProperty(process, 'platform', { ...platform, value: 'darwin' })
    try {
      for (const [at, one] of started.entries()) {
        process.kill(one.pid, 'SIGSTOP')
        one.send(jobs[at]!)
      }
      for (const { ended } of started)
        expect(await ended).toMatchObject({ late: true, starved: false, signal: 'SIGKILL' })
    } finally {
      Object.defineProperty(process, 'platform', platform)
    }
  },
)

test.runIf(process.platform === 'linux')(
  'a job that its process gets no time for is done again by a fresh one, and is given up after two',
  { tags: 'long' },
  async () => {
    const limits = { processes: 1, timeoutMs: 50, heapMb: 128, maxChars: 1_000, farMs: 1 }
    const pool = createEvaluatorPool(limits)
    const asker = { team: 't', workflow: 'w' }
    const stopped = new Set<number>()
    const stop = () => {
      for (const pid of listEvaluators().filter((pid) => !stopped.has(pid))) {
        stopped.add(pid)
        process.kill(pid, 'SIGSTOP')
      }
    }
    try {
      expect(await pool.run(asker, () => job('1 + 1'))).toMatchObject({ values: ['2'] })
      stop()
      expect(await pool.run(asker, () => job('$sum([1, 2])'))).toEqual({ kind: 'values', values: ['3'] })
      expect(stopped.size).toBe(1)
      // From now on each is stopped as soon as it has the job.
      const given: number[] = []
      const late = pool.run(asker, () => {
        given.push(performance.now())
        stop()
        return job('$sum([1, 2])')
      })
      expect(await late).toMatchObject({ kind: 'error', cause: 'DOWN' })
      expect([given.length, stopped.size]).toEqual([2, 3])
      expect(await pool.run(asker, () => job('$sum([1, 2])'))).toEqual({ kind: 'values', values: ['3'] })
    } finally {
      await pool.close()
    }
  },
)

test.runIf(process.platform === 'linux')(
  'an evaluation that stands still for three times its limit goes on; an endless one ends at its limit',
  { tags: 'long' },
  async () => {
    const evaluator = createEvaluator({ processes: 1 })
    const scope = { input: 1, nodes: {}, trigger: null, vars: {}, execution: { workflowId: 'w' } }
    try {
      expect(await evaluator.render('{{ $sum([1]) }}', scope)).toBe(1)
      const [pid] = listEvaluators() as [number]
      // Takes a tenth of the limit on a machine of 2026, so that one that is five times as slow is in time too.
      const value = evaluator.render('{{ $count([1..30000].($ * 2)) }}', scope)
      await sleep(15)
      process.kill(pid, 'SIGSTOP')
      await sleep(3_000)
      process.kill(pid, 'SIGCONT')
      expect(await value).toBe(30_000)
      const endless = evaluator.render(`{{ ${LOOP} }}`, scope).catch((error) => error)
      expect(await endless).toMatchObject({ type: 'ExpressionLimit', retryable: false })
      expect(listEvaluators()).toEqual([pid])
    } finally {
      await evaluator.close()
    }
  },
)

test('a team never has more than half of the processes, and who has no patience is told that they are busy', async () => {
  const pool = createEvaluatorPool({ processes: 4, timeoutMs: 60_000, heapMb: 128, maxChars: 1_000 })
  const begun: string[] = []
  const run = (asker: PoolAsker, text: string) =>
    pool.run(asker, () => {
      begun.push(asker.team)
      return job(text)
    })
  try {
    const many = Array.from({ length: 6 }, (_, n) => run({ team: 'many', workflow: `w${n}` }, LOOP))
    const one = { kind: 'values', values: ['3'] }
    expect(await run({ team: 'one', workflow: 'w' }, '$sum([1, 2])')).toEqual(one)
    expect(await run({ team: 'two', workflow: 'w' }, '$sum([1, 2])')).toEqual(one)
    const states: string[] = []
    const waits = () => {
      states.push('waits')
      return () => states.push('ended')
    }
    const impatient = { team: 'many', workflow: 'w7', patienceMs: 20, waits }
    expect(await run(impatient, '1')).toMatchObject({ kind: 'error', cause: 'BUSY' })
    expect(states).toEqual(['waits', 'ended'])
    expect(await run({ ...impatient, team: 'three' }, '$sum([1, 2])')).toEqual(one)
    expect(states).toEqual(['waits', 'ended', 'waits', 'ended'])
    expect(begun.filter((team) => team === 'many')).toHaveLength(2)
    expect(begun.filter((team) => team !== 'many')).toEqual(['one', 'two', 'three'])
    await pool.close()
    for (const reply of await Promise.all(many)) expect(reply).toMatchObject({ cause: 'DOWN' })
  } finally {
    await pool.close()
  }
})

test('a job whose signal is aborted while it waits is not done, and does not hold up those behind it', async () => {
  const pool = createEvaluatorPool({ processes: 2, timeoutMs: 60_000, heapMb: 128, maxChars: 1_000 })
  const begun: string[] = []
  const gone = new AbortController()
  const run = (name: string, text: string, signal?: AbortSignal) =>
    pool.run({ team: 'team', workflow: 'w', signal }, () => {
      begun.push(name)
      return job(text)
    })
  try {
    // The process that the team may have answers only after a while.
    const first = run('first', '$count([1..300000].($ * 2))')
    const dead = Promise.allSettled(Array.from({ length: 20 }, () => run('dead', LOOP, gone.signal)))
    const living = run('living', '$sum([1, 2])')
    const reason = new Error('cut off')
    gone.abort(reason)
    for (const outcome of await dead) expect(outcome).toEqual({ status: 'rejected', reason })
    expect(await first).toMatchObject({ kind: 'values' })
    expect(await living).toEqual({ kind: 'values', values: ['3'] })
    await expect(run('dead', '1', gone.signal)).rejects.toBe(reason)
    expect(begun).toEqual(['first', 'living'])
    // What has a process is finished, and its signal is let go.
    const late = new AbortController()
    expect(await run('late', '$sum([1, 2])', late.signal)).toMatchObject({ kind: 'values' })
    late.abort()
    expect(begun).toEqual(['first', 'living', 'late'])
  } finally {
    await pool.close()
  }
})

test('an evaluator for somebody without patience fails with ExpressionsBusy, which may be tried again', async () => {
  const evaluator = createEvaluator({ processes: 2, timeoutMs: 60_000 })
  const scope = { input: 1, nodes: {}, trigger: null, vars: {}, execution: { workflowId: 'w' } }
  try {
    const busy = evaluator.for({ team: 'many' }).render(`{{ ${LOOP} }}`, scope)
    const settled = busy.catch((error) => error)
    const failure = await evaluator
      .for({ team: 'many', patienceMs: 20 })
      .render('{{ $sum([1]) }}', scope)
      .catch((error) => error)
    expect(failure).toMatchObject({ type: 'ExpressionsBusy', retryable: true })
    expect(await evaluator.for({ team: 'one' }).render('{{ $sum([1]) }}', scope)).toBe(1)
    // The answer to a call that has been made is waited for, however little patience there is.
    const body = Buffer.from('{"n":1}')
    const answer = { status: 200, headers: {}, body, responseType: 'json' }
    const left: string[] = []
    const read = evaluator
      .for({ team: 'many', patienceMs: 20, waits: () => () => left.push('waited') })
      .readAnswer(answer, 'GET a.test responded with 200', scope)
      .catch((error) => error)
    await sleep(200)
    expect(left).toEqual([])
    await evaluator.close()
    expect(await read).toMatchObject({ type: 'ExpressionsUnavailable' })
    expect(await settled).toMatchObject({ type: 'ExpressionsUnavailable' })
  } finally {
    await evaluator.close()
  }
})
