import type { Logger } from 'pino'
import { type StartedAttempt, saveAttempts } from '../db/attempts.ts'
import type { Store } from '../db/scope.ts'

const FLUSH_MS = 100

/** Notes attempts as they start, so that whoever polls a long run sees where it is. */
export type AttemptLog = {
  begin(attempt: StartedAttempt): { end(): void }
  flush(): Promise<void>
}

/**
 * Attempts are written in batches, ten times a second. A first attempt that ends before its batch is never
 * written: the history tells of it soon. Losing a batch loses only liveness, so errors are logged and let go.
 */
export function createAttemptLog(store: Store, log: Logger): AttemptLog {
  let waiting = new Set<StartedAttempt>()
  let timer: NodeJS.Timeout | undefined

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const batch = [...waiting]
    waiting = new Set()
    if (batch.length === 0) return
    try {
      await saveAttempts(store, batch)
    } catch (error) {
      log.warn({ error, attempts: batch.length }, 'live attempts were not written')
    }
  }

  return {
    flush,
    begin(attempt) {
      waiting.add(attempt)
      timer ??= setTimeout(flush, FLUSH_MS)
      return {
        end() {
          if (attempt.attempt === 1) waiting.delete(attempt)
        },
      }
    },
  }
}
