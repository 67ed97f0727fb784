import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import type { OpenFile } from '../files/files.ts'
import { findByteOrderMark } from '../reading/charset.ts'
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
  /** One with a `cid` is an image of the HTML. */
  attachments: (OpenFile & { cid?: string })[]
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

/** Writes a mail as RFC 5322 and MIME have it, reading its attachments on the way. Bcc is left out, unless it is kept. */
export async function writeMail(
  { attachments, ...mail }: NodeMail,
  { keepsBcc = false } = {},
): Promise<Readable> {
  const types = await Promise.all(attachments.map(findAttachmentType))
  const composer = new MailComposer({
    ...mail,
    // A text may not have NUL in it.
    ...(mail.text === undefined ? {} : { text: mail.text.replaceAll('\0', '') }),
    ...(mail.html === undefined ? {} : { html: mail.html.replaceAll('\0', '') }),
    attachments: attachments.map((file, index) => ({
      filename: file.name,
      ...(file.cid === undefined ? {} : { cid: file.cid }),
      contentType: types[index]!,
      contentTransferEncoding: 'base64',
      content: Readable.from(file.stream()),
    })),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const written = composer.compile()
  // What is handed over with the mail is the only list of its recipients where no SMTP has one.
  Object.assign(written, { keepBcc: keepsBcc })
  return written.createReadStream() as Readable
}

/** Other mails and parts of mails as attachments would be read as a part of this one. */
function findMimeType(type: string): string {
  return MIME_TYPE.test(type) && !/^(message|multipart)\//i.test(type) ? type : 'application/octet-stream'
}

/** How many bytes of a text without a charset are looked at, to see which one it has. */
const LOOKED_AT = 64 * 1024

/**
 * The type of an attachment. A text without a charset would be read as US-ASCII, or guessed: it says UTF-8 if its beginning
 * is that, or the charset of its byte order mark; else it stays as it is.
 */
async function findAttachmentType(file: OpenFile): Promise<string> {
  const type = findMimeType(file.mimeType)
  if (!/^text\/[^;]+$/i.test(type)) return type
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of file.stream()) {
    parts.push(part)
    size += part.length
    if (size >= LOOKED_AT) break
  }
  const start = Buffer.concat(parts)
  const marked = findByteOrderMark(start)
  if (marked) return `${type}; charset=${marked.replace(/(le|be)$/, '')}`
  try {
    // A sign that is cut at the end is no fault.
    new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: size >= LOOKED_AT })
    return `${type}; charset=utf-8`
  } catch {
    return type
  }
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
