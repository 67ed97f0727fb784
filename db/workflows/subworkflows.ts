import { sql } from 'kysely'
import { findSubTrigger, type Graph } from '../../workflows/graph/graph.ts'
import type { Problem } from '../../workflows/problem.ts'
import type { Store } from '../scope.ts'
import { readVersion } from './versions.ts'

/**
 * Finds the SUB_WORKFLOW nodes of the graph, and the tools of agents, that name no workflow of the team with a
 * SUB_WORKFLOW_TRIGGER; the one of `ownId` has the graph itself. Ids that are expressions are not checked: they are known
 * only in an execution.
 */
export async function findSubWorkflowProblems(
  store: Store,
  teamId: string,
  graph: Graph,
  ownId?: string,
): Promise<Problem[]> {
  const named = graph.nodes.flatMap(({ type, config }, at) =>
    listCalled(type, config).flatMap(({ workflowId, key }) =>
      typeof workflowId === 'string' && !workflowId.includes('{{')
        ? [{ id: workflowId.toLowerCase(), path: `nodes[${at}].config.${key}` }]
        : [],
    ),
  )
  if (named.length === 0) return []
  const rows = await store.db
    .selectFrom('workflows')
    .select(['id', 'version'])
    .where('teamId', '=', teamId)
    .where(sql<boolean>`id = any(${named.map(({ id }) => id)}::uuid[])`)
    .execute()
  const problems: Problem[] = []
  for (const { id, path } of named) {
    const row = rows.find((candidate) => candidate.id === id)
    const called = id === ownId ? graph : row && (await readVersion(store, id, row.version))
    if (!called) problems.push({ path, message: 'must be a workflow of this team' })
    else if (!canBeCalled(called, id === ownId)) {
      problems.push({ path, message: 'must be a workflow with a SUB_WORKFLOW_TRIGGER' })
    }
  }
  return problems
}

/** By another workflow it may start at a manual trigger, too; in itself that would be a mistake. */
function canBeCalled(graph: Graph, byItself: boolean): boolean {
  const trigger = findSubTrigger(graph)
  return trigger !== undefined && (!byItself || trigger.type === 'SUB_WORKFLOW_TRIGGER')
}

/** The workflows that a node calls, and where in its config each is named. */
function listCalled(type: string, config: Record<string, unknown>): { workflowId: unknown; key: string }[] {
  if (type === 'SUB_WORKFLOW') return [{ workflowId: config.workflowId, key: 'workflowId' }]
  if (type !== 'AI_AGENT' || !Array.isArray(config.tools)) return []
  return config.tools.flatMap((tool, at) =>
    tool?.type === 'SUB_WORKFLOW' ? [{ workflowId: tool.workflowId, key: `tools[${at}].workflowId` }] : [],
  )
}
