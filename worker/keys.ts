import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { findKeyFaults } from '../db/operation/sealkeys.ts'
import type { Store } from '../db/scope.ts'
import type { Keys } from '../db/seal.ts'
import { type Config, ConfigError } from './config.ts'

const file = v.object({ current: v.string(), keys: v.record(v.string(), v.string()) })

/**
 * The master keys: from PERDURE_KEYS, else from keys.json in the data folder. If there are none, `make`
 * generates them and writes keys.json (mode 0600). Without `make` it throws ConfigError: processes on several
 * machines must share their keys, and one that generated its own could open nothing that the others sealed.
 */
export function readKeys(config: Pick<Config, 'keys' | 'dataDir'>, make: boolean): Keys {
  if (config.keys) return config.keys
  const path = join(config.dataDir, 'keys.json')
  const kept = loadKeys(path)
  if (kept) return kept
  if (!make) {
    throw new ConfigError(
      `PERDURE_KEYS must be set, to the same value for every process, or DATA_DIR must contain the keys.json of \`npm start\` (${path} does not exist)`,
    )
  }
  mkdirSync(config.dataDir, { recursive: true, mode: 0o711 })
  const draft = `${path}.${process.pid}`
  const made = { current: 'k1', keys: { k1: randomBytes(32).toString('base64') } }
  writeFileSync(draft, `${JSON.stringify(made)}\n`, { mode: 0o600, flush: true })
  try {
    // If another start was faster, linking fails and that
    // start's keys are used: there are never two sets of keys.
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  return loadKeys(path)!
}

/**
 * Throws ConfigError unless the keys are those of the installation: none has other bytes than before, and none is
 * missing that credentials need. Needs a database that is up to date.
 */
export async function demandSealKeys(store: Store): Promise<void> {
  const faults = await findKeyFaults(store)
  if (faults.length > 0) throw new ConfigError(faults.join('\n'))
}

function loadKeys(path: string): Keys | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const broken = new ConfigError(
    `${path} is not a key file: restore it from your backup, or set PERDURE_KEYS`,
  )
  let read: v.InferOutput<typeof file>
  try {
    read = v.parse(file, JSON.parse(text))
  } catch {
    throw broken
  }
  const byId = new Map(Object.entries(read.keys).map(([id, key]) => [id, Buffer.from(key, 'base64')]))
  if (!byId.has(read.current) || [...byId.values()].some((key) => key.length !== 32)) throw broken
  return { current: read.current, byId }
}
