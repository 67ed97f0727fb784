import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client'
import { failUnstartable } from '../../db/executions/records/lost.ts'
import { startErrorWorkflow } from '../../db/executions/starts/errorworkflow.ts'
import { readRunStart } from '../../db/executions/starts/runstart.ts'
import {
  type Errand,
  expectNoMore,
  expectStarted,
  markStarted,
  postponeErrand,
  settleErrand,
} from '../../db/outbox.ts'
import { requeueSchedules } from '../../db/schedules/schedules.ts'
import { readCompiledPlan } from '../../db/workflows/compiled.ts'
import { PlanError } from '../../workflows/graph/compile.ts'
import type { RunInput } from '../../workflows/run/messages.ts'
import { NUDGE } from '../../workflows/run/walk.ts'
import { applyPresets } from '../run/presets.ts'
import { syncSchedules } from '../schedules/schedules.ts'
import { runTraceparent } from '../tracing.ts'
import type { ErrandCarrier } from './carrier.ts'
import { cancelRun, deleteRun, ignoreMissing } from './endrun.ts'
import { noteIdentity } from './identity.ts'
import { STUCK_AFTER_MS } from './stuck.ts'

/**
 * A delete is repeated after this time: a start that was under way may have arrived after it, and a delete is
 * complete only when Temporal no longer knows the execution. A cancel is repeated in steps of STUCK_AFTER_MS.
 */
const SECOND_PASS_MS = 60_000
const RETRY_MS = 2_000
const MAX_RETRY_MS = 10_000

/**
 * `attempts`: how often it was tried, with this time. `unmarked`: the caller waits for the end of the execution that is
 * started, and sees to it that it is marked (see markAwaited) if that takes a while. Those whose place at a limit
 * depends on what their row says are marked at once all the same.
 */
export type CarryOptions = { attempts?: number; unmarked?: boolean }

/**
 * Carries out an errand of the outbox. True if that is done. False if it failed, in which case the row
 * stays for the sweeper, and for the START of a queued execution, which is enqueued anew when the gate lets it
 * in. Never throws. Safe to repeat and to race: starts are idempotent by id, and a run whose
 * execution was cancelled or deleted in the meantime is ended again.
 */
export async function carryOutErrand(
  carrier: ErrandCarrier,
  errand: Errand,
  { attempts = 1, unmarked = false }: CarryOptions = {},
): Promise<boolean> {
  const { store, log } = carrier
  const { kind, subjectId } = errand
  try {
    if (kind === 'START') return await startOrFail(carrier, subjectId, { attempts, unmarked })
    if (kind === 'ERROR') await startErrorRun(carrier, errand)
    else if (kind === 'SIGNAL') await signalRun(carrier, errand)
    else if (kind === 'SCHEDULE') await syncSchedules(carrier, subjectId)
    else if (kind === 'CANCEL') {
      // Until the run is closed: one whose workflow code fails does not hear of it. One that Temporal does not know
      // may have been on its way.
      const found = await cancelRun(carrier, subjectId, attempts)
      if (found === 'closed' || (found === 'unknown' && attempts > 2)) await settleErrand(store, errand)
      else await postponeErrand(store, errand, carrier.stuckAfterMs ?? STUCK_AFTER_MS, null)
    } else {
      const mustRepeat = await deleteRun(carrier, subjectId)
      if (attempts > 1 && !mustRepeat) await settleErrand(store, errand)
      else await postponeErrand(store, errand, SECOND_PASS_MS, null)
    }
    return true
  } catch (error) {
    log.warn({ err: error, ...errand, attempts }, 'an errand to Temporal failed')
    const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(attempts - 1, 5))
    const again =
      kind === 'SCHEDULE'
        ? requeueSchedules(store, subjectId, delay, String(error))
        : postponeErrand(store, errand, delay, String(error))
    await again.catch(() => {})
    return false
  }
}

/**
 * Starts a run, or ends its execution if Temporal or the compiler refuses it for good. False if the execution
 * is queued. Throws other errors, which may pass.
 */
async function startOrFail(
  carrier: ErrandCarrier,
  executionId: string,
  options: Required<CarryOptions>,
): Promise<boolean> {
  const { metrics } = carrier
  try {
    const trigger = await startRun(carrier, executionId, options)
    if (trigger === QUEUED) return false
    if (trigger !== null) metrics?.runsStarted.inc({ trigger })
  } catch (error) {
    const { code } = error as { code?: unknown }
    const isFinal = error instanceof PlanError || code === GRPC_INVALID_ARGUMENT
    if (!isFinal) throw error
    await refuseRun(carrier, executionId, error as Error)
  }
  return true
}

const QUEUED = Symbol('waits for a place')

/** Fails an execution that can never start, with the error's message. */
export async function refuseRun(
  { store, metrics, log }: ErrandCarrier,
  executionId: string,
  error: Error,
): Promise<void> {
  log.error({ err: error, executionId }, 'an execution cannot be started')
  const message = `The execution could not be started: ${error.message}`
  const ended = await failUnstartable(store, executionId, message)
  if (!ended) return
  metrics?.runsStarted.inc({ trigger: ended.trigger })
  metrics?.runsEnded.inc(ended)
}

