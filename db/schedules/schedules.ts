import { sql } from 'kysely'
import { v5 as uuid } from 'uuid'
import { findSchedules, isSchedule, type Schedule } from '../../workflows/graph/triggers/schedules.ts'
import { write } from '../change.ts'
import { cancelOpen } from '../executions/cancel.ts'
import { addExecution } from '../executions/starts/add.ts'
import { readStartable } from '../executions/starts/startable.ts'
import { missing } from '../fault.ts'
import { countRows, makePage, type Page, type PageRequest } from '../page.ts'
import { demand, demandTeam, type Scope, type Store } from '../scope.ts'
import { readSettings } from '../workflows/settings.ts'
import { readVersion } from '../workflows/versions.ts'

/** The schedules that a workflow should have, and those that Temporal was sent. */
export type DueSchedules = {
  /** Changes whenever `wanted` may change. */
  state: string
  wanted: Schedule[]
  /** The digest of what was sent to Temporal, by node id. */
  sent: Map<string, string>
}

/**
 * The ids of a workflow's SCHEDULE errands. They must be read before its schedules: an errand queued in
 * between is then not settled with them, and is carried out by itself.
 */
export async function listScheduleErrands(store: Store, workflowId: string): Promise<number[]> {
  const errands = await store.db
    .selectFrom('outbox')
    .select('id')
    .where('subjectId', '=', workflowId)
    .where('kind', '=', 'SCHEDULE')
    .execute()
  return errands.map(({ id }) => id)
}

/** Reads which schedules a workflow should have: none if it is inactive or deleted. */
export async function readDueSchedules(store: Store, workflowId: string): Promise<DueSchedules> {
  const { rows } = await sql<{ nodeId: string; digest: string }>`
    select node_id, digest from schedules where workflow_id = ${workflowId}`.execute(store.db)
  const sent = new Map(rows.map(({ nodeId, digest }) => [nodeId, digest]))
  const { state, workflow } = await readScheduleState(store, workflowId)
  const graph = workflow?.active ? await readVersion(store, workflowId, workflow.version) : undefined
  const wanted = graph ? findSchedules(graph, readSettings(workflow!.settings).timezone) : []
  return { state, wanted, sent }
}

/** What `DueSchedules.state` is now, and the workflow that it was computed from, if there is one. */
export async function readScheduleState(store: Store, workflowId: string) {
  const workflow = await store.db
    .selectFrom('workflows')
    .select(['active', 'version', 'settings'])
    .where('id', '=', workflowId)
    .executeTakeFirst()
  const timezone = workflow && readSettings(workflow.settings).timezone
  const state = JSON.stringify(workflow?.active ? [workflow.version, timezone] : null)
  return { state, workflow }
}

/** Notes that Temporal may have a schedule; `digest` is '' until it has been sent. */
export async function noteSchedule(
  store: Store,
  workflowId: string,
  nodeId: string,
  digest: string,
): Promise<void> {
  await write(store, (tx) =>
    sql`insert into schedules (workflow_id, node_id, digest) values (${workflowId}, ${nodeId}, ${digest})
    on conflict (workflow_id, node_id) do update set digest = excluded.digest`.execute(tx),
  )
}

export async function forgetSchedule(store: Store, workflowId: string, nodeId: string): Promise<void> {
  await write(store, (tx) =>
    tx.deleteFrom('schedules').where('workflowId', '=', workflowId).where('nodeId', '=', nodeId).execute(),
  )
}

/** Removes errands that are done; one that a later change has queued stays. */
export async function settleSchedules(store: Store, errands: number[]): Promise<void> {
  if (errands.length === 0) return
  await write(store, (tx) => tx.deleteFrom('outbox').where('id', 'in', errands).execute())
}

/**
 * Takes or prolongs the right to tell Temporal about a workflow's schedules, for `leaseMs`. False while another
 * `holder` has it.
 */
export async function leaseSchedules(
  store: Store,
  workflowId: string,
  holder: string,
  leaseMs: number,
): Promise<boolean> {
  const { rows } = await write(store, (tx) =>
    sql`insert into schedule_leases (workflow_id, holder, until)
    values (${workflowId}, ${holder}, now() + ${leaseMs} * interval '1 millisecond')
    on conflict (workflow_id) do update set holder = excluded.holder, until = excluded.until
    where schedule_leases.holder = excluded.holder or schedule_leases.until < now()
    returning holder`.execute(tx),
  )
  return rows.length > 0
}

export async function endScheduleLease(store: Store, workflowId: string, holder: string): Promise<void> {
  await write(store, (tx) =>
    tx
      .deleteFrom('scheduleLeases')
      .where('workflowId', '=', workflowId)
      .where('holder', '=', holder)
      .execute(),
  )
}

/**
 * Queues a SCHEDULE errand that failed, due after `delayMs`. Another process may have settled it meanwhile, before the
 * last calls of the one that failed had reached Temporal.
 */
