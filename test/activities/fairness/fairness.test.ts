import { asyncLocalStorage, type Context } from '@temporalio/activity'
import { expect, test } from 'vitest'
import { createBudget } from '../../../activities/budget.ts'
import type { ActivityDeps } from '../../../activities/deps.ts'
import { createPlaces } from '../../../activities/fairness/places.ts'
import { createReturns } from '../../../activities/fairness/returns.ts'
import { createTeamQueue } from '../../../activities/fairness/teamqueue.ts'
import { HELD_FOR_MODEL } from '../../../activities/models/answer.ts'
import { runNode } from '../../../activities/run/attempt.ts'
import { createCalls } from '../../../activities/run/calls/calls.ts'
import { createShares, type NoRoom } from '../../../activities/run/share.ts'
import { Fault } from '../../../db/fault.ts'
import type { Store } from '../../../db/scope.ts'
import type { GraphNode } from '../../../workflows/graph/graph.ts'
import { NODES } from '../../../workflows/nodes/nodes.ts'
import type { AttemptInput } from '../../../workflows/run/messages.ts'

/** A clock that a test sets. */
function createClock() {
  const clock = { ms: 1_000_000, now: () => clock.ms }
  return clock
}

test('a team never has more than half of the places, whether others wait or not', () => {
  const places = createPlaces(8, createReturns(10))
  const taken = Array.from({ length: 20 }, () => places.take('many'))
  expect(taken.filter((place) => 'leave' in place)).toHaveLength(4)
  expect(places.read()).toEqual(new Map([['many', 4]]))
  expect(places.take('one')).toHaveProperty('leave')
  const [first] = taken
  if (first && 'leave' in first) first.leave()
  expect(places.take('many')).toHaveProperty('leave')
  expect(places.take('many')).toHaveProperty('comeAgainMs')
  expect(places.read()).toEqual(
    new Map([
      ['many', 4],
      ['one', 1],
    ]),
  )
  for (const all of [1, 2, 3])
    expect(createPlaces(all, createReturns(10)).take('only')).toHaveProperty('leave')
})

test('10,000 who are turned away and find no place come again less than 20 times a second, for ever', () => {
  const clock = createClock()
  const returns = createReturns(10, clock.now)
  const due: number[] = []
  const away = () => due.push(clock.ms + returns.turnAway('many'))
  for (let n = 0; n < 10_000; n++) away()
  expect(due[0]! - clock.ms).toBe(100)
  expect(due[9_999]! - clock.ms).toBe(1_000_000)
  // An hour in which all of them come again whenever they may, and are turned away each time.
  const perSecond = new Map<number, number>()
  const end = clock.ms + 3_600_000
  due.sort((a, b) => a - b)
  for (let next = due.shift()!; next < end; next = due.shift()!) {
    clock.ms = next
    const second = Math.floor(next / 1_000)
    perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
    away()
  }
  expect(Math.max(...perSecond.values())).toBeLessThan(20)
  // Others do not wait for them.
  expect(returns.turnAway('one')).toBe(100)
})

test('who is turned away comes again the sooner the more of the team were served lately', () => {
  const clock = createClock()
  const returns = createReturns(10, clock.now)
  for (let n = 0; n < 1_000; n++) {
    clock.ms += 20
    returns.served('busy')
  }
  // 50 were served a second, so that they and the ten that may come in vain are 60.
  expect(returns.turnAway('busy')).toBeLessThan(20)
  for (let n = 0; n < 59; n++) returns.turnAway('busy')
  expect(returns.turnAway('busy')).toBeLessThan(1_100)
  clock.ms += 60_000
  returns.turnAway('busy')
  expect(returns.turnAway('busy')).toBeGreaterThan(150)
})

test('nobody waits behind those who were turned away and never came again', () => {
  const clock = createClock()
  const returns = createReturns(10, clock.now)
  for (let n = 0; n < 10_000; n++) returns.turnAway('many')
  clock.ms += 4_000
  expect(returns.turnAway('many')).toBeGreaterThan(900_000)
  clock.ms += 6_000
  expect(returns.turnAway('many')).toBe(100)
  for (let n = 0; n < 100_000; n++) returns.turnAway('many')
  expect(returns.turnAway('many')).toBeLessThanOrEqual(30 * 60_000)
})

test('who leaves a place without having been served does not bring the others back any sooner', () => {
  const clock = createClock()
  const places = createPlaces(8, createReturns(10, clock.now))
  const leave = (served: boolean) => {
    const place = places.take('many')
    if ('leave' in place) place.leave(served)
  }
  for (let n = 0; n < 1_000; n++) leave(false)
  const comeAgain = () => {
    for (let n = 0; n < 4; n++) places.take('many')
    return places.take('many')
  }
  expect(comeAgain()).toEqual({ comeAgainMs: 100 })
})

/** Shares of a budget of which a team may have one share at a time. */
function createFewShares() {
  const shares = createShares({} as Store, createBudget(200), createReturns(8, createClock().now))
  const config = { url: 'http://a.test', maxBytes: 100 }
  const node = { id: 'call', name: 'call', type: 'HTTP_REQUEST', config, onError: 'FAIL' } as GraphNode
  const input = { outputs: {}, context: { workflowId: 'w' }, node: { timeoutMs: 1_000 } } as AttemptInput
  const stop = new AbortController()
  const info = { startToCloseTimeoutMs: 61_000 }
  const activity = { info, cancellationSignal: stop.signal } as Context
  return { take: () => shares.take(node, input, activity), stop: () => stop.abort() }
}

