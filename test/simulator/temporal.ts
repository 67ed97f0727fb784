import { ApplicationFailure, defaultPayloadConverter } from '@temporalio/common'
import type { HistoryEvent, RunHistory } from '../../db/executions/projection/history.ts'
import type { RunInput } from '../../workflows/run/messages.ts'
import type { NodeRecord } from '../../workflows/run/records.ts'
import { NUDGE } from '../../workflows/run/walk.ts'
import type { Worker } from './activities.ts'
import { type Activity, createAttempts, type Detail } from './attempts.ts'
import type { Sample } from './graphs.ts'
import { cancelled, converter, isEnd, payload, resolve, settle } from './jobs.ts'
import type { Random } from './random.ts'
import { type Carrier, type Command, carryRun, type Job, type Sandbox } from './sandbox.ts'
import type { Timeline } from './timeline.ts'
import { EXECUTION, type World } from './world.ts'

/** Far more than any sample takes: it goes round in circles. */
const MAX_TASKS = 5_000
const MAX_LOSSES = 6

export type Sides = { sandbox: Sandbox; sample: Sample; world: World; worker: Worker; timeline: Timeline }

/**
 * Does what Temporal's service and its worker's core do for a run and those that continue it: keeps its history,
 * hands out its tasks, loses some of their workers, and demands what Temporal demands of its commands. Returns
 * the histories.
 */
export async function carryChain(sides: Sides, random: Random, first: RunInput): Promise<RunHistory[]> {
  const histories: RunHistory[] = []
  let deliver: ((job: Job) => void) | undefined
  const tell = (job: Job) => {
    if (deliver) deliver(job)
    else early.push(job)
  }
  const early: Job[] = []
  const { world, timeline, sample } = sides
  world.onPause = (key) => {
    const nudge = () => tell({ signalWorkflow: { signalName: NUDGE, input: [payload(key)] } })
    // Some nudges come for nothing, and the answer while a segment looks because of them.
    const isEarly = random.chance(0.4)
    const delay = random.delay()
    if (isEarly) timeline.after(delay, nudge)
    timeline.after(delay + (isEarly ? random.below(40) : 0), () => {
      world.answer(key)
      nudge()
      // Some come twice.
      if (random.chance(0.1)) nudge()
    })
  }
  if (sample.cancelAfterMs !== null) timeline.after(sample.cancelAfterMs, () => tell({ cancelWorkflow: {} }))
  let input: RunInput | undefined = first
  while (input) {
    if (histories.length > 1_000) throw new Error('The run continues as new for ever')
    const runId = `run-${histories.length}`
    const history: RunHistory = { runId, events: [] }
    histories.push(history)
    const connect = (to: ((job: Job) => void) | undefined) => {
      deliver = to
      if (to) for (const job of early.splice(0)) to(job)
    }
    input = await carryOne(sides, random, input, history, connect)
  }
  return histories
}

