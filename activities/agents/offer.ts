import type { ToolSpec } from '../models/model.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { demandPass } from '../nodes/kit/pass.ts'
import { type AgentConfig, isToolOf, readAgentConfig } from './config.ts'
import { listServerTools } from './mcp/tools.ts'
import type { RemoteTool } from './state.ts'
import { describeRunTool } from './tools/run.ts'

/** The most tools that a model is offered together: vendors take no more. */
const MAX_OFFERED = 128
const MAX_NAME = 64

/** What the model may call: the tools of the config, and those that servers have offered in the first turn. */
export function listOffered({ tools }: AgentConfig, remote: RemoteTool[]): ToolSpec[] {
  const own = tools.flatMap((tool): ToolSpec[] => {
    if (isToolOf(tool, 'MCP')) return []
    if (isToolOf(tool, 'RUN')) return [describeRunTool(tool)]
    const { name, description, parameters } = tool
    return [{ name, description, parameters }]
  })
  return [...own, ...remote.map(({ name, description, parameters }) => ({ name, description, parameters }))]
}

/**
 * Asks the agent's servers for their tools. One whose name another tool has gets the name of its server before it.
 * Throws a NodeFailure if a server cannot be asked, if a tool lacks the credential that it needs, or if there are too
 * many tools.
 */
export async function findRemoteTools(context: NodeContext): Promise<RemoteTool[]> {
  const { tools } = readAgentConfig(context)
  for (const tool of tools)
    if (isToolOf(tool, 'HTTP') || isToolOf(tool, 'MCP') || isToolOf(tool, 'CONNECTOR')) demandPass(tool)
  const taken = new Set(tools.flatMap((tool) => (isToolOf(tool, 'MCP') ? [] : [tool.name])))
  const found: RemoteTool[] = []
  for (const [server, tool] of tools.entries()) {
    if (!isToolOf(tool, 'MCP')) continue
    for (const { name: remoteName, description, parameters } of await listServerTools(context, tool)) {
      const name = chooseName(taken, tool.name, remoteName)
      taken.add(name)
      found.push({ server, name, remoteName, description, parameters })
    }
  }
  if (taken.size <= MAX_OFFERED) return found
  const message = `There are ${taken.size} tools together; a model takes at most ${MAX_OFFERED}: name the tools of the servers that are needed with include`
  throw new NodeFailure(message, { type: 'InvalidConfig' })
}

/** The first name that is free, of characters that all vendors take. */
function chooseName(taken: Set<string>, server: string, remoteName: string): string {
  const plain = remoteName.replace(/[^A-Za-z0-9_-]/g, '_')
  if (plain.length <= MAX_NAME && plain !== '' && !taken.has(plain)) return plain
  for (let number = 1; ; number++) {
    const tail = number === 1 ? '' : `_${number}`
    const name = `${server}_${plain}`.slice(0, MAX_NAME - tail.length) + tail
    if (!taken.has(name)) return name
  }
}
