import { NEWEST_RULES } from '../../workflows/expressions/rules.ts'
import type { Problem } from '../../workflows/problem.ts'
import { demandTeam, type Scope } from '../scope.ts'
import { checkGraph, type Drawing, settleGraph } from './drawing.ts'
import { checkReferences } from './references.ts'
import { findInactive } from './update.ts'

/**
 * What would be said of a graph if a new workflow of the team had it (BUILDER), of which nothing is saved: what may be a
 * mistake, and what keeps its workflow from being activated. Throws INVALID with all problems, as createWorkflow does.
 */
export async function validateGraph(
  scope: Scope,
  input: Drawing & { teamId: string },
): Promise<{ warnings: Problem[]; activation: Problem[] }> {
  const { store } = scope
  const { teamId, graph: read } = input
  await demandTeam(scope, teamId, 'BUILDER')
  const expressions = read?.expressions ?? input.expressions ?? NEWEST_RULES
  const { graph, warnings } = await checkGraph({ ...input, expressions }, teamId)
  const settled = await settleGraph(store, teamId, { ...graph, expressions }, [])
  await checkReferences(store, teamId, settled.graph, undefined)
  return { warnings, activation: findInactive(settled) }
}
