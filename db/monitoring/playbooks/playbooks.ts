import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Problem } from '../../../workflows/problem.ts'
import { change } from '../../change.ts'
import { type Db, json, type Tx } from '../../connection.ts'
import { invalid } from '../../fault.ts'
import { demandRoom, findOwned, guardName } from '../../owned.ts'
import { describeChange } from '../../redaction/difference.ts'
import { demandTeam, type Scope } from '../../scope.ts'
import type { AlertSeverity, AlertType } from '../notices/notices.ts'

export const PLAYBOOK_ALERTS = ['ANOMALY', 'DRIFT', 'SENTIMENT'] as const satisfies AlertType[]
export const PLAYBOOK_SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const satisfies AlertSeverity[]

/** What a playbook waits for: all of it must hold. */
export type PlaybookConditions = {
  /** Empty: no alerts. */
  alertTypes: AlertType[]
  minSeverity: AlertSeverity
  /** Evaluations that scored too low, too. */
  evaluations: boolean
  /** Null: any workflow, and what is about the team as a whole. */
  workflowIds: string[] | null
}

export type PlaybookStep =
  | { type: 'NOTIFY'; channelId: string }
  | { type: 'START_WORKFLOW'; workflowId: string; input?: Record<string, unknown> | undefined }
  /** Without `workflowId` it is the workflow that the notice is about. */
  | { type: 'DEACTIVATE_WORKFLOW'; workflowId?: string | undefined }

export type Playbook = {
  id: string
  teamId: string
  name: string
  enabled: boolean
  on: PlaybookConditions
  steps: PlaybookStep[]
  createdAt: Date
  updatedAt: Date
}

export type PlaybookPatch = {
  name?: string | undefined
  enabled?: boolean | undefined
  on?: { [K in keyof PlaybookConditions]?: PlaybookConditions[K] | undefined } | undefined
  steps?: PlaybookStep[] | undefined
}

/** How many playbooks a team may have. */
export const MAX_PLAYBOOKS = 50

const ALWAYS: PlaybookConditions = {
  alertTypes: [...PLAYBOOK_ALERTS],
  minSeverity: 'LOW',
  evaluations: false,
  workflowIds: null,
}

/** The playbooks of a team, the oldest first (VIEWER). */
export async function listPlaybooks(scope: Scope, teamId: string): Promise<Playbook[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  const rows = await select(scope.store.db, teamId).orderBy('createdAt').orderBy('id').execute()
  return rows.map(show)
}

/** One playbook of a team (VIEWER). Throws NOT_FOUND. */
export async function readPlaybook(scope: Scope, teamId: string, id: string): Promise<Playbook> {
  await demandTeam(scope, teamId, 'VIEWER')
  return show(await find(scope.store.db, teamId, id))
}

/**
 * Adds a playbook (ADMIN). Throws as `change`; INVALID for channels and workflows that are not the team's; CONFLICT for a
 * name that is taken, and if there are too many.
 */
export async function createPlaybook(
  scope: Scope,
  teamId: string,
  input: PlaybookPatch & { name: string; steps: PlaybookStep[] },
): Promise<Playbook> {
  const { name, enabled = true, on, steps } = input
  return guardName('playbooks', name, () =>
    change(scope, 'PLAYBOOK_CREATED', teamId, async (tx) => {
      await demandRoom(tx, 'playbooks', teamId, MAX_PLAYBOOKS)
      const conditions = complete(ALWAYS, on)
      await demandOwn(tx, teamId, { steps, workflowIds: conditions.workflowIds })
      const id = uuid()
      await tx
        .insertInto('playbooks')
        .values({ id, teamId, name, enabled, conditions: json(conditions), steps: json(steps) })
        .execute()
      const result = show(await find(tx, teamId, id))
      return { result, resourceId: id, details: describe(result) }
    }),
  )
}

/**
 * Changes what is given (ADMIN), of `on` key by key; runs that have begun keep the steps that they began with, and with
 * `enabled: false` they stop. Throws as createPlaybook, and NOT_FOUND.
 */
