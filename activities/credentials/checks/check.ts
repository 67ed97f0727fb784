import type { OpenedCredential } from '../../../db/credentials/open.ts'
import type { Store } from '../../../db/scope.ts'
import type { Dial } from '../../egress/dial.ts'
import type { HttpClient } from '../../http/http.ts'
import type { Credentials } from '../credentials.ts'

/** What a check of a credential may use; `signal` ends when its time is up, `credentials` is told of secrets. */
export type CheckTools = {
  store: Store
  http: HttpClient
  dial: Dial
  signal: AbortSignal
  credentials: Pick<Credentials, 'tell'>
}

/**
 * Signs in with a credential, changes nothing, and resolves with what to tell the user ("signed in as bot-7"). Throws
 * an Error whose message says what is wrong; the caller masks the secrets in both.
 */
export type CredentialCheck = (credential: OpenedCredential, tools: CheckTools) => Promise<string>
