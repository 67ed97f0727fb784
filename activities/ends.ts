import { endPauses } from '../db/pauses.ts'
import { nodeType } from '../workflows/nodes.ts'
import type { ActivityDeps } from './step.ts'

type Placed = { id: string; type: string; parentId?: string }

/**
 * Nobody is waited for any more in the iterations of a loop at `path`, the iteration around it; with `itself` in the
 * one iteration that `path` is. `nodes` are those of the graph.
 */
export async function endWaits(
  { store }: Pick<ActivityDeps, 'store'>,
  executionId: string,
  nodes: Placed[],
  loopId: string,
  path: string,
  itself = false,
): Promise<void> {
  const waiting = nodes.filter(
    (node) => nodeType(node.type)?.kind === 'pause' && isInside(nodes, node, loopId),
  )
  const ids = waiting.map(({ id }) => id)
  if (ids.length > 0) await endPauses(store, executionId, ids, path, itself)
}

function isInside(nodes: Placed[], { parentId }: Placed, loopId: string): boolean {
  for (let id = parentId; id !== undefined; id = nodes.find((node) => node.id === id)?.parentId) {
    if (id === loopId) return true
  }
  return false
}
