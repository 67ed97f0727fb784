import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { type Part, startParts } from '../../../worker/service/parts.ts'

const log = pino({ level: 'silent' })
const never = new AbortController().signal

/** A part that notes when it starts and stops. */
function note(order: string[], name: string, more: Partial<Part> = {}): Part {
  return {
    name,
    start() {
      order.push(`+${name}`)
      return () => order.push(`-${name}`)
    },
    ...more,
  }
}

test('parts start in order and stop in reverse, each after the one before it', async () => {
  const order: string[] = []
  const slow = {
    async start() {
      await new Promise(setImmediate)
      order.push('+slow')
      return async (hurry: AbortSignal) => {
        await new Promise(setImmediate)
        order.push(hurry === never ? '-slow' : 'other')
      }
    },
  }
  const stop = await startParts([note(order, 'a'), note(order, 'slow', slow), note(order, 'b')], log)
  await stop(never)
  expect(order).toEqual(['+a', '+slow', '+b', '-b', '-slow', '-a'])
})

test('a part with little patience is told to stop first, and not waited for longer than that', async () => {
  const order: string[] = []
  let end = () => {}
  const hanging = {
    patienceMs: 1,
    start: () => () => {
      order.push('told')
      return new Promise<void>((resolve) => {
        end = resolve
      })
    },
  }
  const stop = await startParts([note(order, 'a'), note(order, 'jobs', hanging), note(order, 'b')], log)
  await stop(never)
  expect(order).toEqual(['+a', '+b', 'told', '-b', '-a'])
  end()
})

test('a part that fails to stop keeps no other from it, and is logged', async () => {
  const order: string[] = []
  const messages: string[] = []
  const heard = pino({}, { write: (line) => void messages.push(JSON.parse(line).msg) })
  const failing = {
    start: () => () => {
      throw new Error('no')
    },
  }
  const stop = await startParts([note(order, 'a'), note(order, 'the engine', failing)], heard)
  await stop(never)
  expect(order).toEqual(['+a', '-a'])
  expect(messages).toEqual(['the engine could not be stopped in order'])
})

test('what a stop waits for is logged if it takes long', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const messages: string[] = []
  const heard = pino({}, { write: (line) => void messages.push(JSON.parse(line).msg) })
  const slow = { start: () => () => new Promise((resolve) => setTimeout(resolve, 3_000)) }
  const stop = await startParts([note([], 'a'), note([], 'the engine', slow)], heard)
  const stopped = stop(never)
  await vi.advanceTimersByTimeAsync(3_000)
  await stopped
  vi.useRealTimers()
  expect(messages).toEqual(['the stop waits for the engine'])
})
