/**
 * Work that is done in pieces, so that the thread that serves all requests can do other work in between. Each `yield`
 * names the units of work of the piece that follows it. A unit is what parsing one character of an expression takes: up
 * to 2 us.
 */
export type Work<T> = Generator<number, T, void>

/** The units of work in one turn, which so takes at most 40 ms. No single piece may have more. */
export const TURN_UNITS = 20_000

/** Those who wait for a turn, by key. */
const waiting = new Map<string, (() => void)[]>()

/**
 * Waits for a turn. In each round of the event loop one waiter gets its turn, whatever their number: timers and
 * sockets come in between. The keys take turns, so that many waiters of one key do not hold up the others.
 */
export function takeTurn(key = ''): Promise<void> {
  return new Promise((resolve) => {
    const queue = waiting.get(key)
    if (queue) queue.push(resolve)
    else waiting.set(key, [resolve])
    if (!queue && waiting.size === 1) setImmediate(giveTurn)
  })
}

function giveTurn(): void {
  const [first] = waiting
  if (!first) return
  const [key, queue] = first
  waiting.delete(key)
  queue.shift()!()
  if (queue.length > 0) waiting.set(key, queue)
  if (waiting.size > 0) setImmediate(giveTurn)
}

/** Does work in turns with that of other keys, such as teams. `take` waits for the next turn. */
export async function workInTurns<T>(work: Work<T>, key: string, take = takeTurn): Promise<T> {
  let left = 0
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
    if (value > left) {
      await take(key)
      left = TURN_UNITS
    }
    left -= value
  }
}
