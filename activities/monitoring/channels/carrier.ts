import { createExactMask } from '../../../db/redaction/exact.ts'
import { redactText } from '../../../db/redaction/redact.ts'
import type { Store } from '../../../db/scope.ts'
import type { Outsides } from '../../egress/outside.ts'
import type { Mailer } from '../../mail/smtp.ts'

/** What sending notifications needs. */
export type ChannelCarrier = {
  store: Store
  outside: Outsides
  mailer: Mailer | undefined
  publicUrl: string
}

/** Why something was not sent, in words that have no secrets. `final`: it would fail again. */
export type SendFailure = { message: string; final: boolean; retryAfterMs?: number | undefined }

/** A message of a failure without the secrets that were used. */
export function maskFailure(message: string, secrets: Set<string>): string {
  const mask = createExactMask(secrets)
  return redactText(mask.start(mask.excerpt(message)), { secrets })
}
