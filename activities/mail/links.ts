import type { MailChoice } from '../../db/mail/choices.ts'

/** The address of a mail's links: a page that says yes or no once its button is pressed. */
export function linkChoice(publicUrl: string, token: string, choice?: MailChoice): string {
  return `${publicUrl}/mail/${token}${choice ? `/${choice}` : ''}`
}

/** The headers by which mail programs offer to stop a team's mails with one click (RFC 8058). */
export function writeStopHeaders(publicUrl: string, token: string): Record<string, string> {
  return {
    'List-Unsubscribe': `<${linkChoice(publicUrl, token, 'stop')}>`,
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  }
}
