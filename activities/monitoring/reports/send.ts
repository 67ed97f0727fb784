import type { Logger } from 'pino'
import {
  type ClaimedReportRun,
  noteReportFailed,
  noteReportSending,
  noteReportSent,
  noteReportUncertain,
} from '../../../db/monitoring/reports/claims.ts'
import type { Store } from '../../../db/scope.ts'
import { MailError, type Mailer } from '../../mail/smtp.ts'
import { retryOutages } from '../../run/outages.ts'
import { writeReportLetter } from './mail.ts'

/** What sending reports needs. `mailer` is undefined if the operator has set up no SMTP server. */
export type ReportCarrier = { store: Store; mailer: Mailer | undefined; publicUrl: string; log: Logger }

const RETRY_MS = 30_000
const MAX_RETRY_MS = 30 * 60_000

/** How long the server may think about a mail that it has. */
const ANSWER_MS = 5 * 60_000

/** How long it is tried to note what came of a mail, also when the process is about to stop. */
const NOTE_MS = 10 * 60_000

const UNSENDABLE = 'The service cannot send mail: its operator has set no SMTP_URL'

/**
 * Sends the mail of a claimed run. It is handed over at most once: if no answer says whether the server has taken it, it
 * is not sent again. What the server has not taken is tried again, unless it never will be. Never throws.
 */
export async function sendReportRun(
  carrier: ReportCarrier,
  run: ClaimedReportRun,
  signal: AbortSignal,
): Promise<void> {
  const { store, mailer, publicUrl, log } = carrier
  const facts = { reportId: run.reportId, runId: run.id, teamId: run.teamId, tries: run.tries }
  const note = (work: () => Promise<void>) =>
    retryOutages(AbortSignal.timeout(NOTE_MS), work).catch((lost) =>
      log.warn({ ...facts, err: lost }, 'what came of a scheduled report was not noted'),
    )
  const stage = { begun: false, withdrawn: false, refused: false }
  try {
    if (!mailer) return await note(() => noteReportFailed(store, run, { message: UNSENDABLE, delayMs: null }))
    const letter = await writeReportLetter(store, run, publicUrl)
    const handover = {
      async begin() {
        stage.withdrawn = !(await noteReportSending(store, run, ANSWER_MS))
        if (stage.withdrawn) throw new Error('the run is not to be sent any more')
        signal.throwIfAborted()
        stage.begun = true
      },
      refused() {
        stage.refused = true
      },
    }
    const { rejected } = await mailer.post(letter, handover, signal)
    await note(() => noteReportSent(store, run, rejected))
  } catch (error) {
    if (stage.withdrawn) return
    if (stage.begun && !stage.refused) {
      log.error({ ...facts, err: error }, 'it is not known whether a scheduled report was sent')
      return note(() => noteReportUncertain(store, run, tell(error)))
    }
    if (signal.aborted)
      return note(() => noteReportFailed(store, run, { message: 'The process has stopped', delayMs: 0 }))
    const given = run.old || isFinal(error)
    log[given ? 'error' : 'warn'](
      { ...facts, err: error },
      given ? 'a scheduled report is given up' : 'a scheduled report could not be sent yet',
    )
    const delayMs = given ? null : Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(run.tries - 1, 10))
    await note(() => noteReportFailed(store, run, { message: tell(error), delayMs }))
  }
}

type SmtpError = Error & {
  code?: string
  responseCode?: number
  rejectedErrors?: { responseCode?: number }[]
}

/** Whether the server will never take the mail, or there is nobody left to whom it could go. */
function isFinal(error: unknown): boolean {
  if (error instanceof MailError) return error.final
  const { code, responseCode = 0, rejectedErrors } = error as SmtpError
  if (code !== 'EENVELOPE' && code !== 'EMESSAGE') return false
  const said = rejectedErrors?.length ? rejectedErrors.map((one) => one.responseCode ?? 0) : [responseCode]
  return said.every((status) => status >= 500)
}

function tell(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
