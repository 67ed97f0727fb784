import { abandonLoopPauses } from '../../db/executions/waits/pauses.ts'
import { nodeType } from '../../workflows/nodes/nodes.ts'
import type { NodeKind } from '../../workflows/run/plan.ts'
import type { ActivityDeps } from '../deps.ts'

/** An agent waits in a task. */
const MAY_PAUSE = new Set<NodeKind | undefined>(['pause', 'agent'])

type LoopMember = { id: string; type: string; parentId?: string }

/**
 * Abandons the open pauses inside a loop. `path` is the iteration that the loop is in; with `itself` it is an
 * iteration of the loop, and only its pauses are abandoned. `nodes` are all nodes of the graph.
 */
export async function abandonPauses(
  { store }: Pick<ActivityDeps, 'store'>,
  executionId: string,
  nodes: LoopMember[],
  loopId: string,
  path: string,
  itself = false,
): Promise<void> {
  const pausing = nodes.filter(
    (node) => MAY_PAUSE.has(nodeType(node.type)?.kind) && isInside(nodes, node, loopId),
  )
  const ids = pausing.map(({ id }) => id)
  if (ids.length > 0) await abandonLoopPauses(store, executionId, ids, path, itself)
}

function isInside(nodes: LoopMember[], { parentId }: LoopMember, loopId: string): boolean {
  for (let id = parentId; id !== undefined; id = nodes.find((node) => node.id === id)?.parentId) {
    if (id === loopId) return true
  }
  return false
}
