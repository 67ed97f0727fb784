import type { SourceNode } from './document.ts'
import { type JsonataCode, unknownCode, writeOutputPath } from './expressions/code.ts'
import { failTranslation, type NodeReferences } from './expressions/translator.ts'
import { nameItemNode } from './ids.ts'
import type { ItemAnalysis } from './items/analysis.ts'
import type { LoopBlock } from './items/loops.ts'
import type { NodeMapper } from './mapper.ts'
import type { BuiltNode } from './parts.ts'

/** Types of nodes that output the items that they get, or some of them. */
const KEEPS_ITEMS = new Set(['filter', 'sort', 'limit', 'removeDuplicates', 'splitInBatches'])

type Context = {
  analysis: ItemAnalysis
  built: ReadonlyMap<string, BuiltNode>
  mapperOf: (node: SourceNode) => NodeMapper
  /** The node that has the expressions. */
  node: SourceNode
  /** JSONata for the item that it works on. */
  current: string
}

export function createReferences(context: Context): NodeReferences {
  const loop = context.analysis.loopOf(context.node.name)
  return {
    current: () => unknownCode(context.current),
    index: () => ({ text: loop ? '$index' : '0', hint: 'number' }),
    wasExecuted: (name) => ({ text: `$exists(${findOutput(context, name).text})`, hint: 'boolean' }),
    other(name, which) {
      // Inside of its loop, the output of a Loop Over Items node is the item of the iteration.
      const isWhole = which === 'all' || (which !== 'item' && !isLoopAround(loop, name))
      const item = isWhole ? undefined : findItem(context, name)
      const { text, count } = findOutput(context, name)
      if (item) return item
      if (count === 'one')
        return which === 'all' ? failTranslation(`reads all items of "${name}"`) : unknownCode(text)
      if (which === 'first' || which === 'last') {
        return unknownCode(`${text}[${which === 'first' ? 0 : -1}]`)
      }
      return failTranslation(
        `reads ${which === 'all' ? 'all items' : 'the paired item'} of "${name}", which outputs a list`,
      )
    },
  }
}

function isLoopAround(loop: LoopBlock | undefined, name: string): boolean {
  for (let around = loop; around; around = around.within) if (around.loopNode?.name === name) return true
  return false
}

/** The item of the current iteration, if a loop around the node goes through the other node's output. */
function findItem(context: Context, name: string): JsonataCode | undefined {
  const loop = context.analysis.loopOf(context.node.name)
  for (let around = loop; around; around = around.within) {
    if (!isFedBy(context, around, name)) continue
    if (around === loop) return unknownCode('$item')
    return around.loopNode && unknownCode(writeOutputPath(nameItemNode(around)))
  }
}

/** Whether a loop goes through what a node outputs, or through a selection of it. */
function isFedBy({ analysis, built, mapperOf }: Context, loop: LoopBlock, name: string): boolean {
  let at: string | undefined = loop.loopNode ? loop.loopNode.name : loop.source
  for (let steps = 0; at !== undefined && steps < 500; steps++) {
    if (at === name) return true
    const here = built.get(at)?.source
    // Only Merge nodes are not built yet.
    if (!here) return failTranslation(`reads the node "${name}" in a loop over the output of a Merge node`)
    if (!KEEPS_ITEMS.has(here.type) && !mapperOf(here).passesInput) return false
    const before: string[] = analysis
      .inputsOf(at)
      .flat()
      .map(({ link }) => link.from)
    at = before.length === 1 ? before[0] : undefined
  }
  return false
}

/** The whole output of another node. Throws if it cannot be read where the node is. */
function findOutput(
  { analysis, built, node }: Context,
  name: string,
): { text: string; count: 'one' | 'many' } {
  if (!analysis.upstreamOf(node.name).has(name)) {
    return failTranslation(`reads the node "${name}", which does not come before this node`)
  }
  const other = built.get(name)
  // Only Merge nodes are not built yet.
  if (!other) return failTranslation(`reads the Merge node "${name}" by its name`)
  const theirs = analysis.loopOf(name)
  let around = analysis.loopOf(node.name)
  while (around && around !== theirs) around = around.within
  if (theirs && !around)
    return failTranslation(`reads the node "${name}", which is in a loop that this node is not in`)
  const { output } = analysis.flowOf(name)
  return { text: writeOutputPath(other.exit, output.path), count: output.count }
}
