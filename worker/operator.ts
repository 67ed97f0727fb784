import { validate } from 'uuid'
import { openDatabase } from '../db/connection.ts'
import type { Scope, Store } from '../db/scope.ts'
import { type Config, ConfigError } from './config.ts'
import { readKeys } from './keys.ts'
import { readAddresses } from './lock.ts'

/** What a command was given beyond its own name: the words, then the options. */
export type Given = { words: string[]; options: Record<string, string | boolean | undefined> }

/** The command line is not as the usage says. */
export class UsageError extends Error {}

/** On the database of DATABASE_URL, else on that of the `npm start` that runs on the data folder. */
export async function asOperator<T>(config: Config, work: (store: Store) => Promise<T>): Promise<T> {
  const url = config.databaseUrl ?? readAddresses(config.dataDir)?.databaseUrl
  if (!url) {
    throw new ConfigError(
      `DATABASE_URL must be set, or \`npm start\` be running on the data folder ${config.dataDir}`,
    )
  }
  const keys = readKeys(config, false)
  const { db, close } = openDatabase(url, { max: 2, name: 'perdure cli' })
  try {
    return await work({ db, keys })
  } finally {
    await close()
  }
}

/** Whoever can run this on the installation is ADMIN of the team, and stands in its audit log as `cli`. */
export function openTeam(store: Store, teamId: string, userId: string | null = null): Scope {
  return {
    store,
    actor: { kind: 'SYSTEM', id: null, name: 'cli' },
    userId,
    instanceAdmin: true,
    roles: new Map([[teamId, 'ADMIN']]),
    requestId: null,
    ip: null,
  }
}

/** The option's text. Throws UsageError where it is missing. */
export function readOption({ options }: Given, name: string): string {
  const value = options[name]
  if (typeof value !== 'string' || value.trim() === '') throw new UsageError(`--${name} must be given`)
  return value.trim()
}

export function readId(text: string): string {
  if (!validate(text)) throw new UsageError(`${text} is not a UUID`)
  return text.toLowerCase()
}

/** One of `choices`, written in any case. */
export function choose<T extends string>(text: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === text.toUpperCase())
  if (!found) throw new UsageError(`${text} is none of ${choices.join(', ')}`)
  return found
}