export async function requeueSchedules(
  store: Store,
  workflowId: string,
  delayMs: number,
  error: string,
): Promise<void> {
  await write(store, (tx) =>
    sql`insert into outbox (kind, subject_id, due_at, last_error)
    values ('SCHEDULE', ${workflowId}, now() + ${delayMs} * interval '1 millisecond', ${error})
    on conflict (subject_id, kind, key) do update set due_at = excluded.due_at, last_error = excluded.last_error`.execute(
      tx,
    ),
  )
}

/**
 * All schedules of all teams that Temporal was sent, unless their workflow has a SCHEDULE errand queued.
 */
export async function listSentSchedules(
  store: Store,
): Promise<{ workflowId: string; nodeId: string; digest: string }[]> {
  const { rows } = await sql<{ workflowId: string; nodeId: string; digest: string }>`
    select workflow_id, node_id, digest from schedules s
    where not exists (select from outbox where subject_id = s.workflow_id and kind = 'SCHEDULE')`.execute(
    store.db,
  )
  return rows
}

/** The id of a firing's execution. The same slot (`scheduledAt`, ISO 8601) always gives the same id. */
export function nameFiring(workflowId: string, nodeId: string, scheduledAt: string): string {
  return uuid(`${nodeId}@${scheduledAt}`, workflowId)
}

/**
 * Accepts the execution of a firing, or finds it, and returns its id. Null if the workflow is no longer
 * active or no longer has the trigger: its schedule is about to be deleted.
 */
export async function startFiring(
  store: Store,
  firing: { workflowId: string; nodeId: string; scheduledAt: string } & Record<string, unknown>,
): Promise<string | null> {
  const { workflowId, ...data } = firing
  const workflow = await readStartable(store, workflowId, () => true)
  const node = workflow?.graph.nodes.find(({ id }) => id === firing.nodeId)
  if (!workflow?.active || !node || !isSchedule(node)) return null
  const id = nameFiring(workflowId, firing.nodeId, firing.scheduledAt)
  const by = { kind: 'SYSTEM' as const, id: null, name: 'schedule' }
  const start = { id, node, trigger: 'SCHEDULE' as const, data, by }
  const started = await addExecution(store, workflow, { origin: 'SCHEDULE', ...start })
  return started.executionId
}

/** Cancels the execution of a cancelled firing, and queues a CANCEL. Does nothing if it has ended. */
export async function cancelFiring(store: Store, executionId: string): Promise<void> {
  const why = 'The firing of its schedule was cancelled'
  await write(store, (tx) => cancelOpen(tx, [executionId], { why }))
}

/** The schedules of a workflow's published graph (VIEWER); Temporal has them only if the workflow is active. */
export async function readSchedules(
  scope: Scope,
  workflowId: string,
): Promise<{ active: boolean; schedules: Schedule[] }> {
  const workflow = await readStartable(scope.store, workflowId, (teamId) => {
    demand(scope, teamId, 'VIEWER')
    return true
  })
  if (!workflow) throw missing('workflow')
  return {
    active: workflow.active,
    schedules: findSchedules(workflow.graph, workflow.settings.timezone),
  }
}

export type ScheduledWorkflow = { workflowId: string; workflowName: string; active: boolean }

/**
 * A page of a team's workflows whose published graph has schedules (VIEWER): the active ones first, by name. The graph is
 * searched as a text, since PostgreSQL cannot take apart JSON with NUL in it: a workflow that has the type's name as a
 * text somewhere else is among them, without schedules.
 */
export async function listScheduled(
  scope: Scope,
  { teamId, ...request }: PageRequest & { teamId: string },
): Promise<Page<ScheduledWorkflow>> {
  await demandTeam(scope, teamId, 'VIEWER')
  const found = scope.store.db
    .selectFrom('workflows as w')
    .innerJoin('workflowVersions as v', (join) =>
      join.onRef('v.workflowId', '=', 'w.id').onRef('v.version', '=', 'w.version'),
    )
    .where('w.teamId', '=', teamId)
    .where(sql<boolean>`strpos(v.nodes::text, '"SCHEDULE_TRIGGER"') > 0`)
  const total = await countRows(found)
  const content = await found
    .select(['w.id as workflowId', 'w.name as workflowName', 'w.active'])
    .orderBy('w.active', 'desc')
    .orderBy('w.name')
    .orderBy('w.id')
    .limit(request.size)
    .offset(request.page * request.size)
    .execute()
  return makePage(content, total, request)
}

/** The statuses of these executions by id; those that do not exist are left out. */
export async function readStatuses(store: Store, ids: string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await store.db
    .selectFrom('executions')
    .select(['id', 'status'])
    .where('id', 'in', ids)
    .execute()
  return new Map(rows.map(({ id, status }) => [id, status]))
}
