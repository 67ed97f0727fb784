import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { createDataConverter } from '../activities/codec.ts'
import { rebuild } from '../activities/projector.ts'
import { type Db, openDatabase } from '../db/connection.ts'
import { migrate } from '../db/migrate.ts'
import { superviseChild } from './children.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { readKeys } from './keys.ts'
import { readAddresses } from './lock.ts'
import { createLog } from './log.ts'
import { findFree } from './ports.ts'
import { describePostgres } from './programs.ts'
import { seedAdmin } from './seed.ts'
import { connectClient } from './temporal.ts'

const USAGE = `usage: node worker/cli.ts <command>
  migrate                      bring the database of DATABASE_URL up to date, make the first admin
  schema [--check]             write db/schema.ts from the migrations, or compare it with them
  rebuild <executionId|--all>  write executions anew from Temporal's histories`

const root = fileURLToPath(new URL('..', import.meta.url))
const [command, option] = process.argv.slice(2)

try {
  const config = readConfig(process.env)
  if (command === 'migrate') await runMigrate(config)
  else if (command === 'schema') await runSchema(config, option === '--check')
  else if (command === 'rebuild' && option) await runRebuild(config, option)
  else {
    console.error(USAGE)
    process.exitCode = 2
  }
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  console.error(error.message)
  process.exitCode = 2
}

async function runMigrate(config: Config): Promise<void> {
  if (!config.databaseUrl)
    throw new ConfigError('DATABASE_URL must be set (`npm start` migrates its own database)')
  const keys = readKeys(config, false)
  const { db, close } = openDatabase(config.databaseUrl, { max: 2, name: 'perdure migrate' })
  try {
    const ran = await migrate(db)
    console.log(ran.length === 0 ? 'The database is up to date' : `Ran ${ran.join(', ')}`)
    const made = await seedAdmin({ db, keys }, config.admin)
    if (made) {
      const password = made.madeUp ? `${made.password} (shown this once)` : 'that of ADMIN_PASSWORD'
      console.log(`Made the first admin: ${made.email}, password ${password}`)
    }
  } finally {
    await close()
  }
}

/** From the database of DATABASE_URL once migrated, else from one made for this. */
async function runSchema(config: Config, check: boolean): Promise<void> {
  const file = join(root, 'db/schema.ts')
  const folder = mkdtempSync(join(tmpdir(), 'perdure-schema-'))
  chmodSync(folder, 0o711)
  try {
    const made = join(folder, 'schema.ts')
    if (config.databaseUrl) await generate(config.databaseUrl, made)
    else await withDatabase(folder, (url) => generate(url, made))
    const text = readFileSync(made, 'utf8')
    if (check && text !== readFileSync(file, 'utf8')) {
      console.error('db/schema.ts is not what the migrations make: run `npm run schema`')
      process.exitCode = 1
    }
    if (!check) writeFileSync(file, text)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** On DATABASE_URL and TEMPORAL_ADDRESS, else on the servers of the `npm start` that runs on the data folder. */
async function runRebuild(config: Config, which: string): Promise<void> {
  const found = readAddresses(config.dataDir)
  const databaseUrl = config.databaseUrl ?? found?.databaseUrl
  const address = config.temporal.address ?? found?.temporalAddress
  if (!databaseUrl || !address) {
    throw new ConfigError(
      'DATABASE_URL and TEMPORAL_ADDRESS must be set, or `npm start` be running on DATA_DIR',
    )
  }
  const keys = readKeys(config, false)
  const { db, close } = openDatabase(databaseUrl, { max: 2, name: 'perdure rebuild' })
  const connection = connectClient({ ...config, temporal: { ...config.temporal, address } })
  const { namespace } = config.temporal
  const client = new Client({ connection, namespace, dataConverter: createDataConverter(keys) })
  const deps = { store: { db, keys }, client, log: createLog('rebuild', config.logLevel) }
  const counts = { rebuilt: 0, gone: 0, failed: 0 }
  try {
    for await (const id of which === '--all' ? listIds(db) : [which]) {
      try {
        const status = await rebuild(deps, id)
        counts[status ? 'rebuilt' : 'gone']++
      } catch (error) {
        counts.failed++
        console.error(`${id}: ${(error as Error).message}`)
      }
    }
  } finally {
    await close()
    await connection.close()
  }
  console.log(
    `${counts.rebuilt} rebuilt, ${counts.gone} without a history (left as they are), ${counts.failed} failed`,
  )
  if (counts.failed > 0) process.exitCode = 1
}

async function* listIds(db: Db): AsyncGenerator<string> {
  for (let last = '00000000-0000-0000-0000-000000000000'; ; ) {
    const rows = await db
      .selectFrom('executions')
      .select('id')
      .where('id', '>', last)
      .orderBy('id')
      .limit(500)
      .execute()
    for (const row of rows) yield row.id
    if (rows.length === 0) return
    last = rows.at(-1)!.id
  }
}

async function generate(url: string, outFile: string): Promise<void> {
  const { db, close } = openDatabase(url, { max: 1, name: 'perdure schema' })
  await migrate(db).finally(close)
  const made = spawnSync(
    process.execPath,
    [join(root, 'node_modules/kysely-codegen/dist/cli/bin.js'), '--url', url, '--out-file', outFile],
    { cwd: root, encoding: 'utf8' },
  )
  if (made.status !== 0) throw new Error(`kysely-codegen failed: ${made.stderr || made.stdout}`)
}

/** A PostgreSQL that lives as long as `work`. */
async function withDatabase<T>(dataDir: string, work: (url: string) => Promise<T>): Promise<T> {
  const place = { dataDir, port: await findFree(), durable: false, say: () => {} }
  const { program, cluster } = await describePostgres(place)
  const child = superviseChild(program, { started() {}, lost() {}, back() {} })
  try {
    await child.ready
    return await work(cluster.url)
  } finally {
    await child.stop()
    rmSync(cluster.folder, { recursive: true, force: true })
  }
}
