import { createHash } from 'node:crypto'
import {
  type CalendarSpec,
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleOptions,
  type ScheduleOptionsStartWorkflowAction,
  ScheduleOverlapPolicy,
} from '@temporalio/client'
import type { Logger } from 'pino'
import {
  type Due,
  forgetSchedule,
  listQueued,
  noteSchedule,
  readDue,
  readState,
  settleSchedules,
} from '../db/schedules.ts'
import type { Store } from '../db/scope.ts'
import { type Cron, parseCron } from '../workflows/cron.ts'
import type { fire } from '../workflows/fire.ts'
import type { Overlap } from '../workflows/nodes/triggers.ts'
import type { Schedule } from '../workflows/schedules.ts'

export type ScheduleDeps = { store: Store; client: Client; taskQueue: string; log: Logger }

/** What Temporal has of a workflow: the digests (see defineSchedule) by node id. */
export type Found = Map<string, string>

/** In every digest: schedules that an older release has registered otherwise are registered anew. */
export const REVISION = '1'

const MAX_PASSES = 10
const AT_ONCE = 5

/**
 * Makes Temporal's schedules of a workflow what its row says. Safe to repeat and to race: whoever has acted on what
 * no longer stands acts again. Does nothing where nothing is queued, unless `found` is given:
 * what Temporal really has. Throws where Temporal cannot be told.
 */
export async function syncSchedules(deps: ScheduleDeps, workflowId: string, found?: Found): Promise<void> {
  for (let pass = 1; pass <= MAX_PASSES; pass++) {
    const queued = await listQueued(deps.store, workflowId)
    if (pass === 1 && queued.length === 0 && !found) return
    const due = await readDue(deps.store, workflowId)
    await tell(deps, workflowId, due, pass === 1 ? found : undefined)
    if ((await readState(deps.store, workflowId)).state !== due.state) continue
    await settleSchedules(deps.store, queued)
    return
  }
  throw new Error(`the schedules of ${workflowId} change faster than Temporal can be told`)
}

async function tell(deps: ScheduleDeps, workflowId: string, due: Due, found?: Found): Promise<void> {
  const { store, client, taskQueue, log } = deps
  const wanted = new Set(due.wanted.map(({ nodeId }) => nodeId))
  for (const nodeId of new Set([...due.told.keys(), ...(found?.keys() ?? [])])) {
    if (wanted.has(nodeId)) continue
    await ignoreMissing(client.schedule.getHandle(nameSchedule(taskQueue, workflowId, nodeId)).delete())
    await forgetSchedule(store, workflowId, nodeId)
  }
  let refusal: unknown
  const put = async (schedule: Schedule) => {
    const options = defineSchedule(taskQueue, workflowId, schedule)
    const { nodeId } = schedule
    const told = due.told.get(nodeId)
    if (told === options.digest && (found ?? due.told).get(nodeId) === told) return
    if (told === undefined) await noteSchedule(store, workflowId, nodeId, '')
    try {
      await register(client, options.schedule)
    } catch (error) {
      if (!isRefusal(error)) throw error
      // It keeps no other back.
      log.error({ err: error, workflowId, nodeId }, 'Temporal refuses a schedule')
      refusal ??= error
      return
    }
    await noteSchedule(store, workflowId, nodeId, options.digest)
  }
  for (let at = 0; at < due.wanted.length; at += AT_ONCE) {
    await Promise.all(due.wanted.slice(at, at + AT_ONCE).map(put))
  }
  if (refusal) throw refusal
}

const GRPC_INVALID_ARGUMENT = 3

/** Whether Temporal will never take it, as opposed to not being there. */
export function isRefusal(error: unknown): boolean {
  const { code, cause } = error as { code?: number; cause?: { code?: number } }
  return (code ?? cause?.code) === GRPC_INVALID_ARGUMENT
}

type Definition = ScheduleOptions<ScheduleOptionsStartWorkflowAction<typeof fire>>

/** Creates the schedule, or changes the one that is there; one that was paused by hand stays so. */
async function register(client: Client, options: Definition): Promise<void> {
  try {
    await client.schedule.create(options)
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
    await client.schedule
      .getHandle(options.scheduleId)
      .update(({ state: { paused, note } }) => ({ ...options, state: { paused, ...(note ? { note } : {}) } }))
  }
}

/** The schedule's id says whose it is: installations may share a namespace, each with a task queue of its own. */
export function nameSchedule(taskQueue: string, workflowId: string, nodeId: string): string {
  return `schedule:${taskQueue}:${workflowId}:${nodeId}`
}

/** Reads what nameSchedule makes; undefined for the id of anybody else's schedule. */
export function readScheduleName(
  taskQueue: string,
  id: string,
): { workflowId: string; nodeId: string } | undefined {
  const [, queue, workflowId, nodeId] = /^schedule:(.*):([\da-f-]{36}):([\w-]{1,100})$/s.exec(id) ?? []
  return queue === taskQueue && workflowId && nodeId ? { workflowId, nodeId } : undefined
}

