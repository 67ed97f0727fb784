/** A limit on time that pauses: it goes on only when all pauses have ended. */
export type TimeLimit = {
  start(): void
  /** Returns a function that ends this pause. */
  pause(): () => void
  stop(): void
}

/** Calls `reached` once the limit has run for `ms` milliseconds. */
export function createTimeLimit(ms: number, reached: () => void): TimeLimit {
  let left = ms
  let pauses = 0
  let started = false
  let since = 0
  let timer: NodeJS.Timeout | undefined

  function run(): void {
    if (!started || pauses > 0) return
    since = performance.now()
    timer = setTimeout(reached, left)
  }

  function halt(): void {
    if (timer === undefined) return
    clearTimeout(timer)
    timer = undefined
    left = Math.max(0, left - (performance.now() - since))
  }

  return {
    start() {
      started = true
      run()
    },
    pause() {
      if (pauses++ === 0) halt()
      let ended = false
      return () => {
        if (ended) return
        ended = true
        if (--pauses === 0) run()
      }
    },
    stop() {
      started = false
      halt()
    },
  }
}
