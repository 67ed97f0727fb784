import * as v from 'valibot'
import { isObject } from '../../json.ts'
import { nodeType } from '../../nodes/nodes.ts'
import { joinPath, type Problem, quoteShort } from '../../problem.ts'
import { askForSimilar, findSimilar } from '../../suggest.ts'
import { GraphEdgeSchema, GraphNodeSchema } from '../elements.ts'
import { chooseOption, type KeyedSchema, listKeys, stepInto } from './keys.ts'

/**
 * The keys of configs that the types of these nodes (as sent) do not know. They are dropped, so a misspelt one
 * would change what the node does unnoticed. Configs that are invalid are left out.
 */
export function findUnknownKeys(nodes: unknown): Problem[] {
  if (!Array.isArray(nodes)) return []
  return nodes.flatMap((node, at) => {
    const { type, config, data } = Object(node)
    const schema = typeof type === 'string' ? nodeType(type)?.config : undefined
    const parsed = schema && v.safeParse(schema, config ?? data ?? {})
    if (!parsed?.success) return []
    const key = config === undefined || config === null ? 'data' : 'config'
    return compare(config ?? data, parsed.output, `nodes[${at}].${key}`, schema)
  })
}

/** Types whose settings protect something: a misspelt one would leave it open unnoticed, so it is refused. */
const PROTECTED = new Set([
  'WEBHOOK_TRIGGER',
  'FORM_TRIGGER',
  'FORM',
  'CHAT_TRIGGER',
  'MCP_TRIGGER',
  'APPROVAL',
  'GUARDRAIL',
  'AI_AGENT',
])

/**
 * The keys that the config of a node may not have because its type does not know them, in a config at `path`. One that
 * its stored config has at the same place is no reason to refuse a change of something else.
 */
export function findForbiddenKeys(type: unknown, config: unknown, path: string, stored: unknown): Problem[] {
  if (typeof type !== 'string' || !PROTECTED.has(type)) return []
  const kept = new Set(findStrangeKeys(type, stored, path).map((problem) => problem.path))
  return findStrangeKeys(type, config, path)
    .filter((problem) => !kept.has(problem.path))
    .map((problem) => ({ ...problem, message: problem.message.replace(' and was left out', '') }))
}

function findStrangeKeys(type: string, config: unknown, path: string): Problem[] {
  const schema = nodeType(type)?.config
  if (!schema || !isObject(config)) return []
  const parsed = v.safeParse(schema, config)
  return parsed.success ? compare(config, parsed.output, path, schema) : walk(config, path, schema)
}

/** As `compare`, for a config that is invalid too: only where its schema says which keys an object has. */
function walk(given: unknown, path: string, among: KeyedSchema | undefined): Problem[] {
  if (typeof given !== 'object' || given === null || !among) return []
  const schema = chooseOption(among, given)
  if (Array.isArray(given)) {
    return given.flatMap((value, at) => walk(value, joinPath(path, at), stepInto(schema, String(at))))
  }
  if (!schema?.entries) return []
  const known = Object.keys(schema.entries)
  return Object.entries(given).flatMap(([key, value]) => {
    const at = joinPath(path, key)
    if (known.includes(key)) return walk(value, at, stepInto(schema, key))
    return value === null ? [] : [{ path: at, message: describeUnknown(key, known) }]
  })
}

/** The keys that are in `given` but not in `kept`. Null counts as missing. */
function compare(given: unknown, kept: unknown, path: string, among: KeyedSchema | undefined): Problem[] {
  if (given === kept || typeof given !== 'object' || given === null) return []
  if (typeof kept !== 'object' || kept === null) return []
  const isList = Array.isArray(given)
  const schema = chooseOption(among, kept)
  const known = isList ? [] : listKeys(schema)
  return Object.entries(given).flatMap(([key, value]) => {
    const at = joinPath(path, isList ? Number(key) : key)
    if (Object.hasOwn(kept, key)) {
      return compare(value, (kept as Record<string, unknown>)[key], at, stepInto(schema, key))
    }
    return value === null ? [] : [{ path: at, message: describeUnknown(key, known) }]
  })
}

function describeUnknown(key: string, known: string[]): string {
  const said = `the key ${quoteShort(key)} is unknown here and was left out`
  const question = askForSimilar(key, known)
  if (question !== '') return said + question
  return known.length > 0 ? `${said}; known are ${known.join(', ')}` : said
}

/**
 * Warnings about keys of nodes and edges, beside their configs, that are unknown and look like others. Editors add
 * keys of their own, which are passed over.
 */
export function findMisspeltKeys(nodes: unknown[], edges: unknown[]): Problem[] {
  const nodeKeys = [...Object.keys(GraphNodeSchema.entries), 'config', 'data']
  const edgeKeys = Object.keys(GraphEdgeSchema.entries)
  return [
    ...nodes.flatMap((node, at) => findMisspelt(node, `nodes[${at}]`, nodeKeys)),
    ...edges.flatMap((edge, at) => findMisspelt(edge, `edges[${at}]`, edgeKeys)),
  ]
}

/** The keys that editors add to nodes and edges, which only look like keys of a graph. */
const OF_EDITORS = new Set([
  'style',
  'types',
  'selected',
  'positionAbsolute',
  'sourcePosition',
  'targetPosition',
])

function findMisspelt(raw: unknown, path: string, known: string[]): Problem[] {
  if (!isObject(raw)) return []
  const own = typeof raw.type === 'string' ? listKeys(nodeType(raw.type)?.config) : []
  return Object.keys(raw).flatMap((key) => {
    if (known.includes(key) || OF_EDITORS.has(key)) return []
    const at = joinPath(path, key)
    const said = `the key ${quoteShort(key)} is unknown here and was left out`
    if (own.includes(key)) return [{ path: at, message: `${said}; it belongs into config` }]
    const similar = findSimilar(key, known)
    // One that is there too is not what was meant.
    if (similar === undefined || raw[similar] !== undefined) return []
    return [{ path: at, message: `${said}; did you mean "${similar}"?` }]
  })
}
