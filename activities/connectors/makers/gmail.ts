import { buffer } from 'node:stream/consumers'
import { isObject, setOwn } from '../../../workflows/json.ts'
import { readFileValue } from '../../files/files.ts'
import { type MailAddress, readMailAddresses } from '../../mail/addresses.ts'
import { makeMessageId, type NodeMail, weighMail, writeMail } from '../../mail/compose.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { demandFiles } from '../../nodes/kit/files.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import type { Maker } from './maker.ts'

/** What the actions of Gmail work out. */
export const GMAIL_MAKERS: Record<string, Maker> = {
  gmailMessage: writeMessage,
  gmailReply: addressReply,
  gmailSimple: simplify,
  gmailFile: storeAttachment,
}

const wrong = (message: string) => new NodeFailure(message, { type: 'InvalidInput' })

/** The most bytes of a message with its attachments: its text is held in memory, as Gmail's API wants it. */
const MAX_BYTES = 10 * 1024 * 1024

type Message = Partial<
  Record<'to' | 'cc' | 'bcc' | 'replyTo' | 'from' | 'subject' | 'text' | 'html', unknown>
> & {
  attachments?: unknown[] | null
  /** The name to show for the own address. */
  senderName?: unknown
  own?: unknown
  inReplyTo?: unknown
  references?: unknown
}

/** A mail as RFC 5322 has it, in base64url. Without a sender Gmail adds that of the account. */
async function writeMessage(given: Message, context: NodeContext): Promise<string> {
  const [to, cc, bcc, replyTo, from] = (['to', 'cc', 'bcc', 'replyTo', 'from'] as const).map((key) =>
    readAddresses(key, given[key]),
  )
  const subject = String(given.subject ?? '')
  if (/[\0\r\n]/.test(subject)) throw wrong('subject: must not contain a line break or NUL')
  const attachments: NodeMail['attachments'] = []
  for (const [at, value] of (given.attachments ?? []).entries()) {
    const found = readFileValue(value) ?? readFileValue(Object(value).file)
    if (!found) throw wrong(`attachments[${at}]: must be a file of the execution`)
    attachments.push(await demandFiles(context).open(found))
  }
  const own = given.senderName ? readAddresses('from', given.own)[0] : undefined
  const sender = from?.[0] ?? (own && { name: String(given.senderName), address: own.address })
  if (/[\0\r\n]/.test(sender?.name ?? '')) throw wrong('senderName: must not contain a line break or NUL')
  const mail: Omit<NodeMail, 'from'> & { from?: MailAddress } = {
    ...{ to: to ?? [], cc: cc ?? [], bcc: bcc ?? [], replyTo: replyTo ?? [], subject, attachments },
    ...(sender ? { from: sender } : {}),
    ...(given.text === null || given.text === undefined ? {} : { text: String(given.text) }),
    ...(given.html === null || given.html === undefined ? {} : { html: String(given.html) }),
    headers: readThread(given),
    messageId: makeMessageId(context.idempotencyKey, sender ?? { name: '', address: 'mail@mail.gmail.com' }),
  }
  const bytes = weighMail(mail as NodeMail)
  if (bytes > MAX_BYTES)
    throw new NodeFailure(`The mail would have about ${bytes} bytes; at most ${MAX_BYTES} can be sent`, {
      type: 'FileTooLarge',
    })
  return (await buffer(await writeMail(mail as NodeMail, { keepsBcc: true }))).toString('base64url')
}

function readAddresses(key: string, value: unknown): MailAddress[] {
  try {
    return readMailAddresses(value ?? null)
  } catch (error) {
    throw wrong(`${key}: ${(error as Error).message}`)
  }
}

function readThread({ inReplyTo, references }: Message): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of [
    ['In-Reply-To', inReplyTo],
    ['References', references],
  ] as const)
    if (typeof value === 'string' && value !== '') headers[name] = value.replace(/\s+/g, ' ')
  return headers
}

type Header = { name: string; value: string }
type Said = Record<string, unknown> & { payload?: { headers?: Header[] }; labelIds?: string[] }

/** To whom a reply goes, its subject, and the headers that put it into the thread. */
function addressReply({ message, own, all }: { message: Said; own?: string | null; all: boolean }): object {
  const headers = message.payload?.headers ?? []
  const read = (name: string) => headers.find((one) => one.name.toLowerCase() === name)?.value ?? ''
  const isOther = (address: string) => address.toLowerCase() !== String(own ?? '').toLowerCase()
  const addresses = (text: string, isOwnToo = false) =>
    readAddresses('message', text)
      .filter(({ address }) => isOwnToo || isOther(address))
      .map(({ name, address }) => (name === '' ? address : `"${name.replace(/["\\]/g, '')}" <${address}>`))
  const sender = addresses(read('reply-to') || read('from'), true)
  const others = all ? addresses(read('to')) : []
  const subject = read('subject')
  const id = read('message-id')
  const references = read('references')
  return {
    to: [...new Set([...sender, ...others])],
    cc: all ? addresses(read('cc')) : [],
    subject: /^re:/i.test(subject) ? subject : `Re: ${subject}`,
    inReplyTo: id,
    references: references === '' ? id : `${references} ${id}`,
    threadId: message.threadId,
  }
}

/** Messages with their headers as fields, and the names of their labels. */
function simplify({
  messages,
  labels,
}: {
  messages: Said[]
  labels?: { id: string; name: string }[]
}): object[] {
  return messages.map((message) => {
    const { labelIds, payload, ...rest } = message
    const { headers, ...part } = isObject(payload) ? payload : { headers: undefined }
    const said: Record<string, unknown> = { ...rest, ...(payload === undefined ? {} : { payload: part }) }
    if (labelIds)
      said.labels = (labels ?? [])
        .filter(({ id }) => labelIds.includes(id))
        .map(({ id, name }) => ({ id, name }))
    for (const { name, value } of Array.isArray(headers) ? headers : []) setOwn(said, String(name), value)
    return said
  })
}

/** An attachment as a file of the execution. */
async function storeAttachment(
  { data, name, mimeType }: { data?: string; name: string; mimeType: string },
  context: NodeContext,
): Promise<unknown> {
  const bytes = Buffer.from(data ?? '', 'base64url')
  return demandFiles(context).store({ name, mimeType }, bytes)
}
