type Waiting<T> = {
  /** The condition to wait for; by default, that the value is truthy. */
  holds?: (found: T) => boolean
  withinMs?: number
  /** Returns what the error shows besides the last value. */
  explain?: () => unknown
}

/**
 * Calls `look` every 25 ms until its value fulfils the
 * condition, and returns it. The error shows the last value.
 */
export async function until<T>(
  look: () => T | Promise<T>,
  { holds = Boolean, withinMs = 80_000, explain }: Waiting<T> = {},
): Promise<T> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const found = await look()
    if (holds(found)) return found
    if (Date.now() > deadline) {
      const seen = JSON.stringify([found, await explain?.()], null, 1)
      throw new Error(`It still does not hold after ${withinMs} ms: ${seen}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
