import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { v7 as uuid } from 'uuid'

/** What PostgreSQL tells this process of, over one connection of its own. */
export type Bus = {
  /**
   * Has `wake` called after every change of the run, and after whatever may have hidden one. What has been committed
   * before this resolves is to be read then. Never rejects: while PostgreSQL is away nobody is told, and everybody once
   * it is back. Returns what ends the watch.
   */
  watch(executionId: string, wake: () => void): Promise<() => void>
  /** Has `wake` called when errands are due at once. */
  onErrands(wake: () => void): () => void
  /** Aborted when the process begins to stop: who waits on the bus gives up. */
  stopping: AbortSignal
  stop(): Promise<void>
}

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000
const ANSWER_MS = 10_000
const REFRESH_MS = 30_000
/** A process that has said nothing for this long watches nothing. */
const EXPIRY = '5 minutes'
const STOP_MS = 1_000
const FIRST_STEP_MS = 20
const MAX_STEP_MS = 2_000

/**
 * Opens the bus; it connects in the background, and anew for as long as it takes whenever the connection is lost, of
 * which `onLost` hears. Needs the migrated database, and a session of its own (no transaction pooler in between).
 */
export function openBus(
  url: string,
  options: { name: string; onLost?: (error: unknown) => void; refreshMs?: number },
): Bus {
  const watcher = uuid()
  const watched = new Map<string, Set<() => void>>()
  const errands = new Set<() => void>()
  const stopping = new AbortController()
  let client: pg.Client | undefined

  const wakeRun = (id: string) => {
    for (const wake of [...(watched.get(id) ?? [])]) wake()
  }
  const wakeErrands = () => {
    for (const wake of [...errands]) wake()
  }

  async function connect(lost: (error: unknown) => void): Promise<pg.Client> {
    const made = new pg.Client({
      connectionString: url,
      application_name: `${options.name} bus`,
      connectionTimeoutMillis: 5_000,
      query_timeout: ANSWER_MS,
      keepAlive: true,
    })
    made.on('error', lost)
    made.on('end', () => lost(new Error('The connection ended')))
    made.on('notification', ({ channel, payload }) => {
      if (channel === 'outbox') wakeErrands()
      else if (payload) wakeRun(payload)
    })
    try {
      await made.connect()
      await made.query('listen run; listen outbox')
    } catch (error) {
      void made.end().catch(() => {})
      throw error
    }
    return made
  }

  async function stayConnected(): Promise<void> {
    let pause = FIRST_PAUSE_MS
    while (!stopping.signal.aborted) {
      const lost = new AbortController()
      const over = AbortSignal.any([lost.signal, stopping.signal])
      let made: pg.Client | undefined
      try {
        made = await connect((error) => lost.abort(error))
        client = made
        await register([...watched.keys()])
        for (const id of [...watched.keys()]) wakeRun(id)
        wakeErrands()
        pause = FIRST_PAUSE_MS
        for (;;) {
          await sleep(options.refreshMs ?? REFRESH_MS, undefined, { signal: over })
          await refresh(made)
        }
      } catch (error) {
        if (stopping.signal.aborted) return
        options.onLost?.(lost.signal.reason ?? error)
      }
      client = undefined
      void made?.end().catch(() => {})
      await sleep(pause * (0.5 + Math.random()), undefined, { signal: stopping.signal }).catch(() => {})
      pause = Math.min(MAX_PAUSE_MS, pause * 2)
    }
  }

  /** Says what this process watches; answers those that were not known to be watched. */
  async function announce(at: pg.Client, ids: string[]): Promise<string[]> {
    const { rows } = await at.query<{ id: string; fresh: boolean }>(
      `insert into watches (execution_id, watcher) select unnest($1::uuid[]), $2
       on conflict (execution_id, watcher) do update set seen_at = now()
       returning execution_id as id, xmax = 0 as fresh`,
      [ids, watcher],
    )
    return rows.filter(({ fresh }) => fresh).map(({ id }) => id)
  }

  async function refresh(at: pg.Client): Promise<void> {
    await at.query(`delete from watches where seen_at < now() - interval '${EXPIRY}'`)
    // A machine that slept finds its watches expired.
    for (const id of await announce(at, [...watched.keys()])) wakeRun(id)
  }

  async function register(ids: string[]): Promise<void> {
    const at = client
    if (!at || ids.length === 0) return
    await announce(at, ids)
    const { rows } = await at.query<{ bound: string; settled: boolean }>(
      `select pg_snapshot_xmax(now)::text as bound, pg_snapshot_xmin(now) = pg_snapshot_xmax(now) as settled
       from pg_current_snapshot() as now`,
    )
    if (!rows[0]!.settled) void settle(at, rows[0]!.bound, ids)
  }

  // Transactions that began before the watch was there may not see it, and notify nobody: until they are over the
  // watchers look for themselves.
  async function settle(at: pg.Client, bound: string, ids: string[]): Promise<void> {
    for (let step = FIRST_STEP_MS; at === client; step = Math.min(MAX_STEP_MS, step * 2)) {
      await sleep(step, undefined, { ref: false })
      const open = ids.filter((id) => watched.has(id))
      if (open.length === 0) return
      const { rows } = await at
        .query<{ settled: boolean }>(
          'select pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8 as settled',
          [bound],
        )
        .catch(() => ({ rows: [] }))
      for (const id of open) wakeRun(id)
      if (rows[0]?.settled !== false) return
    }
  }

  const joining = new Set<string>()
  let following: Promise<void> | undefined
  let current = Promise.resolve()
  // Those that come while one statement is under way share the next one.
  function join(id: string): Promise<void> {
    joining.add(id)
    following ??= current = current.then(async () => {
      following = undefined
      const ids = [...joining]
      joining.clear()
      const at = client
      // Registered anew, and told, once there is a connection again.
      await register(ids).catch(() => at?.end().catch(() => {}))
    })
    return following
  }

  function leave(id: string): void {
    watched.delete(id)
    client
      ?.query('delete from watches where execution_id = $1 and watcher = $2', [id, watcher])
      .catch(() => {})
  }

  const connected = stayConnected()
  return {
    stopping: stopping.signal,
    async watch(executionId, wake) {
      // Each watch is its own, also where two are given the same function.
      const own = () => wake()
      const known = watched.get(executionId)
      if (known) known.add(own)
      else watched.set(executionId, new Set([own]))
      await join(executionId)
      return () => {
        const wakes = watched.get(executionId)
        if (wakes?.delete(own) && wakes.size === 0) leave(executionId)
      }
    },
    onErrands(wake) {
      errands.add(wake)
      return () => void errands.delete(wake)
    },
    async stop() {
      stopping.abort()
      // It may be in the middle of a connect that nobody answers.
      await Promise.race([connected, sleep(STOP_MS, undefined, { ref: false })])
      const at = client
      client = undefined
      await at?.query('delete from watches where watcher = $1', [watcher]).catch(() => {})
      await at?.end().catch(() => {})
    },
  }
}
