import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  proxyLocalActivities,
  proxySinks,
  type Sinks,
  scheduleActivity,
  sleep,
  workflowInfo,
} from '@temporalio/workflow'
import type { Envelope, ExecutionContext, Plan, PlanNode, RunContext } from './plan.ts'
import {
  ENGINE_FAILED,
  emptyOutcomes,
  isStep,
  MAX_IN_FLIGHT,
  NODE_FAILED,
  type NodeError,
  type NodeRecord,
  next,
  type Outcomes,
  outputsFor,
  RUN_TIMED_OUT,
  settleFailure,
  sourcesOf,
  timerKey,
  WORKER_LOST,
} from './walk.ts'

/** A run carried over by continue-as-new: only settled nodes and absolute instants. */
export type Carried = {
  startedAt: number
  deadline: number | null
  outcomes: Outcomes
  outputs: Record<string, Envelope>
  waits: { nodeId: string; until: number; handle: string | null }[]
}

export type RunInput = {
  plan: Plan
  context: RunContext
  input: Envelope
  timeoutMs: number | null
  /** Tests make a run continue as new after so many events. */
  continueAfterEvents?: number
  carried?: Carried
}

export type SegmentInput = {
  plan: Plan
  context: ExecutionContext
  input: Envelope
  outcomes: Outcomes
  /** Nodes that others are at. */
  started: string[]
  outputs: Record<string, Envelope>
}

export type AttemptInput = {
  node: PlanNode
  context: ExecutionContext
  triggerNodeId: string
  inlineBytes: number
  sources: string[]
  outputs: Record<string, Envelope>
}

export type AttemptResult = { output: Envelope; handle: string | null }

export type Activities = {
  walkSegment(input: SegmentInput): Promise<NodeRecord[]>
  runNode(input: AttemptInput): Promise<AttemptResult>
}

export type RunSinks = Sinks & { run: { closing(): void } }

/** Attempts that Temporal may add for lost workers and shutdowns, beyond the node's own. */
export const SPARE_ATTEMPTS = 20

const HEARTBEAT_TIMEOUT_MS = 10_000
/** The wrapper ends an attempt at the node's limit; Temporal's own limit is only for a wrapper that cannot. */
const ATTEMPT_GRACE_MS = 15_000

const { walkSegment } = proxyLocalActivities<Pick<Activities, 'walkSegment'>>({
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '1 minute',
  retry: { initialInterval: '200 ms', backoffCoefficient: 2, maximumInterval: '10 s' },
  cancellationType: ActivityCancellationType.TRY_CANCEL,
})

const sinks = proxySinks<RunSinks>()

/** The workflow behind every execution: walks the plan until nothing is ready and nothing is in flight. */
export async function runGraph(input: RunInput): Promise<void> {
  let carried: Carried | undefined
  try {
    carried = await walk(input)
  } catch (error) {
    if (error instanceof ApplicationFailure || isCancellation(error)) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw ApplicationFailure.create({ message, type: ENGINE_FAILED, nonRetryable: true })
  } finally {
    if (!carried) sinks.run.closing()
  }
  if (carried) await continueAsNew<typeof runGraph>({ ...input, carried })
}

