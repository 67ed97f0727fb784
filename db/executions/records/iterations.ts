import type { Plan } from '../../../workflows/run/plan.ts'
import {
  emptyOutcomes,
  findNode,
  findReady,
  isEntry,
  type Outcomes,
  sourcesOf,
  stepKey,
} from '../../../workflows/run/walk.ts'
import type { StoredNode } from './stored.ts'

/** What records say about one iteration of a loop (or outside of loops, if `loopId` and `path` are ''). */
export type Iteration = {
  loopId: string
  path: string
  outcomes: Outcomes
  rows: Map<string, Pick<StoredNode, 'output' | 'handle' | 'loop'>>
  /** Results of originsOf and takesItem by node: many paths may lead through the same disabled nodes. */
  origins: Map<string, Set<string>>
  takers: Map<string, boolean>
}

export type Iterations = {
  root: Iteration
  /** The iteration of a loop at `path`; undefined if it has no records. */
  find(loopId: string, path: string): Iteration | undefined
  /** The iteration at `path` of the loop that a node is in; the root if it has no records. */
  around(nodeId: string, path: string): Iteration
}

/** Groups records by iteration. From them follow the outcomes of disabled nodes, which leave no record. */
export function readIterations(plan: Plan, rows: StoredNode[]): Iterations {
  const byKey = new Map<string, Iteration>()
  for (const row of rows) {
    // What an agent came to is in its own record.
    if (row.step !== null) continue
    const loopId = findNode(plan, row.nodeId)?.parentId ?? ''
    const key = stepKey(loopId, row.iteration)
    const iteration = byKey.get(key) ?? createIteration(loopId, row.iteration)
    byKey.set(key, iteration)
    iteration.rows.set(row.nodeId, row)
    const isSettled = row.output !== null && row.status !== 'RUNNING'
    if (isSettled) iteration.outcomes[row.nodeId] = { handle: row.handle }
  }
  for (const { loopId, outcomes } of byKey.values()) {
    for (;;) {
      const passing = findReady(plan, outcomes, new Set(), loopId).filter((node) => node.silent)
      if (passing.length === 0) break
      for (const node of passing) outcomes[node.id] = node.silent!
    }
  }
  const root = byKey.get(stepKey('', '')) ?? createIteration('', '')
  const find = (loopId: string, path: string) => byKey.get(stepKey(loopId, path))
  return {
    root,
    find,
    around: (nodeId, path) => find(findNode(plan, nodeId)?.parentId ?? '', path) ?? root,
  }
}

function createIteration(loopId: string, path: string): Iteration {
  const found = { origins: new Map(), takers: new Map() }
  return { loopId, path, outcomes: emptyOutcomes(), rows: new Map(), ...found }
}

/** The nodes whose outputs make up a node's output: itself, or if it is disabled, those before it. */
export function originsOf(plan: Plan, iteration: Iteration, id: string): Set<string> {
  let origins = iteration.origins.get(id)
  if (!origins) {
    const passes = iteration.outcomes[id] && !iteration.rows.has(id)
    const before = passes ? sourcesOf(plan, id, iteration.outcomes) : []
    origins = passes
      ? new Set(before.flatMap((source) => [...originsOf(plan, iteration, source)]))
      : new Set([id])
    iteration.origins.set(id, origins)
  }
  return origins
}

/** Whether a node's input is the iteration's item, directly or by way of disabled nodes. */
export function takesItem(plan: Plan, iteration: Iteration, id: string): boolean {
  const node = findNode(plan, id)
  if (iteration.loopId === '' || !node) return false
  let takes = iteration.takers.get(id)
  if (takes === undefined) {
    const passing = sourcesOf(plan, id, iteration.outcomes).filter((source) => !iteration.rows.has(source))
    takes = isEntry(plan, node) || passing.some((source) => takesItem(plan, iteration, source))
    iteration.takers.set(id, takes)
  }
  return takes
}
