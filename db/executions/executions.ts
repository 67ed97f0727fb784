import { sql } from 'kysely'
import { readPart } from '../../workflows/graph/part.ts'
import { chatPrivacyOf, isHiddenFrom } from '../chat/privacy.ts'
import type { Tx } from '../connection.ts'
import { missing } from '../fault.ts'
import { RUN_SUMS, readSums, type Usage } from '../monitoring/usage/usage.ts'
import { readOwner } from '../owners.ts'
import { makePage } from '../page.ts'
import { demand, demandTeam, type Scope, type Store } from '../scope.ts'
import { CALLBACK_AS_JSON, type CallbackView, showCallback } from './callbacks.ts'
import {
  durationOf,
  type ExecutionItem,
  type ExecutionPage,
  type ExecutionQuery,
  listExecutions,
} from './list.ts'
import { type ExecutionRecords, readNodeExecutions } from './records/records.ts'
import { STORED_NODES } from './records/stored.ts'
import { retriedByOf } from './retried.ts'
import { type Starter, showStarter, starterOf } from './starter.ts'
import { isEnded, OPEN_STATUSES } from './status.ts'
import { showTemporal, type TemporalPlace, type TemporalUi } from './temporal.ts'
import type { Recovery } from './triggers.ts'

export type ExecutionDetail = {
  id: string
  workflowId: string
  workflowName: string
  workflowVersion: number
  status: string
  trigger: string
  inputData: Record<string, unknown>
  /** Its values are not shown: it is part of another owner's chat. */
  hidden: boolean
  errorMessage: string | null
  /** Null if the caller may not see it. */
  startedBy: Starter | null
  createdAt: Date
  /** Since when it waits for a place at its workflow's limit; null if it does not. */
  queuedAt: Date | null
  startedAt: Date | null
  completedAt: Date | null
  durationMs: number | null
  /** The execution whose SUB_WORKFLOW node started this one, and that node. */
  parentExecutionId: string | null
  parentNodeId: string | null
  /**
   * `retriedFrom` is the execution that this one retries or reruns; `retries` the newest 100 that do so to
   * this; `retriedBy` the newest that retries it from its failed nodes.
   */
  retriedFrom: string | null
  retriedBy: string | null
  recovery: Recovery | null
  retries: string[]
  /** The only node that was executed, or the one that the execution led to; both null if it was of the whole graph. */
  onlyNode: string | null
  until: string | null
  /** It is a test of another version than the published one, or part of one. */
  draft: boolean
  callback: CallbackView | null
  /** What its calls to models took; null if it has made none. */
  usage: Usage | null
  /** Where it is in Temporal's UI; null for those who may not see that, or without a UI. */
  temporal: TemporalPlace | null
} & ExecutionRecords

/** A team's executions, newest first (VIEWER). A `workflowId` of another team matches nothing. */
export async function listTeamExecutions(
  scope: Scope,
  teamId: string,
  query: ExecutionQuery & { workflowId?: string | undefined },
): Promise<ExecutionPage> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { workflowId } = query
  const owner = workflowId === undefined ? teamId : await findWorkflowTeam(scope.store, workflowId)
  if (owner !== teamId) {
    const none = makePage<ExecutionItem>([], 0, query)
    return query.search || query.trigger ? { ...none, searchedFrom: null } : none
  }
  return listExecutions(scope, { teamId, workflowId }, query)
}

/** A workflow's executions, newest first (VIEWER). Throws NOT_FOUND. */
export async function listWorkflowExecutions(
  scope: Scope,
  workflowId: string,
  query: ExecutionQuery,
): Promise<ExecutionPage> {
  const teamId = await readOwner(scope.store, 'workflows', workflowId)
  demand(scope, teamId, 'VIEWER')
  return listExecutions(scope, { teamId, workflowId }, query)
}

