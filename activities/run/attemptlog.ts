import type { Logger } from 'pino'
import { type StartedAttempt, saveAttempts } from '../../db/records/attempts.ts'
import type { Store } from '../../db/scope.ts'

const FLUSH_MS = 100

/** Notes attempts as they start, so that clients that poll a long execution see how far it is. */
export type AttemptLog = {
  begin(attempt: StartedAttempt): { end(): void }
  /** Notes what an attempt sends. `withdraw` says whether that was written; if it is still to come, it is not. */
  noteRequest(attempt: StartedAttempt): { withdraw(): Promise<'never' | 'written' | 'unknown'> }
  /** Writes at once what is known of a request, and throws if it cannot. */
  saveRequest(attempt: StartedAttempt): Promise<void>
  flush(): Promise<void>
}

/**
 * Writes attempts in batches, ten times a second. A first attempt that ends before its batch is not written,
 * because the projection of the history will show it soon. A lost batch only delays what users see, so errors
 * are logged and otherwise ignored.
 */
export function createAttemptLog(store: Store, log: Logger): AttemptLog {
  let waiting = new Set<StartedAttempt>()
  const batches = new WeakMap<StartedAttempt, Promise<boolean>>()
  let timer: NodeJS.Timeout | undefined

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const batch = [...waiting]
    waiting = new Set()
    if (batch.length === 0) return
    const saved = saveAttempts(store, batch).then(
      () => true,
      (error) => {
        log.warn({ error, attempts: batch.length }, 'attempts in progress could not be written')
        return false
      },
    )
    for (const attempt of batch) batches.set(attempt, saved)
    await saved
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
    noteRequest(attempt) {
      waiting.add(attempt)
      timer ??= setTimeout(flush, FLUSH_MS)
      return {
        async withdraw() {
          if (waiting.delete(attempt)) return 'never'
          return (await batches.get(attempt)) ? 'written' : 'unknown'
        },
      }
    },
    saveRequest: (attempt) => saveAttempts(store, [attempt]),
  }
}
