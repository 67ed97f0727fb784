import { setImmediate as breathe } from 'node:timers/promises'
import { sql } from 'kysely'
import { graphNodeId } from '../../workflows/run/plan.ts'
import { ACTS } from '../acts.ts'
import { change } from '../change.ts'
import { type ChatPrivacy, chatPrivacyOf, isHiddenFrom } from '../chat/privacy.ts'
import { ALL_SUMS, findUsage, type RecordSums, type Usage } from '../monitoring/usage/usage.ts'
import type { RedactionRules } from '../redaction/redact.ts'
import { readRules } from '../redaction/rules.ts'
import { createTextMask } from '../redaction/texts.ts'
import type { Scope } from '../scope.ts'
import { openExportCursor } from './exportcursor.ts'

/** An execution as it is exported: its strings are redacted, times are ISO 8601 in UTC. */
export type ExportedExecution = {
  executionId: string
  workflowId: string
  workflowName: string
  status: string
  trigger: string
  startedAt: string | null
  completedAt: string | null
  durationMs: number | null
  /** What its calls to models took; null if it has made none. CSV has no columns for it. */
  usage: Usage | null
}

/** A node record as it is exported: its strings are redacted, times are ISO 8601 in UTC. */
export type ExportedNode = {
  nodeId: string
  nodeType: string
  nodeName: string
  /** The loop's iteration, `3` or `3.0`; null outside of loops. CSV has no column for it. */
  iteration: string | null
  /** As in the record. CSV has no columns for them. */
  step: number | null
  tool: string | null
  status: string
  startedAt: string
  completedAt: string | null
  durationMs: number | null
  error: string | null
  /** What its calls to models took; missing if it has made none. */
  usage?: Usage
}

type Each = (execution: ExportedExecution, node: ExportedNode | null) => void

/**
 * A row as it is fetched. Times are in ms since 1970: Date objects for a million rows would cost too much.
 */
type ExecutionRow = Omit<ExportedExecution, 'startedAt' | 'completedAt' | 'durationMs' | 'usage'> &
  Pick<ExportedNode, 'nodeType' | 'nodeName'> & {
    started: number | null
    completed: number | null
    nodeId: string | null
    iteration: string
    step: number | null
    tool: string | null
    nodeStatus: string
    nodeStarted: number
    nodeCompleted: number | null
    nodeError: string | null
    /** In the first row of an execution. */
    sums: RecordSums[] | null
    privacy: ChatPrivacy
  }

/** An open export. It holds a connection until `read` has returned false or failed, or `close` is called. */
export type OpenExport = {
  /**
   * Passes up to 100 more node records to `each`, with their executions, the newest first; null for an
   * execution that has no records. All records of an execution come with the same object. Returns false once
   * there are no more.
   */
  read: (each: Each) => Promise<boolean>
  /** Ends the export at once, even while a query is being executed. May be called at any time, and again. */
  close: () => Promise<void>
}

const BATCH = 100
const DAY_MS = 86_400_000

/**
 * Begins to read the executions of a team's last `days` days with their node records, all as they are at this
 * moment (OPERATOR; with an audit entry). Throws UNAVAILABLE if other exports leave no slot for 30 s.
 */
export async function openExport(
  scope: Scope,
  teamId: string,
  asked: { days: number; format: string },
): Promise<OpenExport> {
  const since = new Date(Date.now() - asked.days * DAY_MS)
  await change(scope, 'EXECUTIONS_EXPORTED', teamId, async () => ({
    result: undefined,
    resourceId: null,
    details: { ...asked, since },
  }))
  const least = ACTS.EXECUTIONS_EXPORTED.role
  const cursor = await openExportCursor<ExecutionRow, RedactionRules>(
    scope,
    { teamId, least },
    { select: selectRows(teamId, since, asked.format), batch: BATCH, begin: readRules },
  )
  const visit = createVisit(cursor.begun, ({ privacy }) => isHiddenFrom(scope, teamId, privacy))
  return {
    async read(each) {
      const rows = await cursor.next()
      if (rows.length === 0) return false
      await visit(rows, each)
      // The driver's promises keep each other, and so these rows, alive until the next full garbage
      // collection: the process would grow by 200 MB.
      rows.length = 0
      return true
    },
    close: cursor.close,
  }
}

