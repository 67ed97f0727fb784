import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { v7 as uuid } from 'uuid'

/** PostgreSQL's notifications to this process, over a connection of its own. */
export type Bus = {
  /** The id of this process in the table `watches`. */
  id: string
  /**
   * Calls `wake` after every change of the execution, and whenever a change may have been missed. A change that is
   * committed before this resolves may not wake the watcher: read the execution afterwards. Never rejects: while
   * PostgreSQL is away no watcher is woken, and once it is back all are. Resolves to the function that ends the watch.
   */
  watch(executionId: string, wake: () => void): Promise<() => void>
  /**
   * Does the same for a caller that waits for the end of the execution, and returns at once. In a process that ends
   * executions itself, PostgreSQL learns of the watch only after a while: most have ended by then. `wake` is called too
   * once PostgreSQL knows.
   */
  watchEnd(executionId: string, wake: () => void): () => void
  /** Wakes those in this process who watch the execution, without PostgreSQL: it has just been seen to end. */
  tellEnd(executionId: string): void
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

type Options = { name: string; onLost?: (error: unknown) => void; refreshMs?: number }

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000
const QUERY_TIMEOUT_MS = 10_000
const REFRESH_MS = 30_000
/** The watches of a process that has not refreshed them for this long are removed. */
const EXPIRY = '5 minutes'
const STOP_MS = 1_000
const FIRST_STEP_MS = 20
/** How old the proof that the connection hears may become, where it is used, before there is another one. */
const PROOF_MS = 250
/** How long a process that ends executions itself waits for an end before it tells PostgreSQL that it waits. */
const PATIENCE_MS = 200
const MAX_STEP_MS = 2_000

/** What the functions below share: one for each open bus. */
type State = {
  url: string
  options: Options
  /** The id of this process in the table `watches`. */
  watcher: string
  /** The connection that listens; undefined while it is lost. */
  client: pg.Client | undefined
  /** The watchers, by execution. */
  watched: Map<string, Set<() => void>>
  /** The executions of which PostgreSQL knows, or is being told, that this process watches them. */
  registered: Set<string>
  /** Whether executions end in this process. */
  endsHere: boolean
  /** The functions that are called for errands. */
  errands: Set<() => void>
  /** Who hears what processes tell each other. */
  hearers: Set<(text: string | null) => void>
  stopping: AbortController
  /** When the latest query was sent to which there was a response: what was told before has been heard. */
  heardUntil: number
  /** Gives the connection up, so that the next one is made. */
  giveUp: (error: unknown) => void
  /** Whether PostgreSQL is being asked whether the connection still hears. */
  proving: boolean
  /** The latest query on the connection. */
  asked: Promise<unknown>
  /** Executions whose watch the next registration adds. */
  joining: Set<string>
  /** The registration that has not begun yet. */
  next: Promise<void> | undefined
  /** The latest registration, whether it has begun or not. */
  latest: Promise<void>
}

/**
 * Opens the bus. It connects in the background, and reconnects for as long as it takes whenever the
 * connection is lost; `onLost` gets the error each time. It needs the migrated database and a session of its
 * own, so no transaction pooler in between.
 */
export function openBus(url: string, options: Options): Bus {
  const state: State = {
    url,
    options,
    watcher: uuid(),
    client: undefined,
    watched: new Map(),
    registered: new Set(),
    endsHere: false,
    errands: new Set(),
    hearers: new Set(),
    stopping: new AbortController(),
    heardUntil: Number.NEGATIVE_INFINITY,
    giveUp: () => {},
    proving: false,
    asked: Promise.resolve(),
    joining: new Set(),
    next: undefined,
    latest: Promise.resolve(),
  }
  const connected = stayConnected(state)
  return {
    id: state.watcher,
    stopping: state.stopping.signal,
    watch: (executionId, wake) => watchExecution(state, executionId, wake),
    watchEnd: (executionId, wake) => watchEnd(state, executionId, wake),
    tellEnd(executionId) {
      state.endsHere = true
      wakeWatchers(state, executionId)
    },
    onErrands(wake) {
      state.errands.add(wake)
      return () => void state.errands.delete(wake)
    },
    tell(text) {
      const { client } = state
      if (client) void ask(state, client, "select pg_notify('processes', $1)", [text]).catch(() => {})
    },
    onTold(hear) {
      state.hearers.add(hear)
      if (state.client) hear(null)
    },
    heardUntil: () => proveHearing(state),
    stop: () => stopBus(state, connected),
  }
}

async function stopBus(state: State, connected: Promise<void>): Promise<void> {
  state.stopping.abort()
  // A connect that the server never responds to must not hold up the stop.
  await Promise.race([connected, sleep(STOP_MS, undefined, { ref: false })])
  const { client, watcher } = state
  loseClient(state)
  if (!client) return
  await ask(state, client, 'delete from watches where watcher = $1', [watcher]).catch(() => {})
  await client.end().catch(() => {})
}

/** Sends a query after the one before it has ended: pg will no longer let them wait inside a client. */
function ask<Row extends pg.QueryResultRow>(
  state: State,
  client: pg.Client,
  text: string,
  values: unknown[] = [],
): Promise<pg.QueryResult<Row>> {
  const asked = state.asked.then(async () => {
    const sentAt = performance.now()
    const result = await client.query<Row>(text, values)
    // PostgreSQL sends notifications of before along with its response.
    if (client === state.client) state.heardUntil = sentAt
    return result
  })
  state.asked = asked.catch(() => {})
  return asked
}

function loseClient(state: State): void {
  state.client = undefined
  state.heardUntil = Number.NEGATIVE_INFINITY
}

function proveHearing(state: State): number {
  const { client } = state
  if (client && !state.proving && performance.now() - state.heardUntil > PROOF_MS) {
    state.proving = true
    const prove = async () => {
      try {
        await ask(state, client, 'select')
      } catch (error) {
        if (client === state.client) state.giveUp(error)
      }
      if (client === state.client) state.proving = false
    }
    void prove()
  }
  return state.heardUntil
}

/**
 * Keeps a connection until the bus stops: whenever it is lost, the next one follows after a growing pause.
 */
async function stayConnected(state: State): Promise<void> {
  const { options, stopping, watched } = state
  let pause = FIRST_PAUSE_MS
  while (!stopping.signal.aborted) {
    const lost = new AbortController()
    let client: pg.Client | undefined
    try {
      client = await connect(state, (error) => lost.abort(error))
      state.client = client
      state.giveUp = (error) => lost.abort(error)
      // Work that still hangs in the connection before this one must not delay anything.
      state.asked = Promise.resolve()
      state.proving = false
      // Before any response proves that this connection hears: changes before it were not heard.
      tellHearers(state, null)
      await register(state, [...watched.keys()])
      for (const id of [...watched.keys()]) wakeWatchers(state, id)
      wakeForErrands(state)
      pause = FIRST_PAUSE_MS
      await keepRefreshing(state, client, AbortSignal.any([lost.signal, stopping.signal]))
    } catch (error) {
      if (stopping.signal.aborted) return
      options.onLost?.(lost.signal.reason ?? error)
    }
    loseClient(state)
    void client?.end().catch(() => {})
    await sleep(pause * (0.5 + Math.random()), undefined, { signal: stopping.signal }).catch(() => {})
    pause = Math.min(MAX_PAUSE_MS, pause * 2)
  }
}

async function connect(state: State, onLost: (error: unknown) => void): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: state.url,
    application_name: `${state.options.name} bus`,
    connectionTimeoutMillis: 5_000,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
  })
  client.on('error', onLost)
  client.on('end', () => onLost(new Error('The connection ended')))
  client.on('notification', ({ channel, payload }) => {
    if (channel === 'outbox') wakeForErrands(state)
    else if (channel === 'processes') tellHearers(state, payload ?? '')
    else if (payload) wakeWatchers(state, payload)
  })
  try {
    await client.connect()
    await client.query('listen run; listen outbox; listen processes')
  } catch (error) {
    void client.end().catch(() => {})
    throw error
  }
  return client
}

