import { sql } from 'kysely'
import { itemNodeId } from '../../../workflows/run/plan.ts'
import { demandTeam, type Scope } from '../../scope.ts'
import { NO_WORKFLOW } from './calls.ts'
import { splitDays, type UsageQuery } from './totals.ts'
import { IS_UNPRICED, readSums, SUMS, SUMS_OF_SUMS, type Sums, type Usage } from './usage.ts'

/** `workflowId` is null for calls outside of executions, `workflowName` also of a workflow that is deleted. */
export type NodeUse = Usage & { workflowId: string | null; workflowName: string | null; nodeId: string }

const MOST_NODES = 1_000

/** The id that a node has in its graph: in a plan there may be two. */
const ITEM = itemNodeId('')
const GRAPH_NODE = sql`case when right(node_id, ${sql.lit(ITEM.length)}) = ${sql.lit(ITEM)}
  then left(node_id, ${sql.lit(-ITEM.length)}) else node_id end`

type NodeUseRow = Sums & { workflowId: string; workflowName: string | null; nodeId: string }

/**
 * What a team's calls to models took by the nodes that made them, those that cost most first, at most 1,000 of them
 * (VIEWER). What a node does for one item of a list is the node's. Throws NOT_FOUND.
 */
export async function readNodeUsage(scope: Scope, teamId: string, query: UsageQuery): Promise<NodeUse[]> {
  await demandTeam(scope, teamId, 'VIEWER')
  const { rows } = await sql<NodeUseRow>`
    ${sumNodes(teamId, query)}, totals as (
      select workflow_id, ${GRAPH_NODE} as node_id, ${SUMS_OF_SUMS} from found group by 1, 2)
    select t.*, w.name as workflow_name from totals t left join workflows w on w.id = t.workflow_id
    order by t.cost desc, t.input + t.output desc, t.workflow_id, t.node_id
    fetch first ${sql.lit(MOST_NODES)} rows only`.execute(scope.store.db)
  return rows.map(({ workflowId, workflowName, nodeId, ...sums }) => ({
    workflowId: workflowId === NO_WORKFLOW ? null : workflowId,
    workflowName,
    nodeId,
    ...readSums(sums),
  }))
}

/** The sums of a span as `found`: of days and hours that are rolled up from these, of the rest from the calls themselves. */
function sumNodes(teamId: string, { from, to, workflowId }: UsageQuery) {
  const end = to?.toISOString() ?? 'infinity'
  const ofWorkflow = (table: string) =>
    workflowId === undefined ? sql`true` : sql`${sql.ref(table)}.workflow_id = ${workflowId}`
  const rolled = (table: string) =>
    sql`select h.workflow_id, h.node_id, ${SUMS_OF_SUMS} from ${sql.table(table)} h`
  return sql`with spans as materialized (
      select number, begun, ended, date_trunc('hour', begun + interval '1 hour' - interval '1 microsecond', 'UTC') as first,
        least(date_trunc('hour', ended, 'UTC'),
          coalesce((select nodes_until from model_call_folds where team_id = ${teamId}), '-infinity')) as last
      from (values (1, ${from.toISOString()}::timestamptz, ${end}::timestamptz)) s (number, begun, ended)
    ), ${splitDays(teamId)}, pieces as materialized (
      select begun as first, ended as last from spans where first >= last
      union all select begun, first from spans where first < last and begun < first
      union all select last, ended from spans where first < last and last < ended
    ), found as (
      select h.* from days s cross join lateral (${rolled('modelCallNodeDays')}
        where h.team_id = ${teamId} and h.day >= s.first_day and h.day < s.last_day and ${ofWorkflow('h')}
        group by 1, 2) h
      where s.first_day < s.last_day
      union all
      select h.* from hours s cross join lateral (${rolled('modelCallNodeHours')}
        where h.team_id = ${teamId} and h.hour >= s.first and h.hour < s.last and ${ofWorkflow('h')}
        group by 1, 2) h
      union all
      -- Calls that were under way when they were rolled up: are they still?
      select h.workflow_id, h.node_id, 0, (
        select count(*) from model_calls c
        where c.team_id = ${teamId} and c.created_at >= h.hour and c.created_at < h.hour + interval '1 hour'
          and c.workflow_id = h.workflow_id and c.node_id = h.node_id and c.provider = h.provider and c.model = h.model
          and ${IS_UNPRICED})::int - h.unpriced, 0, 0, 0, 0, 0, 0
      from spans s join model_call_node_hours h on h.team_id = ${teamId} and h.hour >= s.first and h.hour < s.last
      where h.open > 0 and ${ofWorkflow('h')}
      union all
      select c.* from pieces p cross join lateral (
        select c.workflow_id, c.node_id, ${SUMS} from model_calls c
        where c.team_id = ${teamId} and c.created_at >= p.first and c.created_at < p.last and ${ofWorkflow('c')}
        group by 1, 2) c
    )`
}
