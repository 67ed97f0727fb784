import { createHash } from 'node:crypto'
import { Fault } from '../../../db/fault.ts'
import { type MailSpender, returnMail, spendMail } from '../../../db/mail/bounds.ts'
import { makeChoiceToken } from '../../../db/mail/choices.ts'
import { askRecipients, findMailHold, judgeRecipients } from '../../../db/mail/recipients.ts'
import type { Outside } from '../../egress/outside.ts'
import { MailError, type RichLetter } from '../../mail/letters.ts'
import { linkChoice, writeStopHeaders } from '../../mail/links.ts'
import { openTeamServer, type TeamServer } from '../../mail/teamserver.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { ChannelCarrier, SendFailure } from './carrier.ts'
import { type NotificationMessage, writeNoticeMail } from './messages.ts'

/**
 * What a mail goes to, and how. Without a credential it goes by the service's own server, on behalf of who has changed the
 * channel last. `channelId` is null for the team's ADMINs.
 */
export type MailTarget = {
  teamId: string
  channelId: string | null
  credentialId: string | null
  changedBy: string | null
  recipients: string[]
}

/** The recipients who have got the mail already, and a function that notes one more. */
export type MailProgress = { told: readonly string[]; onTold: (recipient: string) => Promise<void> }

/**
 * Sends to one recipient. Resolves to the failure, if there was one; `stops` is true if others would fail in the same
 * way.
 */
type Sending = (to: string) => Promise<(SendFailure & { stops?: boolean }) | undefined>

/**
 * Sends a message to each recipient who has not got it, by a mail of their own: recipients do not see each other, and
 * none gets it twice because the server has refused another one. Resolves to the failure, if there was one.
 */
export async function sendMails(
  carrier: ChannelCarrier,
  ways: Outside,
  target: MailTarget,
  message: NotificationMessage,
  { told, onTold }: MailProgress,
  signal: AbortSignal,
  tell: (secret: string) => void,
): Promise<SendFailure | undefined> {
  if (target.recipients.length === 0) return { message: 'There is nobody to send it to', final: true }
  const { credentialId } = target
  const opened =
    credentialId === null
      ? await openOwn(carrier, target, message, signal)
      : await openTeams(carrier, ways, { ...target, credentialId }, message, signal, tell)
  if ('failure' in opened) return opened.failure
  const left = opened.recipients.filter((one) => !told.includes(one))
  const failures: SendFailure[] = []
  try {
    for (const to of left) {
      signal.throwIfAborted()
      const failure = await opened.send(to)
      signal.throwIfAborted()
      if (failure) failures.push({ ...failure, message: `${to}: ${failure.message}` })
      else await onTold(to)
      if (failure?.stops) break
    }
  } finally {
    opened.close()
  }
  if (failures.length === 0) return undefined
  const worst = failures.find(({ final }) => !final) ?? failures[0]!
  const more = failures.length > 1 ? ` (and ${failures.length - 1} more)` : ''
  return { ...worst, message: `${worst.message}${more}` }
}

type Opened = { recipients: string[]; send: Sending; close: () => void } | { failure: SendFailure }

/** The service's own server: only for people who want the mail, with a way to stop it, and within bounds. */
async function openOwn(
  { store, mailer, publicUrl }: ChannelCarrier,
  { teamId, channelId, changedBy, recipients }: MailTarget,
  message: NotificationMessage,
  signal: AbortSignal,
): Promise<Opened> {
  const fault =
    'This service has no SMTP server: its operator can set one up, or the channel can have a credential'
  if (!mailer) return { failure: { message: fault, final: true } }
  const spender: MailSpender = { teamId, userId: changedBy }
  if (channelId !== null) {
    const hold = await findMailHold(store, spender)
    if (hold !== null) return { failure: { message: hold, final: false } }
    await askRecipients(store, spender, recipients)
  }
  const before = await judgeRecipients(store, teamId, recipients)
  const wanted = recipients.filter((one) => before.get(one) !== 'REFUSED')
  if (wanted.length === 0)
    return { failure: { message: 'All recipients have said that they want no mail', final: true } }
  return {
    recipients: wanted,
    async send(to) {
      // The choice that the recipient has made meanwhile counts.
      const state = (await judgeRecipients(store, teamId, [to])).get(to)
      if (state === 'REFUSED') return { message: 'wants no mail', final: true }
      if (state !== 'READY') return { message: 'has not said yes to mail of this team yet', final: false }
      const spent = await spendMail(store, spender)
      if (spent) return { message: spent.message, final: false, retryAfterMs: spent.waitMs, stops: true }
      const token = await makeChoiceToken(store, teamId, to)
      const { text } = writeNoticeMail(message)
      const stop = `To get no more of these mails:\n${linkChoice(publicUrl, token)}`
      const letter = {
        ...{ id: nameLetter(message.id, to), to, subject: SUBJECTS[message.type] },
        ...{ text: `${text}\n-- \n${stop}\n`, headers: writeStopHeaders(publicUrl, token) },
      }
      return mailer.send(letter, signal).then(
        () => undefined,
        async (error) => {
          await returnMail(store, spender)
          return explain(error)
        },
      )
    },
    close: () => {},
  }
}

/** Nothing that a user has written is in the subject of a mail that the service's own server sends. */
const SUBJECTS: Record<NotificationMessage['type'], string> = {
  'alert.opened': 'An alert of your team',
  'evaluation.failed': 'An evaluation of your team has failed',
  'channel.test': 'A test of a notification channel',
}

/** The server of a credential of the team: it is the team's own matter who gets what. */
async function openTeams(
  { store }: ChannelCarrier,
  ways: Outside,
  { teamId, channelId, credentialId, recipients }: MailTarget & { credentialId: string },
  message: NotificationMessage,
  signal: AbortSignal,
  tell: (secret: string) => void,
): Promise<Opened> {
  const opener = channelId === null ? null : ({ kind: 'CHANNEL', id: channelId } as const)
  let server: TeamServer
  try {
    server = await openTeamServer(store, ways, { teamId, credentialId, opener }, signal, tell)
  } catch (error) {
    signal.throwIfAborted()
    return { failure: explain(error) }
  }
  return {
    recipients,
    async send(to) {
      const letter: RichLetter = { id: nameLetter(message.id, to), to, ...writeNoticeMail(message) }
      // A mail whose outcome is unknown is sent again: its Message-ID stays the same.
      const handover = { begin: async () => {}, refused: () => {} }
      return server.send(letter, handover).then(
        () => undefined,
        (error) => {
          const failure = explain(error)
          // The server has refused this mail; the next one may be another matter.
          const isOfMail = error instanceof MailError || (failure.final && error.type === 'SmtpRefused')
          return { ...failure, stops: !isOfMail }
        },
      )
    },
    close: server.close,
  }
}

/** What a team may read of an error. Unknown ones are tried again. */
function explain(error: unknown): SendFailure {
  if (error instanceof MailError) return { message: error.message, final: error.final }
  if (error instanceof NodeFailure) return { message: error.message, final: !error.retryable }
  if (error instanceof Fault) return { message: error.message, final: true }
  throw error
}

/** A letter's id: the same for all tries, and another one for each recipient. */
function nameLetter(id: string, to: string): string {
  return `${id}.${createHash('sha256').update(to).digest('hex').slice(0, 12)}`
}
