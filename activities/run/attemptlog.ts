import type { Logger } from 'pino'
import { type AttemptNote, saveAttemptNotes } from '../../db/attempts/notes.ts'
import { judgeError } from '../../db/operation/outage.ts'
import { type StartedAttempt, saveAttempts } from '../../db/records/attempts.ts'
import { nodeExecutionId } from '../../db/records/projection.ts'
import { type Exchange, type RequestRow, sealExchange } from '../../db/requests/exchange.ts'
import type { Store } from '../../db/scope.ts'
import { takeTurn } from '../../workflows/turns.ts'

const FLUSH_MS = 100

/** The end of a request is written soon, since its execution may end too; with those that end at the same time. */
const ENDED_MS = 10

/** How long a failed attempt waits until its failure is written, before it is told to Temporal. */
const FAILURE_MS = 1_000

/** The most characters of requests that wait to be written: beyond that, others are not kept. */
const MAX_WAITING = 16_000_000

/** How many notes of attempts wait for a database that is away; others are lost. */
const MAX_OWED = 1_000

/** How many attempts before a new one are noted as over: those of workers that were lost at once. */
const NOTED_BEFORE = 5

/** How long requests are sealed before others get their turn. */
const TURN_MS = 10

/** How an attempt failed. `nextAt`: another one comes because the node itself has failed, and when that does. */
export type AttemptFailure = { type: string; message: string; counted: boolean; nextAt?: Date }

/** Notes attempts as they start, so that clients that poll a long execution see how far it is. */
export type AttemptLog = {
  begin(attempt: StartedAttempt): {
    /** Notes that it has failed. If another one comes, resolves when that is written, or cannot be soon. */
    fail(failure: AttemptFailure): Promise<void>
    end(): void
  }
  /** Notes what an attempt sends. `withdraw` says whether that was written; if it is still to come, it is not. */
  noteRequest(attempt: StartedAttempt): { withdraw(): Promise<'never' | 'written' | 'unknown'> }
  /** Writes at once what is known of a request, and throws if it cannot. */
  saveRequest(attempt: StartedAttempt): Promise<void>
  /** Notes a request for people, as it is now: again when it has ended. */
  noteExchange(exchange: Exchange): void
  flush(): Promise<void>
}

/**
 * Writes attempts and their requests in batches, up to ten times a second, or sooner when a request has ended. A first
 * attempt that ends before its batch is not written, because the projection of the history will show it soon. A lost
 * batch only delays what users see, or loses what was sent, so errors are logged and otherwise ignored.
 */
export function createAttemptLog(store: Store, log: Logger): AttemptLog {
  let waiting = new Set<StartedAttempt>()
  let notes: AttemptNote[] = []
  let exchanges = new Map<string, Exchange>()
  let chars = 0
  const batches = new WeakMap<StartedAttempt, Promise<boolean>>()
  let timer: NodeJS.Timeout | undefined
  let dueAt = Number.POSITIVE_INFINITY
  let writing: Promise<unknown> = Promise.resolve()

  function flushWithin(ms: number): void {
    const at = performance.now() + ms
    if (at >= dueAt) return
    clearTimeout(timer)
    dueAt = at
    timer = setTimeout(flush, ms).unref()
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    dueAt = Number.POSITIVE_INFINITY
    const batch = [...waiting]
    const made = [...exchanges.values()]
    const noted = notes
    waiting = new Set()
    exchanges = new Map()
    notes = []
    chars = 0
    // One after the other: the beginning of a request must not be written after its end. An attempt whose failure a
    // record shows must be in the list.
    const saved = writing.then(() => saveNotes(noted)).then(() => save(batch, made))
    for (const attempt of batch) batches.set(attempt, saved)
    writing = saved
    await saved
  }

  /** Whether the attempts were written. If their requests are what hinders that, they are left out. */
  async function save(batch: StartedAttempt[], made: Exchange[]): Promise<boolean> {
    if (batch.length === 0 && made.length === 0) return true
    try {
      await saveAttempts(store, batch, await sealAll(made))
      return true
    } catch (error) {
      const about = { err: error, attempts: batch.length, requests: made.length }
      log.warn(about, 'attempts in progress could not be written')
    }
    return made.length > 0 && batch.length > 0 ? save(batch, []) : false
  }

  async function saveNotes(noted: AttemptNote[]): Promise<void> {
    try {
      await saveAttemptNotes(store, noted)
    } catch (error) {
      const keeps = judgeError(error) === 'away' && notes.length + noted.length <= MAX_OWED
      if (keeps) {
        notes = [...noted, ...notes]
        flushWithin(FAILURE_MS)
      }
      log.warn({ err: error, attempts: noted.length, keeps }, 'attempts could not be noted')
    }
  }

  async function sealAll(made: Exchange[]): Promise<RequestRow[]> {
    const rows: RequestRow[] = []
    let began = performance.now()
    for (const exchange of made) {
      rows.push(sealExchange(store.keys, exchange))
      if (performance.now() - began < TURN_MS) continue
      await takeTurn()
      began = performance.now()
    }
    return rows
  }

  function add(attempt: StartedAttempt): void {
    waiting.add(attempt)
    flushWithin(FLUSH_MS)
  }

  return {
    flush,
    begin(attempt) {
      const startedAt = new Date()
      const begun = { ...placeOf(attempt), startedAt }
      if (attempt.attempt > 1) notes.push(...listBefore(begun), begun)
      add(attempt)
      return {
        async fail({ nextAt, ...failure }) {
          notes.push({ ...begun, failure: { at: new Date(), ...failure } })
          if (!nextAt) return flushWithin(ENDED_MS)
          waiting.delete(attempt)
          waiting.add({ ...attempt, failure: { message: failure.message, nextAt } })
          await Promise.race([flush(), new Promise((resolve) => setTimeout(resolve, FAILURE_MS).unref())])
        },
        end() {
          if (attempt.attempt === 1) waiting.delete(attempt)
        },
      }
    },
    noteRequest(attempt) {
      add(attempt)
      return {
        async withdraw() {
          if (waiting.delete(attempt)) return 'never'
          return (await batches.get(attempt)) ? 'written' : 'unknown'
        },
      }
    },
    saveRequest: (attempt) => saveAttempts(store, [attempt]),
    noteExchange(exchange) {
      const { executionId, nodeId, iteration, attempt, number, endedAt } = exchange
      const key = `${executionId} ${nodeId}#${iteration} ${attempt}.${number}`
      const known = exchanges.get(key)
      const more = weigh(exchange) - (known ? weigh(known) : 0)
      if (chars + more > MAX_WAITING) return
      chars += more
      exchanges.set(key, exchange)
      flushWithin(endedAt === null ? FLUSH_MS : ENDED_MS)
    },
  }
}

function placeOf({ executionId, nodeId, iteration, attempt }: StartedAttempt): AttemptNote {
  return { executionId, recordId: nodeExecutionId(executionId, nodeId, iteration), attempt }
}

/** The attempts right before one that begins: whatever is not known of them, they are over. */
function listBefore({ executionId, recordId, attempt }: AttemptNote): AttemptNote[] {
  const count = Math.min(NOTED_BEFORE, attempt - 1)
  return Array.from({ length: count }, (_, at) => ({ executionId, recordId, attempt: attempt - count + at }))
}

function weigh({ url, body, response }: Exchange): number {
  return 1_000 + url.length + (body.text?.length ?? 0) + (response?.body.text?.length ?? 0)
}
