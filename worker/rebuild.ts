import { Client } from '@temporalio/client'
import { createDataConverter } from '../activities/codec.ts'
import { rebuild } from '../activities/projector.ts'
import { type Db, openDatabase } from '../db/connection.ts'
import { type Config, ConfigError } from './config.ts'
import { readKeys } from './keys.ts'
import { readAddresses } from './lock.ts'
import { createLog } from './log.ts'
import { connectClient } from './temporal.ts'

/** On DATABASE_URL and TEMPORAL_ADDRESS, else on the servers of the `npm start` that runs on the data folder. */
export async function runRebuild(config: Config, which: string): Promise<void> {
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
