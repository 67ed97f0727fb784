import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDatabase } from '../db/connection.ts'
import { migrate } from '../db/migrate.ts'
import { superviseChild } from './children.ts'
import { type Config, ConfigError } from './config.ts'
import { readKeys } from './keys.ts'
import { findFree } from './ports.ts'
import { describePostgres } from './programs.ts'
import { seedAdmin } from './seed.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Brings the database of DATABASE_URL up to date and makes the first admin. */
export async function runMigrate(config: Config): Promise<void> {
  if (!config.databaseUrl)
    throw new ConfigError('DATABASE_URL must be set (`npm start` migrates its own database)')
  const keys = readKeys(config, false)
  const { db, close } = openDatabase(config.databaseUrl, { max: 2, name: 'perdure migrate' })
  try {
    const ran = await migrate(db)
    console.log(ran.length === 0 ? 'The database is up to date' : `Ran ${ran.join(', ')}`)
    const made = await seedAdmin({ db, keys }, config)
    if (made) {
      const password = made.madeUp ? `${made.password} (shown this once)` : 'that of ADMIN_PASSWORD'
      console.log(`Made the first admin: ${made.email}, password ${password}`)
    }
  } finally {
    await close()
  }
}

/** From the database of DATABASE_URL once migrated, else from one made for this. */
export async function runSchema(config: Config, check: boolean): Promise<void> {
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
