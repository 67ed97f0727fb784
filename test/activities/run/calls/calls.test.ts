import type { Info } from '@temporalio/activity'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { NodeFailure } from '../../../../activities/nodes/kit/failure.ts'
import type { NodeResult } from '../../../../activities/nodes/kit/node.ts'
import {
  createAnswerRoom,
  type KeptAnswer,
  openAnswer,
  readKept,
} from '../../../../activities/run/calls/answers.ts'
import { type CallControl, type Calls, createCalls } from '../../../../activities/run/calls/calls.ts'
import { writeOutput } from '../../../../db/executions/records/written.ts'
import type { AttemptResult } from '../../../../workflows/run/messages.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const info = (attempt: number, scheduledTimestampMs = 1) =>
  ({
    attempt,
    activityId: 'call',
    scheduledTimestampMs,
    workflowExecution: { workflowId: 'execution', runId: 'run' },
  }) as unknown as Info

const result: AttemptResult = { output: { v: 1, bytes: 1 }, handle: null }

/** A call that ends when the test says so. */
function createWork() {
  let end = (_result: AttemptResult) => {}
  const made: CallControl[] = []
  const make = (control: CallControl) => {
    made.push(control)
    return new Promise<AttemptResult>((resolve, reject) => {
      end = resolve
      control.signal.addEventListener('abort', () => reject(control.signal.reason))
    })
  }
  return { make, made, end: () => end(result), isAborted: () => made.at(-1)!.signal.aborted }
}

async function leaveCall(isWanted: () => Promise<boolean>) {
  const calls = createCalls({ isWanted })
  const work = createWork()
  const call = calls.take(info(1), 0, work.make)
  call.done.catch(() => {})
  await vi.advanceTimersByTimeAsync(1)
  call.leave()
  return { calls, work }
}

test('a call that its attempt has left ends within 3 s if its run does not want it', async () => {
  const { work } = await leaveCall(async () => false)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(work.isAborted()).toBe(true)
})

test('if the run is open, it waits a minute for a new attempt', async () => {
  const { work, calls } = await leaveCall(async () => true)
  await vi.advanceTimersByTimeAsync(59_000)
  expect([work.isAborted(), calls.has(info(2), 0)]).toEqual([false, true])
  await vi.advanceTimersByTimeAsync(4_000)
  expect([work.isAborted(), calls.has(info(2), 0)]).toEqual([true, false])
})

test('it waits for as long as Temporal says nothing, and then the minute', async () => {
  let away = true
  const { work } = await leaveCall(async () => {
    if (away) throw new Error('Temporal is away')
    return true
  })
  await vi.advanceTimersByTimeAsync(600_000)
  away = false
  await vi.advanceTimersByTimeAsync(59_000)
  expect(work.isAborted()).toBe(false)
  await vi.advanceTimersByTimeAsync(4_000)
  expect(work.isAborted()).toBe(true)
})

test('a new attempt takes it over, and nobody else', async () => {
  const { work, calls } = await leaveCall(async () => true)
  const second = calls.take(info(2), 0, work.make)
  const other = createWork()
  calls.take(info(1, 2), 0, other.make)
  await vi.advanceTimersByTimeAsync(120_000)
  expect([work.made.length, work.isAborted(), other.made.length]).toEqual([1, false, 1])
  work.end()
  expect(await second.done).toBe(result)
  // Its report may be lost too.
  expect(await calls.take(info(3), 0, work.make).done).toBe(result)
  expect(work.made).toHaveLength(1)
})

test('a failure is told again to an attempt that does not know it, and to no other', async () => {
  const calls = createCalls({ isWanted: async () => true })
  const failure = new NodeFailure('no', { type: 'Http500', retryable: true })
  const fail = async () => {
    throw failure
  }
  await expect(calls.take(info(1), 0, fail).done).rejects.toBe(failure)
  expect(calls.has(info(2), 0)).toBe(true)
  await expect(calls.take(info(2), 0, createWork().make).done).rejects.toBe(failure)
  expect(calls.has(info(2), 1)).toBe(false)
  const again = createWork()
  calls.take(info(2), 1, again.make).done.catch(() => {})
  await vi.advanceTimersByTimeAsync(1)
  expect(again.made).toHaveLength(1)
})

test('an attempt that was taken over neither ends the call nor leaves it', async () => {
  const calls = createCalls({ isWanted: async () => false })
  const work = createWork()
  const first = calls.take(info(1), 0, work.make)
  const second = calls.take(info(2), 0, work.make)
  await vi.advanceTimersByTimeAsync(1)
  first.leave()
  first.abort()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(work.isAborted()).toBe(false)
  second.done.catch(() => {})
  second.abort()
  expect(work.isAborted()).toBe(true)
})

test('a process that stops ends the calls that nobody waits for, and leaves those of attempts', async () => {
  const { work, calls } = await leaveCall(async () => true)
  const held = createWork()
  calls.take(info(1, 2), 0, held.make)
  await vi.advanceTimersByTimeAsync(1)
  calls.stop()
  expect([work.isAborted(), held.isAborted()]).toEqual([true, false])
})

const keepAnswer = (answer: NodeResult) => createAnswerRoom().keep('run', 'call', answer)

test('an answer of up to 256 KB travels, whether it is a value or written already', () => {
  const zipped = writeOutput(JSON.stringify({ text: 'x'.repeat(1_000_000) }))
  for (const answer of [
    { output: { text: 'a\u0000\ud800' } },
    { output: 1, handle: 'main' },
    { written: zipped },
  ]) {
    const kept = readKept(JSON.parse(JSON.stringify(keepAnswer(answer))))
    expect(openAnswer(kept!)).toEqual(answer)
  }
  expect(keepAnswer({ output: 'x'.repeat(256 * 1024) })).toBeUndefined()
  // What else has been sealed for the run is no answer.
  for (const other of [null, 'text', {}, { handle: 1, output: 1 }, { handle: null, written: { bytes: 1 } }])
    expect(readKept(other)).toBeUndefined()
})

/** A call of a run that has got its answer, and cannot store it. */
async function answerCall(calls: Calls, activityId: string, runId: string, kept?: KeptAnswer) {
  const place = { ...info(1), activityId, workflowExecution: { workflowId: 'execution', runId } }
  const work = createWork()
  const call = calls.take(place as Info, 0, work.make)
  call.done.catch(() => {})
  await vi.advanceTimersByTimeAsync(1)
  expect(call.keep()).toBeUndefined()
  work.made[0]!.answered({ output: 'x'.repeat(200_000) }, kept)
  return { ...call, end: work.end }
}

test('the answers of a run that travel have 2 MB together, with those that came with an attempt', async () => {
  const calls = createCalls({ isWanted: async () => true })
  const kept = keepAnswer({ output: 'x'.repeat(200_000) })
  const answer = (runId: string, from: number, count: number, came?: KeptAnswer) =>
    Promise.all(Array.from({ length: count }, (_, n) => answerCall(calls, `call-${from + n}`, runId, came)))
  const stop = (held: { keep(): unknown; abort(): void }[]) =>
    held.filter((call) => {
      const travels = call.keep() !== undefined
      call.abort()
      return travels
    }).length
  const carried = await answer('run', 0, 6, kept)
  // What is over here leaves its room to others.
  carried[0]!.end()
  carried[1]!.abort()
  await vi.advanceTimersByTimeAsync(1)
  const own = await answer('run', 6, 20)
  expect([stop(own), stop(carried.slice(2)), stop(await answer('run', 26, 1))]).toEqual([6, 4, 0])
  expect(stop(await answer('other', 27, 20))).toBe(10)
})
