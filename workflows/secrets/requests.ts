import type { GraphNode } from '../graph/graph.ts'
import { isObject } from '../json.ts'
import type { Path } from '../problem.ts'

/** The settings of a request over HTTP (`url`, `headers`, `query`, `body`), and where they are in the node's config. */
export type RequestSettings = { config: Record<string, unknown>; path: Path }

/** The requests that a node makes with settings of its own: those of the tools of an agent, too. */
export function listRequests({ type, config }: GraphNode): RequestSettings[] {
  if (type === 'HTTP_REQUEST') return [{ config, path: [] }]
  if (type !== 'AI_AGENT' || !Array.isArray(config.tools)) return []
  return config.tools.flatMap((tool, at) =>
    isObject(tool) && (tool.type === 'HTTP' || tool.type === 'MCP')
      ? [{ config: tool, path: ['tools', at] }]
      : [],
  )
}
