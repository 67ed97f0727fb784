import { Client } from '@temporalio/client'
import { createDataConverter } from '../../activities/temporal/codec.ts'
import { rebuildExecution } from '../../activities/temporal/rebuild.ts'
import { openSealer } from '../../activities/temporal/sealer.ts'
import { openDatabase } from '../../db/connection.ts'
import { listAllExecutionIds } from '../../db/executions/list.ts'
import { auditRebuild } from '../../db/executions/rebuilds.ts'
import { type Config, ConfigError } from '../config.ts'
import { readKeys } from '../keys.ts'
import { readAddresses } from '../local/lock.ts'
import { createLog } from '../log.ts'
import { connectClient } from '../temporal.ts'
import { createOperatorScope } from './operator.ts'

/**
 * `rebuild`: `which` is an execution's id or `--all`. Uses DATABASE_URL and
 * TEMPORAL_ADDRESS, else the servers of the `npm start` that is running on
 * the data folder. The exit code is 1 if an execution could not be rebuilt.
 */
export async function runRebuild(config: Config, which: string): Promise<void> {
  const found = readAddresses(config.dataDir)
  const databaseUrl = config.databaseUrl ?? found?.databaseUrl
  const address = config.temporal.address ?? found?.temporalAddress
  if (!databaseUrl || !address) {
    throw new ConfigError(
      `DATABASE_URL and TEMPORAL_ADDRESS must be set, or \`npm start\` must be running on the data folder ${config.dataDir}`,
    )
  }
  const keys = readKeys(config, false)
  const { db, close } = openDatabase(databaseUrl, { max: 2, name: 'perdure rebuild' })
  const connection = connectClient({ ...config, temporal: { ...config.temporal, address } })
  const { namespace } = config.temporal
  const store = { db, keys }
  const log = createLog('rebuild', config.logLevel)
  const sealer = await openSealer({ store, binds: config.sealBound, log, watches: false })
  const client = new Client({ connection, namespace, dataConverter: createDataConverter(sealer) })
  const deps = { store, client, sealer }
  const counts = { rebuilt: 0, left: 0, failed: 0 }
  try {
    await auditRebuild(createOperatorScope(store), which === '--all' ? null : which)
    for await (const id of which === '--all' ? listAllExecutionIds(deps.store) : [which]) {
      try {
        const status = await rebuildExecution(deps, id)
        if (!status && which !== '--all')
          throw new Error('there is no such execution, or no whole history of it')
        counts[status ? 'rebuilt' : 'left']++
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
    `${counts.rebuilt} rebuilt, ${counts.left} left as they are because they have no whole history, ${counts.failed} failed`,
  )
  if (counts.failed > 0) process.exitCode = 1
}
