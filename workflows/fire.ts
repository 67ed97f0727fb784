import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import {
  CancellationScope,
  ChildWorkflowFailure,
  type ChildWorkflowHandle,
  continueAsNew,
  proxyActivities,
  proxyLocalActivities,
  sleep,
  startChild,
  workflowInfo,
} from '@temporalio/workflow'
import type { RunInput } from './messages.ts'
import type { runGraph } from './run.ts'

/** What a schedule starts: the trigger that fires. `awaiting` is carried over by continue-as-new. */
export type FireInput = {
  workflowId: string
  nodeId: string
  cron: string
  timezone: string
  awaiting?: string
}

/** The firing of a slot; the instants are ISO 8601. */
export type Firing = Omit<FireInput, 'awaiting'> & { scheduledAt: string; firedAt: string }

/** The execution of a firing; without `run` somebody else starts it, or has. `teamId` says whose turn its tasks take. */
export type Fired = { executionId: string; run: RunInput | null; teamId?: string }

export type FireActivities = {
  /** Writes the execution of a firing, or finds it; null where the trigger is there or active no more. */
  recordFiring(firing: Firing): Promise<Fired | null>
  noteStarted(executionId: string): Promise<void>
  /** Cancels the execution whoever starts it. */
  cancelFired(executionId: string): Promise<void>
  hasEnded(executionId: string): Promise<boolean>
}

const retry = { initialInterval: '200 ms', backoffCoefficient: 2, maximumInterval: '10 s' }

// Its answer holds the plan, which may be large: not as a marker beside the child's input in one message. Short, since
// that is how late a firing is whose worker was lost at it; to be repeated it is safe.
const { recordFiring } = proxyActivities<FireActivities>({ startToCloseTimeout: '10 s', retry })

const { noteStarted, cancelFired, hasEnded } = proxyLocalActivities<FireActivities>({
  startToCloseTimeout: '30 s',
  localRetryThreshold: '1 minute',
  retry,
})

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000

/**
 * The workflow that a schedule starts: lives as long as the run of its slot, so that the schedule's overlap policy
 * holds for runs, and takes a cancel down to it. How the run ends does not matter here: its row says so.
 */
export async function fire(input: FireInput): Promise<void> {
  const { awaiting, ...trigger } = input
  const firing = { ...trigger, scheduledAt: readSlot(), firedAt: workflowInfo().startTime.toISOString() }
  // Cancelled in the middle of it, there would be an execution that nobody knows of.
  const record = () => CancellationScope.nonCancellable(() => recordFiring(firing))
  const fired: Fired | null = awaiting ? { executionId: awaiting, run: null } : await record()
  if (!fired) return
  const { executionId, run, teamId } = fired
  try {
    if (run && (await runChild(executionId, run, teamId))) return
    await awaitEnd(input, executionId)
  } catch (error) {
    if (!CancellationScope.current().consideredCancelled) throw error
    await CancellationScope.nonCancellable(async () => {
      await cancelFired(executionId)
      await awaitEnd(input, executionId)
    })
    throw error
  }
}

/** Runs the graph; a cancel of ours goes down to it. True when it has ended, false where somebody else started it. */
async function runChild(executionId: string, run: RunInput, teamId?: string): Promise<boolean> {
  let child: ChildWorkflowHandle<typeof runGraph>
  try {
    child = await startChild<typeof runGraph>('runGraph', {
      workflowId: executionId,
      args: [run],
      parentClosePolicy: 'REQUEST_CANCEL',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      ...(teamId ? { priority: { fairnessKey: teamId } } : {}),
    })
  } catch (error) {
    // The sweeper was faster.
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false
    throw error
  }
  await CancellationScope.nonCancellable(() => noteStarted(executionId))
  await child.result().catch((error) => {
    if (!(error instanceof ChildWorkflowFailure)) throw error
  })
  return true
}

/** Asks until the execution has ended. No slot of a worker is held meanwhile. */
async function awaitEnd(input: FireInput, executionId: string): Promise<void> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    if (await hasEnded(executionId)) return
    await sleep(pause)
    if (workflowInfo().continueAsNewSuggested) {
      await continueAsNew<typeof fire>({ ...input, awaiting: executionId })
    }
  }
}

/** The time that was due, by the id that Temporal makes of it: ...-2026-01-31T12:00:00Z. */
function readSlot(): string {
  const { workflowId, startTime } = workflowInfo()
  const [slot] = /\d{4}-\d\d-\d\dT[\d:.]+Z$/.exec(workflowId) ?? []
  return slot ? new Date(slot).toISOString() : startTime.toISOString()
}
