import type { Graph } from '../../workflows/graph/graph.ts'
import type { Problem } from '../../workflows/problem.ts'
import { findCredentialProblems } from '../credentials/references.ts'
import { invalid } from '../fault.ts'
import type { Store } from '../scope.ts'
import { findSubWorkflowProblems } from './subworkflows.ts'

/**
 * Throws INVALID with everything that a graph refers to, and that it may not: workflows and credentials that are none
 * of the team's, or that do not fit their nodes. `ownId` is the workflow that has the graph.
 */
export async function checkReferences(
  store: Store,
  teamId: string,
  graph: Graph,
  ownId?: string,
): Promise<void> {
  const problems = [
    ...(await findSubWorkflowProblems(store, teamId, graph, ownId)),
    ...(await findCredentialProblems(store, teamId, graph)).map(tell),
  ]
  if (problems.length > 0) throw invalid(problems)
}

/** Throws INVALID with every credential that a graph names and that the team does not have. */
export async function checkCredentials(store: Store, teamId: string, graph: Graph): Promise<void> {
  const problems = (await findCredentialProblems(store, teamId, graph)).map(tell)
  if (problems.length > 0) throw invalid(problems)
}

function tell({ path, message }: Problem): Problem {
  return { path, message }
}
