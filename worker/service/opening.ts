import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { openSealer, type Sealer } from '../../activities/temporal/sealer.ts'
import { type Bus, openBus } from '../../db/bus.ts'
import { openDatabase } from '../../db/connection.ts'
import { migrate } from '../../db/migrate.ts'
import { createExposure, type Exposure, isExposureDecided } from '../../db/operation/exposure.ts'
import { findKeyFaults } from '../../db/operation/sealkeys.ts'
import type { EmailProof, Store } from '../../db/scope.ts'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { readKeys } from '../keys.ts'
import { listOpenings } from '../openings.ts'

/**
 * What a process runs: the API, the worker, or (`service`,
 * under the supervisor) both, so that starts can be eager.
 */
export type ProcessKind = 'api' | 'worker' | 'service'

/** What every process needs before anything else, each open until it is closed. */
export type Base = {
  kind: ProcessKind
  config: Config
  log: Logger
  database: ReturnType<typeof openDatabase>
  poolSize: number
  store: Store
  sealer: Sealer
  bus: Bus
  exposure: Exposure
}

/** Reads the configuration. A process whose configuration is wrong says so, and exits with 2. */
export function readForProcess(kind: ProcessKind): Config {
  try {
    const config = readConfig(process.env)
    const missing = [
      ...(config.databaseUrl ? [] : ['DATABASE_URL']),
      ...(config.temporal.address ? [] : ['TEMPORAL_ADDRESS']),
    ]
    if (missing.length === 0) {
      readKeys(config, false)
      return config
    }
    throw new ConfigError(
      `${missing.join(' and ')} must be set: only \`npm start\` starts PostgreSQL and Temporal by itself`,
    )
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return refuseToStart(kind, error.message)
  }
}

/**
 * Opens the database and what reads the keys, as soon as PostgreSQL is there. Undefined if `asked` is aborted first. A
 * process whose keys are not those of the database says so, and exits with 2.
 */
export async function openBase(
  kind: ProcessKind,
  config: Config,
  log: Logger,
  asked: AbortSignal,
): Promise<Base | undefined> {
  const { mailDomains, mailsPerHour } = config
  const name = `perdure ${kind}`
  const poolSize = config.poolSize ?? choosePoolSize(kind)
  const database = openDatabase(config.databaseUrl!, { max: poolSize, name })
  const store: Store = {
    ...{ db: database.db, keys: readKeys(config, false), mailDomains, mailsPerHour },
    emailProof: () => readEmailProof(kind, config, exposure),
  }
  // The supervisor has run the migrations already.
  if (kind !== 'service') await untilDone('the database', () => migrate(store.db), log, asked)
  const faults = await untilDone('the database', () => findKeyFaults(store), log, asked)
  if (faults && faults.length > 0) refuseToStart(kind, faults.join('\n'))
  const seals = { store, binds: config.sealBound, log }
  const sealer = await untilDone('the database', () => openSealer(seals), log, asked)
  if (!sealer) return undefined
  const bus = openBus(config.databaseUrl!, {
    name,
    onLost: (error) =>
      log.warn({ err: error }, 'lost the connection that listens for database notifications'),
  })
  const exposure = watchExposure(kind, config, bus, { store, log })
  return { kind, config, log, database, poolSize, store, sealer, bus, exposure }
}

/** Calls `work` until it succeeds, and logs each error. Undefined if `signal` is aborted first. */
export async function untilDone<T>(
  what: string,
  work: () => Promise<T>,
  log: Logger,
  signal: AbortSignal,
): Promise<T | undefined> {
  for (let pause = 100; !signal.aborted; pause = Math.min(pause * 2, 2_000)) {
    try {
      return await work()
    } catch (error) {
      log.warn({ err: error }, `${what} is not ready yet`)
    }
    await sleep(pause, undefined, { signal }).catch(() => {})
  }
  return undefined
}

/**
 * How many connections a process has, besides the one that listens and a worker's for its lease. Where APIs and workers
 * run apart there are many of them: 14 leave room in the 100 connections that PostgreSQL takes by default.
 */
function choosePoolSize(kind: ProcessKind): number {
  return kind === 'service' ? Math.min(40, 10 + 5 * availableParallelism()) : 5
}

/** Says what is open, and closes what is open by default once others are known to reach the service. */
function watchExposure(
  kind: ProcessKind,
  config: Config,
  bus: Bus,
  { store, log }: { store: Pick<Store, 'db'>; log: Logger },
): Exposure {
  const { isLocal, openByDefault } = config
  const open = listOpenings(config)
  log.info({ open }, open.length > 0 ? 'open on this service' : 'nothing is open by default')
  const onChange = (why: string | null) => {
    if (!openByDefault.signUp && !openByDefault.loopback) return
    if (why === null) log.warn({ open: openByDefault }, 'opened by the operator: `npx perdure exposure open`')
    else log.warn({ closed: openByDefault }, `closed until the next start what was open by default: ${why}`)
  }
  const exposure = createExposure({ bus, isDecided: () => isExposureDecided(store), onChange })
  // A worker cannot know by its own settings where the API listens.
  if (kind !== 'worker' && !isLocal) exposure.note('the API is set up for others than this machine')
  return exposure
}

// Addresses that are not proven count only where none but this machine's users can come in. A worker that
// runs alone does not know how the APIs can be reached, so it trusts none by itself.
function readEmailProof(kind: ProcessKind, { emailProof }: Config, exposure: Exposure): EmailProof {
  if (emailProof !== 'none') return emailProof
  return kind === 'worker' || exposure.why() !== null ? 'operator' : 'none'
}

function refuseToStart(kind: ProcessKind, why: string): never {
  console.error(`perdure ${kind} cannot start:\n${why}`)
  process.exit(2)
}
