import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import { isInfrastructure } from '../../run/failures.ts'
import { readAgentConfig } from '../config.ts'
import type { AgentStepResult } from '../step.ts'
import { describeGuard, type GuardNote, guardValue, listGuardTypes } from './guards.ts'

/**
 * Does a task, and checks the answer of its tool, also the words of a failure, before it is told: a blocked answer is
 * in no record, and the model does not see it. A check that cannot be made never repeats the call.
 */
export async function guardTask(
  context: NodeContext,
  work: () => Promise<AgentStepResult>,
): Promise<AgentStepResult> {
  const checks = readAgentConfig(context).guardrails?.toolResults
  if (!checks) return work()
  let done: AgentStepResult
  try {
    done = await work()
  } catch (error) {
    if (!(error instanceof NodeFailure) || isInfrastructure(error) || context.signal.aborted) throw error
    // The words of a failure need not fit what a result must.
    const guarded = await guardValue(
      context,
      'toolResults',
      { ...checks, validateSchema: false },
      error.message,
    )
    error.message = guarded.passed ? String(guarded.value) : describeWithheld(guarded.note)
    throw error
  }
  if (done.kind !== 'task' || 'pause' in done) return done
  const guarded = await guardValue(context, 'toolResults', checks, done.output ?? null)
  const output = guarded.passed
    ? guarded.value
    : {
        error: describeWithheld(guarded.note),
        withheld: true,
        violations: listGuardTypes(guarded.note),
      }
  return { ...done, output }
}

const describeWithheld = (note: GuardNote) =>
  `what the tool answered was withheld by a guardrail: ${describeGuard(note)}`
