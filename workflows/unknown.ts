import * as v from 'valibot'
import { nodeType } from './nodes.ts'
import { joinPath } from './problem.ts'

/**
 * Where the configs of these nodes, as they came from outside, hold what their types do not know: it is dropped, and
 * a misspelt key would make another run than was meant. A config that is refused says nothing here.
 */
export function findUnknown(nodes: unknown): string[] {
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

/** The paths that are in `given` and not in `kept`. Null is as good as nothing. */
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
