import { findActionOf, type NamedAction } from '../../db/connectors/find.ts'
import { filesOf, withFiles } from '../../workflows/itemfiles.ts'
import { isObject } from '../../workflows/json.ts'
import { callAction } from '../connectors/call.ts'
import { prepareCall } from '../connectors/prepare.ts'
import { readFileValue } from '../files/files.ts'
import { retryOutages } from '../run/outages.ts'
import { invalidConfig } from './kit/failure.ts'
import { workedItem } from './kit/items.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'

/** CONNECTOR: carries out an action of a service, and outputs what it answers. Failures are those of callConnector. */
export const runConnector: NodeRunner = async (context) => {
  const input = await context.evaluator.render(context.config.input ?? {}, context.bindings)
  const { answer, of } = await carryOut(context, input)
  const { output, file } = context.config
  const item = output === 'input' ? workedItem(context) : {}
  if (file !== undefined)
    return { output: addFile(item, await context.evaluator.render(file, context.bindings), answer) }
  if (output === 'input') return { output: item }
  return { output: answer, ...pairEntries(context, of, answer) }
}

/** The item with the file that the service has answered. */
function addFile(item: unknown, name: unknown, answer: unknown): Record<string, unknown> {
  if (!readFileValue(answer)) throw invalidConfig('file', 'is for actions that answer a file')
  if (typeof name !== 'string' || name === '') throw invalidConfig('file', 'must be the name of a file')
  return withFiles(isObject(item) ? item : {}, { ...filesOf(item), [name]: answer })
}

/** Which of the node's items each entry of the answer came from, if it has one for each of the list `of`. */
function pairEntries({ input }: NodeContext, of: unknown, answer: unknown): Pick<NodeResult, 'places'> {
  const { items } = Object(input)
  if (!Array.isArray(items) || of !== items || !Array.isArray(answer)) return {}
  return { places: { of: items, from: [...items.keys()] } }
}

/**
 * Carries out the action that the config names, with an input that is computed. Throws a NodeFailure: InvalidConfig for an
 * action that there is not, and those of prepareCall and callAction.
 */
export async function callConnector(context: NodeContext, input: unknown): Promise<unknown> {
  return (await carryOut(context, input)).answer
}

async function carryOut(context: NodeContext, input: unknown): Promise<{ answer: unknown; of: unknown }> {
  const { config, spot, signal } = context
  const named = config as NamedAction
  const found = await retryOutages(signal, () => findActionOf(spot.store, spot.executionId, named))
  if (!found)
    throw invalidConfig(
      'action',
      `must be an action of the connector ${named.connector}, unlike ${named.action}`,
    )
  const call = await prepareCall(context, found, { ...config, input })
  const { each } = found.action
  const of = each === undefined ? undefined : call.input[each]
  return { answer: await callAction(context, { ...call, noted: true }), of }
}
