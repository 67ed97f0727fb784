import { createHash } from 'node:crypto'
import { listSecretValues, openTeamCredential } from '../../../db/credentials/open.ts'
import { countOpening } from '../../../db/credentials/opens.ts'
import { Fault } from '../../../db/fault.ts'
import type { Outside } from '../../egress/outside.ts'
import { readMailAddresses } from '../../mail/addresses.ts'
import { addressMail, makeMessageId, type NodeMail, weighMail, writeMail } from '../../mail/compose.ts'
import { smtpFailure } from '../../mail/failures.ts'
import { type MailLogin, openSmtp } from '../../mail/session.ts'
import { MailError } from '../../mail/smtp.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { ChannelCarrier, SendFailure } from './carrier.ts'
import { type NotificationMessage, writeNoticeMail } from './messages.ts'

/** What a mail goes to, and how. Without a credential it goes by the service's own server. */
export type MailTarget = {
  teamId: string
  channelId: string | null
  credentialId: string | null
  recipients: string[]
}

/** Who has got the mail before, and who is told that somebody has. */
export type MailProgress = { told: readonly string[]; onTold: (recipient: string) => Promise<void> }

/**
 * Sends a message to each recipient who has not got it, by a mail of their own: nobody sees the others, and nobody gets it
 * twice because the server has refused it for somebody else. Resolves to what went wrong, if anything.
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
  const left = target.recipients.filter((one) => !told.includes(one))
  if (left.length === 0) return undefined
  const { subject, text } = writeNoticeMail(message)
  const letterOf = (to: string) => ({ id: nameLetter(message.id, to), to, subject, text })
  const sender = await openSender(carrier, ways, target, signal, tell)
  if ('failure' in sender) return sender.failure
  const failures: SendFailure[] = []
  try {
    for (const to of left) {
      signal.throwIfAborted()
      const failure = await sender.send(letterOf(to)).then(
        () => undefined,
        (error) => explain(error),
      )
      signal.throwIfAborted()
      if (failure) failures.push({ ...failure, message: `${to}: ${failure.message}` })
      else await onTold(to)
      // Others would fail in the same way.
      if (failure && sender.isOver()) break
    }
  } finally {
    sender.close()
  }
  if (failures.length === 0) return undefined
  const worst = failures.find(({ final }) => !final) ?? failures[0]!
  const more = failures.length > 1 ? ` (and ${failures.length - 1} more)` : ''
  return { ...worst, message: `${worst.message}${more}` }
}

type Sender = { send(letter: Letter): Promise<void>; isOver(): boolean; close(): void }
type Letter = { id: string; to: string; subject: string; text: string }

async function openSender(
  { store, mailer }: ChannelCarrier,
  { dial }: Outside,
  { teamId, channelId, credentialId }: MailTarget,
  signal: AbortSignal,
  tell: (secret: string) => void,
): Promise<Sender | { failure: SendFailure }> {
  if (credentialId === null) {
    const fault =
      'This service has no SMTP server: its operator can set one up, or the channel can have a credential'
    if (!mailer) return { failure: { message: fault, final: true } }
    return { send: (letter) => mailer.send(letter, signal), isOver: () => false, close: () => {} }
  }
  try {
    const opened = await openTeamCredential(store, teamId, credentialId)
    if (channelId !== null)
      await countOpening(store, { teamId, credentialId, opener: { kind: 'CHANNEL', id: channelId } })
    for (const secret of listSecretValues(opened)) tell(secret)
    const login = opened.data as MailLogin & { from?: string }
    const from = [login.from, login.username].find((one) => one?.includes('@'))
    const [sender] = from ? readMailAddresses(from) : []
    if (!sender)
      return {
        failure: { message: 'The credential has no `from`, and its user name is no address', final: true },
      }
    const session = await openSmtp(login, dial, signal).catch((error) => {
      throw smtpFailure(login.host, error)
    })
    let over = false
    return {
      async send({ id, to, subject, text }) {
        const mail: NodeMail = {
          ...{ from: sender, to: readMailAddresses(to), cc: [], bcc: [], replyTo: [], attachments: [] },
          ...{ messageId: makeMessageId(id, sender), headers: { 'Auto-Submitted': 'auto-generated' } },
          ...{ subject, text },
        }
        const envelope = { ...addressMail(mail), size: weighMail(mail) }
        try {
          // A mail that may have arrived is sent again if nobody knows: its Message-ID stays the same.
          await session.send(envelope, writeMail(mail), { begin: async () => {}, refused: () => {} })
        } catch (error) {
          // The session is closed by any failure.
          over = true
          throw smtpFailure(login.host, error)
        }
      },
      isOver: () => over,
      close: session.close,
    }
  } catch (error) {
    signal.throwIfAborted()
    return { failure: explain(error) }
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
