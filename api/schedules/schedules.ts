import { Hono } from 'hono'
import * as v from 'valibot'
import type { RegisteredSchedule } from '../../activities/schedules/schedules.ts'
import { EXECUTION_STATUSES } from '../../db/executions/status.ts'
import { Fault } from '../../db/fault.ts'
import { listScheduled, nameFiring, readSchedules, readStatuses } from '../../db/schedules/schedules.ts'
import type { Scope } from '../../db/scope.ts'
import { OVERLAPS } from '../../workflows/nodes/triggers.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema } from '../http/responses.ts'

const WAIT_MS = 2_000
const SHOWN_RUNS = 5
/** How many workflows of a list Temporal is asked about at once. */
const AT_ONCE = 10

const countOf = (text: string) => v.pipe(countSchema, v.description(text))
const ScheduleSchema = v.pipe(
  v.object({
    nodeId: v.pipe(v.string(), v.examples(['nightly'])),
    cron: v.pipe(v.string(), v.examples(['30 2 * * MON-FRI'])),
    timezone: v.pipe(v.string(), v.description('An IANA time zone'), v.examples(['Europe/Berlin'])),
    overlap: v.picklist(OVERLAPS),
    catchupWindowMs: countSchema,
    registered: v.pipe(
      v.boolean(),
      v.description('Whether Temporal has the schedule; false while the workflow is inactive'),
    ),
    paused: v.pipe(v.boolean(), v.description('Whether somebody has paused it in Temporal')),
    nextRuns: v.pipe(
      v.array(timeSchema),
      v.description(`The next times at which it fires, at most ${SHOWN_RUNS}`),
    ),
    lastRun: v.pipe(
      v.nullable(
        v.object({ executionId: idSchema, scheduledAt: timeSchema, status: v.picklist(EXECUTION_STATUSES) }),
      ),
      v.description('The execution of the last firing; null if there is none'),
    ),
    firings: countOf('How often it has fired since it was registered in Temporal'),
    missed: countOf(
      'Firings that were dropped, because they would have been later than the catch-up window allows',
    ),
    skipped: countOf('Firings that were skipped, because an earlier execution had not ended'),
  }),
  v.title('Schedule'),
)

const ScheduledSchema = v.pipe(
  v.object({
    workflowId: idSchema,
    workflowName: v.string(),
    active: v.boolean(),
    schedules: v.array(ScheduleSchema),
  }),
  v.title('ScheduledWorkflow'),
)

/** The routes that list schedules, with when they last fired and when they will fire next. */
export function createScheduleRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/schedules',
      accept({
        id: 'listTeamSchedules',
        tag: 'Workflows',
        summary: "List a team's schedules",
        description:
          'By workflow: those that are active first, by name. A workflow without a SCHEDULE_TRIGGER that is not ' +
          'disabled is not listed, or has no schedules here.',
        role: 'member',
        query: v.object({ teamId: uuidField, ...paging }),
        responses: {
          200: { description: 'One page', schema: pageSchema('ScheduledWorkflowPage', ScheduledSchema) },
        },
      }),
      async (c) => {
        const scope = c.get('scope')
        const { content, ...page } = await listScheduled(scope, c.req.valid('query'))
        const listed = []
        for (let at = 0; at < content.length; at += AT_ONCE) {
          const described = content.slice(at, at + AT_ONCE).map(async (workflow) => ({
            ...workflow,
            schedules: await describeWorkflow(deps, scope, workflow.workflowId),
          }))
          listed.push(...(await Promise.all(described)))
        }
        return c.json({ content: listed, ...page })
      },
    )
    .get(
      '/api/workflows/:id/schedules',
      accept({
        id: 'listSchedules',
        tag: 'Workflows',
        summary: "List a workflow's schedules",
        description:
          'There is one schedule for each SCHEDULE_TRIGGER that is not disabled. Schedules fire while the ' +
          'workflow is active, and each firing starts an execution.',
        role: 'member',
        of: 'workflows',
        params: ById,
        responses: { 200: { description: 'The schedules', schema: v.array(ScheduleSchema) } },
      }),
      async (c) => c.json(await describeWorkflow(deps, c.get('scope'), c.req.valid('param').id)),
    )
}

async function describeWorkflow(deps: ApiDeps, scope: Scope, workflowId: string) {
  const { active, schedules } = await readSchedules(scope, workflowId)
  const nodeIds = active ? schedules.map(({ nodeId }) => nodeId) : []
  const found = nodeIds.length > 0 ? await describeSchedules(deps, workflowId, nodeIds) : []
  const byNode = new Map(found.map((entry) => [entry.nodeId, entry]))
  const firings = found.flatMap(({ nodeId, lastSlot }) =>
    lastSlot ? [nameFiring(workflowId, nodeId, lastSlot.toISOString())] : [],
  )
  const statuses = await readStatuses(deps.store, firings)
  return schedules.map((schedule) => {
    const entry = byNode.get(schedule.nodeId)
    return { ...schedule, ...describeEntry(workflowId, entry, statuses) }
  })
}

function describeEntry(
  workflowId: string,
  entry: RegisteredSchedule | undefined,
  statuses: Map<string, string>,
) {
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

/** Reads the schedules of nodes from Temporal. Throws UNAVAILABLE if it fails or does not respond in time. */
async function describeSchedules(
  deps: ApiDeps,
  workflowId: string,
  nodeIds: string[],
): Promise<RegisteredSchedule[]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no response within ${WAIT_MS} ms`)), WAIT_MS)
  })
  try {
    const found = deps.describeSchedules?.(workflowId, nodeIds) ?? Promise.reject(new Error('no Temporal'))
    return await Promise.race([found, late])
  } catch (error) {
    deps.log.warn({ err: error, workflowId }, 'could not read schedules from Temporal')
    throw new Fault(
      'UNAVAILABLE',
      'The schedules are kept in Temporal, which is not reachable at the moment',
      { retryAfter: 2 },
    )
  } finally {
    clearTimeout(timer)
  }
}
