import { takeTurn } from '../../workflows/turns.ts'

/** After this many milliseconds of work at a stretch, timers and sockets get their turn. */
const SLICE_MS = 8

/**
 * For loops over many items. Await the returned function in each round: now and then it lets timers and
 * sockets have their turn, which promises alone never do. However many loops there are, only one goes on until
 * timers and sockets have their turn again.
 */
export function createPacer(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < SLICE_MS) return undefined
    return takeTurn().then(() => {
      since = performance.now()
    })
  }
}
