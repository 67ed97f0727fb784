import { isObject } from '../json.ts'
import type { Path } from '../problem.ts'
import type { GraphNode } from './graph.ts'
import { replaceSecret } from './secrets.ts'

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** A data table that a node names, by its id or its name, and where in its config. An id is in lower case. */
export type TableReference = { named: string; path: Path }

/** The data tables that a node's config names: its own, and those of an agent's tools. */
export function listNamedTables(node: Pick<GraphNode, 'type' | 'config'>): TableReference[] {
  return listOfType(node, 'DATA_TABLE').flatMap(({ of: { table }, path }) =>
    typeof table === 'string'
      ? [{ named: UUID.test(table) ? table.toLowerCase() : table, path: [...path, 'table'] }]
      : [],
  )
}

/** A copy of the node that names another table there. */
export function replaceTable(node: GraphNode, path: Path, named: string): GraphNode {
  return replaceSecret(node, path, named)
}

/** An action of a connector that a node names, and where in its config: an agent's tools name some, too. */
export type ConnectorReference = {
  named: string
  action: string
  version: number | undefined
  input: unknown
  path: Path
}

/** The actions of connectors that a node's config names: its own, and those of an agent's tools. */
export function listNamedConnectors(node: Pick<GraphNode, 'type' | 'config'>): ConnectorReference[] {
  return listOfType(node, 'CONNECTOR').flatMap(({ of: { connector, action, input, version }, path }) =>
    typeof connector === 'string' && typeof action === 'string'
      ? [
          {
            named: connector,
            action,
            input,
            path,
            version: typeof version === 'number' ? version : undefined,
          },
        ]
      : [],
  )
}

/** Something of a type in a node's config: the node itself, or a tool of an agent, and where that is. */
type Typed = { of: Record<string, unknown>; path: Path }

/** What of a type a node has: itself if it is a node of the type, and the tools of that type that an agent has. */
function listOfType({ type, config }: Pick<GraphNode, 'type' | 'config'>, wanted: string): Typed[] {
  const tools = type === 'AI_AGENT' && Array.isArray(config.tools) ? config.tools : []
  const found = tools.flatMap((tool: unknown, at) =>
    isObject(tool) && tool.type === wanted ? [{ of: tool, path: ['tools', at] }] : [],
  )
  return type === wanted ? [{ of: config, path: [] }, ...found] : found
}
