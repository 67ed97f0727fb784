import { setImmediate } from 'node:timers/promises'

/** After this many milliseconds of work at a stretch, timers and sockets get their turn. */
const SLICE_MS = 8

/**
 * For loops over many items. Await the returned function in each round: now and then it lets timers and
 * sockets have their turn, which promises alone never do.
 */
export function createPacer(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < SLICE_MS) return undefined
    return setImmediate().then(() => {
      since = performance.now()
    })
  }
}
