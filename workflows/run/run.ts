import {
  ApplicationFailure,
  type CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  makeContinueAsNewFunc,
  patched,
  proxySinks,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import { beginAgent, describeStep, moveAgent } from './agents.ts'
import { createCancellation } from './cancellation.ts'
import {
  attemptNode,
  demandOurs,
  engineFailure,
  nodeFailure,
  readFailure,
  refusal,
  walkSegment,
} from './commands.ts'
import { createFrame, inputOf, isUnder, outputsAround, reviveFrame, trailOf } from './frame.ts'
import { collectTasks, isForSegment, settleRecord, type Task, taskKey } from './loops.ts'
import type { AttemptInput, Carried, RunInput, RunSinks, SegmentInput } from './messages.ts'
import type { Envelope, PlanNode } from './plan.ts'
import { type NodeError, type NodeRecord, RUN_REFUSED, RUN_TIMED_OUT, type StepResult } from './records.ts'
import { workflowRules } from './rules.ts'
import { sliceState } from './slice.ts'
import { afterDelay, createTimers } from './timers.ts'
import { isEntry, MAX_IN_FLIGHT, NUDGE, settleFailure } from './walk.ts'

const sinks = proxySinks<RunSinks>()
const nudge = defineSignal<[string]>(NUDGE)

/** The workflow behind every execution: walks the plan until nothing is ready and nothing is in flight. */
export async function runGraph(input: RunInput): Promise<void> {
  let carried: Carried | undefined
  try {
    demandOurs(input)
    carried = await createRun(input).walk()
  } catch (error) {
    if (error instanceof ApplicationFailure || isCancellation(error)) throw error
    throw engineFailure(error)
  } finally {
    if (!carried) sinks.run.closing()
  }
  if (!carried) return
  // Where workers are versioned, a run is pinned to the version that it began on; here it moves to the current one.
  await makeContinueAsNewFunc<typeof runGraph>({ initialVersioningBehavior: 'AUTO_UPGRADE' })({
    ...input,
    carried,
  })
}

/**
 * The results of segments travel in one message with the worker's next response, and Temporal accepts
 * messages of up to 4 MB. Above this many bytes we make the worker respond before the next segment starts.
 */
const MAX_UNSENT_BYTES = 750_000

function createRun(run: RunInput) {
  const { plan, input, carried } = run
  const startedAt = carried?.startedAt ?? workflowInfo().startTime.getTime()
  const deadline = carried ? carried.deadline : run.timeoutMs === null ? null : startedAt + run.timeoutMs
  const context = { ...run.context, startedAt: new Date(startedAt).toISOString() }
  const item = plan.item && { result: plan.item }
  const root = carried ? reviveFrame(carried.root) : createFrame('', '', 0, item)
  const nudges = new Set(carried?.nudges)
  /** The keys of what is under way. */
  const busy = new Set<string>()
  /** The keys of the tasks that segments are working on. */
  const walking = new Set<string>()
  const scopes = createCancellation(plan, root)
  const timers = createTimers(plan, root, wake)
  let working = 0
  let progress = 0
  let unsent = 0
  let sending = false
  /** How many delays are not over, of segments that gave their slot back; the last ends at `awayUntil`. */
  let away = 0
  let awayUntil = 0
  /** How many segments in a row gave their slot back. */
  let inVain = 0
  let failure: ApplicationFailure | undefined
  let timedOut = false

  // Whoever reaches Temporal can send signals. One that the service did not seal for this run says nothing.
  setHandler(nudge, (key) => {
    if (typeof key !== 'string') return
    nudges.add(key)
    wake()
  })

  /** Makes the walk look again at what can be done. */
  function wake(): void {
    progress++
  }

  /**
   * Starts a piece of work. Its failure ends the run, unless `failed` handles it or it was cancelled. We make
   * few promises here: Temporal records the stack of each, which is half of what a workflow task costs.
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
      wake()
    }
    within.run(work).then(
      (result) => end(() => done(result)),
      (error) =>
        end(() => {
          if (!isCancellation(error)) failed(error)
        }),
    )
  }

  function fail(error: unknown): void {
    failure ??= engineFailure(error)
  }

  function note(record: NodeRecord): void {
    const fatal = settleRecord(plan, root, record)
    if (fatal) failure ??= nodeFailure(fatal)
  }

  function startSegment(tasks: Task[], drains: boolean): void {
    const segment: SegmentInput = {
      plan,
      context,
      input,
      root: sliceState(plan, root, tasks),
      busy: [...busy],
      ...(drains ? { drains } : {}),
    }
    const keys = tasks.map(taskKey)
    for (const key of keys) walking.add(key)
    const done = (records: NodeRecord[]) => {
      demandOurs(records)
      for (const key of keys) walking.delete(key)
      unsent += new TextEncoder().encode(JSON.stringify(records)).length
      for (const record of records) {
        inVain = record.status === 'AWAY' ? inVain + 1 : 0
        if (record.status === 'AWAY') stayAway(Math.max(record.forMs, restBetween(inVain)))
        else note(record)
      }
    }
    begin(scopes.whole, keys, () => walkSegment(segment), done)
  }

  /** Starts no segment for a while, so that the run holds no slot of a worker meanwhile. */
  function stayAway(ms: number): void {
    away++
    awayUntil = Math.max(awayUntil, Date.now() + ms)
    afterDelay(scopes.whole, ms, 'waits for its turn', () => {
      away--
      wake()
    })
  }

  /** Makes the worker respond, as it does when no segment is under way; only then can the timer fire. */
  function sendRecords(): void {
    sending = true
    afterDelay(scopes.whole, 1, 'records are sent', () => {
      unsent = 0
      sending = false
      wake()
    })
  }

  function startAttempt(task: Task): void {
    const { node, frame } = task
    const attempt = describeAttempt(task)
    const noteResult = (result: StepResult) =>
      note({ nodeId: node.id, iteration: frame.iteration, startedAt: 0, completedAt: 0, ...result })
    begin(
      scopes.find(frame),
      [taskKey(task)],
      () => attemptNode(attempt),
      (result) => {
        demandOurs(result)
        noteResult({ status: 'SUCCESS', ...result })
      },
      (error) => noteResult(settleAttempt(node, readOwnFailure(error))),
    )
  }

  /** Does the next step of an agent, whose outcome says what comes then. */
  function startStep(task: Task): void {
    const { node, frame } = task
    const { agents, waits } = frame
    agents[node.id] ??= beginAgent(node)
    const agent = agents[node.id]!
    const attempt = { ...describeAttempt(task), agent: describeStep(agent) }
    const move = (outcome: Parameters<typeof moveAgent>[1]) => {
      // Its iteration may have ended meanwhile.
      if (!isUnder(plan, root, frame)) return
      delete waits[node.id]
      const next = moveAgent(agent, outcome)
      if ('ended' in next) {
        const { ended } = next
        note({
          ...{ nodeId: node.id, iteration: frame.iteration, startedAt: 0, completedAt: 0 },
          ...(ended.status === 'FAILED' ? settleAttempt(node, ended.error) : ended),
        })
        return
      }
      agents[node.id] = next.agent
      if (next.until !== undefined)
        waits[node.id] = { until: next.until, handle: null, pause: true, step: agent.step }
    }
    begin(
      scopes.find(frame),
      [taskKey(task)],
      () => attemptNode(attempt),
      (result) => {
        demandOurs(result)
        move(result)
      },
      (error) => move({ error: readOwnFailure(error) }),
    )
  }

  function describeAttempt({ node, frame }: Task): AttemptInput {
    const { taken, around } = inputOf(plan, root, node, frame)
    const sources = [...new Set(taken.map(({ source }) => source))]
    const outputs: Record<string, Envelope> = {}
    const find = outputsAround(plan, root, frame)
    const trail = trailOf(plan, root, node, frame)
    for (const id of [...sources, ...node.needs, ...(node.pairs ?? [])]) {
      const output = find(id)
      if (output) outputs[id] = output
    }
    return {
      node,
      context,
      triggerNodeId: plan.triggerNodeId,
      inlineBytes: plan.inlineBytes,
      sources,
      ...(taken.some(({ part }) => part !== undefined) ? { taken } : {}),
      ...(around ? { around } : {}),
      ...(trail ? { trail } : {}),
      outputs,
      iteration: frame.iteration,
      ...(frame.item && (isEntry(plan, node) || node.readsItem) ? { item: frame.item } : {}),
    }
  }

  /**
   * Leaves out the tasks of a loop that ended while they were collected. A segment for nothing else would close the
   * loop while another one is still at work in it. Runs that have begun such a segment go on as they began.
   */
  function dropEnded(tasks: Task[]): Task[] {
    const live = tasks.filter(({ frame }) => isUnder(plan, root, frame))
    return live.length === tasks.length || !patched('tasks-of-ended-loops') ? tasks : live
  }

  async function walk(): Promise<Carried | undefined> {
    if (deadline !== null) {
      afterDelay(scopes.whole, deadline - Date.now(), 'time limit of the run', () => {
        timedOut = true
        wake()
      })
    }
    if (carried?.awayUntil) stayAway(carried.awayUntil - Date.now())
    while (true) {
      const waiting = timers.keep(busy, nudges)
      // Continuing as new abandons activities, so no new one starts; pure steps go on meanwhile.
      const draining = wantsNewRun(run)
      const rules = workflowRules(plan, root, walking, draining)
      const tasks = dropEnded(collectTasks(plan, root, busy, rules))
      scopes.drop()
      if (unsent > MAX_UNSENT_BYTES && !sending) sendRecords()
      const open = tasks.length > 0 || waiting > 0 || Object.keys(root.loops).length > 0
      if (draining && working === 0 && !sending && !failure && !timedOut && open) {
        const rest = { ...(away > 0 ? { awayUntil } : {}), ...countRuns(carried) }
        return { startedAt, deadline, root, nudges: [...nudges], ...rest }
      }
      const steps = tasks.filter(isForSegment)
      const ready = draining ? steps.filter(({ phase }) => phase !== 'turn') : steps
      if (ready.length > 0 && !sending && away === 0) startSegment(ready, draining)
      for (const task of tasks) {
        if (steps.includes(task) || draining || working >= MAX_IN_FLIGHT) continue
        // Another failure may have ended its loop while tasks were collected.
        if (!isUnder(plan, root, task.frame)) continue
        if (task.node.kind === 'agent') startStep(task)
        else startAttempt(task)
      }
      if (failure || timedOut || (working === 0 && waiting === 0 && !sending && away === 0)) break
      const seen = progress
      await condition(() => progress > seen)
    }
    if (failure || timedOut) {
      scopes.whole.cancel()
      timers.cancel()
    }
    if (failure) throw failure
    if (timedOut) {
      const message = `The execution took longer than its limit of ${run.timeoutMs} ms`
      throw ApplicationFailure.create({ message, type: RUN_TIMED_OUT, nonRetryable: true })
    }
    if (Object.keys(root.loops).length > 0) throw new Error('A loop is open, but nothing in it can go on')
    return undefined
  }

  return { walk }
}

/** The place of the next run in the chain, for the projection; unknown in a chain that an older release began. */
function countRuns(carried: Carried | undefined): Pick<Carried, 'chain'> {
  if (!carried) return { chain: 1 }
  return carried.chain === undefined ? {} : { chain: carried.chain + 1 }
}

/** The failure of an attempt. Throws the one that ends the run, if what came from Temporal was refused. */
function readOwnFailure(error: unknown): NodeError {
  const failed = readFailure(error)
  if (failed.type === RUN_REFUSED) throw refusal(failed.message)
  return failed
}

/** How a node is settled whose attempt failed: with the error as its output, if onError says so. */
function settleAttempt(node: PlanNode, error: NodeError): StepResult {
  const handled = settleFailure(node, error)
  if (handled === 'fatal') return { status: 'FAILED', error, handle: null }
  const { output, handle } = handled
  const bytes = JSON.stringify(output ?? null).length
  return { status: 'FAILED', error, output: { v: output, bytes }, handle }
}

/**
 * How long a run rests at least, in milliseconds, after so many segments in a row that gave their slot back:
 * each of them makes the history longer.
 */
function restBetween(inVain: number): number {
  return Math.min(1_000, 50 * 2 ** (inVain - 1))
}

function wantsNewRun(run: RunInput): boolean {
  const info = workflowInfo()
  if (info.continueAsNewSuggested) return true
  return run.continueAfterEvents !== undefined && info.historyLength >= run.continueAfterEvents
}
