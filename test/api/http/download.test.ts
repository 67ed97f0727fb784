import type { Context } from 'hono'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { AppEnv } from '../../../api/env.ts'
import { countAnswering, streamParts, type WriteNext } from '../../../api/http/download.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Ends the caller's rights, as long as they are watched. */
let loseRights: (() => void) | undefined
function watch(lost: () => void) {
  loseRights = lost
  return () => {
    loseRights = undefined
  }
}

function start(next: WriteNext, outgoing?: { destroy: () => void }) {
  const log = pino({ level: 'silent' })
  const get = (key: string) => (key === 'log' ? log : (lost: () => void) => watch(lost))
  const c = { get, set: () => {}, req: { path: '/x' }, env: outgoing && { outgoing } }
  const close = vi.fn(async () => {})
  return { close, reader: streamParts(c as unknown as Context<AppEnv>, next, close).getReader() }
}

let made = 0
function count(to: number, text = 'x'.repeat(50_000)): WriteNext {
  made = 0
  return async (put) => {
    made++
    put(text)
    return made < to
  }
}

test('parts are produced as the client reads, sent in chunks of 64 KB, and closed once', async () => {
  const { reader, close } = start(count(4))
  expect(made).toBe(0)
  const sizes: number[] = []
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    sizes.push(next.value.length)
    expect(made).toBeLessThanOrEqual(Math.ceil((sizes.length * 65_536) / 50_000))
  }
  expect(sizes).toEqual([65_536, 65_536, 65_536, 3_392])
  expect(close).toHaveBeenCalledTimes(1)
  expect(vi.getTimerCount()).toBe(0)
})

test('a client that reads nothing for 30 s is disconnected, before the first byte and later', async () => {
  for (const reads of [0, 2]) {
    const { reader, close } = start(count(100))
    for (let i = 0; i < reads; i++) await reader.read()
    await vi.advanceTimersByTimeAsync(29_000)
    expect(close).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(close).toHaveBeenCalledTimes(1)
    await expect(reader.read()).rejects.toThrow('not read in time')
  }
})

test('a client that reads very slowly is disconnected after an hour', async () => {
  const { reader, close } = start(count(1_000_000))
  const drip = async () => {
    for (;;) {
      await reader.read()
      await vi.advanceTimersByTimeAsync(25_000)
    }
  }
  await expect(drip()).rejects.toThrow('too long')
  expect(close).toHaveBeenCalledTimes(1)
})

test('over HTTP a failed part destroys the connection, so that the response does not look complete', async () => {
  const destroy = vi.fn()
  let parts = 0
  const broken: WriteNext = async (put) => {
    if (parts++ > 0) throw new Error('broken')
    put('x'.repeat(70_000))
    return true
  }
  const { reader, close } = start(broken, { destroy })
  await reader.read()
  void reader.read()
  await vi.waitFor(() => expect(destroy).toHaveBeenCalledTimes(1))
  expect(close).toHaveBeenCalledTimes(1)
  await reader.cancel()
})

test('a client that disconnects ends the body, and leaves no timer behind', async () => {
  const { reader, close } = start(count(100))
  await reader.read()
  await reader.cancel()
  expect(close).toHaveBeenCalledTimes(1)
  expect(vi.getTimerCount()).toBe(0)
})

test('while a request is being answered, a download leaves at least as much time to others as it takes', async () => {
  const work: WriteNext = async (put) => {
    const until = performance.now() + 5
    while (performance.now() < until);
    put('x'.repeat(65_536))
    return true
  }
  let answered = () => {}
  const request = countAnswering(
    {} as Context,
    () =>
      new Promise<void>((resolve) => {
        answered = resolve
      }),
  )
  const { reader } = start(work)
  const [began, before] = [performance.now(), process.threadCpuUsage()]
  for (let i = 0; i < 20; i++) await reader.read()
  const { user, system } = process.threadCpuUsage(before)
  const worked = (user + system) / 1_000
  expect(worked).toBeGreaterThan(20)
  expect(performance.now() - began).toBeGreaterThan(1.7 * worked)
  answered()
  await request
  await reader.cancel()
})

test('a download is cut off as soon as its caller may not read it, and nothing is watched once it is over', async () => {
  const outgoing = { destroy: vi.fn() }
  const cut = start(count(100), outgoing)
  await cut.reader.read()
  loseRights!()
  expect(outgoing.destroy).toHaveBeenCalledTimes(1)
  expect(cut.close).toHaveBeenCalledTimes(1)
  expect(loseRights).toBeUndefined()
  const whole = start(count(1))
  expect(loseRights).toBeDefined()
  while (!(await whole.reader.read()).done);
  expect(loseRights).toBeUndefined()
  const left = start(count(100))
  await left.reader.cancel()
  expect(loseRights).toBeUndefined()
  expect(vi.getTimerCount()).toBe(0)
})
