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

/** What editors add to nodes and edges, which only looks like what a graph has. */
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
