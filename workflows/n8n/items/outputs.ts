import { isSplitOut } from './nodekinds.ts'
import type { SourceGraph } from './sourcegraph.ts'

/**
 * Nodes whose outputs meet at one node, which cannot tell them apart: all of them must be plain items. So
 * must the last output of a workflow that answers a caller.
 */
export function findPlainOutputs({ nodes, inward, outward, mapperOf }: SourceGraph): Set<string> {
  const plain = new Set<string>()
  for (const name of nodes.keys()) {
    const incoming = inward.get(name) ?? []
    if (new Set(incoming.map(({ from }) => from)).size < 2) continue
    const open = incoming.map(({ from }) => from)
    for (const source of open) {
      if (plain.has(source)) continue
      plain.add(source)
      // A node that passes its input on outputs what the nodes before it output.
      if (mapperOf(nodes.get(source)!).passesInput) {
        open.push(...(inward.get(source) ?? []).map(({ from }) => from))
      }
    }
  }
  const answersCaller = [...nodes.values()].some(
    ({ type, parameters }) => type === 'executeWorkflowTrigger' || parameters.responseMode === 'lastNode',
  )
  if (answersCaller) for (const name of nodes.keys()) if (!outward.has(name)) plain.add(name)
  return plain
}

/** Whether the output of a node in a loop may become the result of an iteration. */
export function isIterationResult(
  { nodes, outward, iterationEnds, mapperOf }: SourceGraph,
  name: string,
): boolean {
  const targets = outward.get(name) ?? []
  return (
    iterationEnds.some(({ from }) => from === name) ||
    targets.some(({ to }) => !['item', 'any'].includes(mapperOf(nodes.get(to)!).takes))
  )
}

/** Whether all nodes right after a node work on lists. */
export function feedsLists({ nodes, outward, mapperOf }: SourceGraph, name: string): boolean {
  const targets = (outward.get(name) ?? []).map(({ to }) => nodes.get(to)!)
  return (
    targets.length > 0 &&
    targets.every((to) => ['list', 'collect', 'loop'].includes(mapperOf(to).takes) && !isSplitOut(to))
  )
}
