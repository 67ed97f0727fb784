import { sql } from 'kysely'
import { v5 as uuid } from 'uuid'
import { findSchedules, isSchedule, type Schedule } from '../workflows/schedules.ts'
import { missing } from './fault.ts'
import { demand, type Scope, type Store } from './scope.ts'
import { readSettings } from './settings.ts'
import { addExecution, readStartable } from './start.ts'
import { readVersion } from './versions.ts'

/** What a workflow's schedules shall be, beside what Temporal was told of them. */
export type Due = {
  /** Changes with whatever may change `wanted`. */
  state: string
  wanted: Schedule[]
  /** By node id, the digest of what Temporal was told. */
  told: Map<string, string>
}

/** The SCHEDULE errands of a workflow. Read before what is due: one that comes later is not settled with them. */
export async function listQueued(store: Store, workflowId: string): Promise<number[]> {
  const errands = await store.db
    .selectFrom('outbox')
    .select('id')
    .where('subjectId', '=', workflowId)
    .where('kind', '=', 'SCHEDULE')
    .execute()
  return errands.map(({ id }) => id)
}

/** Reads what a workflow's schedules shall be: none of one that is inactive or gone. */
export async function readDue(store: Store, workflowId: string): Promise<Due> {
  const { rows } = await sql<{ nodeId: string; digest: string }>`
    select node_id, digest from schedules where workflow_id = ${workflowId}`.execute(store.db)
  const told = new Map(rows.map(({ nodeId, digest }) => [nodeId, digest]))
  const { state, workflow } = await readState(store, workflowId)
  const graph = workflow?.active ? await readVersion(store, workflowId, workflow.version) : undefined
  const wanted = graph ? findSchedules(graph, readSettings(workflow!.settings).timezone) : []
  return { state, wanted, told }
}

/** What `Due.state` would be now. */
export async function readState(store: Store, workflowId: string) {
  const workflow = await store.db
    .selectFrom('workflows')
    .select(['active', 'version', 'settings'])
    .where('id', '=', workflowId)
    .executeTakeFirst()
  const timezone = workflow && readSettings(workflow.settings).timezone
  const state = JSON.stringify(workflow?.active ? [workflow.version, timezone] : null)
  return { state, workflow }
}

/** Notes that Temporal may have a schedule; the digest is '' until it was told. */
export async function noteSchedule(
  store: Store,
  workflowId: string,
  nodeId: string,
  digest: string,
): Promise<void> {
  await sql`insert into schedules (workflow_id, node_id, digest) values (${workflowId}, ${nodeId}, ${digest})
    on conflict (workflow_id, node_id) do update set digest = excluded.digest`.execute(store.db)
}

export async function forgetSchedule(store: Store, workflowId: string, nodeId: string): Promise<void> {
  await store.db
    .deleteFrom('schedules')
    .where('workflowId', '=', workflowId)
    .where('nodeId', '=', nodeId)
    .execute()
}

/** These errands are done; one that a later change has queued stays. */
export async function settleSchedules(store: Store, errands: number[]): Promise<void> {
  if (errands.length > 0) await store.db.deleteFrom('outbox').where('id', 'in', errands).execute()
}

/** All that Temporal was told, for the whole installation; what is being changed right now is left out. */
export async function listTold(
  store: Store,
): Promise<{ workflowId: string; nodeId: string; digest: string }[]> {
  const { rows } = await sql<{ workflowId: string; nodeId: string; digest: string }>`
    select workflow_id, node_id, digest from schedules s
    where not exists (select from outbox where subject_id = s.workflow_id and kind = 'SCHEDULE')`.execute(
    store.db,
  )
  return rows
}

/** The execution of a firing: one and the same however often its slot (ISO 8601) fires. */
export function nameFiring(workflowId: string, nodeId: string, scheduledAt: string): string {
  return uuid(`${nodeId}@${scheduledAt}`, workflowId)
}

/**
 * Accepts the run of a firing, or finds it. Null where the trigger is there no more, or not active any more: its
 * schedule is about to go.
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
  const started = await addExecution(store, workflow, { id, node, trigger: 'SCHEDULE', data, by })
  return started.executionId
}

/** Cancels the execution of a firing that was cancelled, and queues a CANCEL; nothing where it has ended. */
export async function cancelFiring(store: Store, executionId: string): Promise<void> {
  await sql`select cancel_run(${executionId}, 'The firing of its schedule was cancelled')`.execute(store.db)
}

/** The schedules of a workflow's newest graph (VIEWER); none is registered unless it is active. */
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

/** The status of each of these executions that there is, by id. */
export async function readStatuses(store: Store, ids: string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await store.db
    .selectFrom('executions')
    .select(['id', 'status'])
    .where('id', 'in', ids)
    .execute()
  return new Map(rows.map(({ id, status }) => [id, status]))
}