/** Carries one run to its end. Returns the input of the run that continues it, if one does. */
async function carryOne(
  { sandbox, sample, worker, world, timeline }: Sides,
  random: Random,
  input: RunInput,
  history: RunHistory,
  connect: (deliver: ((job: Job) => void) | undefined) => void,
): Promise<RunInput | undefined> {
  const startedAt = timeline.now()
  /** What has happened since the last workflow task was started. */
  const buffer: Job[] = []
  const timers = new Map<number, string>()
  const activities = new Map<number, Activity>()
  /** The segments under way: those that the history knows of, and all. */
  let known = new Map<number, unknown>()
  let segments = new Map<number, unknown>()
  let finished: Job[] = []
  /** Told to the history when the workflow task is completed. */
  let pending: (() => void)[] = []
  /** Activities that the present workflow task wants to start. */
  let created = new Map<number, Activity>()
  /** Activities whose cancellation the workflow knows of. What they report later is not told to it. */
  let gone = new Set<number>()
  let goneBefore = new Set<number>()
  let drains = false
  let over = false
  /** Grows whenever the worker is lost: what an earlier one has under way is not heard of any more. */
  let life = 0

  const note = (detail: Detail) => {
    const id = history.events.length + 1
    history.events.push({ id, time: timeline.now(), ...detail } as HistoryEvent)
    return id
  }
  const happen = (job: Job, detail?: Detail) => {
    if (over) return
    if (detail) note(detail)
    buffer.push(job)
  }
  note({ kind: 'started', input, continuedFrom: null })
  const attempts = createAttempts({ sample, world, worker, timeline }, random, activities, { note, happen })

  function startTimer({ seq, startToFireTimeout }: NonNullable<Command['startTimer']>, key: string): void {
    const ms =
      Number(startToFireTimeout!.seconds) * 1_000 + Math.round((startToFireTimeout!.nanos ?? 0) / 1e6)
    timers.set(seq!, key)
    timeline.after(ms, () => {
      if (over || !timers.delete(seq!)) return
      happen({ fireTimer: { seq } }, { kind: 'fired', timerId: String(seq) })
    })
  }

  function startSegment(seq: number, segment: unknown): void {
    segments.set(seq, segment)
    const own = life
    timeline.after(random.below(3), () => walk(seq, segment, own, 1))
  }

  async function walk(seq: number, segment: unknown, own: number, attempt: number): Promise<void> {
    const isOpen = () => !over && own === life && segments.has(seq)
    if (!isOpen()) return
    const signal = new AbortController().signal
    const told = { activityId: `segment ${seq}`, attempt, notes: undefined, onNotes: () => {}, signal }
    const { error, value } = await settle(worker.segment(structuredClone(segment), told))
    timeline.after(random.delay(), () => {
      if (!isOpen()) return
      if (!error) finished.push(resolve(seq, { completed: { result: payload(value) } }, true))
      else if (error instanceof ApplicationFailure && error.nonRetryable) throw error
      else return walk(seq, segment, own, attempt + 1)
    })
  }

  /** Takes the commands of an activation. Returns what the workflow is told of them at once. */
  function take(commands: Command[]): Job[] {
    const answers: Job[] = []
    for (const command of commands) {
      const { scheduleActivity, scheduleLocalActivity, startTimer: timer } = command
      if (scheduleLocalActivity) {
        const { seq } = scheduleLocalActivity
        const segment = defaultPayloadConverter.fromPayload(scheduleLocalActivity.arguments![0]!)
        startSegment(seq!, segment)
      } else if (scheduleActivity) {
        const { seq, activityId } = scheduleActivity
        const given = defaultPayloadConverter.fromPayload(scheduleActivity.arguments![0]!)
        const activity = { activityId: activityId!, input: given, eventId: 0, attempt: 0, notes: undefined }
        for (const other of activities.values()) {
          if (other.activityId === activityId) throw new Error(`The activity ${activityId} is started twice`)
        }
        created.set(seq!, activity)
        pending.push(() => {
          activity.eventId = note({ kind: 'scheduled', activityId: activityId! })
          if (created.delete(seq!)) attempts.start(seq!, activity)
        })
      } else if (timer) {
        const summary = command.userMetadata?.summary
        const key = summary ? String(defaultPayloadConverter.fromPayload(summary)) : ''
        pending.push(() => {
          note({ kind: 'timer', timerId: String(timer.seq), key })
          startTimer(timer, key)
        })
      } else if (command.cancelTimer) {
        const { seq } = command.cancelTimer
        pending.push(() => {
          if (timers.delete(seq!)) note({ kind: 'stopped', timerId: String(seq) })
        })
      } else if (command.requestCancelActivity) {
        const seq = command.requestCancelActivity.seq!
        const activity = created.get(seq) ?? activities.get(seq)
        if (!activity) continue
        answers.push(resolve(seq, cancelled(activity)))
        gone.add(seq)
        pending.push(() => {
          created.delete(seq)
          if (activities.delete(seq)) note({ kind: 'canceled', scheduledId: activity.eventId })
        })
      } else if (command.requestCancelLocalActivity) {
        const seq = command.requestCancelLocalActivity.seq!
        if (segments.delete(seq)) answers.push(resolve(seq, cancelled({ activityId: 'segment' }), true))
      }
    }
    return answers
  }

  const carrier: Carrier = await carryRun(sandbox, {
    workflowId: EXECUTION,
    runId: history.runId,
    input,
    startedAt,
    firstAt: startedAt,
  })

  // A run that is told again and again takes long.
  const losesWorker = () => random.chance(sample.trouble.lostWorker) && life < MAX_LOSSES

  async function lose(): Promise<void> {
    life++
    pending = []
    created = new Map()
    gone = new Set(goneBefore)
    finished = []
    await carrier.lose()
    segments = new Map()
    for (const [seq, segment] of known) startSegment(seq, segment)
  }

  function complete(): void {
    for (const then of pending) then()
    pending = []
    known = new Map(segments)
    goneBefore = new Set(gone)
    carrier.commit()
  }

  /** Has the workflow take the jobs, and all that follows at once. Returns the command that ends the run. */
  async function activate(jobs: Job[]): Promise<Command | undefined> {
    const facts = { now: timeline.now(), historyLength: history.events.length, suggestsNewRun: drains }
    let told = jobs.filter(({ resolveActivity: one }) => !one || one.isLocal || !gone.has(one.seq!))
    for (;;) {
      for (const { resolveActivity: one } of told) {
        if (!one?.isLocal || !one.result?.completed) continue
        segments.delete(one.seq!)
        const records = defaultPayloadConverter.fromPayload<NodeRecord[]>(one.result.completed.result!)
        pending.push(() => note({ kind: 'records', records }))
      }
      const signals = told.filter(({ signalWorkflow }) => signalWorkflow)
      const others = told.filter(({ signalWorkflow }) => !signalWorkflow)
      const commands = await carrier.activate([...signals, ...others], facts)
      told = take(commands)
      const end = commands.find(isEnd)
      if (end || told.length === 0) return end
    }
  }

  connect((job) => happen(job, { kind: 'other' }))
  try {
    let jobs: Job[] = []
    for (let tasks = 0; ; tasks++) {
      if (tasks > MAX_TASKS) throw new Error('The run goes round in circles')
      if (sample.drainAfter !== null && history.events.length >= sample.drainAfter) drains = true
      const taken = [...jobs, ...buffer.splice(0)]
      note({ kind: 'other' })
      let end = await activate(taken)
      let isLost = false
      while (!end && segments.size > 0) {
        if (losesWorker()) {
          isLost = true
          break
        }
        // A workflow task that takes long is completed and another one begins, in which others are heard of.
        if (buffer.length > 0 && random.chance(0.5)) break
        if (finished.length === 0) await timeline.step()
        if (random.chance(0.3)) await timeline.step()
        if (finished.length === 0) continue
        end = await activate(finished.splice(0))
      }
      // Temporal does not let a run end while it has news for it.
      if (isLost || (end && buffer.length > 0) || (end && losesWorker())) {
        jobs = taken
        await lose()
        await timeline.pause(random.delay())
        continue
      }
      jobs = []
      complete()
      if (end) return finish(end)
      if (segments.size > 0) continue
      while (buffer.length === 0) {
        if (!(await timeline.step())) throw new Error('The run waits for nothing')
      }
      // Others may come before a worker takes the task.
      if (random.chance(0.3)) await timeline.pause(random.delay())
    }
  } finally {
    over = true
    activities.clear()
    connect(undefined)
    await carrier.dispose()
  }

  function finish(end: Command): RunInput | undefined {
    if (activities.size > 0 && end.continueAsNewWorkflowExecution)
      throw new Error('The run continues as new with activities under way')
    if (end.continueAsNewWorkflowExecution) {
      note({ kind: 'closed', how: 'CONTINUED_AS_NEW', message: null, type: null })
      return defaultPayloadConverter.fromPayload(end.continueAsNewWorkflowExecution.arguments![0]!)
    }
    if (!carrier.isClosing()) throw new Error('The run closes without saying so')
    const failure = end.failWorkflowExecution?.failure
    const error =
      failure && (converter.failureToError(failure, defaultPayloadConverter) as ApplicationFailure)
    const how = error ? 'FAILED' : end.cancelWorkflowExecution ? 'CANCELED' : 'COMPLETED'
    note({ kind: 'closed', how, message: error?.message ?? null, type: error?.type ?? null })
    return undefined
  }
}
