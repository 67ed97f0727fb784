import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'

/** `what` is a sentence's subject for the log, such as 'the notices that are due'. */
export type Repeating = {
  what: string
  everyMs: number
  log: Logger
  /** Does the work that is due. Its errors are logged, and it is called again after `everyMs`. */
  run: (signal: AbortSignal) => Promise<unknown>
}

/** Calls `run` again and again, one at a time. Returns the function that aborts its signal, and waits for its end. */
export function startRepeating({ what, everyMs, log, run }: Repeating): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  async function repeat(): Promise<void> {
    while (!signal.aborted) {
      await run(signal).catch((error) => {
        if (!signal.aborted) log.warn({ err: error }, `${what} could not be worked on; they are tried again`)
      })
      await sleep(everyMs, undefined, { signal }).catch(() => {})
    }
  }
  const running = repeat()
  return async () => {
    stopping.abort()
    await running
  }
}
