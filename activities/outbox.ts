import { type Client, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client'
import type { Logger } from 'pino'
import { reportFailure } from '../db/failures.ts'
import { failUnstartable } from '../db/open.ts'
import { type Errand, markStarted, postponeErrand, settleErrand } from '../db/outbox.ts'
import { readPlan } from '../db/plans.ts'
import type { Store } from '../db/scope.ts'
import { readSettings } from '../db/settings.ts'
import type { RunInput } from '../workflows/messages.ts'
import { type Envelope, INPUT_REF, PlanError } from '../workflows/plan.ts'
import { NUDGE } from '../workflows/walk.ts'
import { applyGiven } from './given.ts'
import type { Metrics } from './metrics.ts'
import { syncSchedules } from './schedules.ts'
import { runTraceparent, type Tracing } from './tracing.ts'

/** What carrying an errand out needs; `eager` asks for eager starts: a worker polls in this very process. */
export type Carrier = {
  store: Store
  client: Client
  taskQueue: string
  eager: boolean
  log: Logger
  metrics?: Metrics | undefined
  tracing?: Tracing | undefined
  /** Tests make runs continue as new after so many events. */
  continueAfterEvents?: number | undefined
}

const INLINE_INPUT_BYTES = 2_000
/**
 * A cancel or delete is repeated after this time: a start that was under way may have come later, and a delete is
 * done only when Temporal knows nothing of the execution.
 */
const SECOND_PASS_MS = 60_000
const MAX_CHAIN = 10_000
const RETRY_MS = 2_000
const MAX_RETRY_MS = 10_000

/**
 * Does what an outbox row asks of Temporal. True when it is done; false where Temporal cannot be reached, and the
 * row stays for the sweeper, and for the start of a run that waits for a place: whoever lets it in queues that anew.
 * Never throws. Safe to repeat and to race: starts are idempotent by id, and a run whose row was cancelled or deleted
 * meanwhile is ended again.
 */
export async function carryOut(carrier: Carrier, errand: Errand, attempts = 1): Promise<boolean> {
  const { store, log } = carrier
  const { kind, subjectId } = errand
  try {
    if (kind === 'START') return await startOrFail(carrier, subjectId, attempts)
    if (kind === 'ERROR') await startErrorRun(carrier, errand)
    else if (kind === 'SIGNAL') await signalRun(carrier, errand)
    else if (kind === 'SCHEDULE') await syncSchedules(carrier, subjectId)
    else {
      const left =
        kind === 'CANCEL' ? await cancelRun(carrier, subjectId) : await deleteRun(carrier, subjectId)
      if (attempts > 1 && !left) await settleErrand(store, errand)
      else await postponeErrand(store, errand, SECOND_PASS_MS, null)
    }
    return true
  } catch (error) {
    log.warn({ err: error, ...errand, attempts }, 'Temporal could not be told')
    const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(attempts - 1, 5))
    await postponeErrand(store, errand, delay, String(error)).catch(() => {})
    return false
  }
}

/** What Temporal or the plan refuses for good ends the execution; what may pass is thrown, to be tried again. False for one that is queued. */
async function startOrFail(carrier: Carrier, executionId: string, attempts: number): Promise<boolean> {
  const { metrics } = carrier
  try {
    const trigger = await startRun(carrier, executionId, attempts)
    if (trigger === QUEUED) return false
    if (trigger !== null) metrics?.runsStarted.inc({ trigger })
  } catch (error) {
    const { code } = error as { code?: unknown }
    const final = error instanceof PlanError || code === GRPC_INVALID_ARGUMENT
    if (!final) throw error
    await refuseRun(carrier, executionId, error as Error)
  }
  return true
}

const QUEUED = Symbol('waits for a place')

/** Ends an execution that can never start. */
export async function refuseRun(
  { store, metrics, log }: Carrier,
  executionId: string,
  error: Error,
): Promise<void> {
  log.error({ err: error, executionId }, 'a run cannot be started')
  const message = `The run could not be started: ${error.message}`
  const ended = await failUnstartable(store, executionId, message)
  if (!ended) return
  metrics?.runsStarted.inc({ trigger: ended.trigger })
  metrics?.runsEnded.inc(ended)
}

/** Answers the run's trigger where it was this call that settled its start, else null; QUEUED where it may not start yet. */
async function startRun(
  carrier: Carrier,
  executionId: string,
  attempts: number,
): Promise<string | typeof QUEUED | null> {
  const { store, client, tracing } = carrier
  const found = await prepareRun(carrier, executionId)
  // Whoever has let it in meanwhile has queued its START: that one is not ours to settle.
  if (found?.queued) return QUEUED
  if (!found?.run) {
    const settled = await settleErrand(store, { kind: 'START', subjectId: executionId, key: '' })
    return settled && found ? found.trigger : null
  }
  const { run, trigger, accepted, teamId } = found
  const attributes = { 'perdure.execution.id': executionId, 'perdure.errand.attempt': attempts }
  const span = accepted
    ? tracing?.begin('start run', { kind: 'client', parent: accepted, attributes })
    : undefined
  try {
    await client.workflow.start('runGraph', {
      workflowId: executionId,
      taskQueue: carrier.taskQueue,
      args: [run],
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      workflowIdConflictPolicy: 'USE_EXISTING',
      requestEagerStart: carrier.eager,
      priority: { fairnessKey: teamId },
    })
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) {
      span?.end({ failure: (error as Error).name })
      throw error
    }
  }
  span?.end()
  return (await noteStarted(carrier, executionId)) ? trigger : null
}

