import type { Logger } from 'pino'
import { type AttemptNote, saveAttemptNotes } from '../../db/executions/attempts/notes.ts'
import { type StartedAttempt, saveAttempts } from '../../db/executions/records/attempts.ts'
import { nodeExecutionId } from '../../db/executions/records/projection.ts'
import { type Exchange, type RequestRow, sealExchange } from '../../db/executions/requests/exchange.ts'
import { judgeError } from '../../db/operation/outage.ts'
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

/** The notes that wait to be written, and those that are being written. */
type State = {
  store: Store
  log: Logger
  /** What the next batch writes. */
  attempts: Set<StartedAttempt>
  notes: AttemptNote[]
  /** By execution, place and number, so that the end of a request replaces its beginning. */
  exchanges: Map<string, Exchange>
  /** How many characters the requests have that wait. */
  chars: number
  /** Whether the batch that an attempt was last in was written. */
  batches: WeakMap<StartedAttempt, Promise<boolean>>
  timer: NodeJS.Timeout | undefined
  /** When the next batch is written, by performance.now(). */
  dueAt: number
  /** The latest batch. */
  writing: Promise<unknown>
}

/**
 * Writes attempts and their requests in batches, up to ten times a second, or sooner when a request has ended. A first
 * attempt that ends before its batch is not written, because the projection of the history will show it soon. A lost
 * batch only delays what users see, or loses what was sent, so errors are logged and otherwise ignored.
 */
export function createAttemptLog(store: Store, log: Logger): AttemptLog {
  const state: State = {
    store,
    log,
    attempts: new Set(),
    notes: [],
    exchanges: new Map(),
    chars: 0,
    batches: new WeakMap(),
    timer: undefined,
    dueAt: Number.POSITIVE_INFINITY,
    writing: Promise.resolve(),
  }
  return {
    flush: () => flush(state),
    begin: (attempt) => beginAttempt(state, attempt),
    noteRequest(attempt) {
      addAttempt(state, attempt)
      return {
        async withdraw() {
          if (state.attempts.delete(attempt)) return 'never'
          return (await state.batches.get(attempt)) ? 'written' : 'unknown'
        },
      }
    },
    saveRequest: (attempt) => saveAttempts(store, [attempt]),
    noteExchange: (exchange) => addExchange(state, exchange),
  }
}

function beginAttempt(state: State, attempt: StartedAttempt): ReturnType<AttemptLog['begin']> {
  const begun = { ...placeOf(attempt), startedAt: new Date() }
  if (attempt.attempt > 1) state.notes.push(...listBefore(begun), begun)
  addAttempt(state, attempt)
  return {
    async fail({ nextAt, ...failure }) {
      state.notes.push({ ...begun, failure: { at: new Date(), ...failure } })
      if (!nextAt) return flushWithin(state, ENDED_MS)
      state.attempts.delete(attempt)
      state.attempts.add({ ...attempt, failure: { message: failure.message, nextAt } })
      const late = new Promise((resolve) => setTimeout(resolve, FAILURE_MS).unref())
      await Promise.race([flush(state), late])
    },
    end() {
      if (attempt.attempt === 1) state.attempts.delete(attempt)
    },
  }
}

function addAttempt(state: State, attempt: StartedAttempt): void {
  state.attempts.add(attempt)
  flushWithin(state, FLUSH_MS)
}

function addExchange(state: State, exchange: Exchange): void {
  const { executionId, nodeId, iteration, attempt, number, endedAt } = exchange
  const key = `${executionId} ${nodeId}#${iteration} ${attempt}.${number}`
  const known = state.exchanges.get(key)
  const more = weigh(exchange) - (known ? weigh(known) : 0)
  if (state.chars + more > MAX_WAITING) return
  state.chars += more
  state.exchanges.set(key, exchange)
  flushWithin(state, endedAt === null ? FLUSH_MS : ENDED_MS)
}

function flushWithin(state: State, ms: number): void {
  const at = performance.now() + ms
  if (at >= state.dueAt) return
  clearTimeout(state.timer)
  state.dueAt = at
  state.timer = setTimeout(() => flush(state), ms).unref()
}

async function flush(state: State): Promise<void> {
  clearTimeout(state.timer)
  state.dueAt = Number.POSITIVE_INFINITY
  const { notes } = state
  const attempts = [...state.attempts]
  const exchanges = [...state.exchanges.values()]
  state.attempts = new Set()
  state.exchanges = new Map()
  state.notes = []
  state.chars = 0
  // One after the other: the beginning of a request must not be written after its end. An attempt whose failure a
  // record shows must be in the list.
  const saved = state.writing
    .then(() => saveNotes(state, notes))
    .then(() => saveBatch(state, attempts, exchanges))
  for (const attempt of attempts) state.batches.set(attempt, saved)
  state.writing = saved
  await saved
}

/** Whether the attempts were written. If their requests are what hinders that, they are left out. */
async function saveBatch(state: State, attempts: StartedAttempt[], exchanges: Exchange[]): Promise<boolean> {
  if (attempts.length === 0 && exchanges.length === 0) return true
  const { store, log } = state
  try {
    await saveAttempts(store, attempts, await sealAll(store, exchanges))
    return true
  } catch (error) {
    const about = { err: error, attempts: attempts.length, requests: exchanges.length }
    log.warn(about, 'attempts in progress could not be written')
  }
  return exchanges.length > 0 && attempts.length > 0 ? saveBatch(state, attempts, []) : false
}

async function saveNotes(state: State, noted: AttemptNote[]): Promise<void> {
  try {
    await saveAttemptNotes(state.store, noted)
  } catch (error) {
    const keeps = judgeError(error) === 'away' && state.notes.length + noted.length <= MAX_OWED
    if (keeps) {
      state.notes = [...noted, ...state.notes]
      flushWithin(state, FAILURE_MS)
    }
    state.log.warn({ err: error, attempts: noted.length, keeps }, 'attempts could not be noted')
  }
}

async function sealAll({ keys }: Store, exchanges: Exchange[]): Promise<RequestRow[]> {
  const rows: RequestRow[] = []
  let began = performance.now()
  for (const exchange of exchanges) {
    rows.push(sealExchange(keys, exchange))
    if (performance.now() - began < TURN_MS) continue
    await takeTurn()
    began = performance.now()
  }
  return rows
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
