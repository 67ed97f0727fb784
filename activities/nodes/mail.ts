import type { CredentialData } from '../../db/credentials/seal.ts'
import { MAX_MAIL_BYTES, MAX_MAIL_TEXT_BYTES, MAX_RECIPIENTS } from '../../workflows/nodes/messages.ts'
import { type MailAddress, readMailAddresses } from '../mail/addresses.ts'
import { addressMail, makeMessageId, type NodeMail, weighMail, writeMail } from '../mail/compose.ts'
import { smtpFailure } from '../mail/failures.ts'
import { type MailLogin, openSmtp } from '../mail/session.ts'
import { openFiles } from '../send/files.ts'
import { type Handover, sendOnce } from '../send/once.ts'
import { renderText } from './kit/config.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/** Headers that say something of the mail, and nothing of where it goes, what it is made of or who has sent it. */
const HEADERS = new Set(
  `auto-submitted comments importance in-reply-to keywords list-help list-id list-post list-subscribe
  list-unsubscribe list-unsubscribe-post organization precedence priority references sensitivity`.split(
    /\s+/,
  ),
)
const OWN_HEADER = /^x-[a-z0-9-]{1,70}$/
const MAX_HEADER = 900
const MAX_SUBJECT = 900

/**
 * SEND_EMAIL: sends a mail over SMTP, and outputs {messageId, accepted, rejected, response} once the server has taken
 * it for at least one address. It is never sent twice: if it is not known whether the server has taken it, the node
 * fails for good (MailUncertain), unless `repeat` is set. Retried: 4xx and broken connections before that. Final: 5xx
 * (SmtpRefused), a refused sign-in (SmtpAuth), no TLS (SmtpTls), a config that cannot be sent (InvalidConfig), a mail
 * of more than 25 MB (FileTooLarge).
 */
export const runSendEmail: NodeRunner = async (context) => {
  const repeat = context.config.repeat === true
  const once = { what: 'The mail', uncertain: 'MailUncertain', repeat } as const
  return { output: await sendOnce(context, once, (handover) => sendMail(context, handover)) }
}

async function sendMail(context: NodeContext, handover: Handover): Promise<object> {
  const { credentials, dial, config, signal } = context
  if (!credentials || !dial) throw new Error('only attempts send mails')
  const { data } = await credentials.open(config.credentialId, 'MAIL')
  const mail = await renderMail(context, data)
  const size = weighMail(mail)
  if (size > MAX_MAIL_BYTES)
    throw new NodeFailure(`The mail would have about ${size} bytes; at most ${MAX_MAIL_BYTES} can be sent`, {
      type: 'FileTooLarge',
    })
  const login = data as MailLogin
  try {
    const session = await openSmtp(login, dial, signal)
    if (session.warning !== null)
      context.notes.add({ warnings: [{ path: 'config.credentialId', message: session.warning }] })
    try {
      const written = await writeMail(mail)
      const answer = await session.send({ ...addressMail(mail), size }, written, handover)
      return { messageId: mail.messageId, ...answer }
    } finally {
      session.close()
    }
  } catch (error) {
    throw smtpFailure(login.host, error)
  }
}

async function renderMail(context: NodeContext, data: CredentialData): Promise<NodeMail> {
  const { config, idempotencyKey } = context
  const from = await renderSender(context, data)
  const [to, cc, bcc, replyTo] = await Promise.all(
    ['to', 'cc', 'bcc', 'replyTo'].map((key) => renderAddresses(context, key)),
  )
  const mail = { to: to ?? [], cc: cc ?? [], bcc: bcc ?? [], replyTo: replyTo ?? [] }
  if (config.to !== undefined && mail.to.length === 0) throw invalidConfig('to', 'must have an address')
  const count = mail.to.length + mail.cc.length + mail.bcc.length
  if (count === 0) throw invalidConfig('to', 'must have an address')
  if (count > MAX_RECIPIENTS)
    throw invalidConfig('to', `must, with cc and bcc, have at most ${MAX_RECIPIENTS} addresses`)
  const subject = await renderText(context, 'subject')
  if (/[\0\r\n]/.test(subject)) throw invalidConfig('subject', 'must not contain a line break or NUL')
  if (subject.length > MAX_SUBJECT)
    throw invalidConfig('subject', `must have at most ${MAX_SUBJECT} characters`)
  return {
    ...mail,
    from,
    subject,
    text: await renderBody(context, 'text'),
    html: await renderBody(context, 'html'),
    headers: await renderHeaders(context),
    attachments: await openFiles(context, 'attachments', MAX_MAIL_BYTES),
    messageId: makeMessageId(idempotencyKey, from),
  }
}

/** The node's sender, else that of the credential, else its user name if that is an address. */
async function renderSender(context: NodeContext, data: CredentialData): Promise<MailAddress> {
  const own = context.config.from === undefined ? [] : await renderAddresses(context, 'from')
  if (own.length > 1) throw invalidConfig('from', 'must be a single address')
  if (own[0]) return own[0]
  if (context.config.from !== undefined) throw invalidConfig('from', 'must have a value, but it is empty')
  for (const usual of [data.from, data.username]) {
    if (typeof usual !== 'string' || !usual.includes('@')) continue
    const [address] = readOrExplain('from', usual)
    if (address) return address
  }
  throw invalidConfig('from', 'is required: the credential says neither `from` nor an address as user name')
}

async function renderAddresses(
  { config, bindings, evaluator }: NodeContext,
  key: string,
): Promise<MailAddress[]> {
  return readOrExplain(key, await evaluator.render(config[key] ?? null, bindings))
}

function readOrExplain(key: string, value: unknown): MailAddress[] {
  try {
    return readMailAddresses(value)
  } catch (error) {
    throw invalidConfig(key, (error as Error).message)
  }
}

async function renderBody(context: NodeContext, key: 'text' | 'html'): Promise<string | undefined> {
  if (context.config[key] === undefined) return undefined
  const text = await renderText(context, key)
  if (Buffer.byteLength(text) > MAX_MAIL_TEXT_BYTES)
    throw invalidConfig(key, `must have at most ${MAX_MAIL_TEXT_BYTES} bytes`)
  return text
}

async function renderHeaders({ config, bindings, evaluator }: NodeContext): Promise<Record<string, string>> {
  const rendered = (await evaluator.render(config.headers ?? {}, bindings)) as Record<string, unknown>
  const headers: [string, string][] = []
  for (const [name, value] of Object.entries(rendered)) {
    const key = `headers.${name.slice(0, 100)}`
    if (!HEADERS.has(name.toLowerCase()) && !OWN_HEADER.test(name.toLowerCase()))
      throw invalidConfig(
        key,
        `cannot be set: these can be, ${[...HEADERS].join(', ')}, and those with X- in front`,
      )
    // A header whose expression finds nothing is left out.
    if (value === null || value === undefined) continue
    if (typeof value === 'object') throw invalidConfig(key, 'must be a text')
    const text = String(value)
    if (/\p{Cc}/u.test(text) || text.length > MAX_HEADER)
      throw invalidConfig(key, `must be a single line of at most ${MAX_HEADER} characters`)
    headers.push([name, text])
  }
  return Object.fromEntries(headers)
}
