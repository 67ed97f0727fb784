import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleClient,
  type ScheduleOptions,
  type ScheduleOptionsStartWorkflowAction,
  ScheduleOverlapPolicy,
} from '@temporalio/client'
import type { Logger } from 'pino'
import {
  type DueSchedules,
  endScheduleLease,
  forgetSchedule,
  leaseSchedules,
  listScheduleErrands,
  noteSchedule,
  readDueSchedules,
  readScheduleState,
  settleSchedules,
} from '../../db/schedules/schedules.ts'
import type { Store } from '../../db/scope.ts'
import { parseCron } from '../../workflows/cron/cron.ts'
import type { Schedule } from '../../workflows/graph/triggers/schedules.ts'
import type { Overlap } from '../../workflows/nodes/triggers.ts'
import type { fire } from '../../workflows/run/fire.ts'
import type { Sealer } from '../temporal/sealer.ts'
import { describeSpec, EXACT_YEARS } from './spec.ts'
import { readZoneRules, sendZoneData, writeZoneData } from './zonedata.ts'

export type ScheduleDeps = { store: Store; client: Client; sealer: Sealer; taskQueue: string; log: Logger }

/** The schedules that Temporal has of a workflow: their digests (see defineSchedule) by node id. */
export type RegisteredDigests = Map<string, string>

/**
 * The revision of schedules, the first part of every digest. A higher one makes the service register all schedules anew.
 * It is the year, since a registration is exact for ten more, and the version of the time zones' rules; 2 was that of the
 * release before. A process that does not bind their arguments yet has revision 1, and leaves the others alone.
 */
const revisionOf = (sealer: Sealer) =>
  sealer.binds() ? new Date().getUTCFullYear() * 1_000_000 + readZoneRules() : 1

/** Whether a registered schedule has all that this process would give it. */
export function isUpToDate(sealer: Sealer, digest: string): boolean {
  return Number(digest.split('.')[0]) >= revisionOf(sealer)
}

const MAX_PASSES = 10
const AT_ONCE = 5
const LEASE_MS = 30_000
const PATIENCE_MS = 10_000
const LOOK_AGAIN_MS = 50

/**
 * Makes Temporal's schedules of a workflow what its row says. One process at a time does so for a workflow. Safe to
 * repeat: if the row has changed in the meantime, it is done again. Does nothing if no SCHEDULE errand is queued, unless
 * `found` says what Temporal really has: then it leaves it to a process that is at it. Throws if Temporal cannot be
 * reached or refuses a schedule, and if another process has not done it in ten seconds.
 */
export async function syncSchedules(
  deps: ScheduleDeps,
  workflowId: string,
  found?: RegisteredDigests,
): Promise<void> {
  const { store } = deps
  const holder = randomUUID()
  const lease = () => leaseSchedules(store, workflowId, holder, LEASE_MS)
  for (const patience = Date.now() + PATIENCE_MS; ; await sleep(LOOK_AGAIN_MS)) {
    if (!found && (await listScheduleErrands(store, workflowId)).length === 0) return
    if (await lease()) break
    if (found) return
    if (Date.now() > patience)
      throw new Error(`another process is registering the schedules of ${workflowId}`)
  }
  try {
    for (let pass = 1; pass <= MAX_PASSES && (pass === 1 || (await lease())); pass++) {
      const queued = await listScheduleErrands(store, workflowId)
      if (pass === 1 && queued.length === 0 && !found) return
      const due = await readDueSchedules(store, workflowId)
      await applySchedules(deps, workflowId, due, pass === 1 ? found : undefined)
      if ((await readScheduleState(store, workflowId)).state !== due.state) continue
      await settleSchedules(store, queued)
      return
    }
  } finally {
    await endScheduleLease(store, workflowId, holder)
  }
  throw new Error(`the schedules of ${workflowId} change faster than they can be registered`)
}

