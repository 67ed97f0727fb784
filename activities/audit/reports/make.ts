import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import {
  type ClaimedReport,
  claimReport,
  failReport,
  keepReport,
  type MadeFile,
  releaseClaim,
  renewClaim,
} from '../../../db/audit/reports/claims.ts'
import { gatherReport } from '../../../db/audit/reports/gather.ts'
import { REPORT_FORMATS, type ReportFormat } from '../../../db/audit/reports/reports.ts'
import { verifyAudit } from '../../../db/audit/verify/verify.ts'
import type { ChainVerifier } from '../../../db/audit/verify/verifyteam.ts'
import { type Db, isDatabaseAway } from '../../../db/connection.ts'
import type { Store } from '../../../db/scope.ts'
import { unlessAborted } from '../../abort.ts'
import { createPacer } from '../../expressions/pace.ts'
import { writeReportHtml } from './html.ts'
import { writeReportJson } from './json.ts'

export type ReportMaker = {
  store: Store
  log: Logger
  /** Where the tables are read, if not in the store: what takes long should not hold up others' statements. */
  reader?: Db | undefined
  /** How the chain is verified, if not on this thread. */
  verify?: ChainVerifier | undefined
  /** Tests set other times than the defaults. */
  leaseMs?: number | undefined
  limitMs?: number | undefined
}

/** A process that ends is noticed after this long. */
const LEASE_MS = 30_000
/** How long making a report may take. */
const LIMIT_MS = 10 * 60_000
const MAX_ATTEMPTS = 3
const REST_MS = 10_000
const PART_BYTES = 256 * 1024

const WRITERS = { html: writeReportHtml, json: writeReportJson }

/**
 * Makes one report that no process is making. If this process ends, another one begins anew when the claim is over; a
 * claim that was lost completes nothing. Stops when `stopping` is aborted, and lets another process go on at once.
 * Resolves to false if no report is due. Throws only if the database cannot be asked.
 */
export async function makeNextReport(maker: ReportMaker, stopping: AbortSignal): Promise<boolean> {
  const { store, log, leaseMs = LEASE_MS, limitMs = LIMIT_MS } = maker
  const asked = await claimReport(store, leaseMs)
  if (!asked) return false
  const { id, teamId, attempts } = asked
  if (attempts > MAX_ATTEMPTS) {
    log.error({ reportId: id, teamId }, 'an audit report was begun three times and never finished')
    await failReport(store, asked, 'It was begun three times, and each time the process that made it ended')
    return true
  }
  const lost = new AbortController()
  const limit = AbortSignal.timeout(limitMs)
  const signal = AbortSignal.any([stopping, lost.signal, limit])
  const renew = () =>
    renewClaim(store, asked, leaseMs).then(
      (held) => held || lost.abort(new Error('another process makes the report, or it was deleted')),
      (error) => log.warn({ err: error, reportId: id }, 'the claim on an audit report could not be renewed'),
    )
  const timer = setInterval(renew, leaseMs / 3)
  try {
    const files = await makeFiles(maker, asked, signal)
    const done = await keepReport(store, asked, files)
    if (!done) log.info({ reportId: id }, 'an audit report was deleted or made by another process meanwhile')
  } catch (error) {
    if (lost.signal.aborted) return true
    if (stopping.aborted) await releaseClaim(store, asked, { free: true })
    else if (limit.aborted)
      await failReport(store, asked, `It took longer than ${limitMs / 1_000} s: ask for a shorter period`)
    else if (isDatabaseAway(error) || attempts < MAX_ATTEMPTS) {
      log.warn({ err: error, reportId: id, teamId }, 'an audit report failed and will be tried again')
      await releaseClaim(store, asked, { delayMs: REST_MS * attempts, free: isDatabaseAway(error) })
    } else {
      log.error({ err: error, reportId: id, teamId }, 'an audit report could not be made')
      await failReport(store, asked, 'It failed three times: the log of the service says why')
    }
  } finally {
    clearInterval(timer)
  }
  return true
}

async function makeFiles(
  { store, reader = store.db, verify = verifyOnThread }: ReportMaker,
  asked: ClaimedReport,
  signal: AbortSignal,
): Promise<MadeFile[]> {
  // A verifier that does not heed the signal is left behind.
  const verifyUntil: ChainVerifier = (...chain) => unlessAborted(verify(...chain), signal)
  const content = await gatherReport(store, asked, { verify: verifyUntil, reader, signal })
  const files: MadeFile[] = []
  for (const format of REPORT_FORMATS) files.push(await collect(format, WRITERS[format](content), signal))
  return files
}

const verifyOnThread: ChainVerifier = (store, teamId, noted) => verifyAudit(store, teamId, noted)

/** Writes a file in pieces, so that timers and sockets get their turn. */
async function collect(
  format: ReportFormat,
  pieces: Generator<string>,
  signal: AbortSignal,
): Promise<MadeFile> {
  const pace = createPacer()
  const hash = createHash('sha256')
  const parts: Uint8Array[] = []
  let text = ''
  let bytes = 0
  const flush = () => {
    const part = Buffer.from(text)
    text = ''
    hash.update(part)
    bytes += part.length
    parts.push(part)
  }
  for (const piece of pieces) {
    text += piece
    if (text.length >= PART_BYTES) flush()
    await pace()
    signal.throwIfAborted()
  }
  if (text !== '') flush()
  return { format, parts, bytes, sha256: hash.digest('hex') }
}
