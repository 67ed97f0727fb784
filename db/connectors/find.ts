import { findBuiltIn } from '../../workflows/connectors/catalog.ts'
import type { Connector, ConnectorAction } from '../../workflows/connectors/connector.ts'
import { getOwn } from '../../workflows/json.ts'
import type { Store } from '../scope.ts'

/** What a node names of a connector. */
export type NamedAction = { connector: string; action: string; version?: number | undefined }

/** An action with what all actions of its connector have. */
export type FoundAction = { connector: Omit<Connector, 'actions' | 'options'>; action: ConnectorAction }

/** The action that a node of a team's workflow names. Undefined if there is no such connector, version or action. */
export async function findAction(
  _store: Store,
  _teamId: string,
  { connector: named, action: id }: NamedAction,
): Promise<FoundAction | undefined> {
  const connector = findBuiltIn(named)
  const action = connector && getOwn<ConnectorAction>(connector.actions, id)
  return action && { connector, action }
}