/** Refreshes the watches at intervals. Only ends by throwing: when `signal` aborts, or a query fails. */
async function keepRefreshing(state: State, client: pg.Client, signal: AbortSignal): Promise<never> {
  for (;;) {
    await sleep(state.options.refreshMs ?? REFRESH_MS, undefined, { signal })
    await ask(state, client, `delete from watches where seen_at < now() - interval '${EXPIRY}'`)
    // If the machine slept, this process's own watches may have expired, and changes were missed.
    for (const id of await saveWatches(state, client, [...state.watched.keys()])) wakeWatchers(state, id)
  }
}

function wakeWatchers({ watched }: State, executionId: string): void {
  for (const wake of [...(watched.get(executionId) ?? [])]) wake()
}

function wakeForErrands({ errands }: State): void {
  for (const wake of [...errands]) wake()
}

function tellHearers({ hearers }: State, text: string | null): void {
  for (const hear of [...hearers]) hear(text)
}

async function watchExecution(state: State, executionId: string, wake: () => void): Promise<() => void> {
  const leave = addWatch(state, executionId, wake)
  await joinRegistration(state, executionId)
  return leave
}

function watchEnd(state: State, executionId: string, wake: () => void): () => void {
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

function addWatch(state: State, executionId: string, wake: () => void): () => void {
  const { watched } = state
  // A new function for each watch: two watches with the same `wake` stay apart.
  const own = () => wake()
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
  const { client } = state
  // If it fails, the connection is given up: the next one registers every watch again and wakes it.
  await register(state, ids).catch(() => client?.end().catch(() => {}))
}

async function register(state: State, ids: string[]): Promise<void> {
  const { client } = state
  if (!client || ids.length === 0) return
  await saveWatches(state, client, ids)
  const { rows } = await ask<{ bound: string; settled: boolean }>(
    state,
    client,
    `select pg_snapshot_xmax(now)::text as bound, pg_snapshot_xmin(now) = pg_snapshot_xmax(now) as settled
     from pg_current_snapshot() as now`,
  )
  if (!rows[0]!.settled) void wakeUntilSettled(state, client, rows[0]!.bound, ids)
}

function unregister(state: State, executionId: string): void {
  const { client, watched, watcher, registered } = state
  watched.delete(executionId)
  if (!registered.delete(executionId) || !client) return
  const text = 'delete from watches where execution_id = $1 and watcher = $2'
  void ask(state, client, text, [executionId, watcher]).catch(() => {})
}

/** Writes down or refreshes what this process watches; returns the executions whose watch was not there. */
async function saveWatches(state: State, client: pg.Client, ids: string[]): Promise<string[]> {
  for (const id of ids) state.registered.add(id)
  const { rows } = await ask<{ id: string; fresh: boolean }>(
    state,
    client,
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
  client: pg.Client,
  bound: string,
  ids: string[],
): Promise<void> {
  for (let step = FIRST_STEP_MS; client === state.client; step = Math.min(MAX_STEP_MS, step * 2)) {
    await sleep(step, undefined, { ref: false })
    const open = ids.filter((id) => state.watched.has(id))
    if (open.length === 0) return
    const text = 'select pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8 as settled'
    const { rows } = await ask<{ settled: boolean }>(state, client, text, [bound]).catch(() => ({ rows: [] }))
    for (const id of open) wakeWatchers(state, id)
    if (rows[0]?.settled !== false) return
  }
}
