import type * as v from 'valibot'
import type { AgentGuards } from '../../workflows/nodes/agentguards.ts'
import type { AGENT_NODES } from '../../workflows/nodes/agents.ts'
import type { Tool, ToolKind, ToolOf } from '../../workflows/nodes/tools.ts'
import type { NodeContext } from '../nodes/kit/node.ts'

/** The config of an AI_AGENT as it is stored. */
export type AgentConfig = v.InferOutput<(typeof AGENT_NODES)['AI_AGENT']['config']> & {
  credentialId: string
  model: string
  maxSteps: number
  maxTokens?: number
  maxCost?: number
  tools: Tool[]
  approvers?: string[]
  approvalTimeoutMs?: number
  guardrails?: AgentGuards
}

export function readAgentConfig({ config }: Pick<NodeContext, 'config'>): AgentConfig {
  return config as AgentConfig
}

export function isToolOf<K extends ToolKind>(tool: Tool, kind: K): tool is ToolOf<K> {
  return tool.type === kind
}