export async function updatePlaybook(
  scope: Scope,
  teamId: string,
  id: string,
  { name, enabled, on, steps }: PlaybookPatch,
): Promise<Playbook> {
  return guardName('playbooks', name ?? '', () =>
    change(scope, 'PLAYBOOK_UPDATED', teamId, async (tx) => {
      const before = show(await lock(tx, teamId, id))
      const conditions = complete(before.on, on)
      await demandOwn(tx, teamId, {
        // Unchanged parts are not checked: a channel or workflow may have been deleted since.
        steps: steps && JSON.stringify(steps) !== JSON.stringify(before.steps) ? steps : [],
        workflowIds: on?.workflowIds?.filter((one) => !before.on.workflowIds?.includes(one)) ?? null,
      })
      const after = {
        name: name ?? before.name,
        enabled: enabled ?? before.enabled,
        conditions: json(conditions),
        steps: json(steps ?? before.steps),
      }
      await tx
        .updateTable('playbooks')
        .set({ ...after, updatedAt: sql<Date>`now()` })
        .where('id', '=', id)
        .execute()
      // Who writes runs holds the playbook until the commit, so that they are here now.
      if (!after.enabled)
        await sql`update playbook_runs set status = 'STOPPED', reason = 'The playbook was disabled', ended_at = now(),
          lease = null where playbook_id = ${id} and status = 'PENDING'`.execute(tx)
      const result = show(await find(tx, teamId, id))
      const told = describeChange(describe(before), describe(result))
      return { result, resourceId: id, details: { name: result.name, ...told } }
    }),
  )
}

/** Deletes a playbook with its runs (ADMIN): those that have not ended stop. Throws NOT_FOUND. */
export async function deletePlaybook(scope: Scope, teamId: string, id: string): Promise<void> {
  await change(scope, 'PLAYBOOK_DELETED', teamId, async (tx) => {
    const known = show(await lock(tx, teamId, id))
    await tx.deleteFrom('playbooks').where('id', '=', id).execute()
    return { result: undefined, resourceId: id, details: describe(known) }
  })
}

/** Whether a playbook waits for such a notice. */
export function awaitsNotice(
  on: PlaybookConditions,
  notice: {
    kind: string
    alertType: string | null
    severity: string
    workflowId: string | null
  },
): boolean {
  const isOfKind =
    notice.kind === 'ALERT' ? on.alertTypes.some((type) => type === notice.alertType) : on.evaluations
  const isSevere =
    PLAYBOOK_SEVERITIES.indexOf(notice.severity as AlertSeverity) >=
    PLAYBOOK_SEVERITIES.indexOf(on.minSeverity)
  const isAbout =
    on.workflowIds === null || (notice.workflowId !== null && on.workflowIds.includes(notice.workflowId))
  return isOfKind && isSevere && isAbout
}

function complete(known: PlaybookConditions, given: PlaybookPatch['on'] = {}): PlaybookConditions {
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { ...known, ...set }
}

function select(db: Db, teamId: string) {
  return db.selectFrom('playbooks').selectAll().where('teamId', '=', teamId)
}

const find = (db: Db, teamId: string, id: string) =>
  findOwned(select(db, teamId).where('id', '=', id), 'playbook')

const lock = (tx: Tx, teamId: string, id: string) =>
  findOwned(select(tx, teamId).where('id', '=', id).forUpdate(), 'playbook')

function show({ conditions, steps, ...row }: Awaited<ReturnType<typeof find>>): Playbook {
  const { id, teamId, name, enabled, createdAt, updatedAt } = row
  const on = conditions as PlaybookConditions
  return { id, teamId, name, enabled, on, steps: steps as PlaybookStep[], createdAt, updatedAt }
}

/** What the audit says of a playbook: of what it starts workflows with, nothing. */
function describe({ name, enabled, on, steps }: Playbook) {
  return {
    name,
    enabled,
    on,
    steps: steps.map((step) => ('input' in step ? { ...step, input: undefined } : step)),
  }
}

async function demandOwn(
  tx: Tx,
  teamId: string,
  { steps, workflowIds }: { steps: PlaybookStep[]; workflowIds: string[] | null },
): Promise<void> {
  const all: { table: 'notificationChannels' | 'workflows'; id: string; path: string }[] = []
  for (const [at, step] of steps.entries()) {
    if (step.type === 'NOTIFY')
      all.push({ table: 'notificationChannels', id: step.channelId, path: `steps[${at}].channelId` })
    else if (step.workflowId)
      all.push({ table: 'workflows', id: step.workflowId, path: `steps[${at}].workflowId` })
  }
  for (const [at, id] of (workflowIds ?? []).entries())
    all.push({ table: 'workflows', id, path: `on.workflowIds[${at}]` })
  const problems: Problem[] = []
  for (const table of ['notificationChannels', 'workflows'] as const) {
    const ids = [...new Set(all.filter((one) => one.table === table).map(({ id }) => id))]
    if (ids.length === 0) continue
    const rows = await tx
      .selectFrom(table)
      .select('id')
      .where('teamId', '=', teamId)
      .where('id', 'in', ids)
      .execute()
    const known = new Set(rows.map(({ id }) => id))
    const noun = table === 'workflows' ? 'workflow' : 'channel'
    for (const one of all)
      if (one.table === table && !known.has(one.id))
        problems.push({ path: one.path, message: `must be a ${noun} of this team` })
  }
  if (problems.length > 0) throw invalid(problems)
}
