import type { FailureType } from '../../workflows/nodes/failures.ts'
import { isTurnedAway } from '../fairness/turns.ts'
import { sendOnce } from '../messages/once.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext, Sending } from '../nodes/kit/node.ts'
import { isInfrastructure } from '../run/failures.ts'
import type { AgentStep, AgentStepResult } from './step.ts'

/** What is stored of a task that is not repeated: later attempts answer with that. */
type Told = { result: AgentStepResult } | { failure: { message: string; type: FailureType } }

/** The task waits, so its tool was not called yet. */
class Paused extends Error {
  readonly result: AgentStepResult

  constructor(result: AgentStepResult) {
    super('The task waits')
    this.result = result
  }
}

/**
 * Runs a step. The tool of a task that is not repeated is called at most once, whatever happens to the attempts: its
 * result, or its failure, is stored before Temporal hears of it, and if nobody knows what came of the call, throws a
 * NodeFailure (OutcomeUnknown). A retryable failure of such a task says that its tool was not called, unless it has
 * begun to send a request. A task that may pause calls nothing, or only what knows it again, before it resumes.
 */
export async function callOnce(
  context: NodeContext,
  step: AgentStep,
  run: (context: NodeContext) => Promise<AgentStepResult>,
): Promise<AgentStepResult> {
  if (step.kind === 'turn' || step.task.repeats || (step.task.pauses && !step.resumes)) return run(context)
  const what = `The request of the tool "${step.task.tool}"`
  const once = { what, uncertain: 'OutcomeUnknown', repeat: false } as const
  try {
    const told = (await sendOnce(context, once, async (handover): Promise<Told> => {
      await handover.begin()
      const { sending, hasBegun, isOut } = watchSending(context.sending)
      try {
        const result = await run({ ...context, ...(sending ? { sending } : {}) })
        if (!('pause' in result)) return { result }
        throw new Paused(result)
      } catch (error) {
        const isOurs = isInfrastructure(error) || isTurnedAway(error)
        const mayComeAgain = error instanceof NodeFailure && (error.retryable || isOurs)
        if (error instanceof Paused || (mayComeAgain && !hasBegun())) handover.refused()
        else if (error instanceof NodeFailure && !isOurs && !isOut() && !context.signal.aborted)
          return { failure: { message: error.message, type: error.type } }
        throw error
      }
    })) as Told
    if ('result' in told) return told.result
    throw new NodeFailure(told.failure.message, { type: told.failure.type })
  } catch (error) {
    if (error instanceof Paused) return error.result
    throw error
  }
}

/** Watches whether requests were sent, and whether one is out that was not answered. */
function watchSending(given: Sending | undefined) {
  let begun = false
  let answered = false
  const sending = given && {
    begin(request: Parameters<Sending['begin']>[0]) {
      begun = true
      answered = false
      return given.begin(request)
    },
    answered() {
      answered = true
      given.answered()
    },
  }
  return { sending, hasBegun: () => begun, isOut: () => begun && !answered }
}
