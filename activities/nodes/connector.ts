import { findActionOf, type NamedAction } from '../../db/connectors/find.ts'
import { callAction } from '../connectors/call.ts'
import { prepareCall } from '../connectors/prepare.ts'
import { retryOutages } from '../run/outages.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/** CONNECTOR: carries out an action of a service, and outputs what it answers. Failures are those of callConnector. */
export const runConnector: NodeRunner = async (context) => {
  const input = await context.evaluator.render(context.config.input ?? {}, context.bindings)
  return { output: await callConnector(context, input) }
}

/**
 * Carries out the action that the config names, with an input that is computed. Throws a NodeFailure: InvalidConfig for an
 * action that there is not, and those of prepareCall and callAction.
 */
export async function callConnector(context: NodeContext, input: unknown): Promise<unknown> {
  const { config, spot, signal } = context
  const named = config as NamedAction
  const found = await retryOutages(signal, () => findActionOf(spot.store, spot.executionId, named))
  if (!found)
    throw invalidConfig(
      'action',
      `must be an action of the connector ${named.connector}, unlike ${named.action}`,
    )
  const call = await prepareCall(context, found, { ...config, input })
  return callAction(context, { ...call, noted: true })
}
