import type { NODES, NodeTypeName } from '../../workflows/nodes/nodes.ts'
import { runSummarizeStep } from '../nodes/models/summarize.ts'
import { runAgent } from './agent.ts'
import type { StepRunner } from './step.ts'

type AgentTypeName = {
  [T in NodeTypeName]: 'agent' extends (typeof NODES)[T]['kind'] ? T : never
}[NodeTypeName]

/** The runner of the steps of each node type of kind `agent`. */
export const STEP_RUNNERS: Record<AgentTypeName, StepRunner> = {
  SUMMARIZE: runSummarizeStep,
  AI_AGENT: runAgent,
}
