import { isObject } from '../json.ts'
import type { Path } from '../problem.ts'
import type { GraphNode } from './graph.ts'
import { replaceSecret } from './secrets.ts'

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** A data table that a node names, by its id or its name, and where in its config. An id is in lower case. */
export type TableReference = { named: string; path: Path }

/** The data tables that a node's config names: its own, and those of an agent's tools. */
export function listNamedTables({ type, config }: Pick<GraphNode, 'type' | 'config'>): TableReference[] {
  const tools = type === 'AI_AGENT' && Array.isArray(config.tools) ? config.tools : []
  const found = tools.flatMap((tool: unknown, at) =>
    isObject(tool) && tool.type === 'DATA_TABLE' ? [{ named: tool.table, path: ['tools', at, 'table'] }] : [],
  )
  const own = type === 'DATA_TABLE' ? [{ named: config.table, path: ['table'] }] : []
  return [...own, ...found].flatMap(({ named, path }) =>
    typeof named === 'string' ? [{ named: UUID.test(named) ? named.toLowerCase() : named, path }] : [],
  )
}

/** A copy of the node that names another table there. */
export function replaceTable(node: GraphNode, path: Path, named: string): GraphNode {
  return replaceSecret(node, path, named)
}
