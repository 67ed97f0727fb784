import type { OpenedCredential } from '../../db/credentials/open.ts'
import type { CredentialType } from '../../db/credentials/types.ts'
import type { Dial } from '../http/dial.ts'
import type { HttpClient } from '../http/http.ts'
import { checkImap, checkSmtp } from './checks/mail.ts'

/** What a check of a credential may use; `signal` ends when its time is up. */
export type CheckTools = { http: HttpClient; dial: Dial; signal: AbortSignal }

/**
 * Signs in with a credential, changes nothing, and resolves with what to tell the user ("signed in as bot-7").
 * Throws an Error whose message says what is wrong; whoever calls it masks the secrets in both.
 */
export type CredentialCheck = (credential: OpenedCredential, tools: CheckTools) => Promise<string>

/** The check of each type. A type without one has nothing that could be checked. */
export const CREDENTIAL_CHECKS: Partial<Record<CredentialType, CredentialCheck>> = {
  IMAP: checkImap,
  SMTP: checkSmtp,
}
