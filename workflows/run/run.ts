import {
  ApplicationFailure,
  condition,
  isCancellation,
  makeContinueAsNewFunc,
  patched,
  proxySinks,
  workflowInfo,
} from '@temporalio/workflow'
import { startAttempt, startStep } from './attempts.ts'
import { demandOurs, engineFailure } from './commands.ts'
import { isUnder } from './frame.ts'
import { collectTasks, isForSegment, type Task } from './loops.ts'
import type { Carried, RunInput, RunSinks } from './messages.ts'
import { RUN_TIMED_OUT } from './records.ts'
import { workflowRules } from './rules.ts'
import { restAway, sendRecords, startSegment } from './segments.ts'
import { afterDelay } from './timers.ts'
import { MAX_IN_FLIGHT } from './walk.ts'
import { openRun, type Run, wake } from './work.ts'

const sinks = proxySinks<RunSinks>()

/**
 * The workflow behind every execution: walks the plan until nothing is ready and nothing is in flight. The page
 * api/docs/guide/how-runs-work.md shows how it works with its activities, and what survives a crash.
 */
export async function runGraph(input: RunInput): Promise<void> {
  let carried: Carried | undefined
  try {
    demandOurs(input)
    carried = await walkRun(openRun(input))
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

/** Walks until the run is over, or until another one should carry on: then it returns what that one gets. */
async function walkRun(run: Run): Promise<Carried | undefined> {
  const { input, root, deadline, scopes, timers } = run
  if (deadline !== null) {
    afterDelay(scopes.whole, deadline - Date.now(), 'time limit of the run', () => {
      run.timedOut = true
      wake(run)
    })
  }
  if (input.carried?.awayUntil) restAway(run, input.carried.awayUntil - Date.now())
  while (true) {
    const waiting = timers.keep(run.busy, run.nudges)
    // Continuing as new abandons activities, so no new one starts; pure steps go on meanwhile.
    const draining = wantsNewRun(input)
    const rules = workflowRules(input.plan, root, run.walking, draining)
    const tasks = dropEnded(run, collectTasks(input.plan, root, run.busy, rules))
    scopes.drop()
    sendRecords(run)
    const open = tasks.length > 0 || waiting > 0 || Object.keys(root.loops).length > 0
    if (draining && open && run.working === 0 && !run.sending && !isOver(run)) return carryOn(run)
    startTasks(run, tasks, draining)
    const isIdle = run.working === 0 && waiting === 0 && !run.sending && run.away === 0
    if (isOver(run) || isIdle) break
    const seen = run.progress
    await condition(() => run.progress > seen)
  }
  if (isOver(run)) {
    scopes.whole.cancel()
    timers.cancel()
  }
  if (run.failure) throw run.failure
  if (run.timedOut) {
    const message = `The execution took longer than its limit of ${input.timeoutMs} ms`
    throw ApplicationFailure.create({ message, type: RUN_TIMED_OUT, nonRetryable: true })
  }
  if (Object.keys(root.loops).length > 0) throw new Error('A loop is open, but nothing in it can go on')
  return undefined
}

function isOver({ failure, timedOut }: Run): boolean {
  return failure !== undefined || timedOut
}

/** Starts what is ready: pure steps in one segment, each other node in an activity of its own. */
function startTasks(run: Run, tasks: Task[], draining: boolean): void {
  const steps = tasks.filter(isForSegment)
  const ready = draining ? steps.filter(({ phase }) => phase !== 'turn') : steps
  if (ready.length > 0 && !run.sending && run.away === 0) startSegment(run, ready, draining)
  for (const task of tasks) {
    if (steps.includes(task) || draining || run.working >= MAX_IN_FLIGHT) continue
    // Another failure may have ended its loop while tasks were collected.
    if (!isUnder(run.input.plan, run.root, task.frame)) continue
    if (task.node.kind === 'agent') startStep(run, task)
    else startAttempt(run, task)
  }
}

/**
 * Leaves out the tasks of a loop that ended while they were collected. A segment for nothing else would close the
 * loop while another one is still at work in it. Runs that have begun such a segment go on as they began.
 */
function dropEnded({ input, root }: Run, tasks: Task[]): Task[] {
  const live = tasks.filter(({ frame }) => isUnder(input.plan, root, frame))
  return live.length === tasks.length || !patched('tasks-of-ended-loops') ? tasks : live
}

/** The state for the next run of the chain. */
function carryOn({ input, startedAt, deadline, root, nudges, away, awayUntil }: Run): Carried {
  const rest = { ...(away > 0 ? { awayUntil } : {}), ...countRuns(input.carried) }
  return { startedAt, deadline, root, nudges: [...nudges], ...rest }
}

/** The place of the next run in the chain, for the projection; unknown in a chain that an older release began. */
function countRuns(carried: Carried | undefined): Pick<Carried, 'chain'> {
  if (!carried) return { chain: 1 }
  return carried.chain === undefined ? {} : { chain: carried.chain + 1 }
}

function wantsNewRun(run: RunInput): boolean {
  const info = workflowInfo()
  if (info.continueAsNewSuggested) return true
  return run.continueAfterEvents !== undefined && info.historyLength >= run.continueAfterEvents
}
