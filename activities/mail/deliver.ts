import type { Logger } from 'pino'
import { makeChoiceToken, readMailChoice } from '../../db/mail/choices.ts'
import { type DueMail, MAIL_HOURS, makeEmailToken, postponeMail, settleMail } from '../../db/people/mails.ts'
import type { Store } from '../../db/scope.ts'
import { cleanText } from '../../db/text.ts'
import { type Letter, MailError } from './letters.ts'
import { linkChoice, writeStopHeaders } from './links.ts'
import type { Mailer } from './smtp.ts'

/** What sending the service's own mails needs. `publicUrl` is the base of the links in them. */
export type MailCarrier = { store: Store; mailer: Mailer; publicUrl: string; log: Logger }

const RETRY_MS = 10_000
const MAX_RETRY_MS = 30 * 60_000

/**
 * Sends a claimed mail. If that fails it is due again later, unless it can never be sent or is a day old. The
 * mail may arrive twice if the process dies in between. Never throws.
 */
export async function deliverMail(carrier: MailCarrier, mail: DueMail, signal?: AbortSignal): Promise<void> {
  const { store, mailer, log } = carrier
  const { id, kind, attempts } = mail
  try {
    const letter = await writeLetter(carrier, mail)
    if (letter) await mailer.send(letter, signal)
    await settleMail(store, id)
  } catch (error) {
    const given = mail.old || (error instanceof MailError && error.final)
    const facts = { err: error, mailId: id, kind, attempts }
    log[given ? 'error' : 'warn'](facts, given ? 'a mail is given up' : 'a mail could not be sent yet')
    const message = cleanText(String(error), 1_000)
    const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(attempts - 1, 10))
    const noted = given ? settleMail(store, id, message) : postponeMail(store, id, delay, message)
    await noted.catch((lost) => log.warn({ err: lost, mailId: id }, 'the failure of a mail was not noted'))
  }
}

/**
 * The text of a mail, in lines that need no encoding, so that a link stays in one piece; undefined if the mail has
 * become needless. Users write nothing in it: a person who enters a stranger's address must not be able to send them
 * text of their own.
 */
async function writeLetter(carrier: MailCarrier, mail: DueMail): Promise<Letter | undefined> {
  const { store, publicUrl } = carrier
  const { id, kind, email, teamId } = mail
  const envelope = { id: `${id}.${mail.attempts}`, to: email }
  const say = (subject: string, lines: string[]): Letter => ({
    ...envelope,
    subject,
    text: `${lines.join('\n\n')}\n`,
  })
  switch (kind) {
    case 'CHANGED':
      return say('Your e-mail address was changed', [
        `The account that had this e-mail address has changed to another one, at\n${publicUrl}`,
        "If that was not you, tell the service's administrator.",
      ])
    case 'KNOWN':
      return say('You have an account already', [
        `Somebody, perhaps you, gave this e-mail address for an account at\n${publicUrl}`,
        'An account with it is there already, and nothing was changed.\nIf it was you, sign in to that account. If not, ignore this mail.',
      ])
    case 'QUESTION':
      return teamId === null ? undefined : askForYes(carrier, envelope, teamId)
  }
  const token = await makeEmailToken(store, mail)
  if (!token) return undefined
  return say('Confirm your e-mail address', [
    `Somebody, we hope you, gave this e-mail address for an account at\n${publicUrl}`,
    'To confirm that it is yours, open this link, sign in to that account, and\npress "Confirm" if you are asked:',
    // The part after the # stays in the browser, out of the logs on the way.
    `${publicUrl}/#/confirm?token=${token}`,
    `The link works once, within ${MAIL_HOURS} hours. If it was not you, ignore this mail.`,
  ])
}

/** The one mail that asks for a yes. Undefined if its owner has said something already. */
async function askForYes(
  { store, publicUrl }: MailCarrier,
  envelope: Pick<Letter, 'id' | 'to'>,
  teamId: string,
): Promise<Letter | undefined> {
  const token = await makeChoiceToken(store, teamId, envelope.to)
  const said = await readMailChoice(store, token)
  if (!said || said.state !== null) return undefined
  const lines = [
    `A team at\n${publicUrl}\nwants to send mails to this address: reports, or alerts.`,
    `If you want them, open this page, and press "Yes":\n${linkChoice(publicUrl, token)}`,
    'If you do nothing, none will come, and this team does not ask again.',
    `To get no mail of any team, and no more questions:\n${linkChoice(publicUrl, token, 'never')}`,
  ]
  const text = `${lines.join('\n\n')}\n`
  return {
    ...{ ...envelope, subject: 'Do you want mails of this service?', text },
    headers: writeStopHeaders(publicUrl, token),
  }
}
