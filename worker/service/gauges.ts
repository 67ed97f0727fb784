import { addGauge, type Metrics } from '../../activities/metrics.ts'
import { countBroken } from '../../db/audit/heads.ts'
import { type Backlog, readBacklog } from '../../db/operation/backlog.ts'
import { ERRAND_KINDS } from '../../db/outbox.ts'
import { countWaitingHashes } from '../../db/people/passwords.ts'
import type { Store } from '../../db/scope.ts'
import type { Waiting } from '../engine/backlog.ts'
import type { Engine } from '../engine/engine.ts'
import { withinTime } from './readiness.ts'

/** Scrapes within this time share one query. */
const SHARED_MS = 1_000

type Pool = { totalCount: number; idleCount: number; waitingCount: number }

type WatchOptions = { store: Store; pool: Pool; poolSize: number; readEngine?: () => Engine | undefined }

/**
 * Adds the gauges that are read at each scrape: the pool, the worker if this process has one, and the backlog
 * in the database. Every process reports the same backlog, so take its maximum, not its sum; while PostgreSQL
 * cannot be reached it is left out.
 */
export function watchProcess(metrics: Metrics, { store, pool, poolSize, readEngine }: WatchOptions): void {
  watchPool(metrics, pool, poolSize)
  watchBacklog(metrics, store)
  addGauge(
    metrics,
    {
      name: 'perdure_audit_chains_broken',
      help: 'Audit chains that were tampered with, as far as this process has found out.',
    },
    () => withinTime(countBroken(store)),
  )
  addGauge(
    metrics,
    {
      name: 'perdure_passwords_waiting',
      help: 'Sign-ins and other checks of a password that wait for their turn.',
    },
    countWaitingHashes,
  )
  if (readEngine) watchEngine(metrics, readEngine)
}

function watchPool(metrics: Metrics, pool: Pool, poolSize: number): void {
  addGauge(
    metrics,
    {
      name: 'perdure_database_connections',
      label: 'state',
      help: 'Connections of the pool that are in use or idle, and callers waiting for one.',
    },
    () => ({ in_use: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  )
  addGauge(
    metrics,
    { name: 'perdure_database_connections_max', help: 'Maximum number of connections in the pool.' },
    () => poolSize,
  )
}

function watchBacklog(metrics: Metrics, store: Store): void {
  const backlog = share(() => withinTime(readBacklog(store)))
  const add = (name: string, help: string, read: (found: Backlog) => number) =>
    addGauge(metrics, { name, help }, async () => {
      const found = await backlog()
      return found && read(found)
    })
  const addByKind = (name: string, help: string, key: 'waiting' | 'oldest') =>
    addGauge(metrics, { name, help, label: 'kind' }, async () => {
      const found = await backlog()
      // Kinds without errands are 0 instead of missing.
      const none = ERRAND_KINDS.map((kind) => [kind, 0])
      return found && Object.fromEntries([...none, ...found.errands.map((one) => [one.kind, one[key]])])
    })

  addGauge(metrics, { name: 'perdure_database_up', help: '1 while PostgreSQL can be reached.' }, async () =>
    (await backlog()) ? 1 : 0,
  )
  addByKind(
    'perdure_errands_waiting',
    'Errands that are still to be carried out in Temporal. START: executions that are PENDING.',
    'waiting',
  )
  addByKind(
    'perdure_errands_oldest_seconds',
    'Age of the oldest waiting errand. START: of the oldest PENDING execution.',
    'oldest',
  )
  add('perdure_mails_waiting', 'Mails that are still to be sent.', ({ mails }) => mails.waiting)
  add(
    'perdure_mails_oldest_seconds',
    'Age of the oldest mail that is still to be sent.',
    ({ mails }) => mails.oldest,
  )
  add(
    'perdure_callbacks_waiting',
    'Callbacks of ended executions that are still to be delivered.',
    ({ callbacks }) => callbacks.waiting,
  )
  add(
    'perdure_callbacks_oldest_seconds',
    'Time since the end of the first execution whose callback is still to be delivered.',
    ({ callbacks }) => callbacks.oldest,
  )
  add('perdure_runs_stuck', 'Executions whose workflow code fails again and again.', ({ stuck }) => stuck)
  add(
    'perdure_runs_missing',
    'Executions that are RUNNING but whose runs Temporal does not know.',
    ({ missing }) => missing,
  )
}

function watchEngine(metrics: Metrics, readEngine: () => Engine | undefined): void {
  const slots = (at: 0 | 1) => () => {
    const read = readEngine()?.readSlots()
    return read && Object.fromEntries(Object.entries(read).map(([kind, pair]) => [kind, pair[at]]))
  }
  addGauge(
    metrics,
    {
      name: 'perdure_worker_slots_used',
      label: 'kind',
      help: 'Tasks in progress: attempts of nodes, those of calls to models, segments of pure nodes, workflow tasks.',
    },
    slots(0),
  )
  addGauge(
    metrics,
    { name: 'perdure_worker_slots', label: 'kind', help: 'Maximum number of tasks in progress.' },
    slots(1),
  )
  addGauge(
    metrics,
    {
      name: 'perdure_budget_bytes',
      label: 'state',
      help: 'Room for answers and large inputs of nodes: held now, the most that was ever held, the limit.',
    },
    () => {
      const read = readEngine()?.readBudget()
      return read && { held: read.held, peak: read.peak, limit: read.most }
    },
  )
  addGauge(
    metrics,
    {
      name: 'perdure_budget_waiting',
      help: 'Attempts that wait for room for their answer and inputs.',
    },
    () => readEngine()?.readBudget().waiting,
  )
  const waiting = share(() => withinTime(readEngine()?.readWaiting()))
  const read = (key: keyof Waiting) => async () => {
    const found = await waiting()
    return found && Object.fromEntries(Object.entries(found).map(([kind, all]) => [kind, all[key]]))
  }
  addGauge(
    metrics,
    {
      name: 'perdure_tasks_waiting',
      label: 'kind',
      help: 'Tasks that wait in Temporal for a worker, about, by the slot that they need: node, model, workflow.',
    },
    read('waiting'),
  )
  addGauge(
    metrics,
    {
      name: 'perdure_tasks_oldest_seconds',
      label: 'kind',
      help: 'For how long the oldest of these tasks has waited.',
    },
    read('oldest'),
  )
  addGauge(metrics, { name: 'perdure_worker_polling', help: '1 while the worker polls Temporal.' }, () =>
    readEngine()?.isPolling() ? 1 : 0,
  )
}

/** Shares one result among all calls that come while it is being read or within a second afterwards. */
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