function defineSchedule(
  taskQueue: string,
  workflowId: string,
  { nodeId, cron, timezone, overlap, catchupWindowMs }: Schedule,
): { schedule: Definition; digest: string } {
  const scheduleId = nameSchedule(taskQueue, workflowId, nodeId)
  const calendars = describeCalendars(parseCron(cron).cron)
  const action = {
    type: 'startWorkflow' as const,
    workflowType: 'fire',
    workflowId: scheduleId,
    taskQueue,
    args: [{ workflowId, nodeId, cron, timezone }] as Parameters<typeof fire>,
  }
  const policies = { overlap: OVERLAP[overlap], catchupWindow: catchupWindowMs, pauseOnFailure: false }
  const told = JSON.stringify([calendars, timezone, action, policies])
  const digest = `${REVISION}.${createHash('sha256').update(told).digest('hex').slice(0, 24)}`
  // The comment comes back with the list of all schedules.
  const spec = { calendars: calendars.map((calendar) => ({ ...calendar, comment: digest })), timezone }
  return { schedule: { scheduleId, spec, action, policies }, digest }
}

const OVERLAP = {
  skip: ScheduleOverlapPolicy.SKIP,
  bufferOne: ScheduleOverlapPolicy.BUFFER_ONE,
  bufferAll: ScheduleOverlapPolicy.BUFFER_ALL,
  cancelOther: ScheduleOverlapPolicy.CANCEL_OTHER,
  allowAll: ScheduleOverlapPolicy.ALLOW_ALL,
} as const satisfies Record<Overlap, ScheduleOverlapPolicy>

const WEEK = ['SUNDAY', 'MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY'] as const
const YEAR = [
  ...(['JANUARY', 'FEBRUARY', 'MARCH', 'APRIL', 'MAY', 'JUNE'] as const),
  ...(['JULY', 'AUGUST', 'SEPTEMBER', 'OCTOBER', 'NOVEMBER', 'DECEMBER'] as const),
]

/** Temporal's own cron wants both day fields to fit where cron is content with either: two calendars say that. */
function describeCalendars(cron: Cron): CalendarSpec[] {
  const time = {
    minute: cron.minute,
    hour: cron.hour,
    month: cron.month.map((month) => YEAR[month - 1]!),
  }
  const dayOfMonth = cron.dayOfMonth
  const dayOfWeek = cron.dayOfWeek.map((day) => WEEK[day]!)
  if (cron.eitherDay) {
    return [
      { ...time, dayOfMonth },
      { ...time, dayOfWeek },
    ]
  }
  return [{ ...time, dayOfMonth, dayOfWeek }]
}

/** Every schedule of this installation that Temporal's list names, with its digest; the list lags behind a little. */
export async function listFound({
  client,
  taskQueue,
}: Pick<ScheduleDeps, 'client' | 'taskQueue'>): Promise<Map<string, Found>> {
  const byWorkflow = new Map<string, Found>()
  const { namespace } = client.options
  let nextPageToken: Uint8Array | undefined
  do {
    // Not by the client's own list, which opens memos: others may have sealed theirs.
    const page = await client.workflowService.listSchedules({
      namespace,
      nextPageToken,
      maximumPageSize: 1_000,
    })
    for (const { scheduleId, info } of page.schedules ?? []) {
      const name = readScheduleName(taskQueue, scheduleId ?? '')
      if (!name) continue
      const found = byWorkflow.get(name.workflowId) ?? new Map()
      byWorkflow.set(
        name.workflowId,
        found.set(name.nodeId, info?.spec?.structuredCalendar?.[0]?.comment ?? ''),
      )
    }
    nextPageToken = page.nextPageToken?.length ? page.nextPageToken : undefined
  } while (nextPageToken)
  return byWorkflow
}

/** What Temporal says of one registered schedule. */
export type Registered = {
  nodeId: string
  paused: boolean
  nextRuns: Date[]
  /** The time that was due last. */
  lastSlot: Date | null
  taken: number
  missed: number
  skipped: number
}

/** What Temporal has of these schedules; those it does not know are left out. Throws where it cannot be asked. */
export async function describeSchedules(
  { client, taskQueue }: Pick<ScheduleDeps, 'client' | 'taskQueue'>,
  workflowId: string,
  nodeIds: string[],
): Promise<Registered[]> {
  const all = await Promise.all(
    nodeIds.map(async (nodeId) => {
      const handle = client.schedule.getHandle(nameSchedule(taskQueue, workflowId, nodeId))
      const found = await ignoreMissing(handle.describe())
      if (!found) return []
      const { info, state } = found
      const last = info.recentActions.at(-1)?.action.workflow.workflowId.slice(-20)
      return {
        nodeId,
        paused: state.paused,
        nextRuns: info.nextActionTimes,
        lastSlot: last && !Number.isNaN(Date.parse(last)) ? new Date(last) : null,
        taken: info.numActionsTaken,
        missed: info.numActionsMissedCatchupWindow,
        skipped: info.numActionsSkippedOverlap,
      }
    }),
  )
  return all.flat()
}

async function ignoreMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if ((error as Error).name === 'ScheduleNotFoundError') return undefined
    throw error
  }
}
