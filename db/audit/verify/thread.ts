import { parentPort, workerData } from 'node:worker_threads'
import type { Keys } from '../../seal.ts'
import type { ChainPrefix, PrefixResult } from './prefix.ts'
import { type ChainRange, checkRange, type RangeResult } from './ranges.ts'
import type { AuditVerification } from './verify.ts'
import type { WholeChain } from './whole.ts'

/**
 * The program of a thread that verifies: a range of a chain fast, a whole chain to say what is wrong with it, or what of
 * one is to be purged. What only the others need is loaded only then, because threads start for each verification.
 */

export type ThreadJob = { url: string; keys: Keys } & (
  | { range: ChainRange }
  | { walk: WholeChain }
  | { prefix: ChainPrefix }
)

export type ThreadAnswer = { range: RangeResult } | { walk: AuditVerification } | { prefix: PrefixResult }

async function carryOut(job: ThreadJob): Promise<ThreadAnswer> {
  const { url, keys } = job
  if ('range' in job) return { range: await checkRange(url, keys, job.range) }
  if ('walk' in job) return { walk: await (await import('./whole.ts')).walkWhole(url, keys, job.walk) }
  return { prefix: await (await import('./prefix.ts')).walkPrefixOf(url, keys, job.prefix) }
}

parentPort!.postMessage(await carryOut(workerData as ThreadJob))
