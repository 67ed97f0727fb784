import * as v from 'valibot'
import { nodeType } from '../nodes/nodes.ts'
import { joinPath } from '../problem.ts'

/**
 * The paths of keys that the types of these nodes (as sent) do not know. Unknown keys are dropped, so a
 * misspelt one would change what the node does unnoticed. Configs that are invalid are left out.
 */
export function findUnknownKeys(nodes: unknown): string[] {
  if (!Array.isArray(nodes)) return []
  return nodes.flatMap((node, at) => {
    const { type, config, data } = Object(node)
    const schema = typeof type === 'string' ? nodeType(type)?.config : undefined
    const parsed = schema && v.safeParse(schema, config ?? data ?? {})
    if (!parsed?.success) return []
    const key = config === undefined || config === null ? 'data' : 'config'
    return compare(config ?? data, parsed.output, `nodes[${at}].${key}`)
  })
}

/** The paths that are in `given` but not in `kept`. Null counts as missing. */
function compare(given: unknown, kept: unknown, path: string): string[] {
  if (given === kept || typeof given !== 'object' || given === null) return []
  if (typeof kept !== 'object' || kept === null) return []
  const isList = Array.isArray(given)
  return Object.entries(given).flatMap(([key, value]) => {
    const at = joinPath(path, isList ? Number(key) : key)
    if (Object.hasOwn(kept, key)) return compare(value, (kept as Record<string, unknown>)[key], at)
    return value === null ? [] : [at]
  })
}
