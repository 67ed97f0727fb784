import { setTimeout as sleep } from 'node:timers/promises'

type Waiting<T> = {
  /** The condition to wait for; by default, that the value is truthy. */
  holds?: (found: T) => boolean
  withinMs?: number
  /** Returns what the error shows besides the last value. */
  explain?: () => unknown
  /** Waits between two looks, by default for `ms`. */
  pause?: (ms: number) => Promise<unknown>
}

const PAUSE_MS = 25
const LONGEST_PAUSE_MS = 250
/** The part of the time waited so far that a pause takes. */
const PAUSE_SHARE = 0.05

/**
 * Calls `look` until its value fulfils the condition, and returns it. The error shows the last value. The pauses grow
 * from 25 to 250 ms with the time it takes, so that many that wait on a busy machine leave it, and the requests
 * that a team has in a minute, to what they wait for.
 */
export async function until<T>(
  look: () => T | Promise<T>,
  { holds = Boolean, withinMs = 80_000, explain, pause = sleep }: Waiting<T> = {},
): Promise<T> {
  const began = Date.now()
  const deadline = began + withinMs
  for (;;) {
    const found = await look()
    if (holds(found)) return found
    if (Date.now() > deadline) {
      const seen = JSON.stringify([found, await explain?.()], null, 1)
      throw new Error(`It still does not hold after ${withinMs} ms: ${seen}`)
    }
    await pause(Math.min(LONGEST_PAUSE_MS, Math.max(PAUSE_MS, (Date.now() - began) * PAUSE_SHARE)))
  }
}
