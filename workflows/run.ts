import {
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxySinks,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow'
import { attemptNode, engineFailure, nodeFailure, readFailure, walkSegment } from './commands.ts'
import {
  createFrame,
  type Failure,
  type Frame,
  framesTo,
  listFrames,
  outputsAround,
  reviveFrame,
} from './frame.ts'
import type { AttemptInput, AttemptResult, Carried, RunInput, RunSinks, SegmentInput } from './messages.ts'
import type { Envelope } from './plan.ts'
import { collect, isWithin, settle, type Task, taskKey } from './state.ts'
import { viewState } from './view.ts'
import {
  findNode,
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
  const timers = new Map<string, CancellationScope>()
  const scope = new CancellationScope()
  /** Of iterations, by stepKey of the loop: what is under way in one ends with it. */
  const scopes = new Map<string, CancellationScope>()
  let working = 0
  let progress = 0
  let unsent = 0
  let sending = false
  let failure: ApplicationFailure | undefined
  let timedOut = false

  setHandler(nudge, (key) => {
    nudges.add(key)
    progress++
  })

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
      progress++
    }
    within.run(work).then(
      (result) => end(() => done(result)),
      (error) => end(() => isCancellation(error) || failed(error)),
    )
  }

  function fail(error: unknown): void {
    failure ??= engineFailure(error)
  }

  function scopeOf(frame: Frame): CancellationScope {
    if (frame === root) return scope
    const key = stepKey(frame.loopId, frame.iteration)
    let own = scopes.get(key)
    if (!own) {
      const parent = scopeOf(framesTo(plan, root, frame).at(-2)!)
      own = new CancellationScope({ cancellable: true, parent })
      scopes.set(key, own)
    }
    return own
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
    begin(scope, keys, () => walkSegment(segment), done)
  }

  /** A worker answers only while no segment is under way; the timer's event comes after the answer. */
  function sendRecords(): void {
    sending = true
    scope
      .run(() => sleep(1, { summary: 'records are sent' }))
      .then(() => {
        unsent = 0
        sending = false
        progress++
      })
      .catch(() => {})
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
    begin(scopeOf(frame), [stepKey(node.id, iteration)], () => attemptNode(attempt), done, failed)
  }

  /** Gives every node that waits its timer, ends the timers of those that wait no more; answers how many wait. */
  function keepTimers(): number {
    const waiting = new Set<string>()
    for (const frame of listFrames(root)) {
      for (const [id, wait] of Object.entries(frame.waits)) {
        const key = stepKey(id, frame.iteration)
        waiting.add(key)
        // Whoever looks at it now may have looked too early: the nudge is for the next look.
        if (wait.pause && !busy.has(key) && nudges.delete(key)) wait.due = true
        if (wait.until !== null && !wait.due && !timers.has(key)) startTimer(frame, id, key, wait.until)
      }
    }
    for (const [key, timer] of timers) {
      if (waiting.has(key)) continue
      timers.delete(key)
      timer.cancel()
    }
    return waiting.size
  }

  function startTimer(frame: Frame, id: string, key: string, until: number): void {
    const timer = new CancellationScope()
    timers.set(key, timer)
    const { pause } = frame.waits[id]!
    // The projection takes a timer that has a node's key for the end of that node.
    const summary = pause ? `time limit of ${findNode(plan, id)!.name}` : key
    timer
      .run(() => sleep(Math.max(1, until - Date.now()), { summary }))
      .then(() => {
        const wait = frame.waits[id]
        if (!wait) return
        if (timers.get(key) === timer) timers.delete(key)
        if (pause) wait.due = true
        else {
          delete frame.waits[id]
          frame.outcomes[id] = { handle: wait.handle }
        }
        progress++
      })
      .catch(() => {})
  }

  /** Ends what is under way in iterations that are over: one branch of them has failed. */
  function dropScopes(): void {
    const live = new Set(listFrames(root).map(({ loopId, iteration }) => stepKey(loopId, iteration)))
    for (const [key, own] of scopes) {
      if (live.has(key)) continue
      scopes.delete(key)
      own.cancel()
    }
  }

  async function walk(): Promise<Carried | undefined> {
    if (deadline !== null) {
      scope
        .run(() => sleep(Math.max(1, deadline - Date.now()), { summary: 'time limit of the run' }))
        .then(() => {
          timedOut = true
          progress++
        })
        .catch(() => {})
    }
    while (true) {
      const waiting = keepTimers()
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
      dropScopes()
      if (unsent > MAX_UNSENT_BYTES && !sending) sendRecords()
      const open = tasks.length > 0 || waiting > 0 || Object.keys(root.loops).length > 0
      if (draining && working === 0 && !sending && !failure && !timedOut && open) {
        return { startedAt, deadline, root, nudges: [...nudges] }
      }
      const steps = tasks.filter(({ phase, node }) => phase !== 'run' || isStep(node))
      const ready = draining ? steps.filter(({ phase }) => phase !== 'turn') : steps
      if (ready.length > 0 && !sending) startSegment(ready, draining)
      for (const task of tasks) {
        if (!steps.includes(task) && !draining && working < MAX_IN_FLIGHT) startAttempt(task)
      }
      if (failure || timedOut || (working === 0 && waiting === 0 && !sending)) break
      const seen = progress
      await condition(() => progress > seen)
    }
    if (failure || timedOut) {
      scope.cancel()
      for (const timer of timers.values()) timer.cancel()
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
