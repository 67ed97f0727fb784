import { validate as isUuid } from 'uuid'
import { change } from '../change.ts'
import { missing } from '../fault.ts'
import { demandTeam, type Scope } from '../scope.ts'
import { type FoundAction, findActionFor, type NamedAction } from './find.ts'

/** An action that a caller wants to try (BUILDER). Throws NOT_FOUND. */
export async function demandAction(scope: Scope, teamId: string, named: NamedAction): Promise<FoundAction> {
  await demandTeam(scope, teamId, 'BUILDER')
  const found = await findActionFor(scope.store.db, teamId, named)
  if (!found) throw missing('action')
  return found
}

/** Notes that the caller carries out an action outside of executions, before anything is sent (BUILDER). */
export async function noteTrial(
  scope: Scope,
  teamId: string,
  trial: {
    connector: string
    action: string
    credentialId?: string | undefined
    server?: string | undefined
  },
): Promise<void> {
  const { connector, action, credentialId, server } = trial
  const host = server === undefined ? {} : { server: new URL(server).host }
  await change(scope, 'CONNECTOR_TRIED', teamId, async () => ({
    result: undefined,
    // The name of one that every team has is no id.
    resourceId: isUuid(connector) ? connector : null,
    details: {
      ...(isUuid(connector) ? {} : { connector }),
      action,
      ...(credentialId === undefined ? {} : { credentialId }),
      ...host,
    },
  }))
}
