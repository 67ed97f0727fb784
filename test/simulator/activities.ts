import { asyncLocalStorage, Context } from '@temporalio/activity'
import { pino } from 'pino'
import { createActivities } from '../../activities/activities.ts'
import { STEP_RUNNERS } from '../../activities/agents/runners.ts'
import { createBudget } from '../../activities/budget.ts'
import type { ActivityDeps } from '../../activities/deps.ts'
import { createEvaluator, type Evaluator } from '../../activities/expressions/evaluator.ts'
import { EXPRESSIONS_BUSY } from '../../activities/expressions/failures.ts'
import { createFirstTasks } from '../../activities/fairness/firsttasks.ts'
import { createWorkerPlaces } from '../../activities/fairness/worker.ts'
import { createDetectorPool } from '../../activities/guardrails/pool.ts'
import { HttpError } from '../../activities/http/httperror.ts'
import { NodeFailure } from '../../activities/nodes/kit/failure.ts'
import { createCalls } from '../../activities/run/calls/calls.ts'
import { createShares } from '../../activities/run/share.ts'
import type { Activities } from '../../workflows/run/messages.ts'
import { runSimulatedStep } from './agents.ts'
import type { Sample } from './graphs.ts'
import type { Random } from './random.ts'
import { EXECUTION, WORKFLOW, type World } from './world.ts'

/** One attempt of an activity: what Temporal tells it. */
type Attempt = {
  activityId: string
  attempt: number
  notes: unknown
  signal: AbortSignal
  onNotes(notes: unknown): void
}

export type Worker = {
  segment(input: unknown, attempt: Attempt): Promise<unknown>
  node(input: unknown, attempt: Attempt): Promise<unknown>
}

/** Simulates the steps of agents in this process. Returns what puts the real ones back. */
export function simulateSteps(): () => void {
  const { AI_AGENT } = STEP_RUNNERS
  Object.assign(STEP_RUNNERS, { AI_AGENT: runSimulatedStep })
  return () => void Object.assign(STEP_RUNNERS, { AI_AGENT })
}

const evaluator = createEvaluator({ processes: 2 })
const detectors = createDetectorPool({ threads: 2 })
const log = pino({ level: 'silent' })
const nobody = async () => {
  throw new HttpError('network', 'nobody listens')
}

/** The service's own activities, in a worker that the sample's world surrounds. */
export function createWorker(sample: Sample, world: World, random: Random): Worker {
  const { store, http } = world
  const places = createWorkerPlaces({ attempts: 2, models: 2, segments: 2 })
  const deps: ActivityDeps = {
    store,
    evaluator: createBusyEvaluator(evaluator, () => world.mayBeAway && random.chance(sample.trouble.away)),
    guardrails: { pool: detectors, evaluator, onError: 'closed' },
    outside: { forTeam: async () => ({ http, dial: nobody }), close: http.close },
    calls: createCalls({ isWanted: async () => true }),
    firstTasks: createFirstTasks(2, () => 0),
    attempts: {
      begin: () => ({ fail: async () => {}, end() {} }),
      noteRequest: () => ({ withdraw: async () => 'never' }),
      saveRequest: async () => {},
      noteExchange() {},
      flush: async () => {},
    },
    replies: {
      open() {
        throw new Error('no sample replies in a chat')
      },
    },
    shares: createShares(store, createBudget(1_000_000_000)),
    processId: '0190a0a0-0000-7000-8000-000000000004',
    knowsLost: () => true,
    places,
    log,
    publicUrl: 'http://perdure.test',
    segmentRecords: sample.records,
    touch: () => {},
  }
  const activities: Activities = createActivities(deps)

  /** Carries out an attempt. Sometimes others of the team have all of its slots. */
  function run<T>(attempt: Attempt, slots: 'attempts' | 'segments', work: () => Promise<T>): Promise<T> {
    const { activityId, signal, notes, onNotes } = attempt
    const info = {
      activityId,
      attempt: attempt.attempt,
      heartbeatDetails: notes,
      workflowExecution: { workflowId: EXECUTION, runId: 'run' },
      scheduledTimestampMs: Date.now(),
      currentAttemptScheduledTimestampMs: Date.now(),
      startToCloseTimeoutMs: 400_000,
      retryPolicy: {},
    }
    const never = new Promise<never>(() => {})
    const context = new Context(
      info as never,
      never,
      signal,
      onNotes,
      undefined,
      log as never,
      {} as never,
      {} as never,
    )
    const other = random.chance(sample.trouble.away) ? places[slots].take(TEAM_NAME) : undefined
    return asyncLocalStorage.run(context, work).finally(() => {
      if (other && 'leave' in other) other.leave()
    })
  }

  return {
    async segment(input, attempt) {
      world.mayBeAway = true
      try {
        return await run(attempt, 'segments', () => activities.walkSegment(input as never))
      } finally {
        world.mayBeAway = false
      }
    },
    node: (input, attempt) => run(attempt, 'attempts', () => activities.runNode(input as never)),
  }
}

/** The key under which places are counted: the world's only team. */
const TEAM_NAME = WORKFLOW.replace(/2$/, '3')

/** An evaluator whose processes others have at times. */
function createBusyEvaluator(evaluator: Evaluator, isBusy: () => boolean): Evaluator {
  const demand = () => {
    if (isBusy()) throw new NodeFailure('No process is free', { type: EXPRESSIONS_BUSY })
  }
  return {
    ...evaluator,
    async render(value, bindings) {
      demand()
      return evaluator.render(value, bindings)
    },
    async test(condition, bindings) {
      demand()
      return evaluator.test(condition, bindings)
    },
    async rows(how, value, rows, bindings) {
      demand()
      return evaluator.rows(how, value, rows, bindings)
    },
    for: () => createBusyEvaluator(evaluator, isBusy),
  }
}
