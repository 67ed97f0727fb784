import type { FailureType } from '../../workflows/nodes/failures.ts'
import { HttpError } from '../http/httperror.ts'
import { isUnsent } from '../models/failures.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { isInfrastructure } from '../run/failures.ts'
import { sendOnce } from '../send/once.ts'
import type { AgentStep, AgentStepResult } from './step.ts'

/** The stored outcome of a task that is not repeated: later attempts answer with it. */
type SettledStep = { result: AgentStepResult } | { failure: { message: string; type: FailureType } }

/** The task waits, so its tool was not called yet. */
class Paused extends Error {
  readonly result: AgentStepResult

  constructor(result: AgentStepResult) {
    super('The task waits')
    this.result = result
  }
}

/**
 * Runs a step. The tool of a task that is not repeated is called at most once, whatever happens to the attempts: the
 * runner says with `context.begin` when it calls the tool, and what came of that, also a failure, is stored before
 * Temporal hears of it. If the outcome of the call is unknown, throws a NodeFailure (OutcomeUnknown). What fails
 * before `begin`, or has certainly done nothing, may be tried again as any other failure.
 */
export async function callOnce(
  context: NodeContext,
  step: AgentStep,
  run: (context: NodeContext) => Promise<AgentStepResult>,
): Promise<AgentStepResult> {
  if (step.kind === 'turn' || step.task.repeats) return run(context)
  const what = `The request of the tool "${step.task.tool}"`
  const way = 'Look there before it is asked for again, or mark the tool as one that may be called twice'
  const once = { what, uncertain: 'OutcomeUnknown', repeat: false, way } as const
  try {
    const told = (await sendOnce(context, once, async (handover): Promise<SettledStep> => {
      let begun = false
      const begin = async () => {
        begun = true
        await handover.begin()
      }
      try {
        const result = await run({ ...context, begin })
        if ('pause' in result) throw new Paused(result)
        return { result }
      } catch (error) {
        if (!begun || isUndone(error)) handover.refused()
        else if (
          error instanceof NodeFailure &&
          !isInfrastructure(error) &&
          !isInDoubt(error, context.signal)
        )
          return { failure: { message: error.message, type: error.type } }
        throw error
      }
    })) as SettledStep
    if ('result' in told) return told.result
    throw new NodeFailure(told.failure.message, { type: told.failure.type })
  } catch (error) {
    if (error instanceof Paused) return error.result
    throw error
  }
}

/** Failures of statements after which nothing was done: their transaction was not committed. */
const UNDONE = new Set<FailureType>(['DatabaseFailed', 'DatabaseUnreachable'])

/**
 * Failures after which the tool may have done what it was asked: no answer came, or one that cannot be read, or one from
 * somewhere before the other side. Other statuses, and errors in the protocol of a server, say what came of the call.
 */
const IN_DOUBT = new Set<FailureType>([
  'DatabaseUncertain',
  'HttpAborted',
  'HttpNetwork',
  'HttpRedirect',
  'HttpTimeout',
  'HttpTooLarge',
  'InvalidResponse',
])
const DOUBTFUL_STATUS = /^Http(?:3\d\d|408|5\d\d)$/

/** Whether the tool has certainly done nothing. */
function isUndone(error: unknown): boolean {
  if (!(error instanceof NodeFailure)) return false
  return UNDONE.has(error.type) || (error.cause instanceof HttpError && isUnsent(error.cause))
}

/** Whether the tool may have done what it was asked, although no answer came that says so. */
function isInDoubt({ type, cause }: NodeFailure, signal: AbortSignal): boolean {
  if (signal.aborted || IN_DOUBT.has(type) || DOUBTFUL_STATUS.test(type)) return true
  return cause instanceof HttpError && cause.followed
}
