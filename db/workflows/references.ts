import type { Graph } from '../../workflows/graph/graph.ts'
import type { Problem } from '../../workflows/problem.ts'
import { findConnectorProblems } from '../connectors/references.ts'
import { findCredentialProblems } from '../credentials/references.ts'
import { invalid } from '../fault.ts'
import type { Store } from '../scope.ts'
import { findSubWorkflowProblems } from './subworkflows.ts'

/** How a graph is saved: from an import, and which of the workflow's versions it continues. */
type Saving = { imported?: boolean; from?: number | undefined }

/**
 * Everything that a graph refers to, and that it may not: workflows and credentials that are none of the team's, or that
 * do not fit their nodes, and actions of connectors that there are not. `ownId` is the workflow that has the graph.
 */
export async function findReferenceProblems(
  store: Store,
  teamId: string,
  graph: Graph,
  ownId: string | undefined,
  how: Saving = {},
): Promise<Problem[]> {
  return [
    ...(await findSubWorkflowProblems(store, teamId, graph, ownId)),
    ...(await findConnectorProblems(store, { teamId, workflowId: ownId, from: how.from }, graph, how)),
    ...(await findUnusableCredentials(store, teamId, graph)),
  ]
}

/** Throws INVALID with all problems of findReferenceProblems. */
export async function checkReferences(
  store: Store,
  teamId: string,
  graph: Graph,
  ownId: string | undefined,
  how: Saving = {},
): Promise<void> {
  const problems = await findReferenceProblems(store, teamId, graph, ownId, how)
  if (problems.length > 0) throw invalid(problems)
}

/** Every credential that a graph names and that the team does not have, or that does not fit its node. */
export async function findUnusableCredentials(
  store: Store,
  teamId: string,
  graph: Graph,
): Promise<Problem[]> {
  const problems = await findCredentialProblems(store, teamId, graph)
  return problems.map(({ path, message }) => ({ path, message }))
}
