import { setImmediate } from 'node:timers/promises'

/** After so many milliseconds of work in one go, others get their turn. */
const SLICE_MS = 8

/** For loops over many items: awaited in each round, lets timers and sockets in now and then (microtasks starve them). */
export function createPause(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < SLICE_MS) return undefined
    return setImmediate().then(() => {
      since = performance.now()
    })
  }
}
