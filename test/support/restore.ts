import crypto, { type Argon2Algorithm, type Argon2Parameters } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Runs before each test file: the files of a worker share its process, and some replace the global `fetch`, as the
 * thread that compares meanings does.
 */
const KEY = Symbol.for('perdure.test.fetch')
const kept = globalThis as unknown as Record<symbol, typeof globalThis.fetch | undefined>

kept[KEY] ??= globalThis.fetch
globalThis.fetch = kept[KEY]

/** The password of the accounts that tests make. */
const PASSWORD = 'correct horse battery staple'
const HASHES = Symbol.for('perdure.test.hashes')
const hashes = globalThis as unknown as Record<symbol, Map<string, Buffer<ArrayBuffer>> | undefined>

/**
 * Argon2 is slow on purpose: a test's account, made and signed in to, would take it twice. What it gives for the password
 * of all these accounts is kept: the same hashes, without the time. For all other passwords it is as it is.
 */
function keepHashes(kept: Map<string, Buffer<ArrayBuffer>>): void {
  const { argon2 } = crypto
  type Done = (error: Error | null, hash: Buffer<ArrayBuffer>) => void
  crypto.argon2 = (algorithm: Argon2Algorithm, given: Argon2Parameters, done: Done) => {
    if (given.message !== PASSWORD) return argon2(algorithm, given, done)
    const key = JSON.stringify([
      algorithm,
      { ...given, nonce: Buffer.from(given.nonce as Buffer).toString('hex') },
    ])
    const known = kept.get(key)
    if (known) return void setImmediate(done, null, Buffer.from(known))
    argon2(algorithm, given, (error, hash) => {
      if (!error) kept.set(key, Buffer.from(hash))
      done(error, hash)
    })
  }
  syncBuiltinESMExports()
}

if (!hashes[HASHES]) {
  hashes[HASHES] = new Map()
  keepHashes(hashes[HASHES])
}
