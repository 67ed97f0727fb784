import { setTimeout as sleep } from 'node:timers/promises'
import { v7 as uuid } from 'uuid'
import { type Connection, type Hearing, openListening } from './operation/listening.ts'

/** PostgreSQL's notifications to this process, over a connection of its own. */
export type Bus = {
  /** The id of this process in the table `watches`. */
  id: string
  /**
   * Calls `wake` after every change of the execution, and whenever a change may have been missed. A change that is
   * committed before this resolves may not wake the watcher: read the execution afterwards. Never rejects: while
   * PostgreSQL is away no watcher is woken, and once it is back all are. Resolves to the function that ends the watch.
   */
  watch(executionId: string, wake: Wake): Promise<() => void>
  /**
   * Does the same for a caller that waits for the end of the execution, and returns at once. In a process that ends
   * executions itself, PostgreSQL learns of the watch only after a while: most have ended by then. `wake` is called too
   * once PostgreSQL knows. It is called with `true` if this process has just stored the end.
   */
  watchEnd(executionId: string, wake: Wake): () => void
  /** Wakes those in this process who watch the execution, without PostgreSQL: this process has read its end, and stored it. */
  tellEnd(executionId: string, hasStored: boolean): void
  /** Calls `wake` when errands are due at once. Returns the function that ends this. */
  onErrands(wake: () => void): () => void
  /** Tells a short text to the buses of all processes, its own included. Lost while PostgreSQL is away. */
  tell(text: string): void
  /** Calls `hear` with each text, and with null whenever some may have been missed. */
  onTold(hear: (text: string | null) => void): void
  /**
   * Until when all that was told has been heard, in performance.now(): -Infinity while there is no connection. If that is
   * a while ago, PostgreSQL is asked in the background whether the connection still hears.
   */
  heardUntil(): number
  /** Aborted when the process begins to stop, so that no caller goes on waiting for the bus. */
  stopping: AbortSignal
  stop(): Promise<void>
}

/** `hasEnded`: the end is known to be stored. Otherwise there may be anything new. */
type Wake = (hasEnded?: boolean) => void

type Options = { name: string; onLost?: (error: unknown) => void; refreshMs?: number }

const REFRESH_MS = 30_000
/** The watches of a process that has not refreshed them for this long are removed. */
const EXPIRY = '5 minutes'
const FIRST_STEP_MS = 20
/** How long a process that ends executions itself waits for an end before it tells PostgreSQL that it waits. */
const PATIENCE_MS = 500
const MAX_STEP_MS = 2_000

/** What the functions below share: one for each open bus. */
type State = {
  listening: Hearing
  /** The id of this process in the table `watches`. */
  watcher: string
  /** The watchers, by execution. */
  watched: Map<string, Set<Wake>>
  /** The executions of which PostgreSQL knows, or is being told, that this process watches them. */
  registered: Set<string>
  /** Whether executions end in this process. */
  endsHere: boolean
  /** The functions that are called for errands. */
  errands: Set<() => void>
  /** Who hears what processes tell each other. */
  hearers: Set<(text: string | null) => void>
  /** Executions whose watch the next registration adds. */
  joining: Set<string>
  /** Executions whose watch the next such statement removes. */
  leaving: Set<string>
  /** The registration that has not begun yet. */
  next: Promise<void> | undefined
  /** The latest registration, whether it has begun or not. */
  latest: Promise<void>
}

/** Opens the bus. It connects in the background, as openListening does, and needs the migrated database. */
export function openBus(url: string, { name, onLost, refreshMs = REFRESH_MS }: Options): Bus {
  const listening = openListening(url, {
    name,
    channels: ['run', 'outbox', 'processes'],
    hear(channel, payload) {
      if (channel === 'outbox') wakeForErrands(state)
      else if (channel === 'processes') tellHearers(state, payload ?? '')
      else if (payload) wakeWatchers(state, payload)
    },
    begin: (connection) => beginAnew(state, connection),
    refresh: (connection) => refreshWatches(state, connection),
    refreshMs,
    onLost,
  })
  const state: State = {
    listening,
    watcher: uuid(),
    watched: new Map(),
    registered: new Set(),
    endsHere: false,
    errands: new Set(),
    hearers: new Set(),
    joining: new Set(),
    leaving: new Set(),
    next: undefined,
    latest: Promise.resolve(),
  }
  return {
    id: state.watcher,
    stopping: listening.stopping,
    watch: (executionId, wake) => watchExecution(state, executionId, wake),
    watchEnd: (executionId, wake) => watchEnd(state, executionId, wake),
    tellEnd(executionId, hasStored) {
      state.endsHere = true
      wakeWatchers(state, executionId, hasStored)
    },
    onErrands(wake) {
      state.errands.add(wake)
      return () => void state.errands.delete(wake)
    },
    tell(text) {
      void listening
        .current()
        ?.ask("select pg_notify('processes', $1)", [text])
        .catch(() => {})
    },
    onTold(hear) {
      state.hearers.add(hear)
      if (listening.current()) hear(null)
    },
    heardUntil: listening.heardUntil,
    stop: () => listening.stop(({ ask }) => ask('delete from watches where watcher = $1', [state.watcher])),
  }
}

/** Says, on a new connection, that anything may have been missed. */
async function beginAnew(state: State, connection: Connection): Promise<void> {
  // Before any response proves that the connection hears.
  tellHearers(state, null)
  state.leaving = new Set()
  await register(state, connection, [...state.watched.keys()])
  for (const id of [...state.watched.keys()]) wakeWatchers(state, id)
  wakeForErrands(state)
}

