import { randomBytes } from 'node:crypto'
import { type Keys, seal, unseal } from '../../seal.ts'

/**
 * The secrets of a channel, which are never shown. `previous` still signs for a time, after the secret of signatures
 * was changed.
 */
export type ChannelSecrets = {
  url: string
  secret: string | null
  previous?: { secret: string; until: string }
}

const PURPOSE = 'notification channel'

/** How long the secret before still signs, so that a receiver has time to change over. */
export const OLD_SECRET_HOURS = 24

export function sealChannel(
  keys: Keys,
  place: { teamId: string; id: string },
  secrets: ChannelSecrets,
): Buffer {
  return seal(keys, PURPOSE, nameChannel(place), Buffer.from(JSON.stringify(secrets)))
}

/** Throws if it was sealed for another channel, with another key, or was changed. */
export function openChannel(
  keys: Keys,
  place: { teamId: string; id: string },
  sealed: Buffer,
): ChannelSecrets {
  return JSON.parse(unseal(keys, PURPOSE, nameChannel(place), sealed).toString()) as ChannelSecrets
}

/** A new secret for signatures, as the Standard Webhooks have it. */
export function makeWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** The part that may be shown of a URL whose path or query is a secret: its origin. */
export function hideUrl(url: string): string {
  return `${new URL(url).origin}/[hidden]`
}

function nameChannel({ teamId, id }: { teamId: string; id: string }): string {
  return `${teamId}|${id}`
}
