import { mkdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { openDatabase } from '../db/connection.ts'
import { migrate } from '../db/migrate.ts'
import { moveStoredSecrets } from '../db/secrets/olderversions.ts'
import { describeMoved } from './commands/secrets.ts'
import { type Config, ConfigError, nameHost, readConfig } from './config.ts'
import { demandSealKeys, readKeys } from './keys.ts'
import { type Program, type SupervisedChild, superviseChild } from './local/children.ts'
import { endOrphans, type InstallationLock, takeLock } from './local/lock.ts'
import { choosePort } from './local/ports.ts'
import { describePostgres, describeService, describeTemporal, trimLogs } from './local/programs.ts'
import { printWelcome, seedInstallation } from './local/seed.ts'
import { listOpenings } from './openings.ts'
import { listenToSignals } from './service/stopping.ts'

// `npm start`: the supervisor. Its children are PostgreSQL,
// Temporal, and one process with the API and the worker.
const base: SupervisedChild[] = []
let service: SupervisedChild | undefined
let lock: InstallationLock | undefined
let stopping = false
const { asked, quick } = listenToSignals(0, ['SIGINT', 'SIGHUP'])
asked.addEventListener('abort', () => void stop(0))

try {
  await start(readConfig(process.env))
} catch (error) {
  if (!stopping) {
    const known = error instanceof ConfigError ? 'its configuration is wrong:\n' : ''
    console.error(`perdure cannot start: ${known}${(error as Error).message}`)
    await stop(1)
  }
}

async function start(config: Config): Promise<void> {
  const { dataDir } = config
  const began = Date.now()
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  lock = takeLock(dataDir)
  const orphans = Object.keys(lock.orphans)
  if (orphans.length > 0) {
    say(`Ending processes that a killed start left behind: ${orphans.join(', ')}`)
    await endOrphans(lock.orphans)
  }
  if (!config.temporal.address && config.temporal.tls)
    throw new ConfigError(
      'TEMPORAL_ADDRESS must be set if TLS or an API key is: the embedded server has neither',
    )
  const keys = readKeys(config, true)
  trimLogs(dataDir)
  setInterval(() => trimLogs(dataDir), 60_000).unref()

  // One after the other, because two choices at the same time could find the same free port.
  const local = '127.0.0.1'
  const postgresPort = config.databaseUrl ? 0 : await chooseFor('POSTGRES_PORT', config.postgresPort, local)
  const temporalPort = config.temporal.address
    ? 0
    : await chooseFor('TEMPORAL_PORT', config.temporalPort, local)
  const uiPort = config.temporal.address ? undefined : config.temporalUiPort
  if (uiPort !== undefined) await chooseFor('TEMPORAL_UI_PORT', { number: uiPort, byHand: true }, local)
  const port = await chooseFor('PORT', config.port, config.host)
  const [{ url: databaseUrl, serviceUrl }, temporalEnv] = await Promise.all([
    startPostgres(config, postgresPort),
    startTemporal(config, temporalPort, uiPort),
  ])

  const { db, close } = openDatabase(databaseUrl, { max: 2, name: 'perdure start' })
  const ran = await migrate(db).catch((error) => {
    throw new Error(`the database could not be migrated: ${error.message}`)
  })
  await demandSealKeys({ db, keys })
  say(`Migrations: ${ran.length === 0 ? 'none to run' : `ran ${ran.join(', ')}`}`)
  // There is no process of another release, which could not use credentials.
  const moved = await moveStoredSecrets({ db, keys })
  if (moved.credentials > 0 || moved.failed.length > 0) for (const line of describeMoved(moved)) say(line)

  const url = `http://${nameHost(config.host)}:${port}`
  // The only worker has no other version beside it, and nothing would make its own version current.
  const { ADMIN_EMAIL: _email, ADMIN_PASSWORD: _password, DEPLOYMENT_BUILD_ID: _id, ...env } = process.env
  if (config.buildId) say('DEPLOYMENT_BUILD_ID is ignored: `npm start` does not version its worker')
  service = supervise(
    describeService(
      { dataDir, url, stopGraceMs: config.stopGraceMs, modelStopGraceMs: config.modelStopGraceMs },
      {
        ...env,
        PORT: String(port),
        DATA_DIR: dataDir,
        DATABASE_URL: serviceUrl,
        ...temporalEnv,
        // There is no process of another release.
        SEAL_VERSION: process.env.SEAL_VERSION || '2',
      },
    ),
  )
  // The service is ready only once the first account is there.
  const [welcome] = await Promise.all([seedInstallation({ db, keys }, config), service.ready])
  say('Worker: ready')
  say(`API: listening on ${url}`)
  lock.publish({ databaseUrl, temporalAddress: temporalEnv.TEMPORAL_ADDRESS, url })
  await close()
  const seconds = ((Date.now() - began) / 1000).toFixed(1)
  say(`Ready after ${seconds} s. Logs are in ${shortenPath(join(dataDir, 'logs'))}. Ctrl-C stops everything.`)
  printWelcome(welcome, url, dataDir, listOpenings(config))

  function chooseFor(name: string, wanted: Config['port'], host: string): Promise<number> {
    return choosePort(dataDir, name, wanted, host, say)
  }
}

async function startPostgres(config: Config, port: number): Promise<{ url: string; serviceUrl: string }> {
  if (config.databaseUrl) {
    say('Database: yours, from DATABASE_URL')
    return { url: config.databaseUrl, serviceUrl: config.databaseUrl }
  }
  const { program, cluster } = await describePostgres({ dataDir: config.dataDir, port, durable: true, say })
  const child = supervise(program)
  base.push(child)
  await child.ready
  const as = cluster.osUser ? `, running as user ${cluster.osUser.name}` : ''
  say(`Database: PostgreSQL on 127.0.0.1:${port}${as}, data in ${shortenPath(cluster.folder)}`)
  return cluster
}

type TemporalEnv = { TEMPORAL_ADDRESS: string; TEMPORAL_GUARDED_PORTS?: string; TEMPORAL_UI_URL?: string }

/** Starts the embedded server, unless Temporal is the operator's. Returns what the service must know of it. */
async function startTemporal(config: Config, port: number, uiPort: number | undefined): Promise<TemporalEnv> {
  const { dataDir, temporal } = config
  if (temporal.address) {
    say(`Temporal: yours at ${temporal.address}, from TEMPORAL_ADDRESS`)
    return { TEMPORAL_ADDRESS: temporal.address }
  }
  const cache = join(dataDir, 'cache')
  const { namespace } = temporal
  const found = await describeTemporal({
    dataDir,
    port,
    durable: true,
    say,
    cache,
    namespace,
    byHand: config.temporalCli,
    uiPort,
  })
  const child = supervise(found.program)
  base.push(child)
  await child.ready
  say(`Temporal: ${found.address}, CLI: ${found.from}`)
  const known = { TEMPORAL_ADDRESS: found.address, TEMPORAL_GUARDED_PORTS: found.guardedPorts.join(',') }
  if (uiPort === undefined) return known
  const url = `http://127.0.0.1:${uiPort}`
  say(`Temporal: its UI is at ${url}, for everybody on this machine`)
  return { ...known, TEMPORAL_UI_URL: temporal.uiUrl ?? url }
}

function supervise(program: Program): SupervisedChild {
  if (stopping) throw new Error('it is being stopped')
  return superviseChild(program, {
    started: (name, pid) => lock?.note(name, pid),
    lost: (name, why) => say(`${name} ${why}; starting it again`),
    back: (name) => say(`${name} is running again`),
  })
}

/**
 * Stops the service first, so that it can finish its requests and hand back its work; then its servers. After SIGTERM
 * its calls to models may go on for minutes.
 */
async function stop(code: number): Promise<void> {
  if (stopping) return
  stopping = true
  if (base.length > 0) say('Stopping')
  await service?.stop(quick)
  await Promise.all(base.map((child) => child.stop()))
  lock?.release()
  if (base.length > 0) say('Stopped')
  process.exit(code)
}

function say(line: string): void {
  console.log(`perdure  ${line}`)
}

function shortenPath(path: string): string {
  const near = relative(process.cwd(), path)
  return near.startsWith('..') ? path : near
}
