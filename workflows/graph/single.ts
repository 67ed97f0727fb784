import type { Envelope, Plan, PlanNode, Presets } from '../run/plan.ts'
import { findNode } from '../run/walk.ts'

/** The node in place of all those before one that is executed alone. No id of an author's node has a `$`. */
const INPUT = '$input'

/** The key in `given` of the iteration's item, if the node is executed as in an iteration of its loop. */
export const ITEM_PRESET = '$item'

/** The trigger of an execution of a graph without one: its output, `$trigger`, is the execution's input. */
export const INPUT_TRIGGER = '$trigger'

/**
 * A handle by which no node leaves. An edge with it makes its target wait for its source, and is never taken.
 */
const NEVER = ' '

/** The plan for executing one node, with its body if it is a loop. Its `$input` is the execution's input. */
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
 * Adds to a cut plan what its node may read besides its input: outputs of other nodes, of the trigger among
 * them, and the item. `input` is the execution's input.
 */
export function presetSingle(plan: Plan, given: Presets, input: Envelope): Plan {
  const { [ITEM_PRESET]: item, [INPUT]: own, ...outputs } = given
  const give = (node: PlanNode): PlanNode => {
    const gift =
      node.id === INPUT ? (own ?? { output: input, handle: null, from: 'PINNED' }) : outputs[node.id]
    return gift && node.silent ? { ...node, given: gift } : node
  }
  const [head, ...rest] = plan.nodes.map(give) as [PlanNode, ...PlanNode[]]
  const others = Object.keys(outputs).filter((id) => id !== head.id)
  return {
    ...plan,
    ...(item ? { item: item.output } : {}),
    nodes: [head, ...others.map((id) => give(silence(id))), ...rest],
    edges: [
      ...others.map((target) => ({ source: head.id, handle: null, target })),
      ...others.map((source) => ({ source, handle: NEVER, target: INPUT })),
      ...plan.edges,
    ],
  }
}

/** The preset for an input that is not an object, which the execution's row shows as `{value}`. */
export function presetInput(output: Envelope): Presets {
  return { [INPUT]: { output, handle: null, from: 'PINNED' } }
}

/** A plan node that passes its input on and leaves no record. */
function silence(id: string): PlanNode {
  return {
    id,
    name: id,
    type: 'NO_OP',
    kind: 'pure',
    silent: { handle: null },
    onError: 'FAIL',
    needs: [],
    retry: { maxAttempts: 1, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 1_000 },
    timeoutMs: 10_000,
  }
}
