import { isObject } from '../../../workflows/json.ts'
import { maxTokensField, objectSchemaField, temperatureField } from '../../../workflows/nodes/models.ts'
import { checkJson, demandSchema } from '../../jsonschema/check.ts'
import { askModel } from '../../models/ask.ts'
import type { ModelMessage, ModelReply } from '../../models/model.ts'
import { renderKey, renderText } from '../kit/config.ts'
import { invalidConfig, NodeFailure } from '../kit/failure.ts'
import { putInto } from '../kit/into.ts'
import type { NodeContext } from '../kit/node.ts'

/** What a node asks a model, apart from the schema of the answer. */
export type Question = {
  model: string
  messages: ModelMessage[]
  temperature?: number | undefined
  maxTokens?: number | undefined
}

/** Renders a text that a model is to work on. Throws a NodeFailure (InvalidConfig) for one of spaces only. */
export async function renderAsked(context: NodeContext, key: string): Promise<string> {
  const text = await renderText(context, key)
  if (text.trim() === '') throw invalidConfig(key, 'must have a value, but it is empty')
  return text
}

/** Renders a text that may be left out or be empty. */
export async function renderMore(context: NodeContext, key: string): Promise<string | undefined> {
  const value = await context.evaluator.render(context.config[key] ?? null, context.bindings)
  if (value === null || value === '') return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The settings of a config that say how the model answers. */
export async function renderHow(
  context: NodeContext,
): Promise<Pick<Question, 'model' | 'temperature' | 'maxTokens'>> {
  const { temperature, maxTokens } = context.config
  return {
    model: await renderText(context, 'model'),
    ...(temperature === undefined
      ? {}
      : { temperature: await renderKey(context, 'temperature', temperatureField) }),
    ...(maxTokens === undefined ? {} : { maxTokens: await renderKey(context, 'maxTokens', maxTokensField) }),
  }
}

/** The schema of a config, checked again: its texts may have had expressions. Throws the NodeFailures of checkJson. */
export async function renderSchema(context: NodeContext): Promise<Record<string, unknown>> {
  const schema = await renderKey(context, 'schema', objectSchemaField)
  await demandSchema(context, schema)
  return schema
}

/**
 * Asks a model for text. An answer that its vendor has cut is used, with a warning in the node's record. Throws the
 * NodeFailures of askModel.
 */
export async function askForText(context: NodeContext, { model, ...request }: Question): Promise<ModelReply> {
  const { credentialId } = context.config
  const reply = await askModel(context, { credentialId, model, request })
  if (reply.finish === 'length')
    warn(context, 'maxTokens', 'The answer is cut off: it has as many tokens as it may have')
  if (reply.finish === 'filter') warn(context, 'prompt', "The answer is cut off by its vendor's filter")
  if (reply.finish === 'other')
    warn(
      context,
      'model',
      `The answer may be cut off: its vendor ended it with ${JSON.stringify(reply.reason)}`,
    )
  return reply
}

function warn({ notes }: NodeContext, path: string, message: string): void {
  notes.add({ warnings: [{ path, message }] })
}

/**
 * Asks a model for an object that fits a schema, and that `judge` has no complaint about. For an answer that does not
 * fit, the model is asked once more, with what is wrong with it, in the same attempt: a second call that costs. Throws a
 * NodeFailure: ModelAnswer if the second does not fit either (retryable) or an answer is cut off (final), ModelRefused
 * for a filtered one, and those of askModel and checkJson.
 */
export async function askForObject(
  context: NodeContext,
  { model, messages, ...how }: Question,
  schema: Record<string, unknown>,
  judge: (object: Record<string, unknown>) => string[] = () => [],
): Promise<Record<string, unknown>> {
  const { credentialId } = context.config
  const conversation = [...messages]
  let problems: string[] = []
  for (let tries = 0; tries < 2; tries++) {
    const reply = await askModel(context, {
      credentialId,
      model,
      request: { messages: conversation, schema, ...how },
    })
    demandWhole(reply)
    const { object } = reply
    problems = object === undefined ? ['the answer is not JSON'] : await checkJson(context, schema, object)
    if (problems.length === 0 && isObject(object)) {
      problems = judge(object)
      if (problems.length === 0) return object
    }
    conversation.push(reply.message, { role: 'user', content: complain(problems) })
  }
  throw new NodeFailure(
    `The model gave two answers that do not fit the schema; the second: ${problems.join('; ')}`,
    {
      type: 'ModelAnswer',
      retryable: true,
    },
  )
}

function demandWhole({ finish }: ModelReply): void {
  if (finish === 'length')
    throw new NodeFailure(
      'The JSON that the model gave is cut off: it has as many tokens as it may have (maxTokens, or the limit of the model)',
      { type: 'ModelAnswer' },
    )
  if (finish === 'filter')
    throw new NodeFailure("The JSON that the model gave is cut off by its vendor's filter", {
      type: 'ModelRefused',
    })
}

function complain(problems: string[]): string {
  const list = problems.map((problem) => `- ${problem}`).join('\n')
  return `Your answer does not fit the JSON Schema:\n${list}\nAnswer again with the whole JSON, and nothing else.`
}

/** The value as output, or with `into` in a field of the node's item. */
export function placeOutput(context: NodeContext, value: unknown): unknown {
  return context.config.into === undefined ? value : putInto(context, value)
}
