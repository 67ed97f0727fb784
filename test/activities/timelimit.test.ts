import { afterEach, expect, test, vi } from 'vitest'
import { createTimeLimit } from '../../activities/timelimit.ts'

afterEach(() => vi.useRealTimers())

test('a time limit stands still while anybody pauses it, also before it starts', () => {
  vi.useFakeTimers()
  const reached = vi.fn()
  const limit = createTimeLimit(1_000, reached)
  const early = limit.pause()
  limit.start()
  vi.advanceTimersByTime(5_000)
  early()
  vi.advanceTimersByTime(600)
  const [one, two] = [limit.pause(), limit.pause()]
  vi.advanceTimersByTime(5_000)
  one()
  one()
  vi.advanceTimersByTime(5_000)
  two()
  vi.advanceTimersByTime(399)
  expect(reached).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(reached).toHaveBeenCalledOnce()

  const stopped = createTimeLimit(1_000, reached)
  stopped.start()
  const resume = stopped.pause()
  stopped.stop()
  resume()
  vi.advanceTimersByTime(5_000)
  expect(reached).toHaveBeenCalledOnce()
})
