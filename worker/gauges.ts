import { addGauge, type Metrics } from '../activities/metrics.ts'
import { type Backlog, readBacklog } from '../db/backlog.ts'
import type { Store } from '../db/scope.ts'
import type { Engine } from './engine.ts'
import { inTime } from './readiness.ts'

/** Scrapes that come together share one look into the database. */
const SHARED_MS = 1_000

type Pool = { totalCount: number; idleCount: number; waitingCount: number }

/**
 * Adds to a process's metrics what is looked up at each scrape: its pool, its worker if it has one, and what waits
 * in the database. The last is the same from every process (take the max, not the sum), and left out while
 * PostgreSQL is away.
 */
export function watchProcess(
  metrics: Metrics,
  options: { store: Store; pool: Pool; poolSize: number; readEngine?: () => Engine | undefined },
): void {
  const { store, pool, poolSize, readEngine } = options
  addGauge(
    metrics,
    {
      ...{ name: 'perdure_database_connections', label: 'state' },
      help: 'Connections of the pool in use and idle, and requests that wait for one.',
    },
    () => ({ in_use: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  )
  addGauge(
    metrics,
    { name: 'perdure_database_connections_max', help: 'The size of the pool.' },
    () => poolSize,
  )

  const backlog = share(() => inTime(readBacklog(store)))
  addGauge(metrics, { name: 'perdure_database_up', help: '1 while PostgreSQL answers.' }, async () =>
    (await backlog()) ? 1 : 0,
  )
  const errands = { START: 0, CANCEL: 0, DELETE: 0 }
  const byKind = (from: Backlog | undefined, key: 'waiting' | 'oldest') =>
    from && Object.assign({ ...errands }, ...from.errands.map((errand) => ({ [errand.kind]: errand[key] })))
  addGauge(
    metrics,
    {
      ...{ name: 'perdure_errands_waiting', label: 'kind' },
      help: 'What Temporal has yet to be told. START: runs that are PENDING.',
    },
    async () => byKind(await backlog(), 'waiting'),
  )
  addGauge(
    metrics,
    {
      ...{ name: 'perdure_errands_oldest_seconds', label: 'kind' },
      help: 'Age of the oldest one. START: of the oldest PENDING run.',
    },
    async () => byKind(await backlog(), 'oldest'),
  )
  addGauge(
    metrics,
    { name: 'perdure_runs_stuck', help: 'Runs whose workflow code cannot go on.' },
    async () => (await backlog())?.stuck,
  )
  if (readEngine) watchEngine(metrics, readEngine)
}

function watchEngine(metrics: Metrics, readEngine: () => Engine | undefined): void {
  const slots = (at: 0 | 1) => () => {
    const read = readEngine()?.readSlots()
    return read && Object.fromEntries(Object.entries(read).map(([kind, pair]) => [kind, pair[at]]))
  }
  addGauge(
    metrics,
    {
      ...{ name: 'perdure_worker_slots_used', label: 'kind' },
      help: 'Tasks in hand: attempts of nodes, segments of pure nodes, steps of workflow code.',
    },
    slots(0),
  )
  addGauge(
    metrics,
    { ...{ name: 'perdure_worker_slots', label: 'kind' }, help: 'How many it takes at once.' },
    slots(1),
  )
  addGauge(metrics, { name: 'perdure_worker_polling', help: '1 while the worker polls Temporal.' }, () =>
    readEngine()?.isPolling() ? 1 : 0,
  )
}

/** One answer for all who ask within a second, or while it is under way. */
function share<T>(read: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined
  let until = 0
  return () => {
    if (current && Date.now() < until) return current
    until = Number.POSITIVE_INFINITY
    current = read().finally(() => {
      until = Date.now() + SHARED_MS
    })
    return current
  }
}
