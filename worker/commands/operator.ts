import { hostname, userInfo } from 'node:os'
import { onBrokenChain } from '../../db/audit/alarm.ts'
import { openDatabase } from '../../db/connection.ts'
import { type Scope, type Store, serviceScope } from '../../db/scope.ts'
import { type Config, ConfigError } from '../config.ts'
import { demandSealKeys, readKeys } from '../keys.ts'
import { readAddresses } from '../local/lock.ts'

/**
 * Calls `work` with the database of DATABASE_URL, else with that of the `npm start` that is running on the
 * data folder. Throws ConfigError if there is neither, or if the keys are not those of the installation: what a wrong one
 * signs breaks the audit chain. `anyKeys`: for a command that only looks at them.
 */
export async function asOperator<T>(
  config: Config,
  work: (store: Store) => Promise<T>,
  { anyKeys = false } = {},
): Promise<T> {
  const url = config.databaseUrl ?? readAddresses(config.dataDir)?.databaseUrl
  if (!url) {
    throw new ConfigError(
      `DATABASE_URL must be set, or \`npm start\` must be running on the data folder ${config.dataDir}`,
    )
  }
  const keys = readKeys(config, false)
  const { db, close } = openDatabase(url, { max: 2, name: 'perdure cli' })
  const store = { db, keys, emailProof: () => config.emailProof }
  // A refusal says it by itself; an act that goes on has no entry but this one.
  onBrokenChain(store, ({ unaudited }) => {
    if (unaudited) console.error(`perdure: no audit chain takes this entry: ${JSON.stringify(unaudited)}`)
  })
  try {
    if (!anyKeys) await demandSealKeys(store)
    return await work(store)
  } finally {
    await close()
  }
}

/**
 * The scope of an operator's command: ADMIN of the team, if there is one, because it has the database, and
 * `cli` in the audit log, with who they are on which machine.
 */
export function createOperatorScope(
  store: Store,
  teamId: string | null = null,
  userId: string | null = null,
): Scope {
  const actor = { kind: 'SYSTEM', id: null, name: `cli (${userInfo().username}@${hostname()})` } as const
  const roles = teamId === null ? [] : [[teamId, 'ADMIN'] as const]
  return serviceScope(store, actor, roles, { userId, instanceAdmin: true })
}
