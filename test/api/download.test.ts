import type { Context } from 'hono'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { AppEnv } from '../../api/app.ts'
import { streamTexts } from '../../api/download.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

function start(texts: AsyncGenerator<string>, outgoing?: { destroy: () => void }) {
  const log = pino({ level: 'silent' })
  const c = { get: () => log, req: { path: '/x' }, env: outgoing && { outgoing } }
  const close = vi.fn(async () => {})
  return { close, reader: streamTexts(c as unknown as Context<AppEnv>, texts, close).getReader() }
}

let made = 0
async function* count(to: number, text = 'x'.repeat(50_000)) {
  for (made = 0; made < to; ) {
    made++
    yield text
  }
}

test('texts are made as they are read, in chunks of 64 KB, and closed once', async () => {
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
  async function* broken() {
    yield 'x'.repeat(70_000)
    throw new Error('broken')
  }
  const { reader, close } = start(broken(), { destroy })
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
