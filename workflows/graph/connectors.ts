import { isObject } from '../json.ts'
import type { Path } from '../problem.ts'
import type { GraphNode } from './graph.ts'

/** An action of a connector that a node names, and where in its config: an agent's tools name some, too. */
export type ConnectorReference = {
  named: string
  action: string
  version: number | undefined
  input: unknown
  path: Path
}

/** The actions of connectors that a node's config names: its own, and those of an agent's tools. */
export function listNamedConnectors({
  type,
  config,
}: Pick<GraphNode, 'type' | 'config'>): ConnectorReference[] {
  const tools = type === 'AI_AGENT' && Array.isArray(config.tools) ? config.tools : []
  const found = tools.flatMap((tool: unknown, at) =>
    isObject(tool) && tool.type === 'CONNECTOR' ? [{ of: tool, path: ['tools', at] }] : [],
  )
  const own = type === 'CONNECTOR' ? [{ of: config, path: [] }] : []
  return [...own, ...found].flatMap(({ of, path }) =>
    typeof of.connector === 'string' && typeof of.action === 'string'
      ? [
          {
            ...{ named: of.connector, action: of.action, input: of.input, path },
            version: typeof of.version === 'number' ? of.version : undefined,
          },
        ]
      : [],
  )
}