async function applySchedules(
  deps: ScheduleDeps,
  workflowId: string,
  due: DueSchedules,
  found?: RegisteredDigests,
): Promise<void> {
  const { store, client, sealer, taskQueue, log } = deps
  const wanted = new Set(due.wanted.map(({ nodeId }) => nodeId))
  for (const nodeId of new Set([...due.sent.keys(), ...(found?.keys() ?? [])])) {
    if (wanted.has(nodeId)) continue
    // If the answer is lost, it is not known whether Temporal still has it.
    await noteSchedule(store, workflowId, nodeId, '')
    await ignoreMissing(client.schedule.getHandle(nameSchedule(taskQueue, workflowId, nodeId)).delete())
    await forgetSchedule(store, workflowId, nodeId)
  }
  let refusal: unknown
  const put = async (schedule: Schedule) => {
    const options = defineSchedule(taskQueue, workflowId, schedule, revisionOf(sealer))
    const { nodeId } = schedule
    const registered = due.sent.get(nodeId)
    if (registered !== undefined && registered.split('.')[1] === options.digest.split('.')[1]) {
      // Temporal's list is late at times: what looks old there may just have been bound by another process.
      if (Number(registered.split('.')[0]) > revisionOf(sealer)) return
      if (isUpToDate(sealer, registered) && (found ?? due.sent).get(nodeId) === registered) return
    }
    if (registered === undefined) await noteSchedule(store, workflowId, nodeId, '')
    try {
      await register(sendZoneData(client, options.zoneData), options.schedule)
    } catch (error) {
      if (!isScheduleRefusal(error)) throw error
      // The other schedules are still registered; the first refusal is thrown in the end.
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

/** Whether the error means that Temporal will never accept the schedule, not that it cannot be reached. */
export function isScheduleRefusal(error: unknown): boolean {
  const { code, cause } = error as { code?: number; cause?: { code?: number } }
  return (code ?? cause?.code) === GRPC_INVALID_ARGUMENT
}

type Definition = ScheduleOptions<ScheduleOptionsStartWorkflowAction<typeof fire>>

/** Creates a schedule, or updates the existing one; a schedule that was paused by hand stays paused. */
async function register(schedules: ScheduleClient, options: Definition): Promise<void> {
  try {
    await schedules.create(options)
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
    await schedules
      .getHandle(options.scheduleId)
      .update(({ state: { paused, note } }) => ({ ...options, state: { paused, ...(note ? { note } : {}) } }))
  }
}

/**
 * The id of a schedule in Temporal. It includes the task queue, because installations may share a namespace,
 * each with a task queue of its own.
 */
export function nameSchedule(taskQueue: string, workflowId: string, nodeId: string): string {
  return `schedule:${taskQueue}:${workflowId}:${nodeId}`
}

/** Reads an id that nameSchedule made; undefined for schedules of others. */
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
  revision: number,
): { schedule: Definition; zoneData: Uint8Array; digest: string } {
  const scheduleId = nameSchedule(taskQueue, workflowId, nodeId)
  const plan = { cron: parseCron(cron).cron, timezone }
  const year = new Date().getUTCFullYear()
  const { calendars, ...times } = describeSpec(plan, year)
  const zoneData = writeZoneData(times.timezone, Date.UTC(year - 1), Date.UTC(year + EXACT_YEARS + 1))
  const action = {
    type: 'startWorkflow' as const,
    workflowType: 'fire',
    workflowId: scheduleId,
    taskQueue,
    args: [{ workflowId, nodeId, cron, timezone }] as Parameters<typeof fire>,
  }
  const policies = { overlap: OVERLAP[overlap], catchupWindow: catchupWindowMs, pauseOnFailure: false }
  const content = JSON.stringify([
    calendars,
    times,
    Buffer.from(zoneData).toString('base64'),
    action,
    policies,
  ])
  const digest = `${revision}.${createHash('sha256').update(content).digest('hex').slice(0, 24)}`
  // The digest is stored as a comment, because Temporal's list of schedules includes comments.
  // One is enough, and there may be many calendars.
  const spec = {
    ...times,
    calendars: calendars.map((calendar, at) => (at === 0 ? { ...calendar, comment: digest } : calendar)),
  }
  return { schedule: { scheduleId, spec, action, policies }, zoneData, digest }
}

const OVERLAP = {
  skip: ScheduleOverlapPolicy.SKIP,
  bufferOne: ScheduleOverlapPolicy.BUFFER_ONE,
  bufferAll: ScheduleOverlapPolicy.BUFFER_ALL,
  cancelOther: ScheduleOverlapPolicy.CANCEL_OTHER,
  allowAll: ScheduleOverlapPolicy.ALLOW_ALL,
} as const satisfies Record<Overlap, ScheduleOverlapPolicy>

/** This installation's schedules in Temporal's list, by workflow id. The list lags behind a little. */
export async function listRegisteredDigests({
  client,
  taskQueue,
}: Pick<ScheduleDeps, 'client' | 'taskQueue'>): Promise<Map<string, RegisteredDigests>> {
  const byWorkflow = new Map<string, RegisteredDigests>()
  const { namespace } = client.options
  let nextPageToken: Uint8Array | undefined
  do {
    // The client's own list would decode memos, and other installations seal theirs with other keys.
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

/** What Temporal reports about a registered schedule. */
export type RegisteredSchedule = {
  nodeId: string
  paused: boolean
  nextRuns: Date[]
  /** The time for which it fired last. */
  lastSlot: Date | null
  taken: number
  missed: number
  skipped: number
}

/** What Temporal has of these schedules; unknown ones are left out. Throws if it cannot be reached. */
export async function describeSchedules(
  { client, taskQueue }: Pick<ScheduleDeps, 'client' | 'taskQueue'>,
  workflowId: string,
  nodeIds: string[],
): Promise<RegisteredSchedule[]> {
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
