import type { Context } from 'hono'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { AppEnv } from '../../api/app.ts'
import { type Part, streamParts } from '../../api/download.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

function start(next: Part, outgoing?: { destroy: () => void }) {
  const log = pino({ level: 'silent' })
  const c = { get: () => log, req: { path: '/x' }, env: outgoing && { outgoing } }
  const close = vi.fn(async () => {})
  return { close, reader: streamParts(c as unknown as Context<AppEnv>, next, close).getReader() }
}

let made = 0
function count(to: number, text = 'x'.repeat(50_000)): Part {
  made = 0
  return async (put) => {
    made++
    put(text)
    return made < to
  }
}

test('parts are made as they are read, in chunks of 64 KB, and closed once', async () => {
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

test('who reads nothing for 30 s is cut off, before the first byte and after', async () => {
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

test('who reads drop by drop is cut off after an hour', async () => {
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

test('over HTTP the connection is broken, without an end', async () => {
  const destroy = vi.fn()
  let parts = 0
  const broken: Part = async (put) => {
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

test('who leaves ends it, and nothing is cut off later', async () => {
  const { reader, close } = start(count(100))
  await reader.read()
  await reader.cancel()
  expect(close).toHaveBeenCalledTimes(1)
  expect(vi.getTimerCount()).toBe(0)
})
