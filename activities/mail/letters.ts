import { domainToASCII } from 'node:url'
import MailComposer from 'nodemailer/lib/mail-composer'
import { isMailAddress } from './addresses.ts'

/** A mail of plain text to one address. `id` makes its Message-ID. */
export type Letter = {
  id: string
  to: string
  subject: string
  text: string
  headers?: Record<string, string>
}

/** A mail with pictures and files. An attachment with a `cid` is a picture of the HTML. */
export type RichLetter = Letter & {
  html?: string
  attachments?: { filename: string; cid?: string; contentType: string; content: Buffer }[]
}

/** `final`: the server refuses this recipient, or the mail is not one that may be sent, so do not try again. */
export class MailError extends Error {
  readonly final: boolean

  constructor(message: string, final: boolean) {
    super(message)
    this.name = 'MailError'
    this.final = final
  }
}

/** Writes a letter as it is sent, and says to whom the server is to bring it. Throws a MailError. */
export async function writeLetter(
  { id, to, subject, text, html, headers, attachments = [] }: RichLetter,
  from: { name: string; address: string },
): Promise<{ envelope: { from: string; to: string[]; size: number }; bytes: Buffer }> {
  const address = toAscii(to)
  const composer = new MailComposer({
    from,
    to: { name: '', address },
    messageId: `<${id}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`,
    headers: { 'Auto-Submitted': 'auto-generated', ...headers },
    subject: subject.replaceAll(/\p{Cc}+/gu, ' '),
    text: text.replaceAll('\0', ''),
    ...(html === undefined ? {} : { html: html.replaceAll('\0', '') }),
    attachments,
    // A mail is made of strings and bytes only: nothing in it may name a file or a URL to read.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const bytes = await composer.compile().build()
  return { envelope: { from: from.address, to: [address], size: bytes.length }, bytes }
}

function toAscii(address: string): string {
  if (!isMailAddress(address)) throw new MailError('the recipient is not a single e-mail address', true)
  const at = address.lastIndexOf('@')
  return `${address.slice(0, at)}@${domainToASCII(address.slice(at + 1)) || address.slice(at + 1)}`
}
