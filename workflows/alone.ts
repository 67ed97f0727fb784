import type { Envelope, Given, Plan, PlanNode } from './plan.ts'
import { findNode } from './walk.ts'

/** What a node that runs alone finds in place of those before it; no node's id has a `$`. */
const INPUT = '$input'
/** Among what such a run is given: the item of the iteration that it runs as. */
export const ITEM = '$item'
/** The trigger of a run without one: `$trigger` is its input. */
export const NO_TRIGGER = '$trigger'
/** A handle that no node leaves by: its edges are waited for, and never taken. */
const NEVER = ' '

/** The plan of a run of one node, with its body if it is a loop: `$input` is what the run was started with. */
export function cutPlan(plan: Plan, nodeId: string): Plan {
  const { parentId: _, ...target } = findNode(plan, nodeId)!
  const inside = new Set([nodeId])
  const collect = (id: string): void => {
    for (const node of plan.nodes) {
      if (node.parentId !== id) continue
      inside.add(node.id)
      collect(node.id)
    }
  }
  collect(nodeId)
  const body = plan.nodes.filter(({ id }) => id !== nodeId && inside.has(id))
  const within = plan.edges.filter(
    ({ source, target }) => source !== nodeId && inside.has(source) && inside.has(target),
  )
  return {
    ...plan,
    nodes: [{ ...silence(plan.triggerNodeId), kind: 'trigger' }, silence(INPUT), target, ...body],
    edges: [
      { source: plan.triggerNodeId, handle: null, target: INPUT },
      { source: INPUT, handle: null, target: nodeId },
      ...within,
    ],
  }
}

/**
 * What a cut plan's node may read beside its input: outputs of other nodes, its trigger's among them, and its item.
 * `input` is what the run was started with.
 */
export function giveAlone(plan: Plan, given: Given, input: Envelope): Plan {
  const { [ITEM]: item, [INPUT]: own, ...outputs } = given
  const give = (node: PlanNode): PlanNode => {
    const gift =
      node.id === INPUT ? (own ?? { output: input, handle: null, from: 'PINNED' }) : outputs[node.id]
    return gift && node.silent ? { ...node, given: gift } : node
  }
  const [head, ...rest] = plan.nodes.map(give) as [PlanNode, ...PlanNode[]]
  const beside = Object.keys(outputs).filter((id) => id !== head.id)
  return {
    ...plan,
    ...(item ? { item: item.output } : {}),
    nodes: [head, ...beside.map((id) => give(silence(id))), ...rest],
    edges: [
      ...beside.map((target) => ({ source: head.id, handle: null, target })),
      ...beside.map((source) => ({ source, handle: NEVER, target: INPUT })),
      ...plan.edges,
    ],
  }
}

/** What stands in `given` for an input that is no object, which the execution's row shows as `{value}`. */
export function giveInput(output: Envelope): Given {
  return { [INPUT]: { output, handle: null, from: 'PINNED' } }
}

/** A node that leaves no record. */
function silence(id: string): PlanNode {
  return {
    ...{ id, name: id, type: 'NO_OP', kind: 'pure', silent: { handle: null }, onError: 'FAIL', needs: [] },
    retry: { maxAttempts: 1, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 1_000 },
    timeoutMs: 10_000,
  }
}
