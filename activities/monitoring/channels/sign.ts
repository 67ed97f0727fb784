import { createHmac } from 'node:crypto'
import type { ChannelSecrets } from '../../../db/monitoring/channels/secrets.ts'

/** The headers of a webhook by the Standard Webhooks: signed with each secret that holds at the moment. */
export function signWebhook(
  id: string,
  body: string,
  secrets: ChannelSecrets,
  now: number,
): Record<string, string> {
  const seconds = Math.floor(now / 1_000)
  const { secret, previous } = secrets
  const old = previous && Date.parse(previous.until) > now ? previous.secret : null
  const signatures = [secret, old].flatMap((one) =>
    one === null ? [] : [sign(one, `${id}.${seconds}.${body}`)],
  )
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': signatures.join(' '),
  }
}

function sign(secret: string, text: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return `v1,${createHmac('sha256', key).update(text).digest('base64')}`
}
