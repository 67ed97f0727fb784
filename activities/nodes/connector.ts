import { type FoundAction, findAction, type NamedAction } from '../../db/connectors/find.ts'
import type { JsonSchema } from '../../workflows/connectors/connector.ts'
import { isObject } from '../../workflows/json.ts'
import { callAction } from '../connectors/call.ts'
import type { HttpPass } from '../credentials/authorize.ts'
import { checkJson } from '../jsonschema/check.ts'
import { retryOutages } from '../run/outages.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import { workedItem } from './kit/items.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'
import { openPass } from './kit/pass.ts'

/**
 * CONNECTOR: carries out an action of a service, and outputs what it answers. What it is given is held against the
 * action's schema before anything is sent (InvalidInput, with all that is wrong). Failures are those of callAction.
 */
export const runConnector: NodeRunner = async (context) => {
  const { config, spot, signal } = context
  const named = config as NamedAction
  const found = await retryOutages(signal, () => findAction(spot.store, spot.executionId, named))
  if (!found)
    throw invalidConfig(
      'action',
      `must be an action of the connector ${named.connector}, unlike ${named.action}`,
    )
  const { connector, action } = found
  const server = readServer(found, config.server)
  const input = fillInput(action.input, await context.evaluator.render(config.input ?? {}, context.bindings))
  const problems = await checkJson(context, action.input, input)
  if (problems.length > 0)
    throw new NodeFailure(problems.map((one) => `input: ${one}`).join('; '), { type: 'InvalidInput' })
  const pass = await openSignIn(context, found, server)
  const call = { connector, action, server, input, pass, repeat: config.repeat === true }
  const answer = await callAction(context, call)
  const output = config.output === 'input' ? workedItem(context) : answer
  return { output, ...(action.each === undefined ? {} : pairEntries(context, input[action.each], output)) }
}

/** Which of the node's items each entry of the output came from, where the action has an entry for each of them. */
function pairEntries({ input }: NodeContext, given: unknown, output: unknown): Pick<NodeResult, 'places'> {
  const { items } = Object(input)
  if (!Array.isArray(items) || given !== items || !Array.isArray(output)) return {}
  return { places: { of: items, from: [...items.keys()] } }
}

function readServer({ connector }: FoundAction, given: unknown): string {
  const server = given ?? connector.server
  const url = typeof server === 'string' ? URL.parse(server) : null
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:')
    throw invalidConfig('server', 'must be the address of the service, which begins with https://')
  return String(server).replace(/\/+$/, '')
}

async function openSignIn(
  context: NodeContext,
  { connector }: FoundAction,
  server: string,
): Promise<HttpPass | undefined> {
  const { credentialId, needsCredential } = context.config
  const needs = connector.signIn.length === 0 ? undefined : `an account of ${connector.title}`
  return openPass(context, { credentialId, needsCredential: needsCredential ?? needs, url: server })
}

/**
 * The input with what its schema has as defaults, without what is null, and with numbers and booleans where a text says one and the schema wants one: queries
 * and templates with text around an expression give texts.
 */
function fillInput({ properties }: JsonSchema, value: unknown): Record<string, unknown> {
  if (!isObject(value)) throw invalidConfig('input', 'must be an object')
  const usual = Object.entries(Object(properties)).flatMap(([key, one]) => {
    const { default: given } = Object(one)
    return given === undefined ? [] : [[key, given]]
  })
  const filled = Object.entries(value).flatMap(([key, given]) => {
    const { type } = Object(Object(properties)[key])
    if (given === null && !(Array.isArray(type) && type.includes('null'))) return []
    return [[key, typeof given === 'string' ? readText(given, type) : given]]
  })
  return Object.fromEntries([...usual, ...filled])
}

function readText(text: string, type: unknown): unknown {
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  const isNumber = (type === 'integer' || type === 'number') && text.trim() !== ''
  return isNumber && Number.isFinite(Number(text)) ? Number(text) : text
}
