import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDatabase } from '../../db/connection.ts'
import { describeFunctions } from '../../db/functions.ts'
import { migrate } from '../../db/migrate.ts'
import type { Config } from '../config.ts'
import { superviseChild } from '../local/children.ts'
import { findFree } from '../local/ports.ts'
import { describePostgres } from '../local/programs.ts'

/** The files in db/ that are generated from the migrated database. */
const GENERATED = ['schema.ts', 'functions.sql']

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * `schema`: migrates the database of DATABASE_URL, or a temporary one, and writes the generated files from
 * it. `check` writes nothing; the exit code is then 1 if a file differs.
 */
export async function runSchema(config: Config, check: boolean): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'perdure-schema-'))
  chmodSync(folder, 0o711)
  try {
    if (config.databaseUrl) await generate(config.databaseUrl, folder)
    else await withDatabase(folder, (url) => generate(url, folder))
    for (const name of GENERATED) {
      const text = readFileSync(join(folder, name), 'utf8')
      const file = join(root, 'db', name)
      if (!check) writeFileSync(file, text)
      else if (!existsSync(file) || text !== readFileSync(file, 'utf8')) {
        console.error(`db/${name} differs from what the migrations produce: run \`npm run schema\``)
        process.exitCode = 1
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Migrates the database and writes the GENERATED files into `folder`. */
async function generate(url: string, folder: string): Promise<void> {
  const { db, close } = openDatabase(url, { max: 1, name: 'perdure schema' })
  try {
    await migrate(db)
    writeFileSync(join(folder, 'functions.sql'), await describeFunctions(db))
  } finally {
    await close()
  }
  const outFile = join(folder, 'schema.ts')
  const made = spawnSync(
    process.execPath,
    [join(root, 'node_modules/kysely-codegen/dist/cli/bin.js'), '--url', url, '--out-file', outFile],
    { cwd: root, encoding: 'utf8' },
  )
  if (made.status !== 0) throw new Error(`kysely-codegen failed: ${made.stderr || made.stdout}`)
}

/** Runs `work` with the URL of an embedded PostgreSQL that is removed afterwards. */
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
