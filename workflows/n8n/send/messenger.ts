import { isObject } from '../../json.ts'
import { type Fields, objectOf, requireCredential } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { needCredential } from '../signins/asking.ts'
import { MESSENGERS } from '../signins/messengers.ts'
import { isTemplate, keepTexts, listObjects, plainText, writeLiteral } from '../texts.ts'

/** What a node of ours does to be n8n's, and how its answer becomes what n8n's puts out. */
export type MappedMessage = {
  config: Fields
  /** JSONata that makes n8n's output of `$item`, the vendor's whole answer. Without it that is it. */
  shape?: string
}

/** A CHAT_MESSAGE for a node that signs in with that type of n8n's credentials. */
export function mapMessage(
  node: SourceNode,
  tools: MapperTools,
  type: string,
  { config, shape }: MappedMessage,
): MappedNode {
  const { signIn, uses } = MESSENGERS[type]!
  const credentialId = requireCredential(node, tools, needCredential(node, tools, { ...signIn, type, uses }))
  reportErrors(node, tools)
  // A setting that is empty in n8n's editor is left out: the node fails without it, as n8n's does.
  const filled = Object.entries(config).filter(([key, value]) => value !== '' || key === 'text')
  const isFile = config.operation === 'download'
  const output = isFile ? {} : { output: 'answer' }
  const all = { credentialId, ...Object.fromEntries(filled), ...demandMessage(config), ...output }
  const mapped = mapEach('CHAT_MESSAGE', all)
  return {
    ...mapped,
    // n8n's nodes retry only if that is set.
    retry: { maxAttempts: 1 },
    ...(shape === undefined ? {} : { shaper: shapeItems(shape) }),
  }
}

/** What must be there to be saved. */
function demandMessage({ operation, message, reaction, method, file }: Fields): Fields {
  const empty = '={{ "" }}'
  const isAbout = operation === 'edit' || operation === 'delete' || operation === 'react'
  return {
    ...(isAbout && !message ? { message: empty } : {}),
    ...(operation === 'react' && !reaction ? { reaction: empty } : {}),
    ...(operation === 'call' && !method ? { method: empty } : {}),
    ...(operation === 'download' && !file ? { file: empty } : {}),
  }
}

/** A node behind it that makes n8n's item of each answer. Items of failed ones go on as they are. */
function shapeItems(shape: string): NonNullable<MappedNode['shaper']> {
  return {
    type: 'TRANSFORM',
    config: { expression: `$exists($item.error) ? $item : (${shape})` },
    perItem: true,
  }
}

/** Says that items of failed messages have other words than n8n's. */
export function reportErrors({ raw }: SourceNode, { report }: MapperTools): void {
  const goesOn = raw.continueOnFail === true || /^continue/.test(String(raw.onError ?? ''))
  if (!goesOn) return
  const message =
    'If this fails, its item goes on with the error in words of Perdure, which are not those of n8n: check the nodes ' +
    'that read it.'
  report('parameter', 'onError', message, raw.onError ?? true)
}

/** Says that n8n's line about itself is left out. */
export function reportAttribution({ report }: MapperTools, path: string): void {
  const message =
    'n8n adds a line to what it sends that says it was sent with n8n. Perdure sends what the author wrote, without that.'
  report('parameter', path, message, true)
}

/** What stops: "send and wait" has no counterpart. */
export function refuseOperation(resource: string, operation: string): never {
  if (operation === 'sendAndWait')
    throw new Error('it sends a message and waits for the answer: use a CHAT_MESSAGE and an APPROVAL')
  throw new Error(
    `Perdure has no "${operation}" of "${resource}" for it: use a CHAT_MESSAGE with the operation call, which knows the vendor's own methods`,
  )
}

/** The value of a parameter that n8n finds by a list, an id or a URL. */
export function readLocator(value: unknown, ofUrl?: RegExp): unknown {
  if (!isObject(value)) return keepTexts(value ?? '')
  const { mode, value: given } = value
  if (mode !== 'url') return keepTexts(given ?? '')
  if (isTemplate(given)) throw new Error('an expression gives the URL of what it is about')
  const [, found] = ofUrl?.exec(String(plainText(given))) ?? []
  if (found === undefined) throw new Error('it names what it is about by a URL that is not understood')
  return writeLiteral(found)
}

/** The mode of such a parameter. */
export const modeOf = (value: unknown): unknown => (isObject(value) ? value.mode : undefined)

/** Parameters that have a value, as n8n sends them: those that are not there are left out. */
export function keepFields(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (value === undefined ? [] : [[key, keepTexts(value)]])),
  )
}

/** The options of a node; throws if an expression gives them all. */
export function readOptionFields({ parameters }: SourceNode, key: string): Fields {
  if (isTemplate(parameters[key])) throw new Error(`an expression gives all of its "${key}"`)
  return { ...objectOf(parameters[key]) }
}

/** The limit of a list; throws where n8n asks for one page after the other. */
export function readLimit({ parameters }: SourceNode, fallback: number): unknown {
  if (parameters.returnAll === true || isTemplate(parameters.returnAll))
    throw new Error('it asks for one page after the other: ask for them in a REPEAT')
  return keepTexts(parameters.limit ?? fallback)
}

/** JSON that is known now: a list or an object. Throws an Error for an expression or other text. */
export function readKnownJson(value: unknown, name: string): unknown {
  if (typeof value !== 'string') return keepTexts(value)
  if (isTemplate(value)) throw new Error(`an expression gives its ${name} as JSON`)
  try {
    return keepTexts(JSON.parse(plainText(value) ?? ''))
  } catch {
    throw new Error(`its ${name} are not valid JSON`)
  }
}

/** Attachments of an editor, which keeps their fields in another form than Slack. */
export function readAttachments(given: unknown): unknown {
  if (isTemplate(given)) throw new Error('an expression gives its attachments')
  return listObjects(given).map(({ fields, ...rest }) => {
    const items = objectOf(fields).item
    return keepTexts({ ...rest, ...(items === undefined ? {} : { fields: items }) })
  })
}