test('attempts without room for their values come again by the same calendar, the sooner the more were served', {
  tags: 'long',
}, async () => {
  const { take, stop } = createFewShares()
  const first = await take()
  const waiting = Array.from({ length: 32 }, take)
  const away = () => take().catch((error: NoRoom) => error.afterMs)
  expect(await away()).toBe(125)
  for (let n = 0; n < 400; n++) await away()
  // Eight a second, as none was served.
  expect(await away()).toBeGreaterThan(45_000)
  await (async () => first?.release())()
  for (const next of waiting.slice(0, 31)) (await next)?.release()
  const refill = Array.from({ length: 40 }, () => take().catch(() => undefined))
  const [before, after] = [await away(), await away()]
  // 32 were served lately, so that more may come each second.
  expect(Number(after) - Number(before)).toBeLessThan(100)
  stop()
  await Promise.allSettled([...waiting, ...refill])
})

test('a message with files takes its share for their bytes; one without takes none', async () => {
  const budget = createBudget(1_000_000_000)
  const shares = createShares({} as Store, budget)
  const input = { outputs: {}, context: { workflowId: 'w' }, node: { timeoutMs: 1_000 } } as AttemptInput
  const activity = {
    info: { startToCloseTimeoutMs: 61_000 },
    cancellationSignal: new AbortController().signal,
  } as Context
  const take = (config: Record<string, unknown>) => {
    const node = { id: 'chat', name: 'chat', type: 'CHAT_MESSAGE', config, onError: 'FAIL' } as GraphNode
    return shares.take(node, input, activity)
  }
  expect(await take({ to: 'C1', text: 'Hi' })).toBe(undefined)
  const share = await take({ to: 'C1', files: '{{ $input.files }}' })
  expect(budget.read().held).toBe(75 * 1024 * 1024)
  share!.shrink(3_000)
  expect(budget.read().held).toBe(3_000)
  share!.release()
})

test('a call to a model takes its share, which grows with an answer longer than any model gives', async () => {
  const budget = createBudget(16 * 1024 * 1024)
  const shares = createShares({} as Store, budget)
  const input = { outputs: {}, context: { workflowId: 'w' }, node: { timeoutMs: 1_000 } } as AttemptInput
  const activity = {
    info: { startToCloseTimeoutMs: 61_000 },
    cancellationSignal: new AbortController().signal,
  } as Context
  const types = Object.entries(NODES).flatMap(([type, row]) => ('queue' in row ? [type] : []))
  expect(types.toSorted()).toEqual(['AI_AGENT', 'AI_MEDIA', 'CLASSIFY', 'EXTRACT', 'LLM', 'SUMMARIZE'])
  for (const type of types) {
    const node = { id: 'node', name: 'node', type, config: {}, onError: 'FAIL' } as GraphNode
    const share = await shares.take(node, input, activity)
    if (type === 'AI_MEDIA') {
      // Sounds and images are larger than any text, and its share does not grow.
      expect(budget.read().held).toBeGreaterThan(HELD_FOR_MODEL)
    } else {
      expect(budget.read().held).toBe(HELD_FOR_MODEL)
      expect(share!.grow(HELD_FOR_MODEL)).toBe(true)
      expect(share!.grow(8 * HELD_FOR_MODEL)).toBe(false)
    }
    share!.release()
    expect(budget.read().held).toBe(0)
  }
})

test('an attempt that ends because its execution was deleted tells how many only returned their slot', async () => {
  const gone = () => {
    throw new Fault('NOT_FOUND', 'the execution is gone')
  }
  const deps = {
    attempts: { begin: () => ({ fail: async () => {}, end: () => {} }) },
    calls: createCalls({ isWanted: async () => true }),
    store: {
      get db() {
        return gone()
      },
    },
    touch: () => {},
  } as unknown as ActivityDeps
  const node = { id: 'call', timeoutMs: 1_000, retry: { maxAttempts: 1 }, needs: [] }
  const input = { node, context: { id: 'e' }, outputs: {}, iteration: '' } as unknown as AttemptInput
  const workflowExecution = { workflowId: 'e', runId: 'r' }
  const info = { attempt: 42, heartbeatDetails: { returned: 40 }, scheduledTimestampMs: 0, workflowExecution }
  const cancellationSignal = new AbortController().signal
  const activity = { info, cancellationSignal, heartbeat: () => {} } as unknown as Context
  const failure = await asyncLocalStorage.run(activity, () => runNode(deps, input)).catch((error) => error)
  expect(failure).toMatchObject({ type: 'ExecutionDeleted', nonRetryable: true, details: [{ returned: 40 }] })
})

test('a queue serves teams in turn and a team its workflows, and gives no team more than half', () => {
  const queue = createTeamQueue<string>(4)
  const asker = (team: string, workflow: string) => ({ team, workflow })
  const names = ['a1', 'a2', 'a3', 'a4']
  for (const name of names) queue.add(asker('a', 'flood'), name)
  queue.add(asker('a', 'other'), 'a5')
  queue.add(asker('b', 'one'), 'b1')
  queue.add(asker('b', 'one'), 'b2')
  queue.add(asker('c', 'one'), 'c1')
  expect(queue.wanted()).toBe(5)
  const taken = Array.from({ length: 6 }, () => queue.take())
  expect(taken).toEqual(['a1', 'b1', 'c1', 'a5', 'b2', undefined])
  expect(queue.wanted()).toBe(0)
  queue.done(asker('b', 'one'))
  expect(queue.take()).toBeUndefined()
  queue.done(asker('a', 'flood'))
  queue.remove(asker('a', 'flood'), 'a2')
  expect(queue.take()).toBe('a3')
  expect(queue.clear()).toEqual(['a4'])
  queue.done(asker('a', 'other'))
  expect(queue.take()).toBeUndefined()
})
