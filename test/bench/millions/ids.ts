import type pg from 'pg'

/**
 * What is taken for the parameters of routes, as SQL over the team $1 and the value $2 of the parameter before; by the path
 * up to the parameter where the same name means different things.
 */
const SOURCES: Record<string, string> = {
  teamId: 'select $1::uuid',
  workflowId: `select workflow_id from execution_counts where team_id = $1 group by 1 order by sum(n) desc limit 1`,
  '/api/workflows/{id}': `select workflow_id from execution_counts where team_id = $1 group by 1 order by sum(n) desc limit 1`,
  '/api/executions/{id}': `select id from executions where team_id = $1 and status = 'FAILED' order by created_at desc limit 1`,
  '/api/executions/{id}/nodes/{recordId}': `select id from node_executions where execution_id = $2 order by position desc limit 1`,
  '/api/approvals/{id}': `select id from pauses where team_id = $1 and status = 'OPEN' order by created_at desc limit 1`,
  '/api/agent-chat/sessions/{id}': `select id from agent_chat_sessions where team_id = $1 order by active_at desc limit 1`,
  '/api/agent-chat/sessions/{id}/messages/{messageId}': `select id from agent_chat_messages where session_id = $2 limit 1`,
  '/api/workflows/{id}/versions/{version}': 'select 1',
  '/api/workflows/{id}/versions/{version}/diff/{other}': 'select 1',
  '/api/monitoring/teams/{teamId}/alerts/{alertId}': `select id from alerts where team_id = $1 order by created_at desc limit 1`,
  '/api/monitoring/teams/{teamId}/channels/{id}': `select id from notification_channels where team_id = $1 limit 1`,
  '/api/monitoring/workflow/{workflowId}/evaluations/{evaluationId}': `select id from evaluations where workflow_id = $2 limit 1`,
  '/api/docs/guide/{chapter}': `select 'nodes'`,
  executionId: `select id from executions where team_id = $1 and status = 'FAILED' order by created_at desc limit 1`,
  userId: `select user_id from audit_entries where team_id = $1 and user_id is not null order by seq desc limit 1`,
  resourceId: `select resource_id from audit_entries where team_id = $1 and resource_id is not null order by seq limit 1`,
  resourceType: `select 'WORKFLOW'`,
  nodeId: `select 'node3'`,
  timezone: `select 'Europe/Berlin'`,
  after: `select seq / 2 from audit_heads where team_id = $1`,
  widgetId: 'select id from widgets where team_id = $1 limit 1',
}

/** Finds the value of a parameter; undefined if there is none, or it is not known where to look. */
export type FindId = (name: string, path?: string, outer?: string) => Promise<string | undefined>

/** Looks for values in the rows of a team; each is looked for once. */
export function createFinder(client: pg.Client, teamId: string): FindId {
  const known = new Map<string, string | undefined>()
  return async (name, path = name, outer) => {
    const source = SOURCES[path] ?? SOURCES[name]
    if (source === undefined) return undefined
    const key = `${source} ${outer}`
    if (!known.has(key)) {
      // Both parameters get their types here, also if the source has no use for them.
      const text = `with asked as (select $1::uuid, $2::uuid) select found.* from (${source}) found`
      const values = [teamId, /^[0-9a-f-]{36}$/.test(outer ?? '') ? outer : null]
      const { rows } = await client.query<unknown[]>({ text, values, rowMode: 'array' })
      known.set(key, rows[0]?.[0] == null ? undefined : String(rows[0][0]))
    }
    return known.get(key)
  }
}