export type Prepared = {
  trigger: string
  teamId: string
  accepted: string | null
  queued: boolean
  run?: RunInput
}

/** An execution with what its run is started with, where it is PENDING and not queued; undefined where there is none. */
export async function prepareRun(carrier: Carrier, executionId: string): Promise<Prepared | undefined> {
  const { store, tracing } = carrier
  const execution = await store.db
    .selectFrom('executions')
    .select(['id', 'workflowId', 'workflowName', 'workflowVersion', 'trigger', 'triggerNodeId', 'status'])
    .select(['timeoutMs', 'inputBytes', 'traceparent', 'queuedAt', 'teamId', 'given', 'onlyNode'])
    .select((eb) =>
      eb.case().when('inputBytes', '<=', INLINE_INPUT_BYTES).then(eb.ref('inputData')).end().as('input'),
    )
    .select((eb) =>
      eb
        .selectFrom('workflows')
        .select('settings')
        .whereRef('workflows.id', '=', 'executions.workflowId')
        .as('settings'),
    )
    .where('id', '=', executionId)
    .executeTakeFirst()
  if (!execution) return undefined
  const { workflowId, workflowName, workflowVersion: version, inputBytes: bytes } = execution
  const timezone = readSettings(execution.settings).timezone ?? 'UTC'
  const { trigger, teamId } = execution
  const accepted = tracing ? execution.traceparent : null
  const queued = execution.queuedAt !== null
  if (execution.status !== 'PENDING' || queued) return { trigger, teamId, accepted, queued }
  const input: Envelope =
    bytes <= INLINE_INPUT_BYTES ? { v: execution.input, bytes } : { ref: INPUT_REF, bytes }
  const run: RunInput = {
    plan: await applyGiven(store, execution, await readPlan(store, execution), input),
    context: {
      ...{ id: executionId, workflowId, workflowName, version, trigger, timezone },
      ...(accepted ? { traceparent: runTraceparent(accepted, executionId) } : {}),
    },
    input,
    timeoutMs: execution.timeoutMs,
    ...(carrier.continueAfterEvents ? { continueAfterEvents: carrier.continueAfterEvents } : {}),
  }
  return { trigger, teamId, accepted, queued, run }
}

/** Temporal has the run: its row says so, unless it was cancelled or deleted meanwhile. True for one of those who note it. */
export async function noteStarted(carrier: Carrier, executionId: string): Promise<boolean> {
  const marked = await markStarted(carrier.store, executionId)
  if (marked === null) await deleteRun(carrier, executionId)
  else if (marked.status === 'CANCELLED') await cancelRun(carrier, executionId)
  return marked?.settled ?? false
}

async function startErrorRun(carrier: Carrier, errand: Errand): Promise<void> {
  const { store, log } = carrier
  const reported = await reportFailure(store, errand.subjectId)
  if (reported.started) {
    const { executionId: subjectId, fresh, queued, status } = reported.started
    if (fresh && !queued && status === 'PENDING')
      await carryOut(carrier, { kind: 'START', subjectId, key: '' })
  } else if (reported.reason) log.warn({ executionId: errand.subjectId }, reported.reason)
  await settleErrand(store, errand)
}

/** A run that has ended, or not begun, has nothing to be told: it looks at the row itself when it gets there. */
async function signalRun({ store, client }: Carrier, errand: Errand): Promise<void> {
  await ignoreMissing(() => client.workflow.getHandle(errand.subjectId).signal(NUDGE, errand.key))
  await settleErrand(store, errand)
}

async function cancelRun({ client }: Carrier, executionId: string): Promise<false> {
  await ignoreMissing(() => client.workflow.getHandle(executionId).cancel())
  return false
}

/**
 * Terminates, then removes every run of the execution's chain from Temporal, which takes it half a minute and
 * more. True while Temporal still knew of one: to be asked again.
 */
async function deleteRun({ client }: Carrier, executionId: string): Promise<boolean> {
  const { namespace } = client.options
  await ignoreMissing(() => client.workflow.getHandle(executionId).terminate('The execution was deleted'))
  let runId = ''
  for (let run = 0; run < MAX_CHAIN; run++) {
    const before = await ignoreMissing(async () => {
      const execution = { workflowId: executionId, runId }
      const asked = { namespace, execution, maximumPageSize: 1 }
      const page = await client.workflowService.getWorkflowExecutionHistory(asked)
      const start = page.history?.events?.[0]?.workflowExecutionStartedEventAttributes
      const workflowExecution = { ...execution, runId: start?.originalExecutionRunId ?? runId }
      const parent = start?.parentWorkflowExecution
      // A scheduled run is the child of its firing.
      if (parent?.workflowId) {
        const firing = { namespace, workflowExecution: parent }
        await ignoreMissing(() => client.workflowService.deleteWorkflowExecution(firing))
      }
      await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution })
      return start?.continuedExecutionRunId ?? ''
    })
    if (!before) return run > 0 || before === ''
    runId = before
  }
  return true
}

const GRPC_INVALID_ARGUMENT = 3
const GRPC_NOT_FOUND = 5

async function ignoreMissing<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || (error as { code?: number }).code === GRPC_NOT_FOUND)
      return undefined
    throw error
  }
}
