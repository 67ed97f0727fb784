import { parentPort, workerData } from 'node:worker_threads'
import type { Keys } from '../../seal.ts'
import type { AuditVerification } from '../verify.ts'
import { type ChainRange, checkRange, type RangeResult } from './ranges.ts'
import type { WholeChain } from './whole.ts'

/**
 * The program of a thread that verifies: a range of a chain fast, or a whole chain to say what is wrong with it. What
 * only the second needs is loaded only then, because threads start for each verification.
 */

export type ThreadJob = {
  url: string
  keys: Keys
} & ({ range: ChainRange; walk?: undefined } | { walk: WholeChain; range?: undefined })

export type ThreadAnswer = { range: RangeResult } | { walk: AuditVerification }

const { url, keys, range, walk } = workerData as ThreadJob
const answer: ThreadAnswer = range
  ? { range: await checkRange(url, keys, range) }
  : { walk: await (await import('./whole.ts')).walkWhole(url, keys, walk!) }
parentPort!.postMessage(answer)
