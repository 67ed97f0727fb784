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
import { demandOurs } from './commands.ts'
import type { RunInput } from './messages.ts'
import type { runGraph } from './run.ts'

/**
 * The trigger that fires. `awaiting` is the id of the execution to wait for, carried over by continue-as-new.
 */
export type FireInput = {
  workflowId: string
  nodeId: string
  cron: string
  timezone: string
  awaiting?: string
}

/** One firing of a schedule: when it was due (`scheduledAt`) and when it came (`firedAt`), as ISO 8601. */
export type Firing = Omit<FireInput, 'awaiting'> & { scheduledAt: string; firedAt: string }

/**
 * The execution of a firing. `run` is null if another process starts it or has started it. `teamId` is the key by which
 * Temporal shares workers fairly between teams.
 */
export type Fired = { executionId: string; run: RunInput | null; teamId?: string }

export type FireActivities = {
  /** Writes the execution of a firing, or finds it. Null if the trigger is gone, inactive, or its graph refused. */
  recordFiring(firing: Firing): Promise<Fired | null>
  noteStarted(executionId: string): Promise<void>
  /** Cancels the execution, no matter who starts it. */
  cancelFired(executionId: string): Promise<void>
  hasEnded(executionId: string): Promise<boolean>
}

const retry = { initialInterval: '200 ms', backoffCoefficient: 2, maximumInterval: '10 s' }

// Not a local activity: its result has the plan, which may be large, and as a marker it would share a message
// with the child's input. The timeout is short because a firing whose worker is lost is that late; repeating
// it is safe.
const { recordFiring } = proxyActivities<FireActivities>({ startToCloseTimeout: '10 s', retry })

const { noteStarted, cancelFired, hasEnded } = proxyLocalActivities<FireActivities>({
  startToCloseTimeout: '30 s',
  localRetryThreshold: '1 minute',
  retry,
})

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000

/**
 * The workflow that a schedule starts. It lives as long as the run of its firing, so that the schedule's
 * overlap policy applies to runs, and it passes a cancel on to that run. How the run ends does not matter
 * here: its row says so.
 */
export async function fire(input: FireInput): Promise<void> {
  demandOurs(input)
  const { awaiting, ...trigger } = input
  const firing = { ...trigger, scheduledAt: readSlot(), firedAt: workflowInfo().startTime.toISOString() }
  // If this were cancelled midway, an execution could exist that is never started.
  const record = () => CancellationScope.nonCancellable(() => recordFiring(firing))
  const fired: Fired | null = awaiting ? { executionId: awaiting, run: null } : await record()
  demandOurs(fired)
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

/** Runs the graph as a child, cancelled with us. True when it has ended, false if others started it. */
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

/** Polls until the execution has ended. It holds no slot of a worker meanwhile. */
async function awaitEnd(input: FireInput, executionId: string): Promise<void> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    if (await hasEnded(executionId)) return
    await sleep(pause)
    if (workflowInfo().continueAsNewSuggested) {
      await continueAsNew<typeof fire>({ ...input, awaiting: executionId })
    }
  }
}

/** When the firing was due: Temporal appends it to the workflow's id, as in ...-2026-01-31T12:00:00Z. */
function readSlot(): string {
  const { workflowId, startTime } = workflowInfo()
  const [slot] = /\d{4}-\d\d-\d\dT[\d:.]+Z$/.exec(workflowId) ?? []
  return slot ? new Date(slot).toISOString() : startTime.toISOString()
}