/**
 * PostgreSQL carries the lateral join out as a loop over the executions, so the rows come in this order, and
 * the first ones at once: nothing has to sort them all.
 */
function selectRows(teamId: string, since: Date, format: string) {
  const sums = format === 'json' ? ALL_SUMS : sql`null::json`
  return sql`
    select e.id as "executionId", e.workflow_id as "workflowId", e.workflow_name as "workflowName", e.status, e.trigger,
      ${toMs('e.started_at')} as started, ${toMs('e.completed_at')} as completed, n.node_id as "nodeId",
      n.node_type as "nodeType", n.node_name as "nodeName", split_part(n.iteration, '!', 1) as iteration, n.step, n.tool, n.status as "nodeStatus",
      ${toMs('n.started_at')} as "nodeStarted", ${toMs('n.completed_at')} as "nodeCompleted",
      n.error_message as "nodeError", case when coalesce(n.place, 1) = 1 then e.sums end as sums, e.privacy
    from (
      select e.*, ${sums} as sums, ${chatPrivacyOf('e')} as privacy from executions e where team_id = ${teamId} and created_at >= ${since}
      order by created_at desc, id desc) e
    left join lateral (
      select *, row_number() over (order by started_at, position, node_id, iteration) as place
      from node_executions where execution_id = e.id
      order by started_at, position, node_id, iteration) n on true`
}

function toMs(column: string) {
  return sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`
}

const SLICE_MS = 10

/** Passes rows on, redacted. Between slices of 10 ms it lets other work have its turn. */
function createVisit(
  rules: RedactionRules,
  isHidden: (row: ExecutionRow) => boolean,
): (rows: ExecutionRow[], each: Each) => Promise<void> {
  const mask = createTextMask(rules)
  let execution: ExportedExecution | undefined
  let usageOf = findUsage([])
  return async (rows, each) => {
    let since = performance.now()
    for (const row of rows) {
      if (execution?.executionId !== row.executionId) {
        usageOf = findUsage(row.sums ?? [])
        execution = { ...readExecution(row, mask), usage: usageOf(null) ?? null }
      }
      const usage = row.nodeId === null ? undefined : usageOf({ ...row, nodeId: row.nodeId })
      const read = row.nodeId === null ? null : readNode(row, row.nodeId, mask)
      const node = usage && read ? { ...read, usage } : read
      const hidden = node !== null && row.privacy !== null && isHidden(row)
      if (!hidden) each(execution, node)
      else if (node.step === null) each(execution, { ...node, error: null })
      if (performance.now() - since < SLICE_MS) continue
      await breathe()
      since = performance.now()
    }
  }
}

function readExecution(row: ExecutionRow, mask: (text: string) => string): Omit<ExportedExecution, 'usage'> {
  const { executionId, workflowId, workflowName, status, trigger, started, completed } = row
  return {
    executionId,
    workflowId,
    workflowName: mask(workflowName),
    status,
    trigger,
    startedAt: toIso(started),
    completedAt: toIso(completed),
    durationMs: completed === null ? null : completed - (started ?? completed),
  }
}

function readNode(row: ExecutionRow, nodeId: string, mask: (text: string) => string): ExportedNode {
  const { nodeType, nodeName, iteration, step, tool, nodeStatus, nodeStarted, nodeCompleted, nodeError } = row
  return {
    nodeId: mask(graphNodeId(nodeId)),
    nodeType,
    nodeName: mask(nodeName),
    iteration: iteration || null,
    step: step ?? null,
    tool: tool == null ? null : mask(tool),
    status: nodeStatus,
    startedAt: toIso(nodeStarted)!,
    completedAt: toIso(nodeCompleted),
    durationMs: nodeCompleted === null ? null : nodeCompleted - nodeStarted,
    error: nodeError === null ? null : mask(nodeError),
  }
}

function toIso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
