import type { ConnectorStep } from '../../../workflows/connectors/connector.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import { cut, type InputPart, isJsonMedia, textOf } from './parts.ts'
import { type Doc, resolve } from './refs.ts'

type BodyPart = Pick<ConnectorStep, 'bodyType' | 'contentType' | 'bodyOf'>

/**
 * How a request's body is made of the input, to which its properties are added: the keys of an object by themselves, any
 * other body as `body`.
 */
export function placeBody(doc: Doc, given: unknown, input: InputPart): BodyPart {
  if (given === undefined) return {}
  const body = resolve(doc, given)
  const content = body?.content
  if (!isObject(content))
    throw new Error('has a body that refers to something that the document does not have')
  const chosen = chooseType(Object.keys(content))
  if (!chosen)
    throw new Error(`takes a body of no type that can be sent: ${cut(Object.keys(content).join(', '), 200)}`)
  const { schema } = isObject(content[chosen.type]) ? (content[chosen.type] as Doc) : {}
  const isRequired = body?.required === true
  const how: BodyPart = {
    bodyType: chosen.how,
    ...(chosen.how === 'json' && chosen.type !== '*/*' && !/^application\/json\s*$/i.test(chosen.type)
      ? { contentType: chosen.type }
      : {}),
  }
  if (chosen.how === 'file') {
    setOwn(input.properties, 'body', {
      type: 'object',
      'x-file': true,
      title: 'File',
      description: 'The file that is sent.',
    })
    if (isRequired) input.required.push('body')
    return {
      ...how,
      contentType: chosen.type === '*/*' ? 'application/octet-stream' : chosen.type,
      bodyOf: 'body',
    }
  }
  const object = resolve(doc, schema)
  const keys = findKeys(object, input)
  if (!keys) {
    const told = textOf(body?.description) ?? 'What is sent.'
    const own = isObject(schema) ? (schema.$ref === undefined ? schema : { allOf: [schema] }) : {}
    setOwn(input.properties, 'body', { title: 'Body', description: cut(told, 1_000), ...own })
    if (isRequired) input.required.push('body')
    return { ...how, bodyOf: 'body' }
  }
  for (const [key, one] of Object.entries(keys)) setOwn(input.properties, key, markFile(doc, one, chosen.how))
  const required = Array.isArray(object?.required) ? object.required : []
  for (const key of required)
    if (typeof key === 'string' && Object.hasOwn(keys, key) && isRequired) input.required.push(key)
  return { ...how, bodyOf: Object.keys(keys) }
}

/** In a form, a text of bytes is a file. */
function markFile(doc: Doc, schema: unknown, how: string): unknown {
  const { format, contentMediaType, contentEncoding, title, description } = resolve(doc, schema) ?? {}
  const isBytes = format === 'binary' || contentMediaType !== undefined || contentEncoding === 'binary'
  if (how !== 'multipart' || !isBytes) return schema
  return {
    type: 'object',
    'x-file': true,
    ...(title ? { title } : {}),
    ...(description ? { description } : {}),
  }
}

/** The properties of an object that is nothing but its properties, if no parameter has one of their names. */
function findKeys(schema: Doc | undefined, input: InputPart): Doc | undefined {
  if (!schema || !isObject(schema.properties)) return undefined
  const isPlain = !['oneOf', 'anyOf', 'allOf', 'not', 'patternProperties'].some((key) => key in schema)
  if (!isPlain || isObject(schema.additionalProperties)) return undefined
  const isFree = Object.keys(schema.properties).every((key) => !Object.hasOwn(input.properties, key))
  return isFree ? schema.properties : undefined
}

function chooseType(
  types: string[],
): { type: string; how: NonNullable<ConnectorStep['bodyType']> } | undefined {
  const find = (test: (type: string) => boolean) => types.find(test)
  const json = find(isJsonMedia)
  if (json !== undefined) return { type: json, how: 'json' }
  const form = find((type) => /^application\/x-www-form-urlencoded/i.test(type))
  if (form !== undefined) return { type: form, how: 'form' }
  const multipart = find((type) => /^multipart\/form-data/i.test(type))
  if (multipart !== undefined) return { type: multipart, how: 'multipart' }
  const text = find((type) => /^text\/|[/+]xml/i.test(type))
  if (text !== undefined) return { type: text, how: 'text' }
  const bytes = find((type) => /octet-stream|^(?:image|audio|video)\/|pdf|zip/i.test(type))
  return bytes === undefined ? undefined : { type: bytes, how: 'file' }
}
