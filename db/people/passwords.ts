import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { Fault } from '../fault.ts'
import { MAX_PASSWORD_BYTES } from './strength.ts'

const derive = promisify(argon2)

/** The second of the argon2id configurations that OWASP recommends: 19 MiB, two passes; about 60 ms. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 }
const TAG_BYTES = 32

/**
 * Hashes a password with argon2id into a PHC string ($argon2id$v=19$m=..,t=..,p=..$salt$hash). Throws INVALID
 * if it has more than 1024 bytes.
 */
export async function hashPassword(password: string): Promise<string> {
  checkLength(password)
  const nonce = randomBytes(16)
  const hash = await derive('argon2id', { message: password, nonce, ...COST, tagLength: TAG_BYTES })
  return `$argon2id$v=19$${describeCost(COST)}$${encode(nonce)}$${encode(hash)}`
}

/**
 * Compares a password with a PHC string. For an unknown user pass null: it takes as long and is never right.
 * `stale` means that the hash was made with other parameters than today's and should be replaced. Throws
 * INVALID if the password has more than 1024 bytes.
 */
export async function checkPassword(
  phc: string | null,
  password: string,
): Promise<{ right: boolean; stale: boolean }> {
  checkLength(password)
  const { cost, nonce, hash } = readPhc(phc ?? DUMMY)
  const found = await derive('argon2id', { message: password, nonce, ...cost, tagLength: hash.length })
  const right = timingSafeEqual(found, hash) && phc !== null
  return { right, stale: describeCost(cost) !== describeCost(COST) || hash.length !== TAG_BYTES }
}

const DUMMY = `$argon2id$v=19$${describeCost(COST)}$${encode(randomBytes(16))}$${encode(randomBytes(TAG_BYTES))}`

const SLOTS = Math.max(1, Math.min(4, availableParallelism() - 1))
const MAX_WAITING = 100
const waiting: (() => void)[] = []
const waitingAhead: (() => void)[] = []
let running = 0

/**
 * Limits how much password hashing goes on at once, so that many sign-ins leave the process enough cores and
 * memory. Calls `ahead` do not wait for the others. Throws UNAVAILABLE if 100 calls of the same kind are
 * waiting already.
 */
export async function queueHashing<T>(work: () => Promise<T>, { ahead = false } = {}): Promise<T> {
  const queue = ahead ? waitingAhead : waiting
  if (queue.length >= MAX_WAITING) {
    throw new Fault('UNAVAILABLE', 'Too many sign-ins at once; try again in a moment', { retryAfter: 2 })
  }
  if (running >= SLOTS) await new Promise<void>((resolve) => queue.push(resolve))
  else running++
  try {
    return await work()
  } finally {
    const next = waitingAhead.shift() ?? waiting.shift()
    // The slot is passed on without being freed, so that no other call can take it in between.
    if (next) next()
    else running--
  }
}

/** How many calls of queueHashing wait for their turn. */
export function countWaitingHashes(): number {
  return waiting.length + waitingAhead.length
}

function checkLength(password: string): void {
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) {
    throw new Fault('INVALID', `A password must have at most ${MAX_PASSWORD_BYTES} bytes`)
  }
}

function describeCost(cost: typeof COST): string {
  return `m=${cost.memory},t=${cost.passes},p=${cost.parallelism}`
}

function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replace(/=+$/, '')
}

function readPhc(phc: string) {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(phc)
  if (!match) throw new Error('the stored password hash is not an argon2id PHC string')
  return {
    cost: { memory: Number(match[1]), passes: Number(match[2]), parallelism: Number(match[3]) },
    nonce: Buffer.from(match[4]!, 'base64'),
    hash: Buffer.from(match[5]!, 'base64'),
  }
}
