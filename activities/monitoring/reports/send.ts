import type { Logger } from 'pino'
import {
  type ClaimedReportRun,
  noteReportEnded,
  noteReportFailed,
  noteReportOutcome,
  noteReportSending,
  type ReportOutcome,
  readReportSender,
  UNCERTAIN,
} from '../../../db/monitoring/reports/claims.ts'
import { MailError } from '../../mail/letters.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { retryOutages } from '../../run/outages.ts'
import { type ChannelCarrier, maskFailure } from '../channels/carrier.ts'
import { writeReport } from './mail.ts'
import { openReportServer, Postponed } from './server.ts'

/** What sending reports needs. `mailer` is undefined if the operator has set up no SMTP server. */
export type ReportCarrier = ChannelCarrier & { log: Logger }

const RETRY_MS = 30_000
const MAX_RETRY_MS = 30 * 60_000

/** How long the server may think about a mail that it has. */
const ANSWER_MS = 5 * 60_000

/** How long it is tried to note what came of a mail, also when the process is about to stop. */
const NOTE_MS = 10 * 60_000

/**
 * Sends the mails of a claimed run, one to each recipient. Each is handed over at most once: if no answer says whether the
 * server has taken it, it is not sent again. What the server has not taken is tried again, unless it never will be. Never
 * throws.
 */
export async function sendReportRun(
  carrier: ReportCarrier,
  run: ClaimedReportRun,
  signal: AbortSignal,
): Promise<void> {
  const { store, publicUrl, log } = carrier
  const facts = { reportId: run.reportId, runId: run.id, teamId: run.teamId, tries: run.tries }
  const secrets = new Set<string>()
  const tell = (error: unknown) =>
    maskFailure(error instanceof Error ? error.message : String(error), secrets)
  const note = (work: () => Promise<void>) =>
    retryOutages(AbortSignal.timeout(NOTE_MS), work).catch((lost) =>
      log.warn({ ...facts, err: lost }, 'what came of a scheduled report was not noted'),
    )
  const done = { told: run.told, refused: run.refused, uncertain: run.uncertain, withheld: run.withheld }
  const settled = new Set(Object.values(done).flat())
  const left = run.recipients.filter((one) => !settled.has(one))
  let lastError = run.error
  let close = () => {}
  const settle = async (to: string, outcome: ReportOutcome) => {
    done[outcome] = [...done[outcome], to]
    await note(() => noteReportOutcome(store, run, to, outcome))
  }
  try {
    const sender = await readReportSender(store, run)
    if (!sender) return
    const server =
      left.length === 0
        ? undefined
        : await openReportServer(carrier, run, sender, signal, (secret) => void secrets.add(secret))
    close = server?.close ?? close
    const write = server && (await writeReport(store, run, publicUrl))
    for (const to of server ? left : []) {
      signal.throwIfAborted()
      const letter = await server!.prepare(to, write!)
      if (letter === null) {
        await settle(to, 'withheld')
        continue
      }
      const stage = { begun: false, withdrawn: false, refused: false }
      const handover = {
        async begin() {
          stage.withdrawn = !(await noteReportSending(store, run, to, ANSWER_MS))
          if (stage.withdrawn) throw new Error('the run is not to be sent any more')
          // What the recipient has said meanwhile counts.
          await server!.demandStill(to)
          signal.throwIfAborted()
          stage.begun = true
        },
        refused() {
          stage.refused = true
        },
      }
      try {
        await server!.send(letter, handover)
        await settle(to, 'told')
      } catch (error) {
        if (stage.withdrawn) return
        if (stage.begun && !stage.refused) {
          log.error({ ...facts, err: error }, 'it is not known whether a scheduled report was sent')
          lastError = tell(error)
          await settle(to, 'uncertain')
          continue
        }
        await server!.giveBack()
        if (signal.aborted || !isOfRecipient(error)) throw error
        lastError = tell(error)
        await settle(to, 'refused')
      }
    }
    await note(() => noteReportEnded(store, run, sumUp(run, done, lastError)))
  } catch (error) {
    if (signal.aborted)
      return note(() => noteReportFailed(store, run, { message: 'The process has stopped', delayMs: 0 }))
    const isPostponed = error instanceof Postponed && error.delayMs !== null
    const given = run.old || (error instanceof Postponed ? error.delayMs === null : isRefused(error))
    log[given ? 'error' : isPostponed ? 'info' : 'warn'](
      { ...facts, err: error },
      given ? 'a scheduled report is given up' : 'a scheduled report could not be sent yet',
    )
    const usual = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(run.tries - 1, 10))
    const delayMs = given ? null : isPostponed ? error.delayMs : usual
    await note(() => noteReportFailed(store, run, { message: tell(error), delayMs }))
  } finally {
    close()
  }
}

/** The reason why some recipients have not got the mail; null if all have. */
function sumUp(
  { recipients }: ClaimedReportRun,
  { told, refused, uncertain, withheld }: Record<ReportOutcome, string[]>,
  lastError: string | null,
): string | null {
  if (told.length === recipients.length) return null
  const said = [
    ...(uncertain.length > 0 ? [`${UNCERTAIN} (to ${uncertain.length} of the recipients)`] : []),
    ...(refused.length > 0 ? [`The mail server has refused ${refused.length} of the recipients`] : []),
    ...(withheld.length > 0
      ? [`Not sent to ${withheld.length} of the recipients, who have not said yes to mail of this team`]
      : []),
  ]
  const detail = told.length === 0 && lastError !== null ? `: ${lastError}` : ''
  return `${said.join('. ')}${detail}`
}

type SmtpError = Error & {
  code?: string
  responseCode?: number
  rejectedErrors?: { responseCode?: number }[]
}

/** Whether the server will never take the mail for this recipient, while others may get theirs. */
function isOfRecipient(error: unknown): boolean {
  return isRefused(error) && !(error instanceof NodeFailure && error.type !== 'SmtpRefused')
}

/** Whether it is of no use to try again. */
function isRefused(error: unknown): boolean {
  if (error instanceof MailError) return error.final
  if (error instanceof NodeFailure) return !error.retryable
  const { code, responseCode = 0, rejectedErrors } = error as SmtpError
  if (code !== 'EENVELOPE' && code !== 'EMESSAGE') return false
  const said = rejectedErrors?.length ? rejectedErrors.map((one) => one.responseCode ?? 0) : [responseCode]
  return said.every((status) => status >= 500)
}
