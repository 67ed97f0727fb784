import { Hono } from 'hono'
import * as v from 'valibot'
import type { Registered } from '../activities/schedules.ts'
import { Fault } from '../db/fault.ts'
import { STATUSES } from '../db/listing.ts'
import { nameFiring, readSchedules, readStatuses } from '../db/schedules.ts'
import { OVERLAPS } from '../workflows/nodes/triggers.ts'
import { accept, ById } from './accept.ts'
import { count, id, time } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'

const WAIT_MS = 2_000
const SHOWN_RUNS = 5

const said = (text: string) => v.pipe(count, v.description(text))
const ScheduleAnswer = v.pipe(
  v.object({
    nodeId: v.pipe(v.string(), v.examples(['nightly'])),
    cron: v.pipe(v.string(), v.examples(['30 2 * * MON-FRI'])),
    timezone: v.pipe(v.string(), v.description('IANA'), v.examples(['Europe/Berlin'])),
    overlap: v.picklist(OVERLAPS),
    catchupWindowMs: count,
    registered: v.pipe(v.boolean(), v.description('False while the workflow is inactive')),
    paused: v.pipe(v.boolean(), v.description('Paused by hand, in Temporal')),
    nextRuns: v.pipe(v.array(time), v.description(`The next ${SHOWN_RUNS} times, at most`)),
    lastRun: v.pipe(
      v.nullable(v.object({ executionId: id, scheduledAt: time, status: v.picklist(STATUSES) })),
      v.description('The last firing, where it has left an execution'),
    ),
    firings: said('How often it has fired since it was registered'),
    missed: said('Firings that were later than the catch-up window'),
    skipped: said('Firings that came while an earlier run was under way, and were skipped'),
  }),
  v.title('Schedule'),
)

/** What the schedules of a workflow have done and will do. */
export function createScheduleRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>().get(
    '/api/workflows/:id/schedules',
    accept({
      id: 'listSchedules',
      tag: 'Workflows',
      summary: "List a workflow's schedules",
      description:
        'One for each SCHEDULE_TRIGGER that is not disabled. They fire while the workflow is active; each firing is ' +
        'an execution.',
      role: 'member',
      of: 'workflows',
      params: ById,
      responses: { 200: { description: 'The schedules', schema: v.array(ScheduleAnswer) } },
    }),
    async (c) => {
      const workflowId = c.req.valid('param').id
      const { active, schedules } = await readSchedules(c.get('scope'), workflowId)
      const nodeIds = active ? schedules.map(({ nodeId }) => nodeId) : []
      const found = nodeIds.length > 0 ? await askTemporal(deps, workflowId, nodeIds) : []
      const byNode = new Map(found.map((entry) => [entry.nodeId, entry]))
      const firings = found.flatMap(({ nodeId, lastSlot }) =>
        lastSlot ? [nameFiring(workflowId, nodeId, lastSlot.toISOString())] : [],
      )
      const statuses = await readStatuses(deps.store, firings)
      const content = schedules.map((schedule) => {
        const entry = byNode.get(schedule.nodeId)
        return { ...schedule, ...describeEntry(workflowId, entry, statuses) }
      })
      return c.json(content)
    },
  )
}

function describeEntry(workflowId: string, entry: Registered | undefined, statuses: Map<string, string>) {
  const scheduledAt = entry?.lastSlot
  const executionId =
    entry && scheduledAt ? nameFiring(workflowId, entry.nodeId, scheduledAt.toISOString()) : ''
  const status = statuses.get(executionId)
  return {
    registered: entry !== undefined,
    paused: entry?.paused ?? false,
    nextRuns: entry?.nextRuns.slice(0, SHOWN_RUNS) ?? [],
    lastRun: scheduledAt && status ? { executionId, scheduledAt, status } : null,
    firings: entry?.taken ?? 0,
    missed: entry?.missed ?? 0,
    skipped: entry?.skipped ?? 0,
  }
}

/** Throws UNAVAILABLE where Temporal does not answer in time. */
async function askTemporal(deps: ApiDeps, workflowId: string, nodeIds: string[]): Promise<Registered[]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${WAIT_MS} ms`)), WAIT_MS)
  })
  try {
    const asked = deps.describeSchedules?.(workflowId, nodeIds) ?? Promise.reject(new Error('no Temporal'))
    return await Promise.race([asked, late])
  } catch (error) {
    deps.log.warn({ err: error, workflowId }, 'Temporal could not be asked for schedules')
    throw new Fault('UNAVAILABLE', 'Temporal, which keeps the schedules, is not reachable', { retryAfter: 2 })
  } finally {
    clearTimeout(timer)
  }
}
