import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import { findChatTrigger, findReplyNode, isAgentGraph } from '../../workflows/graph/triggers/chat.ts'
import type { StartableWorkflow } from '../executions/starts/startable.ts'
import { Fault } from '../fault.ts'

/**
 * Throws UNPROCESSABLE unless the workflow can be chatted with: it must be active, and a CHAT_TRIGGER must lead to the
 * model that replies. Returns the trigger.
 */
export function demandAgent({ active, graph }: Pick<StartableWorkflow, 'active' | 'graph'>): GraphNode {
  if (isAgentGraph(graph) && !active) throw new Fault('UNPROCESSABLE', 'The workflow is inactive')
  return demandChat({ graph })
}

/** Throws UNPROCESSABLE unless the workflow could be chatted with if it were active. Returns the trigger. */
export function demandChat({ graph }: Pick<StartableWorkflow, 'graph'>): GraphNode {
  if (!isAgentGraph(graph))
    throw new Fault(
      'UNPROCESSABLE',
      'The workflow is not an AI agent workflow: no CHAT_TRIGGER leads to an AI_AGENT or LLM node',
    )
  const trigger = findChatTrigger(graph)
  if (!trigger || !isChat(graph))
    throw new Fault('UNPROCESSABLE', 'It is not clear which node of the workflow replies in a chat')
  return trigger
}

/** Whether a workflow of this graph could be chatted with if it were active. */
export function isChat(graph: Graph): boolean {
  return isAgentGraph(graph) && findChatTrigger(graph) !== undefined && findReplyNode(graph) !== undefined
}
