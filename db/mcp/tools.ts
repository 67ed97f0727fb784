import { sql } from 'kysely'
import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import { json, type Tx } from '../connection.ts'
import { addExecution, type StartedExecution } from '../executions/starts/add.ts'
import type { AnyStart, TraceContext } from '../executions/starts/origins.ts'
import { findStartable, type StartableWorkflow } from '../executions/starts/startable.ts'
import { renewWorkflow } from '../executions/starts/webhooks.ts'
import { Fault } from '../fault.ts'
import { demand, type Scope } from '../scope.ts'

/** What a MCP_TRIGGER says about its tool. `inputSchema` is the JSON Schema of an object. */
type ToolConfig = { name: string; description: string; inputSchema: Record<string, unknown> }

/** A tool as clients are shown it: `title` is the name of its workflow. */
export type OfferedTool = ToolConfig & { title: string }

/** A tool that can be called: the MCP_TRIGGER of an active workflow. */
export type WorkflowTool = { workflow: StartableWorkflow; node: GraphNode; config: ToolConfig }

/**
 * Makes the tools of a workflow those of its graph, or none if it is not active. Throws CONFLICT, with all of their names,
 * if other active workflows of the team have such tools.
 */
export async function offerTools(
  tx: Tx,
  { id, teamId, active }: { id: string; teamId: string; active: boolean },
  graph: Graph,
): Promise<void> {
  await tx.deleteFrom('mcpTools').where('workflowId', '=', id).execute()
  const tools = active ? graph.nodes.filter(isTool).map((node) => [node, readConfig(node)] as const) : []
  if (tools.length === 0) return
  // Always in the same order, so that two who add the same ones do not wait for each other.
  const rows = tools
    .map(([node, { name, ...tool }]) => ({
      teamId,
      name,
      workflowId: id,
      nodeId: node.id,
      tool: json(tool),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const names = rows.map(({ name }) => name)
  await sql`delete from mcp_tools t using workflows w
    where t.team_id = ${teamId} and t.name = any(${names}) and w.id = t.workflow_id and not w.active`.execute(
    tx,
  )
  const added = await tx
    .insertInto('mcpTools')
    .values(rows)
    .onConflict((at) => at.columns(['teamId', 'name']).doNothing())
    .returning('name')
    .execute()
  if (added.length === rows.length) return
  const known = new Set(added.map(({ name }) => name))
  const taken = names.filter((name) => !known.has(name))
  const owners = await tx
    .selectFrom('mcpTools as t')
    .innerJoin('workflows as w', 'w.id', 't.workflowId')
    .where('t.teamId', '=', teamId)
    .where('t.name', 'in', taken)
    .select(['t.name', 'w.name as owner'])
    .execute()
  const told = taken.map((name) => {
    const owner = owners.find((one) => one.name === name)?.owner
    return owner === undefined ? `"${name}"` : `"${name}" (in "${owner}")`
  })
  const message = `Other active workflows of the team have tools of these names: ${told.join(', ')}. Give them others`
  throw new Fault('CONFLICT', message)
}

/** The tools of a team's active workflows after the name `after`, by their names (OPERATOR). */
export async function listTools(
  scope: Scope,
  teamId: string,
  { after, size }: { after: string; size: number },
): Promise<OfferedTool[]> {
  demand(scope, teamId, 'OPERATOR')
  const rows = await scope.store.db
    .selectFrom('mcpTools as t')
    .innerJoin('workflows as w', 'w.id', 't.workflowId')
    .where('t.teamId', '=', teamId)
    .where('w.active', '=', true)
    .where('t.name', '>', after)
    .orderBy('t.name')
    .limit(size)
    .select(['t.name', 't.tool', 'w.name as title'])
    .execute()
  return rows.map(({ tool, ...row }) => ({ ...row, ...(tool as unknown as Omit<ToolConfig, 'name'>) }))
}

/** The tool of this name (OPERATOR); undefined if no active workflow of the team has one. */
export async function findWorkflowTool(
  scope: Scope,
  teamId: string,
  name: string,
): Promise<WorkflowTool | undefined> {
  demand(scope, teamId, 'OPERATOR')
  const row = await scope.store.db
    .selectFrom('mcpTools')
    .select(['workflowId', 'nodeId'])
    .where('teamId', '=', teamId)
    .where('name', '=', name)
    .executeTakeFirst()
  const workflow = row && (await findStartable(scope.store, row.workflowId))
  if (!workflow?.active) return undefined
  const node = workflow.graph.nodes.find((one) => one.id === row!.nodeId)
  if (!node || !isTool(node)) return undefined
  const config = readConfig(node)
  return config.name === name ? { workflow, node, config } : undefined
}

/**
 * Accepts an execution for a call of the tool, whose arguments fit its schema (OPERATOR). A call with the `key` of an
 * earlier one and the same arguments starts none, but finds what that one started. Throws as addExecution does, and
 * NOT_FOUND if the workflow has been switched off meanwhile.
 */
export async function startTool(
  scope: Scope,
  { workflow, node }: WorkflowTool,
  data: Record<string, unknown>,
  { key, ...more }: { key: string | undefined } & Pick<AnyStart, 'inputWarning'> & TraceContext,
): Promise<StartedExecution> {
  const { store, actor: by } = scope
  demand(scope, workflow.teamId, 'OPERATOR')
  const right = { scope, least: 'OPERATOR' } as const
  const renew =
    workflow.stamp === undefined ? undefined : () => renewWorkflow(store, { workflow, node }, 'tool')
  // No client of the HTTP API can send this key, since a header cannot hold a line feed.
  const idempotencyKey = key === undefined ? undefined : `mcp ${node.id}\n${key}`
  const start = { node, trigger: 'MCP', data, by, right, idempotencyKey, renew, ...more } as const
  return addExecution(store, workflow, { origin: 'MCP', ...start })
}

function isTool({ type, disabled }: GraphNode): boolean {
  return type === 'MCP_TRIGGER' && !disabled
}

function readConfig({ config }: GraphNode): ToolConfig {
  const { name, description, inputSchema } = config as ToolConfig
  return { name, description, inputSchema }
}
