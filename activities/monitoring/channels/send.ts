import { listAdminAddresses } from '../../../db/monitoring/channels/admins.ts'
import type { ChannelRow } from '../../../db/monitoring/channels/channels.ts'
import { type ChannelSecrets, openChannel } from '../../../db/monitoring/channels/secrets.ts'
import type { Outside } from '../../egress/outside.ts'
import { FINAL_KINDS, HttpError } from '../../http/httperror.ts'
import { readRetryAfter } from '../../nodes/kit/retryafter.ts'
import { type ChannelCarrier, maskFailure, type SendFailure } from './carrier.ts'
import { type MailProgress, type MailTarget, sendMails } from './mail.ts'
import { type NotificationMessage, writeSlackBody } from './messages.ts'
import { signWebhook } from './sign.ts'

/** How long a receiver has for its answer. */
export const RECEIVER_MS = 30_000

/** The bytes of an answer that are read, and thrown away. */
const MAX_ANSWER_BYTES = 64 * 1024

/** Statuses below 500 that may be others the next time. */
const LATER = new Set([408, 425, 429])

/**
 * Sends a message once to a channel, or to the team's ADMINs (`channel` is null), by the team's egress rules. Resolves to
 * what went wrong, if anything. Throws what is not about the receiver, such as that the database is away, and the signal's
 * reason.
 */
export async function sendToChannel(
  carrier: ChannelCarrier,
  { teamId, channel }: { teamId: string; channel: ChannelRow | null },
  message: NotificationMessage,
  progress: MailProgress,
  signal: AbortSignal,
): Promise<SendFailure | undefined> {
  const { store, outside } = carrier
  const ways = await outside.forTeam(teamId)
  const secrets = new Set<string>()
  const tell = (secret: string) => void secrets.add(secret)
  const failure = await send()
  if (!failure) return undefined
  return { ...failure, message: maskFailure(failure.message, secrets) }

  async function send(): Promise<SendFailure | undefined> {
    if (channel === null || channel.type === 'EMAIL') {
      const target: MailTarget =
        channel === null
          ? {
              ...{ teamId, channelId: null, credentialId: null, changedBy: null },
              recipients: await listAdminAddresses(store, teamId),
            }
          : { ...channel, channelId: channel.id }
      return sendMails(carrier, ways, target, message, progress, signal, tell)
    }
    let opened: ChannelSecrets
    try {
      opened = openChannel(store.keys, channel, channel.sealed!)
    } catch {
      return { message: 'Its URL was sealed with a key that this service does not have', final: true }
    }
    tell(opened.url)
    if (channel.type === 'SLACK') return post(ways, opened.url, writeSlackBody(message), {}, signal)
    const { id, type, timestamp, data } = message
    const body = JSON.stringify({ type, timestamp, data })
    return post(ways, opened.url, body, signWebhook(`msg_${id}`, body, opened, Date.now()), signal)
  }
}

async function post(
  { http }: Outside,
  url: string,
  body: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<SendFailure | undefined> {
  try {
    const { status, headers: said } = await http.request({
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json', ...headers },
      body,
      timeoutMs: RECEIVER_MS,
      maxBytes: MAX_ANSWER_BYTES,
      // A redirected request could reach another receiver, or lose its body.
      redirects: 'none',
      signal,
    })
    if (status >= 200 && status <= 299) return undefined
    const final = status < 500 && !LATER.has(status)
    const retryAfterMs = final ? undefined : readRetryAfter(said['retry-after'], Date.now())
    return { message: `${new URL(url).host} answered with ${status}`, final, retryAfterMs }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof HttpError)) throw error
    // It has taken the message: only its answer is too long.
    if (error.kind === 'too-large') return undefined
    return { message: error.message, final: FINAL_KINDS.has(error.kind) }
  }
}
