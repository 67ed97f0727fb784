import { listSecretValues, type OpenedCredential, openTeamCredential } from '../../db/credentials/open.ts'
import { countOpening, type Opening } from '../../db/credentials/opens.ts'
import { credentialKind } from '../../db/credentials/types.ts'
import { Fault } from '../../db/fault.ts'
import type { Store } from '../../db/scope.ts'
import type { CredentialUse } from '../../workflows/secrets/uses.ts'
import type { HttpClient } from '../http/http.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import { findAccessToken } from './oauth/token.ts'

/** The credentials that a call of a node may open, and what it has opened. */
export type Credentials = {
  /**
   * Opens a credential of the execution's team. Throws a NodeFailure, which no retry mends, if the id is unknown, if
   * its use is not among `uses`, or if it has become unusable.
   */
  open(id: unknown, ...uses: CredentialUse[]): Promise<OpenedCredential>
  /**
   * The access token of a credential that gets them from a token server, or another one than `refused`, which a server
   * has not taken; null if there is no other. Throws as findAccessToken does.
   */
  findToken(opened: OpenedCredential, refused?: string): Promise<string | null>
  /** Notes another secret of the call, such as a token that it has just got. */
  tell(secret: string): void
  /** The exact values that are secret in what the call has opened: they are masked in all that it leaves behind. */
  secrets(): string[]
}

/** Who opens credentials, of which team. */
type CredentialPlace = { teamId: string } & (
  | { workflowId: string }
  | { opener: Opening['opener'] }
  /** An entry of the audit says by itself that it was opened. */
  | { opener: null }
)

/**
 * The credentials of one call of a node, of the workflow that it is in, or of another opener: opened in this process, for
 * as long as the call takes. Each counts once for a call, in the audit.
 */
export function createCredentials(store: Store, http: HttpClient, place: CredentialPlace): Credentials {
  const secrets = new Set<string>()
  const counted = new Set<string>()
  return {
    async open(id, ...uses) {
      if (typeof id !== 'string') throw invalidConfig('credentialId', 'must be the id of a credential')
      const opened = await openOrFail(store, place.teamId, id)
      const opener = 'opener' in place ? place.opener : ({ kind: 'WORKFLOW', id: place.workflowId } as const)
      if (opener && !counted.has(id))
        await countOpening(store, { teamId: place.teamId, credentialId: opened.id, opener })
      counted.add(id)
      for (const value of listSecretValues(opened)) secrets.add(value)
      const { name, type, broken } = opened
      if (!credentialKind(type).uses.some((use) => uses.includes(use)))
        throw invalidConfig(
          'credentialId',
          `names ${name}, which is of the type ${type}: this node cannot use it`,
        )
      if (broken)
        throw new NodeFailure(`The credential ${name} cannot be used: ${broken}`, {
          type: 'CredentialBroken',
        })
      return opened
    },
    async findToken(opened, refused) {
      const token = await findAccessToken({ store, http }, opened, { refused })
      if (token !== null) secrets.add(token)
      return token
    },
    tell: (secret) => void secrets.add(secret),
    secrets: () => [...secrets],
  }
}

async function openOrFail(store: Store, teamId: string, id: string): Promise<OpenedCredential> {
  try {
    return await openTeamCredential(store, teamId, id)
  } catch (error) {
    if (error instanceof Fault && error.code === 'NOT_FOUND')
      throw new NodeFailure(error.message, { type: 'CredentialMissing' })
    throw error
  }
}
