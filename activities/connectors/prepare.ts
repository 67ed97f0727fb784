import type { FoundAction } from '../../db/connectors/find.ts'
import type { ActionSchema } from '../../workflows/connectors/connector.ts'
import { isObject } from '../../workflows/json.ts'
import { checkJson } from '../jsonschema/check.ts'
import { invalidConfig, NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { openPass } from '../nodes/kit/pass.ts'
import type { ActionCall } from './step.ts'

/** What a person or a node's config says of the call of an action. */
export type ActionSettings = {
  input?: unknown
  credentialId?: unknown
  needsCredential?: unknown
  server?: unknown
  repeat?: unknown
}

/**
 * All that a call of an action needs. The input is held against the action's schema: throws a NodeFailure (InvalidInput)
 * with everything that is wrong, InvalidConfig for an address that cannot be one or that the credential is not meant for, and
 * the failures of openPass.
 */
export async function prepareCall(
  context: NodeContext,
  { connector, action, builtIn }: FoundAction,
  settings: ActionSettings,
): Promise<Omit<ActionCall, 'noted'>> {
  const server = readServer(settings.server ?? connector.server)
  const input = await fitInput(context, action.input, settings.input)
  const needs = connector.signIn.length === 0 ? undefined : `an account of ${connector.title}`
  const { credentialId, needsCredential = needs } = settings
  const pass = await openPass(context, { credentialId, needsCredential, url: server })
  if (pass && !pass.allowedHosts && !builtIn) demandOwnServer(server, action)
  return { connector, action, server, input, pass, repeat: settings.repeat === true }
}

/** An OpenAPI document may name another server for one operation, which its author need not own. */
function demandOwnServer(server: string, { steps }: FoundAction['action']): void {
  for (const step of steps) {
    if (!('path' in step) || !/^https?:/.test(step.path)) continue
    const url = URL.parse(step.path)
    if (url?.origin === new URL(server).origin) continue
    const own = new URL(server).host
    const message = `must have ${url?.host ?? step.path} in its allowedHosts: the action is not at ${own}`
    throw invalidConfig('credentialId', message)
  }
}

function readServer(given: unknown): string {
  const url = typeof given === 'string' ? URL.parse(given) : null
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:')
    throw invalidConfig('server', 'must be the address of the service, which begins with https://')
  return String(given).replace(/\/+$/, '')
}

async function fitInput(
  context: NodeContext,
  schema: ActionSchema,
  given: unknown,
): Promise<Record<string, unknown>> {
  const input = fillInput(schema, given ?? {})
  const problems = await checkJson(context, schema, input)
  if (problems.length === 0) return input
  throw new NodeFailure(problems.map((one) => `input: ${one}`).join('; '), { type: 'InvalidInput' })
}

/**
 * The input with the defaults that its schema fills in, without what is null, and with numbers and booleans where a
 * text says one and the schema wants one: queries and templates with text around an expression give texts.
 */
function fillInput({ properties }: ActionSchema, value: unknown): Record<string, unknown> {
  if (!isObject(value)) throw invalidConfig('input', 'must be an object')
  const usual = Object.entries(Object(properties)).flatMap(([key, one]) => {
    const schema: ActionSchema = Object(one)
    return schema['x-filled'] === true ? [[key, schema.default]] : []
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
