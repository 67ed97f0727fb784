import { isHostOpen, OPEN_HOST } from '../../../workflows/graph/openhost.ts'
import { authorizeWith, type HttpPass } from '../../credentials/authorize.ts'
import { invalidConfig, NodeFailure } from './failure.ts'
import type { NodeContext } from './node.ts'

/** What the settings of a request say of how it is signed in. */
type SignIn = { credentialId?: unknown; needsCredential?: unknown }

/** Throws the NodeFailure CredentialMissing for a request that needs a credential and names none. */
export function demandPass({ credentialId, needsCredential }: SignIn): void {
  if (credentialId !== undefined || needsCredential === undefined) return
  const message = `Nothing was sent, because no credential is chosen. It needs ${needsCredential}`
  throw new NodeFailure(message, { type: 'CredentialMissing' })
}

/**
 * What its credential lets a request do; undefined if it has none and needs none. Throws a NodeFailure: that of
 * demandPass, and those of opening the credential.
 */
export async function openPass(
  { credentials }: NodeContext,
  config: SignIn & { url?: unknown },
): Promise<HttpPass | undefined> {
  demandPass(config)
  if (config.credentialId === undefined) return undefined
  if (!credentials) throw invalidConfig('credentialId', 'can only be used by an attempt of its own')
  const opened = await credentials.open(config.credentialId, 'HTTP')
  const pass = await authorizeWith(opened, credentials)
  if (!pass.allowedHosts && isHostOpen(config.url)) throw invalidConfig('url', OPEN_HOST)
  return pass
}
