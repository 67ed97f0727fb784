import { listSecretValues, type OpenedCredential } from '../../db/credentials/open.ts'
import type { CredentialTest } from '../../db/credentials/tests.ts'
import { createExactMask } from '../../db/redaction/exact.ts'
import { redactText } from '../../db/redaction/redact.ts'
import type { Store } from '../../db/scope.ts'
import { unlessAborted } from '../abort.ts'
import type { Outside } from '../egress/outside.ts'
import { CREDENTIAL_CHECKS } from './checks/checks.ts'

/** How long a test may take. */
const TEST_MS = 15_000
const TOO_SLOW = `No answer within ${TEST_MS / 1_000} s`

const NO_CHECK = 'Its data is complete. There is nothing to sign in to'

/** Tries a credential by the check of its type. Never throws; the message has none of its secrets. */
export async function testCredential(
  opened: OpenedCredential,
  { store, http, dial }: Outside & { store: Store },
  { ms = TEST_MS, signal: left }: { ms?: number; signal?: AbortSignal } = {},
): Promise<CredentialTest> {
  const secrets = new Set(listSecretValues(opened))
  const mask = (message: string) => {
    const known = createExactMask(secrets)
    return redactText(known.start(known.excerpt(message)), { secrets })
  }
  const check = CREDENTIAL_CHECKS[opened.type]
  if (!check) return { status: 'SUCCESS', message: NO_CHECK }
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new Error(TOO_SLOW)), ms)
  const signal = left ? AbortSignal.any([limit.signal, left]) : limit.signal
  try {
    const credentials = { tell: (secret: string) => void secrets.add(secret) }
    const working = check(opened, { store, http, dial, signal, credentials })
    const message = await unlessAborted(working, signal)
    return { status: 'SUCCESS', message: mask(message) }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { status: 'FAILED', message: mask(message || 'It failed without a message') }
  } finally {
    clearTimeout(timer)
  }
}