async function refreshWatches(state: State, connection: Connection): Promise<void> {
  await connection.ask(`delete from watches where seen_at < now() - interval '${EXPIRY}'`)
  // If the machine slept, this process's own watches may have expired, and changes were missed.
  for (const id of await saveWatches(state, connection, [...state.watched.keys()])) wakeWatchers(state, id)
}

function wakeWatchers({ watched }: State, executionId: string, hasEnded = false): void {
  for (const wake of [...(watched.get(executionId) ?? [])]) wake(hasEnded)
}

function wakeForErrands({ errands }: State): void {
  for (const wake of [...errands]) wake()
}

function tellHearers({ hearers }: State, text: string | null): void {
  for (const hear of [...hearers]) hear(text)
}

async function watchExecution(state: State, executionId: string, wake: Wake): Promise<() => void> {
  const leave = addWatch(state, executionId, wake)
  await joinRegistration(state, executionId)
  return leave
}

function watchEnd(state: State, executionId: string, wake: Wake): () => void {
  let left = false
  const leave = addWatch(state, executionId, wake)
  const register = () =>
    joinRegistration(state, executionId).then(() => {
      if (!left) wake()
    })
  const timer = state.endsHere ? setTimeout(register, PATIENCE_MS) : void register()
  return () => {
    left = true
    clearTimeout(timer)
    leave()
  }
}

function addWatch(state: State, executionId: string, wake: Wake): () => void {
  const { watched } = state
  // A new function for each watch: two watches with the same `wake` stay apart.
  const own: Wake = (hasEnded) => wake(hasEnded)
  const known = watched.get(executionId)
  if (known) known.add(own)
  else watched.set(executionId, new Set([own]))
  return () => {
    const wakes = watched.get(executionId)
    if (wakes?.delete(own) && wakes.size === 0) unregister(state, executionId)
  }
}

/** Adds the watch with the next registration: all that come while one is under way share the one after it. */
function joinRegistration(state: State, executionId: string): Promise<void> {
  state.joining.add(executionId)
  if (!state.next) {
    state.next = state.latest.then(() => registerJoining(state))
    state.latest = state.next
  }
  return state.next
}

async function registerJoining(state: State): Promise<void> {
  state.next = undefined
  const ids = [...state.joining].filter((id) => state.watched.has(id))
  state.joining.clear()
  const connection = state.listening.current()
  if (!connection) return
  // If it fails, the connection is given up: the next one registers every watch again and wakes it.
  await register(state, connection, ids).catch((error) => state.listening.giveUp(connection, error))
}

async function register(state: State, connection: Connection, ids: string[]): Promise<void> {
  if (ids.length === 0) return
  await saveWatches(state, connection, ids)
  const { rows } = await connection.ask<{ bound: string; settled: boolean }>(
    `select pg_snapshot_xmax(now)::text as bound, pg_snapshot_xmin(now) = pg_snapshot_xmax(now) as settled
     from pg_current_snapshot() as now`,
  )
  if (!rows[0]!.settled) void wakeUntilSettled(state, connection, rows[0]!.bound, ids)
}

function unregister(state: State, executionId: string): void {
  const { listening, watched, watcher, registered } = state
  watched.delete(executionId)
  if (!registered.delete(executionId)) return
  const { leaving } = state
  leaving.add(executionId)
  if (leaving.size > 1) return
  // All that are left until the query that is under way has returned are removed together.
  const close = () => {
    if (state.leaving === leaving) state.leaving = new Set()
    return [[...leaving], watcher]
  }
  const text = 'delete from watches where execution_id = any($1::uuid[]) and watcher = $2'
  void listening
    .current()
    ?.ask(text, close)
    .catch(() => {})
}

/** Writes down or refreshes what this process watches; returns the executions whose watch was not there. */
async function saveWatches(state: State, connection: Connection, ids: string[]): Promise<string[]> {
  // What leaves from now on must be removed after this.
  state.leaving = new Set()
  for (const id of ids) state.registered.add(id)
  const { rows } = await connection.ask<{ id: string; fresh: boolean }>(
    `insert into watches (execution_id, watcher) select unnest($1::uuid[]), $2
     on conflict (execution_id, watcher) do update set seen_at = now()
     returning execution_id as id, xmax = 0 as fresh`,
    [ids, state.watcher],
  )
  return rows.filter(({ fresh }) => fresh).map(({ id }) => id)
}

/**
 * Transactions that began before a watch was saved may not see it, and then send no notification. Until all of them are
 * over (`bound` is the first transaction id after them), the watchers are woken at growing intervals instead.
 */
async function wakeUntilSettled(
  state: State,
  connection: Connection,
  bound: string,
  ids: string[],
): Promise<void> {
  const isCurrent = () => connection === state.listening.current()
  for (let step = FIRST_STEP_MS; isCurrent(); step = Math.min(MAX_STEP_MS, step * 2)) {
    await sleep(step, undefined, { ref: false })
    const open = ids.filter((id) => state.watched.has(id))
    if (open.length === 0) return
    const text = 'select pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8 as settled'
    const { rows } = await connection.ask<{ settled: boolean }>(text, [bound]).catch(() => ({ rows: [] }))
    for (const id of open) wakeWatchers(state, id)
    if (rows[0]?.settled !== false) return
  }
}
