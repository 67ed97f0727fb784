import { filesOf, type ItemFiles, withFiles, withoutFiles } from '../../workflows/itemfiles.ts'
import { isObject, setOwn } from '../../workflows/json.ts'
import type { SetField } from '../../workflows/nodes/data.ts'
import { quoteShort } from '../../workflows/problem.ts'
import { readFileValue } from '../files/files.ts'
import { describeLarge, readJson } from '../reading/json.ts'
import { castValue, describeValue, readLargeWhole } from './kit/casts.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import { workedItem } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'
import { copyValue, getField, type Naming, setField, unsetField } from './kit/paths.ts'

/**
 * SET: outputs exactly its rendered values; or with `fields` or `json` an object of them, together with the
 * fields of its item that `include` names.
 */
export const runSet: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  if (config.fields === undefined && config.json === undefined) {
    if (!isObject(config.values)) throw invalidConfig('values', 'must be an object')
    return { output: await evaluator.render(config.values, bindings) }
  }
  const naming = { dots: config.dots !== false }
  const output = pickFields(context, naming)
  if (config.json !== undefined) {
    const given = await evaluator.render(config.json, bindings)
    const values = readObject(context, Array.isArray(given) ? given.map(writePiece).join('') : given)
    for (const [name, value] of Object.entries(values)) setField(output, name, copyValue(value), naming)
    return { output: withFiles(output, keepFiles(context)) }
  }
  const fields = (await evaluator.render(config.fields, bindings)) as SetField[]
  const values: Record<string, unknown> = {}
  const files: ItemFiles = { ...keepFiles(context) }
  for (const field of fields) {
    if (field.type === 'file') {
      setOwn(files, String(field.name), takeFile(context, field))
      continue
    }
    const { name, type = 'any', value: given } = field
    const value = castField({ name, type, value: given }, config, bindings.index)
    warnOfRounding(context, field, value)
    if (value !== undefined) setOwn(values, String(field.name), value)
  }
  for (const [name, value] of Object.entries(values)) setField(output, name, copyValue(value), naming)
  return { output: withFiles(output, files) }
}

/** The files of the item that stay with what SET makes of it. */
function keepFiles(context: NodeContext): ItemFiles | undefined {
  const { include, files = include === 'all' } = context.config
  return files === true ? filesOf(workedItem(context)) : undefined
}

/** A file that a field has: the value is one, or the name of one of the item's. */
function takeFile(context: NodeContext, { name, value }: SetField): unknown {
  const own = filesOf(workedItem(context)) ?? {}
  const file = typeof value === 'string' && Object.hasOwn(own, value) ? own[value] : readFileValue(value)
  if (file) return file
  throw new NodeFailure(`Could not find binary data specified in field ${String(name)}`, {
    type: 'InvalidInput',
  })
}

/** A copy of the item with the fields that `include` keeps. */
function pickFields(context: NodeContext, naming: Naming): Record<string, unknown> {
  const { include = 'none', names } = context.config
  const item = withoutFiles(workedItem(context))
  if (include === 'none' || !isObject(item)) return {}
  if (include === 'all') return copyValue(item)
  const listed = listNames(names)
  if (include === 'except') {
    const rest = copyValue(item)
    for (const name of listed) unsetField(rest, name, naming)
    return rest
  }
  const picked: Record<string, unknown> = {}
  for (const name of listed) {
    const value = getField(item, name, naming)
    if (value === undefined) continue
    const key = naming.dots && name.includes('.') ? name.split('.').at(-1)! : name
    setField(picked, key, copyValue(value), naming)
  }
  return picked
}

/** Names in an array, or in a string with commas between them. */
export function listNames(names: unknown): string[] {
  const list = Array.isArray(names) ? names : String(names ?? '').split(',')
  return list.map((name) => String(name).trim()).filter((name) => name !== '')
}

type CastField = { name: string; value?: unknown; type: Exclude<SetField['type'], 'file'> }

/** The value of a field in its type; undefined for one that is left out. */
function castField(
  { name, type, value }: CastField,
  config: Record<string, unknown>,
  index: number | undefined,
): unknown {
  const ignoresErrors = config.ignoreErrors === true
  if (type === 'truth') return Boolean(value)
  if (value === null || value === undefined) {
    if (config.nulls === 'drop') return undefined
    if (config.nulls === 'text' && type === 'string') return value === null ? 'null' : 'undefined'
    if (config.nulls === 'refuse' && type === 'string' && !ignoresErrors)
      throw wrongField(name, type, value, index)
    return null
  }
  const cast = castValue(value, type)
  if (cast) return type === 'dateTime' ? String(cast.cast) : cast.cast
  if (ignoresErrors) return value
  throw wrongField(name, type, value, index)
}

/** A number that is not what its text says is said in the node's record. */
function warnOfRounding(
  { notes }: NodeContext,
  { name, type, value: given }: SetField,
  value: unknown,
): void {
  if (typeof value !== 'number' || (type !== 'number' && Number.isFinite(value))) return
  const key = String(name)
  const message = Number.isFinite(value)
    ? readLargeWhole(given) !== undefined && describeLarge({ large: { count: 1, key } }, 'number')
    : `The value of ${quoteShort(key)} is too large for a number: it becomes null`
  if (message) notes.add({ warnings: [{ path: 'config.fields', message }] })
}

function wrongField(name: unknown, type: string, value: unknown, index: number | undefined): NodeFailure {
  const got = describeValue(value)
  const shown = got.length > 200 ? `${got.slice(0, 200)}...` : got
  return new NodeFailure(
    `'${String(name)}' expects a ${type} but we got ${shown}${index === undefined ? '' : ` [item ${index}]`}`,
    { type: 'InvalidInput' },
  )
}

/** A piece of JSON's text: the value of an expression is written into it. */
function writePiece(piece: unknown): string {
  return typeof piece === 'object' ? JSON.stringify(piece) : String(piece)
}

function readObject({ notes }: NodeContext, value: unknown): Record<string, unknown> {
  let object = value
  if (typeof value === 'string') {
    try {
      const read = readJson(value)
      const message = describeLarge(read)
      if (message) notes.add({ warnings: [{ path: 'config.json', message }] })
      object = read.value
    } catch {
      throw new NodeFailure('json is not valid JSON', { type: 'InvalidInput' })
    }
  }
  if (isObject(object)) return object
  throw new NodeFailure('json is not a JSON object', { type: 'InvalidInput' })
}