/** An execution with its node records (VIEWER), and where it is in `ui`. Throws NOT_FOUND. */
export async function readExecution(scope: Scope, id: string, ui?: TemporalUi): Promise<ExecutionDetail> {
  const row = await scope.store.db
    .selectFrom('executions')
    .select(['id', 'teamId', 'workflowId', 'workflowName', 'workflowVersion', 'status', 'trigger'])
    .select([
      'triggerNodeId',
      'inputData',
      'errorMessage',
      'createdAt',
      'queuedAt',
      'startedAt',
      'completedAt',
      'parentId',
      'parentKey',
      'retriedFrom',
      'recovery',
      'onlyNode',
      'draft',
      'recordCount',
      'inputWarning',
      'runId',
    ])
    .select(
      sql<string[]>`array(select r.id::text from executions r where r.retried_from = executions.id
        order by r.created_at desc, r.id desc fetch first 100 rows only)`.as('retries'),
    )
    .select(retriedByOf('executions').as('retriedBy'))
    .select(CALLBACK_AS_JSON.as('callback'))
    .select(STORED_NODES.as('nodes'))
    .select(RUN_SUMS.as('sums'))
    .select(chatPrivacyOf().as('privacy'))
    .select(starterOf().as('starter'))
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw missing('execution')
  demand(scope, row.teamId, 'VIEWER')
  const { sums } = row
  const hidden = isHiddenFrom(scope, row.teamId, row.privacy)
  const { outputData, ...nodes } = await readNodeExecutions(scope.store, { ...row, hidden })
  return {
    id,
    workflowId: row.workflowId,
    workflowName: row.workflowName,
    workflowVersion: row.workflowVersion,
    status: row.status,
    trigger: row.trigger,
    inputData: hidden ? {} : (row.inputData as Record<string, unknown>),
    outputData,
    errorMessage: hidden ? null : row.errorMessage,
    startedBy: showStarter(scope, { ...row, hidden }),
    createdAt: row.createdAt,
    queuedAt: row.queuedAt,
    startedAt: row.startedAt,
    completedAt: row.completedAt,
    durationMs: durationOf(row.startedAt, row.completedAt),
    parentExecutionId: row.parentId,
    parentNodeId: row.parentKey?.split('#')[0] ?? null,
    retriedFrom: row.retriedFrom,
    retriedBy: row.retriedBy,
    recovery: row.recovery as Recovery | null,
    retries: row.retries,
    ...readPart(row.onlyNode),
    draft: row.draft,
    callback: showCallback(row.callback),
    usage: sums && readSums(sums),
    temporal: showTemporal(scope, ui, row),
    hidden,
    ...nodes,
  }
}

/** The workflow and version of an execution, and its trigger; undefined if it does not exist. */
export async function readIdentity(store: Store, id: string) {
  const columns = ['workflowId', 'workflowVersion', 'trigger', 'status'] as const
  return store.db.selectFrom('executions').select(columns).where('id', '=', id).executeTakeFirst()
}

/** Whether an execution has ended; true also if it is deleted. */
export async function hasEnded(store: Store, id: string): Promise<boolean> {
  const row = await store.db.selectFrom('executions').select('status').where('id', '=', id).executeTakeFirst()
  return !row || isEnded(row.status)
}

/**
 * Queues the removal from Temporal of a workflow's or a team's executions and returns their ids: all that are
 * open, or that Temporal may still know, as it keeps histories for 30 days. Drops their other errands.
 */
export async function forgetExecutions(
  tx: Tx,
  owner: 'workflowId' | 'teamId',
  id: string,
): Promise<string[]> {
  const rows = await tx
    .selectFrom('executions')
    .select('id')
    .where(owner, '=', id)
    .where((eb) =>
      eb.or([
        eb('status', 'in', OPEN_STATUSES),
        eb('completedAt', '>', sql<Date>`now() - interval '31 days'`),
      ]),
    )
    // Those that are open end first.
    .orderBy(sql`completed_at is not null`)
    .execute()
  const ids = rows.map((row) => row.id)
  await sql`delete from outbox where subject_id = any(${ids}::uuid[]) and kind <> 'DELETE'`.execute(tx)
  // With the team, which a trigger would otherwise look up for each.
  await sql`insert into outbox (kind, subject_id, team_id)
    select 'DELETE', id, team_id from unnest(${ids}::uuid[]) with ordinality as o (id, turn) join executions using (id)
    order by turn on conflict (subject_id, kind, key) do nothing`.execute(tx)
  return ids
}

async function findWorkflowTeam(store: Store, workflowId: string): Promise<string | undefined> {
  const row = await store.db
    .selectFrom('workflows')
    .select('teamId')
    .where('id', '=', workflowId)
    .executeTakeFirst()
  return row?.teamId
}
