import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import type { OpenFile } from '../files/files.ts'
import type { MailAddress } from './addresses.ts'

/** A mail as a node has it. Its texts come from users, so nothing in it may name a file or a URL to read. */
export type NodeMail = {
  from: MailAddress
  to: MailAddress[]
  cc: MailAddress[]
  bcc: MailAddress[]
  replyTo: MailAddress[]
  /** With the angle brackets. */
  messageId: string
  subject: string
  text?: string | undefined
  html?: string | undefined
  headers: Record<string, string>
  attachments: OpenFile[]
}

/** The bytes of an attachment grow by the line breaks of base64, too. */
const BASE64_GROWTH = 78 / 57

const MIME_TYPE =
  /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}(; charset=[\w.:-]{1,40})?$/i

/** About how many bytes the mail has once it is written, without writing it. */
export function weighMail({ subject, text = '', html = '', attachments }: NodeMail): number {
  const texts = Buffer.byteLength(subject) + Buffer.byteLength(text) + Buffer.byteLength(html)
  const files = attachments.reduce((sum, { bytes }) => sum + bytes * BASE64_GROWTH + 500, 0)
  return Math.ceil(texts * 1.1 + files + 2_000)
}

/** Writes a mail as RFC 5322 and MIME have it, reading its attachments on the way. Bcc is left out. */
export function writeMail({ attachments, ...mail }: NodeMail): Readable {
  const composer = new MailComposer({
    ...mail,
    // A text may not have NUL in it.
    ...(mail.text === undefined ? {} : { text: mail.text.replaceAll('\0', '') }),
    ...(mail.html === undefined ? {} : { html: mail.html.replaceAll('\0', '') }),
    attachments: attachments.map((file) => ({
      filename: file.name,
      contentType: findMimeType(file.mimeType),
      contentTransferEncoding: 'base64',
      content: Readable.from(file.stream()),
    })),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().createReadStream() as Readable
}

/** Other mails and parts of mails as attachments would be read as a part of this one. */
function findMimeType(type: string): string {
  return MIME_TYPE.test(type) && !/^(message|multipart)\//i.test(type) ? type : 'application/octet-stream'
}

/** Who gets the mail, as the server is told: each address once, and none of the names. */
export function addressMail({ from, to, cc, bcc }: NodeMail): { from: string; to: string[] } {
  const all = [...to, ...cc, ...bcc].map(({ address }) => address)
  return { from: from.address, to: [...new Set(all)] }
}

/** The Message-ID of a node's mail, with the angle brackets: the same for the same key and sender. */
export function makeMessageId(key: string, from: MailAddress): string {
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1)
  return `<${createHash('sha256').update(key).digest('hex').slice(0, 32)}@${domain}>`
}
