import { getOwn, isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { type ProblemReporter, reportMissingOption } from '../report.ts'
import type { NeededCredential } from '../signins/needed.ts'
import { isModelNode, needService } from '../signins/services.ts'
import { keepNumber, keepText } from '../texts.ts'
import { DEFAULT_MODELS } from './defaultmodels.ts'

export type Fields = Record<string, unknown>

/**
 * The placeholder for a credential that was not named. No team has it, so the import leaves it out, and the node fails
 * until a credential is set.
 */
export const UNNAMED_CREDENTIAL = '00000000-0000-4000-8000-000000000000'

/** Nodes of ours that call others retry by default; n8n's nodes retry only if that is set. */
export const ask = (type: string, config: Fields): MappedNode => ({
  ...mapEach(type, config),
  retry: { maxAttempts: 1 },
})

/**
 * A node that answers with a text into `field`. The one that replies in a chat works on no items, and outputs {text},
 * which a node behind it puts into the field.
 */
export function answer(type: string, config: Fields, field: string, tools: MapperTools): MappedNode {
  const keys = field.split('.')
  // An LLM outputs {text} by itself.
  if (type === 'LLM' && field === 'text')
    return tools.repliesInChat ? { type, config, retry: { maxAttempts: 1 } } : ask(type, config)
  if (!tools.repliesInChat || config.output === 'json') {
    const into = { field, keep: false, ...(keys.length > 1 ? { dots: true } : {}) }
    return ask(type, { ...config, into })
  }
  const value = keys.reduceRight((inner, key) => `{${JSON.stringify(key)}: ${inner}}`, '$input.text')
  const shaper = { type: 'TRANSFORM', config: { expression: value } }
  return { type, config, retry: { maxAttempts: 1 }, shaper }
}

/** A node behind it that makes n8n's item of each one. Items of failed ones go on as they are. */
export const shapeEach = (shape: string): NonNullable<MappedNode['shaper']> => ({
  type: 'TRANSFORM',
  config: { expression: `$exists($item.error) ? $item : (${shape})` },
  perItem: true,
})

export const objectOf = (value: unknown): Fields => (isObject(value) ? value : {})

/** A node that n8n attaches a further model to, which it asks if the first one fails. */
const hasFallback = ({ parameters }: SourceNode) => parameters.needsFallback === true

/**
 * The credential and the name of the model that is attached to a node, and how it answers; `fallbacks` are those that
 * are asked if it fails, for nodes of ours that have such.
 */
export function readModel(
  tools: MapperTools,
  node?: SourceNode,
): { asked: Fields; temperature: Fields; maxTokens: Fields; fallbacks: Fields } {
  const [model, ...others] = tools.attached('ai_languageModel')
  if (!model) throw new Error('no model is attached to it')
  if (others.length > 0 && !(node && hasFallback(node))) throw new Error('several models are attached to it')
  const read = readOneModel(model, tools)
  const more = others.map((other) => readOneModel(other, tools))
  for (const [at, { how }] of more.entries()) {
    if (JSON.stringify(how) === JSON.stringify(read.how)) continue
    const message =
      'Here the models that are asked in place of the first one have its temperature and its maxTokens.'
    tools.reportOf(others[at]!)(
      'parameter',
      'parameters.options',
      message,
      others[at]!.parameters.options ?? null,
    )
  }
  const { temperature, maxTokens } = read.how
  return {
    asked: read.asked,
    temperature: temperature === undefined ? {} : { temperature },
    maxTokens: maxTokens === undefined ? {} : { maxTokens },
    fallbacks: more.length > 0 ? { fallbacks: more.map(({ asked }) => asked) } : {},
  }
}

function readOneModel(
  model: SourceNode,
  tools: MapperTools,
): { asked: Fields; how: { temperature?: unknown; maxTokens?: unknown } } {
  if (!isModelNode(model.type)) throw new Error(`Perdure has no models of "${model.fullType}"`)
  const { parameters } = model
  const options = objectOf(parameters.options)
  const { temperature, maxTokens, maxTokensToSample, maxOutputTokens, numPredict, ...rest } = options
  const report = tools.reportOf(model)
  for (const [name, value] of Object.entries(rest))
    reportMissingOption(report, `parameters.options.${name}`, value)
  if (Object.keys(objectOf(parameters.builtInTools)).length > 0)
    throw new Error(`its model "${model.name}" has tools of its vendor, which Perdure does not ask for`)
  const most = [maxTokens, maxTokensToSample, maxOutputTokens, numPredict].find((one) => Number(one) > 0)
  return {
    asked: {
      credentialId: findCredential(model, tools),
      model: readModelName(parameters, { key: model.type, node: model, report }),
    },
    how: {
      ...(temperature === undefined ? {} : { temperature: keepNumber(temperature, 0.7) }),
      ...(most === undefined ? {} : { maxTokens: keepNumber(most, 1_000) }),
    },
  }
}

/** As readModel, for a node that has no settings for how the model answers. */
export function readPlainModel(tools: MapperTools): Fields {
  const { asked, temperature, maxTokens } = readModel(tools)
  for (const [name, value] of Object.entries({ ...temperature, ...maxTokens }))
    reportMissingOption(tools.report, `ai_languageModel.options.${name}`, value)
  return asked
}

/** Where a model has no name, and what says which one n8n takes: the key of its table. */
type Nameless = { key: string; node: SourceNode; report: ProblemReporter }

/** The name of the model; where none is given, the one that n8n takes then, which is reported. */
export function readModelName(
  { model, modelName, modelId, chatModel, imageModel }: Fields,
  { key, node, report }: Nameless,
): string {
  const given = model ?? modelName ?? modelId ?? chatModel ?? imageModel
  const name = isObject(given) ? given.value : given
  const text = keepText(name)
  if (text !== '') return text.replace(/^models\//, '')
  const versions = getOwn(DEFAULT_MODELS, key) ?? []
  const [, standard = ''] = versions.findLast(([since]) => since <= node.version) ?? []
  // One that is set to nothing is refused by n8n as well.
  if (given !== undefined || standard === '') throw new Error('its model has no name')
  const own = standard.replace(/^models\//, '')
  const message = `It names no model, and n8n takes "${own}" then, so that was set: check that its vendor still has it.`
  report('parameter', 'parameters.model', message, null)
  return own
}

/**
 * The id of our credential for the node of a model or a database. Without one the problem is reported, and the node has
 * none: it fails until a credential is set.
 */
export function findCredential(node: SourceNode, tools: MapperTools): string {
  return requireCredential(node, tools, needService(node, tools))
}

/** The id of the credential that the request names for a need; without one that is reported. */
export function requireCredential(
  node: SourceNode,
  tools: MapperTools,
  { credentialId, key, as }: NeededCredential,
): string {
  if (credentialId !== null) return credentialId
  const which = as === null ? 'a credential' : `a credential of the type ${as}`
  const message =
    `Choose ${which} for "${node.name}": n8n's are not imported, and this node fails without one. Set it on the ` +
    `node, or import again with it in "credentials", as {${JSON.stringify(key)}: its id}.`
  tools.report('credential', `credentials.${node.name}`, message, key)
  return UNNAMED_CREDENTIAL
}

/** The question: a text, or the message that a chat's trigger brings. */
export function readPrompt({ parameters, version }: SourceNode): string {
  const { promptType, text, prompt } = parameters
  if (promptType === 'guardrails') return '={{ $json.guardrailsInput }}'
  if (promptType === 'define' || (promptType === undefined && text !== undefined)) return keepText(text)
  if (version < 1.4 && prompt !== undefined) return keepText(prompt)
  return '={{ $json.chatInput }}'
}

/** Says that a node asks its model in other words than n8n's does. */
export function reportWording({ report }: MapperTools, { parameters }: SourceNode): void {
  const message =
    "Perdure asks the model in words of its own, with a JSON Schema for the answer where one is needed, and not in n8n's: " +
    'check that the answers are as good.'
  report('parameter', 'parameters', message, parameters)
}