/** Resolves with the state to carry on where the history has grown enough, else with nothing at the end. */
async function walk(run: RunInput): Promise<Carried | undefined> {
  const { plan, context, input } = run
  const startedAt = run.carried?.startedAt ?? workflowInfo().startTime.getTime()
  const deadline = run.carried
    ? run.carried.deadline
    : run.timeoutMs === null
      ? null
      : startedAt + run.timeoutMs
  const outcomes = emptyOutcomes(run.carried?.outcomes)
  const outputs: Record<string, Envelope> = Object.assign(Object.create(null), run.carried?.outputs)
  const shown = { ...context, startedAt: new Date(startedAt).toISOString() }
  const byId = new Map(plan.nodes.map((node) => [node.id, node]))
  const started = new Set<string>()
  const waits = new Map<string, { nodeId: string; until: number; handle: string | null }>()
  let working = 0
  let progress = 0
  let failure: ApplicationFailure | undefined
  let timedOut = false

  const scope = new CancellationScope()

  /** Runs a piece of work in the run's scope; its failure ends the run. */
  function begin(ids: string[], counts: boolean, work: () => Promise<void>): void {
    for (const id of ids) started.add(id)
    if (counts) working++
    scope
      .run(work)
      .catch((error) => {
        failure ??= error instanceof ApplicationFailure ? error : engineFailure(error)
      })
      .finally(() => {
        if (counts) working--
        for (const id of ids) if (!waits.has(id)) started.delete(id)
        progress++
      })
  }

  function settle(record: NodeRecord): void {
    const node = byId.get(record.nodeId)!
    if (record.output) outputs[record.nodeId] = record.output
    if (record.status === 'WAITING') {
      wait({ nodeId: node.id, until: record.until!, handle: record.handle })
      return
    }
    if (record.error && settleFailure(node, record.error) === 'fatal') throw nodeFailure(node, record.error)
    outcomes[node.id] = { handle: record.handle }
  }

  function wait(entry: { nodeId: string; until: number; handle: string | null }): void {
    waits.set(entry.nodeId, entry)
    begin([entry.nodeId], false, async () => {
      await sleep(Math.max(1, entry.until - Date.now()), { summary: timerKey(entry.nodeId, '') })
      waits.delete(entry.nodeId)
      outcomes[entry.nodeId] = { handle: entry.handle }
    })
  }

  function startSegment(nodes: PlanNode[]): void {
    const ids = nodes.map((node) => node.id)
    const open = plan.nodes.filter((node) => isStep(node) && !outcomes[node.id])
    const segment: SegmentInput = {
      plan,
      context: shown,
      input,
      outcomes: { ...outcomes },
      started: [...started],
      outputs: outputsFor(plan, open, outputs),
    }
    begin(ids, true, async () => {
      for (const record of await walkSegment(segment)) settle(record)
    })
  }

  function startAttempt(node: PlanNode): void {
    const sources = sourcesOf(plan, node.id, outcomes)
    const needed = [...sources, ...node.needs]
    const attempt: AttemptInput = {
      node,
      context: shown,
      triggerNodeId: plan.triggerNodeId,
      inlineBytes: plan.inlineBytes,
      sources,
      outputs: Object.fromEntries(needed.filter((id) => outputs[id]).map((id) => [id, outputs[id]!])),
    }
    begin([node.id], true, async () => {
      try {
        const result = await scheduleActivity<AttemptResult>('runNode', [attempt], attemptOptions(node))
        outputs[node.id] = result.output
        outcomes[node.id] = { handle: result.handle }
      } catch (error) {
        if (isCancellation(error)) throw error
        const cause = readFailure(error)
        const handled = settleFailure(node, cause)
        if (handled === 'fatal') throw nodeFailure(node, cause)
        outputs[node.id] = { v: handled.output, bytes: JSON.stringify(handled.output).length }
        outcomes[node.id] = { handle: handled.handle }
      }
    })
  }

  if (deadline !== null) {
    scope
      .run(() => sleep(Math.max(1, deadline - Date.now()), { summary: 'time limit of the run' }))
      .then(() => {
        timedOut = true
        progress++
      })
      .catch(() => {})
  }
  for (const entry of run.carried?.waits ?? []) wait(entry)

  while (true) {
    // Continuing as new abandons activities, so no new one starts; pure steps go on meanwhile.
    const draining = wantsNewRun(run)
    if (draining && working === 0 && !failure && !timedOut) {
      const open = next(plan, outcomes, started).length > 0 || waits.size > 0
      if (open) return { startedAt, deadline, outcomes, outputs, waits: [...waits.values()] }
    }
    const ready = next(plan, outcomes, started)
    const steps = ready.filter(isStep)
    if (steps.length > 0) startSegment(steps)
    for (const node of ready) {
      if (!isStep(node) && !draining && working < MAX_IN_FLIGHT) startAttempt(node)
    }
    if (failure || timedOut || (working === 0 && waits.size === 0)) break
    const seen = progress
    await condition(() => progress > seen)
  }
  if (failure || timedOut) scope.cancel()
  if (failure) throw failure
  if (timedOut) {
    const message = `The run took longer than its limit of ${run.timeoutMs} ms`
    throw ApplicationFailure.create({ message, type: RUN_TIMED_OUT, nonRetryable: true })
  }
  return undefined
}

function wantsNewRun(run: RunInput): boolean {
  const info = workflowInfo()
  if (info.continueAsNewSuggested) return true
  return run.continueAfterEvents !== undefined && info.historyLength >= run.continueAfterEvents
}

function attemptOptions(node: PlanNode) {
  const { maxAttempts, initialIntervalMs, backoffCoefficient, maxIntervalMs } = node.retry
  return {
    activityId: node.id,
    startToCloseTimeout: node.timeoutMs + ATTEMPT_GRACE_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    summary: node.name,
    retry: {
      maximumAttempts: maxAttempts + SPARE_ATTEMPTS,
      initialInterval: initialIntervalMs,
      backoffCoefficient,
      maximumInterval: Math.max(initialIntervalMs, maxIntervalMs),
    },
  }
}

function readFailure(error: unknown): NodeError {
  const cause = error instanceof ActivityFailure ? (error.cause ?? error) : error
  if (cause instanceof ApplicationFailure) return { message: cause.message, type: cause.type ?? 'Error' }
  return WORKER_LOST
}

function nodeFailure(node: PlanNode, error: NodeError): ApplicationFailure {
  return ApplicationFailure.create({
    message: error.message,
    type: NODE_FAILED,
    details: [{ nodeId: node.id, type: error.type }],
    nonRetryable: true,
  })
}

function engineFailure(error: unknown): ApplicationFailure | undefined {
  if (isCancellation(error)) return undefined
  const message = error instanceof Error ? error.message : String(error)
  return ApplicationFailure.create({ message, type: ENGINE_FAILED, nonRetryable: true })
}