/** Returns the trigger if this call settled the execution's start, else null; QUEUED if it has to wait. */
async function startRun(
  carrier: ErrandCarrier,
  executionId: string,
  { attempts, unmarked }: Required<CarryOptions>,
): Promise<string | typeof QUEUED | null> {
  const { store, client, tracing } = carrier
  const found = await prepareRun(carrier, executionId)
  // The gate enqueues a new START when it lets the execution in, maybe just now: do not settle it here.
  if (found?.queued) return QUEUED
  if (!found?.run) {
    const settled = await settleErrand(store, { kind: 'START', subjectId: executionId, key: '' })
    return settled && found ? found.trigger : null
  }
  const { run, accepted, teamId, fresh } = found
  const attributes = { 'perdure.execution.id': executionId, 'perdure.errand.attempt': attempts }
  const span = accepted
    ? tracing?.begin('start run', { kind: 'client', parent: accepted, attributes })
    : undefined
  const { firstTasks } = carrier
  const requestEagerStart = carrier.eager()
  firstTasks?.expect(executionId, teamId, requestEagerStart)
  // The run may begin before Temporal's answer is here.
  let marksLater = unmarked && fresh === true
  if (marksLater && requestEagerStart) expectStarted(store, executionId)
  try {
    const { eagerlyStarted } = await client.workflow.start('runGraph', {
      workflowId: executionId,
      taskQueue: carrier.taskQueue,
      args: [run],
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      workflowIdConflictPolicy: 'USE_EXISTING',
      requestEagerStart,
      priority: { fairnessKey: teamId },
    })
    firstTasks?.sent(executionId, eagerlyStarted)
    if (marksLater && !eagerlyStarted) expectNoMore(store, executionId)
  } catch (error) {
    firstTasks?.forget(executionId)
    if (marksLater) expectNoMore(store, executionId)
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) {
      span?.end({ failure: (error as Error).name })
      throw error
    }
    marksLater = false
  }
  span?.end()
  if (marksLater) return null
  return noteStarted(carrier, executionId)
}

export type PreparedRun = {
  trigger: string
  teamId: string
  accepted: string | null
  queued: boolean
  run?: RunInput
  /** It has just been written, and nothing but Temporal decides when it ends. */
  fresh?: boolean
}

/**
 * An execution with the input that its run is started with, or without `run` if it is not PENDING or is
 * queued. Undefined if it does not exist. Throws a PlanError if its graph does not compile.
 */
export async function prepareRun(
  carrier: ErrandCarrier,
  executionId: string,
): Promise<PreparedRun | undefined> {
  const { store, tracing, continueAfterEvents } = carrier
  const execution = await readRunStart(store, executionId)
  if (!execution) return undefined
  const { workflowId, workflowName, workflowVersion: version, trigger, teamId, timezone, input } = execution
  const accepted = tracing ? execution.traceparent : null
  const queued = execution.queuedAt !== null
  if (execution.status !== 'PENDING' || queued) return { trigger, teamId, accepted, queued }
  const run: RunInput = {
    plan: await applyPresets(store, execution, await readCompiledPlan(store, execution), input),
    context: {
      id: executionId,
      workflowId,
      workflowName,
      version,
      trigger,
      timezone,
      ...(execution.retryOf ? { retryOf: execution.retryOf } : {}),
      ...(accepted ? { traceparent: runTraceparent(accepted, executionId) } : {}),
      ...(accepted && execution.tracestate ? { tracestate: execution.tracestate } : {}),
    },
    input,
    timeoutMs: execution.timeoutMs,
    ...(continueAfterEvents ? { continueAfterEvents } : {}),
  }
  noteIdentity(store, run.context)
  return { trigger, teamId, accepted, queued, run, fresh: execution.fresh === true }
}

/**
 * Notes that Temporal has the run. If the execution was cancelled or deleted in the meantime, the run is
 * ended. Returns the trigger for only one of several callers, else null. `agoMs`: how long ago Temporal accepted it.
 */
export async function noteStarted(
  carrier: ErrandCarrier,
  executionId: string,
  agoMs = 0,
): Promise<string | null> {
  const marked = await markStarted(carrier.store, executionId, agoMs)
  if (marked === null) await deleteRun(carrier, executionId)
  else if (marked.status === 'CANCELLED') await cancelRun(carrier, executionId)
  return marked?.settled ? marked.trigger : null
}

/**
 * Marks an execution that was started without that: it has not ended within a moment, or its caller waits no longer.
 * Returns whether that is done, and never rejects.
 */
export async function markAwaited(
  carrier: ErrandCarrier,
  executionId: string,
  agoMs: number,
): Promise<boolean> {
  const { metrics, log } = carrier
  try {
    const trigger = await noteStarted(carrier, executionId, agoMs)
    if (trigger) metrics?.runsStarted.inc({ trigger })
    return true
  } catch (error) {
    // The sweeper does it: the START errand is still there.
    log.warn({ err: error, executionId }, 'an execution could not be marked as running')
    return false
  }
}

async function startErrorRun(carrier: ErrandCarrier, errand: Errand): Promise<void> {
  const { store, log } = carrier
  const outcome = await startErrorWorkflow(store, errand.subjectId)
  if (outcome.started) {
    const { executionId: subjectId, fresh, queued, status } = outcome.started
    if (fresh && !queued && status === 'PENDING')
      await carryOutErrand(carrier, { kind: 'START', subjectId, key: '' })
  } else if (outcome.reason) log.warn({ executionId: errand.subjectId }, outcome.reason)
  await settleErrand(store, errand)
}

/** Nudges a run. One that has ended or not begun needs none: it looks at the row when it gets there. */
async function signalRun({ store, client }: ErrandCarrier, errand: Errand): Promise<void> {
  await ignoreMissing(() => client.workflow.getHandle(errand.subjectId).signal(NUDGE, errand.key))
  await settleErrand(store, errand)
}

const GRPC_INVALID_ARGUMENT = 3
