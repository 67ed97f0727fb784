import {
  ApplicationFailure,
  type CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxySinks,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import { attemptNode, engineFailure, nodeFailure, readFailure, walkSegment } from './commands.ts'
import { createFrame, type Failure, isUnder, listFrames, outputsAround, reviveFrame } from './frame.ts'
import type { AttemptInput, AttemptResult, Carried, RunInput, RunSinks, SegmentInput } from './messages.ts'
import type { Envelope } from './plan.ts'
import { createScopes } from './scopes.ts'
import { collect, isWithin, settle, type Task, taskKey } from './state.ts'
import { after, createTimers } from './timers.ts'
import { viewState } from './view.ts'
import {
  isEntry,
  isStep,
  MAX_IN_FLIGHT,
  type NodeRecord,
  NUDGE,
  RUN_TIMED_OUT,
  settleFailure,
  sourcesOf,
  stepKey,
} from './walk.ts'

const sinks = proxySinks<RunSinks>()
const nudge = defineSignal<[string]>(NUDGE)

/** The workflow behind every execution: walks the plan until nothing is ready and nothing is in flight. */
export async function runGraph(input: RunInput): Promise<void> {
  let carried: Carried | undefined
  try {
    carried = await createRun(input).walk()
  } catch (error) {
    if (error instanceof ApplicationFailure || isCancellation(error)) throw error
    throw engineFailure(error)
  } finally {
    if (!carried) sinks.run.closing()
  }
  if (carried) await continueAsNew<typeof runGraph>({ ...input, carried })
}

/** All that segments tell between two answers of the worker goes into one message, which takes 4 MB. */
const MAX_UNSENT_BYTES = 750_000

/** More iterations than this begin only in loops that have none under way. */
const MAX_ITERATIONS = 64

function createRun(run: RunInput) {
  const { plan, input, carried } = run
  const startedAt = carried?.startedAt ?? workflowInfo().startTime.getTime()
  const deadline = carried ? carried.deadline : run.timeoutMs === null ? null : startedAt + run.timeoutMs
  const context = { ...run.context, startedAt: new Date(startedAt).toISOString() }
  const item = plan.item && { result: plan.item }
  const root = carried ? reviveFrame(carried.root) : createFrame('', '', 0, item)
  const nudges = new Set(carried?.nudges)
  const busy = new Set<string>()
  /** Of `busy`, what segments are at. */
  const walking = new Set<string>()
  const scopes = createScopes(plan, root)
  const timers = createTimers(plan, root, goOn)
  let working = 0
  let progress = 0
  let unsent = 0
  let sending = false
  let failure: ApplicationFailure | undefined
  let timedOut = false

  setHandler(nudge, (key) => {
    nudges.add(key)
    goOn()
  })

  function goOn(): void {
    progress++
  }

  /**
   * Runs a piece of work; unless it is cancelled, its failure ends the run. Few promises: of each Temporal notes the
   * stack, which is half of what a workflow task takes.
   */
  function begin<T>(
    within: CancellationScope,
    keys: string[],
    work: () => Promise<T>,
    done: (result: T) => void,
    failed: (error: unknown) => void = fail,
  ): void {
    for (const key of keys) busy.add(key)
    working++
    const end = (settled: () => void) => {
      try {
        settled()
      } catch (error) {
        fail(error)
      }
      working--
      for (const key of keys) busy.delete(key)
      goOn()
    }
    within.run(work).then(
      (result) => end(() => done(result)),
      (error) => end(() => isCancellation(error) || failed(error)),
    )
  }

  function fail(error: unknown): void {
    failure ??= engineFailure(error)
  }

  function note(record: NodeRecord): void {
    const ended: Failure | undefined = settle(plan, root, record)
    if (ended) failure ??= nodeFailure(ended)
  }

  function startSegment(tasks: Task[], drains: boolean): void {
    const segment: SegmentInput = {
      plan,
      context,
      input,
      root: viewState(plan, root, tasks),
      busy: [...busy],
      ...(drains ? { drains } : {}),
    }
    const keys = tasks.map(taskKey)
    for (const key of keys) walking.add(key)
    const done = (records: NodeRecord[]) => {
      for (const key of keys) walking.delete(key)
      unsent += new TextEncoder().encode(JSON.stringify(records)).length
      for (const record of records) note(record)
    }
    begin(scopes.whole, keys, () => walkSegment(segment), done)
  }

  /** A worker answers only while no segment is under way; the timer's event comes after the answer. */
  function sendRecords(): void {
    sending = true
    after(scopes.whole, 1, 'records are sent', () => {
      unsent = 0
      sending = false
      goOn()
    })
  }

  function startAttempt({ node, frame }: Task): void {
    const { iteration } = frame
    const sources = sourcesOf(plan, node.id, frame.outcomes)
    const outputs: Record<string, Envelope> = {}
    const find = outputsAround(plan, root, frame)
    for (const id of [...sources, ...node.needs]) {
      const output = find(id)
      if (output) outputs[id] = output
    }
    const attempt: AttemptInput = {
      node,
      context,
      triggerNodeId: plan.triggerNodeId,
      inlineBytes: plan.inlineBytes,
      sources,
      outputs,
      iteration,
      ...(frame.item && (isEntry(plan, node) || node.readsItem) ? { item: frame.item } : {}),
    }
    const record = { nodeId: node.id, iteration, startedAt: 0, completedAt: 0 }
    const failed = (error: unknown) => {
      const cause = readFailure(error)
      const handled = settleFailure(node, cause)
      const { output, handle } = handled === 'fatal' ? { handle: null } : handled
      const bytes = JSON.stringify(output ?? null).length
      const given = handled === 'fatal' ? {} : { output: { v: output, bytes } }
      note({ ...record, status: 'FAILED', error: cause, handle, ...given })
    }
    const done = (result: AttemptResult) => note({ ...record, status: 'SUCCESS', ...result })
    begin(scopes.find(frame), [stepKey(node.id, iteration)], () => attemptNode(attempt), done, failed)
  }

  async function walk(): Promise<Carried | undefined> {
    if (deadline !== null) {
      after(scopes.whole, deadline - Date.now(), 'time limit of the run', () => {
        timedOut = true
        goOn()
      })
    }
    while (true) {
      const waiting = timers.keep(busy, nudges)
      // Continuing as new abandons activities, so no new one starts; pure steps go on meanwhile.
      const draining = wantsNewRun(run)
      const tasks = collect(plan, root, busy, {
        segment: false,
        begins: (_, { frames }) =>
          !draining && (frames.length === 0 || listFrames(root).length <= MAX_ITERATIONS),
        ends: () => true,
        holds: (node, { iteration }) => [...walking].some((key) => isWithin(plan, key, node.id, iteration)),
        drains: draining,
      })
      scopes.drop()
      if (unsent > MAX_UNSENT_BYTES && !sending) sendRecords()
      const open = tasks.length > 0 || waiting > 0 || Object.keys(root.loops).length > 0
      if (draining && working === 0 && !sending && !failure && !timedOut && open) {
        return { startedAt, deadline, root, nudges: [...nudges] }
      }
      const steps = tasks.filter(({ phase, node }) => phase !== 'run' || isStep(node))
      const ready = draining ? steps.filter(({ phase }) => phase !== 'turn') : steps
      if (ready.length > 0 && !sending) startSegment(ready, draining)
      for (const task of tasks) {
        if (steps.includes(task) || draining || working >= MAX_IN_FLIGHT) continue
        // A failure beside it may have ended its loop while tasks were collected.
        if (isUnder(plan, root, task.frame)) startAttempt(task)
      }
      if (failure || timedOut || (working === 0 && waiting === 0 && !sending)) break
      const seen = progress
      await condition(() => progress > seen)
    }
    if (failure || timedOut) {
      scopes.whole.cancel()
      timers.cancel()
    }
    if (failure) throw failure
    if (Object.keys(root.loops).length > 0 && !timedOut) throw new Error('the walk stands still in a loop')
    if (timedOut) {
      const message = `The run took longer than its limit of ${run.timeoutMs} ms`
      throw ApplicationFailure.create({ message, type: RUN_TIMED_OUT, nonRetryable: true })
    }
    return undefined
  }

  return { walk }
}

function wantsNewRun(run: RunInput): boolean {
  const info = workflowInfo()
  if (info.continueAsNewSuggested) return true
  return run.continueAfterEvents !== undefined && info.historyLength >= run.continueAfterEvents
}
