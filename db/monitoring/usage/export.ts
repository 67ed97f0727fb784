import { setImmediate as breathe } from 'node:timers/promises'
import { sql } from 'kysely'
import { graphNodeId } from '../../../workflows/run/plan.ts'
import { ACTS } from '../../acts.ts'
import { change } from '../../change.ts'
import { openExportCursor } from '../../executions/exportcursor.ts'
import type { RedactionRules } from '../../redaction/redact.ts'
import { readRules } from '../../redaction/rules.ts'
import { createTextMask } from '../../redaction/texts.ts'
import type { Scope } from '../../scope.ts'
import { IS_OF_RUN, NO_WORKFLOW } from './calls.ts'
import type { UsageQuery } from './totals.ts'

/** A call to a model as it is exported. Tokens are null where the vendor has reported none. */
export type ExportedCall = {
  /** When it began. */
  time: string
  /** These four are null for a call outside of executions; that of a judge has a workflow, and `evaluation` as its node. */
  executionId: string | null
  workflowId: string | null
  nodeId: string | null
  /** `3` or `3.0`; null outside of loops. */
  iteration: string | null
  /** The step of an agent; null for other nodes. */
  step: number | null
  provider: string
  model: string
  /** A call that was under way when its execution ended is LOST. */
  status: 'OPEN' | 'SUCCESS' | 'REFUSED' | 'LOST'
  inputTokens: number | null
  outputTokens: number | null
  cachedTokens: number | null
  cacheWriteTokens: number | null
  reasoningTokens: number | null
  /** US dollars, as a decimal number; null if it is not known. */
  cost: string | null
  /** Milliseconds up to the first byte of the answer, and to its end. */
  firstMs: number | null
  latencyMs: number | null
}

type ExportedCallRow = Omit<ExportedCall, 'time'> & { time: number }

/** An open export. It holds a connection until `read` has returned false or failed, or `close` is called. */
export type OpenUsageExport = {
  /** Passes some more calls to `each`, the oldest first. Returns false once there are no more. */
  read: (each: (call: ExportedCall) => void) => Promise<boolean>
  /** Ends the export at once. May be called at any time, and again. */
  close: () => Promise<void>
}

const BATCH = 500

/**
 * Begins to read a team's calls to models that began in a span, as they are at this moment, also those of executions that
 * are deleted (VIEWER; with an audit entry). Texts are redacted. Throws UNAVAILABLE if other exports leave no slot for 30 s.
 */
export async function openUsageExport(
  scope: Scope,
  teamId: string,
  query: UsageQuery,
  format: string,
): Promise<OpenUsageExport> {
  const { from, to = null, workflowId = null } = query
  await change(scope, 'USAGE_EXPORTED', teamId, async () => ({
    result: undefined,
    resourceId: null,
    details: { format, from, to, workflowId },
  }))
  const cursor = await openExportCursor<ExportedCallRow, RedactionRules>(
    scope,
    { teamId, least: ACTS.USAGE_EXPORTED.role },
    { select: selectCalls(teamId, query), batch: BATCH, begin: readRules },
  )
  const mask = createTextMask(cursor.begun)
  return {
    async read(each) {
      const rows = await cursor.next()
      if (rows.length === 0) return false
      for (const row of rows) each(readCall(row, mask))
      rows.length = 0
      await breathe()
      return true
    },
    close: cursor.close,
  }
}

/** The index of totals has their order. */
function selectCalls(teamId: string, { from, to, workflowId }: UsageQuery) {
  const inside = sql`c.workflow_id <> ${NO_WORKFLOW}`
  const only = workflowId === undefined ? sql`true` : sql`c.workflow_id = ${workflowId}`
  return sql`
    select (extract(epoch from c.created_at) * 1000)::float8 as time,
      case when ${IS_OF_RUN} then c.execution_id end as "executionId", case when ${inside} then c.workflow_id end as "workflowId",
      case when ${inside} then c.node_id end as "nodeId", c.iteration, c.step, c.provider, c.model,
      case when c.status = 'OPEN' and not exists (select from executions e
        where e.id = c.execution_id and e.status in ('PENDING', 'RUNNING')) then 'LOST' else c.status end as status,
      c.input_tokens as "inputTokens", c.output_tokens as "outputTokens", c.cached_tokens as "cachedTokens",
      c.cache_write_tokens as "cacheWriteTokens", c.reasoning_tokens as "reasoningTokens",
      trim_scale(c.cost)::text as cost, c.first_ms as "firstMs", c.latency_ms as "latencyMs"
    from model_calls c
    where c.team_id = ${teamId} and c.created_at >= ${from} and c.created_at < ${to?.toISOString() ?? 'infinity'}::timestamptz
      and ${only}
    order by c.created_at`
}

function readCall(
  { time, nodeId, iteration, model, ...row }: ExportedCallRow,
  mask: (text: string) => string,
): ExportedCall {
  const { executionId, workflowId, step, provider, ...rest } = row
  return {
    time: new Date(time).toISOString(),
    executionId,
    workflowId,
    nodeId: nodeId === null ? null : mask(graphNodeId(nodeId)),
    iteration: iteration || null,
    step,
    provider,
    model: mask(model),
    ...rest,
  }
}
