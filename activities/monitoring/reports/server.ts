import { Fault } from '../../../db/fault.ts'
import { returnMail, spendMail } from '../../../db/mail/bounds.ts'
import { makeChoiceToken } from '../../../db/mail/choices.ts'
import { askRecipients, findMailHold, judgeRecipients } from '../../../db/mail/recipients.ts'
import type { ClaimedReportRun } from '../../../db/monitoring/reports/claims.ts'
import type { RichLetter } from '../../mail/letters.ts'
import { linkChoice, writeStopHeaders } from '../../mail/links.ts'
import { openTeamServer } from '../../mail/teamserver.ts'
import type { Handover } from '../../send/once.ts'
import type { ChannelCarrier } from '../channels/carrier.ts'
import type { WriteReport } from './mail.ts'

/** Nothing can be sent at the moment, or, if `delayMs` is null, at all. */
export class Postponed extends Error {
  readonly delayMs: number | null

  constructor(message: string, delayMs: number | null) {
    super(message)
    this.delayMs = delayMs
  }
}

/** The server by which a report goes out: the service's own, or that of a credential of the team. */
export type ReportServer = {
  /** The mail to one recipient; null if they have not said yes. Throws Postponed if the hour's mails are used up. */
  prepare(to: string, write: WriteReport): Promise<RichLetter | null>
  /** Throws if the recipient has said no since then. */
  demandStill(to: string): Promise<void>
  send(letter: RichLetter, handover: Handover): Promise<unknown>
  /** The mail that was prepared last has reached no server. */
  giveBack(): Promise<void>
  close(): void
}

const UNSENDABLE =
  'The service cannot send mail: its operator has set no SMTP_URL, and the report has no credential'

/** Opens the server of a report. Throws Postponed, and what opening a credential throws. */
export async function openReportServer(
  carrier: ChannelCarrier,
  { teamId, reportId, recipients }: ClaimedReportRun,
  { credentialId, changedBy }: { credentialId: string | null; changedBy: string | null },
  signal: AbortSignal,
  tell: (secret: string) => void,
): Promise<ReportServer> {
  const { store, mailer, outside, publicUrl } = carrier
  if (credentialId !== null) {
    const place = { teamId, credentialId, opener: { kind: 'REPORT', id: reportId } as const }
    const ways = await outside.forTeam(teamId)
    const server = await openTeamServer(store, ways, place, signal, tell).catch((error) => {
      throw error instanceof Fault ? new Postponed(error.message, null) : error
    })
    return {
      prepare: async (to, write) => write(to, null),
      demandStill: async () => {},
      send: server.send,
      giveBack: async () => {},
      close: server.close,
    }
  }
  if (!mailer) throw new Postponed(UNSENDABLE, null)
  const spender = { teamId, userId: changedBy }
  const hold = await findMailHold(store, spender)
  if (hold !== null) throw new Postponed(hold, null)
  await askRecipients(store, spender, recipients)
  const isReady = async (to: string) => (await judgeRecipients(store, teamId, [to])).get(to) === 'READY'
  return {
    async prepare(to, write) {
      if (!(await isReady(to))) return null
      const spent = await spendMail(store, spender)
      if (spent) throw new Postponed(spent.message, spent.waitMs)
      const token = await makeChoiceToken(store, teamId, to)
      return { ...write(to, linkChoice(publicUrl, token)), headers: writeStopHeaders(publicUrl, token) }
    },
    async demandStill(to) {
      if (!(await isReady(to))) throw new Postponed('Somebody has just said no to these mails', 0)
    },
    send: (letter, handover) => mailer.post(letter, handover, signal),
    giveBack: () => returnMail(store, spender),
    close: () => {},
  }
}
