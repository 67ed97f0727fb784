import * as v from 'valibot'
import { isObject } from '../../../workflows/json.ts'
import { type Fallback, fallbacksField } from '../../../workflows/nodes/conversation.ts'
import { answerSchemaField, maxTokensField, temperatureField } from '../../../workflows/nodes/models.ts'
import { checkJson, demandSchema } from '../../jsonschema/check.ts'
import { askModel } from '../../models/ask.ts'
import type { ModelMessage, ModelReply, ModelRequest } from '../../models/model.ts'
import { renderKey, renderText } from '../kit/config.ts'
import { invalidConfig, NodeFailure } from '../kit/failure.ts'
import { putInto } from '../kit/into.ts'
import type { NodeContext } from '../kit/node.ts'

/** What a node asks a model, apart from the schema of the answer. */
export type Question = {
  model: string
  /** Models that are asked, in their order, if the one before cannot answer. */
  fallbacks?: Fallback[] | undefined
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

/** The models that a config names in place of its own. */
export async function renderFallbacks({ config, evaluator, bindings }: NodeContext): Promise<Fallback[]> {
  const given = await evaluator.render(config.fallbacks ?? [], bindings)
  const parsed = v.safeParse(fallbacksField, given)
  if (!parsed.success) throw invalidConfig('fallbacks', parsed.issues[0].message)
  return parsed.output
}

/** Failures of one model after which another one may answer. */
const ELSEWHERE = new Set(['ModelUnavailable', 'ModelRefused', 'ModelAnswer'])

/**
 * Asks the model, and if that cannot answer its fallbacks in their order, in the same attempt. Each call is noted by
 * itself, and the record has a warning for each that failed. A reader of the chat is told the text when it is whole.
 * Throws what askModel throws for the last one.
 */
async function askAny(
  context: NodeContext,
  { model, fallbacks = [] }: Pick<Question, 'model' | 'fallbacks'>,
  request: ModelRequest,
): Promise<ModelReply> {
  const { credentialId } = context.config
  if (fallbacks.length === 0) return askModel(context, { credentialId, model, request })
  const { reply: told, ...quiet } = context
  const all = [{ credentialId, model }, ...fallbacks]
  for (const [at, one] of all.entries()) {
    try {
      const answer = await askModel(quiet, { ...one, request })
      told?.write(answer.text)
      return answer
    } catch (error) {
      const next = all[at + 1]
      if (!next || !(error instanceof NodeFailure) || !ELSEWHERE.has(error.type)) throw error
      warn(
        context,
        at === 0 ? 'model' : `fallbacks[${at - 1}].model`,
        `${error.message}. ${next.model} was asked in its place`,
      )
    }
  }
  throw new Error('there is no model to ask')
}

/** The schema of a config, checked again: its texts may have had expressions. Throws the NodeFailures of checkJson. */
export async function renderSchema(context: NodeContext): Promise<Record<string, unknown>> {
  const schema = await renderKey(context, 'schema', answerSchemaField)
  await demandSchema(context, schema)
  return schema
}

/**
 * Asks a model for text. An answer that its vendor has cut is used, with a warning in the node's record. Throws the
 * NodeFailures of askModel.
 */
export async function askForText(
  context: NodeContext,
  { model, fallbacks, ...request }: Question,
): Promise<ModelReply> {
  const reply = await askAny(context, { model, fallbacks }, request)
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
  { model, fallbacks, messages, ...how }: Question,
  schema: Record<string, unknown>,
  judge: (object: Record<string, unknown>) => string[] = () => [],
): Promise<Record<string, unknown>> {
  const conversation = [...messages]
  let problems: string[] = []
  for (let tries = 0; tries < 2; tries++) {
    const reply = await askAny(context, { model, fallbacks }, { messages: conversation, schema, ...how })
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

/**
 * Asks as askForObject does, for what a schema of an object or of a list describes. Models answer with objects, so a
 * list is asked for as the only property of one.
 */
export async function askForAnswer(
  context: NodeContext,
  question: Question,
  schema: Record<string, unknown>,
): Promise<unknown> {
  if (schema.type !== 'array') return askForObject(context, question, schema)
  // References lead from the root of a schema.
  const { $schema, $defs, definitions, ...list } = schema
  const wrapped = {
    ...($schema === undefined ? {} : { $schema }),
    type: 'object',
    properties: { list },
    required: ['list'],
    additionalProperties: false,
    ...($defs === undefined ? {} : { $defs }),
    ...(definitions === undefined ? {} : { definitions }),
  }
  return (await askForObject(context, question, wrapped)).list
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
