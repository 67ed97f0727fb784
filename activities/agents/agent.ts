import type { StepRunner } from './step.ts'
import { runAgentTask } from './task.ts'
import { runAgentTurn } from './turn.ts'

/**
 * AI_AGENT: asks the model (a turn), does what it asks for with the agent's tools (a task for each call), and asks it
 * again with what came of that, until it answers with a text alone. Outputs {text, steps}. Fails with AgentOutOfSteps,
 * BudgetExceeded, and as askModel does; what a tool fails with is told to the model.
 */
export const runAgent: StepRunner = (context, step) =>
  step.kind === 'turn' ? runAgentTurn(context, step) : runAgentTask(context, step)
