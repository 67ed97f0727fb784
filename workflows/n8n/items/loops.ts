import type { SourceLink, SourceNode } from '../document.ts'
import type { ItemFlow, NodeMapper } from '../mapper.ts'
import type { ProblemReporter } from '../report.ts'
import { isMergeByPosition } from './nodekinds.ts'

/** n8n nodes that run once for each item of a list. They become the body of a FOR_EACH. */
export type LoopBlock = {
  /** The id of the FOR_EACH; empty until all nodes have their ids. */
  id: string
  /** The node and the output that the list comes from. Output -1 means the list that arrives at the node. */
  source: string
  output: number
  /** The Loop Over Items node that becomes the FOR_EACH. Undefined if the import adds the FOR_EACH. */
  loopNode?: SourceNode
  /** The loop around this one. */
  within: LoopBlock | undefined
  /** The names of all nodes in it, including those in inner loops. */
  members: Set<string>
}

/** What arrives by one connection. `loop` is the added loop that its source runs in, if it runs in one. */
export type ItemArrival = { link: SourceLink; flow: ItemFlow; loop: LoopBlock | undefined }

/** What the choice of a node's loop depends on. */
type LoopQuestion = {
  node: SourceNode
  mapper: NodeMapper
  arrivals: ItemArrival[]
  /** The loop of the Loop Over Items node whose body the node is in. */
  around: LoopBlock | undefined
}

/** The loop that a node runs in. For the first node after a list, it adds a new loop to `loops`. */
export function chooseLoop(
  { node, mapper, arrivals, around }: LoopQuestion,
  loops: LoopBlock[],
  report: ProblemReporter,
): LoopBlock | undefined {
  const [first] = arrivals
  const isSameLoop = first && arrivals.every(({ loop }) => loop === first.loop)
  const runsPerItem = mapper.takes === 'item' && node.raw.executeOnce !== true
  const pairsItems = mapper.takes === 'merge' && isMergeByPosition(node)
  if (first?.loop && isSameLoop && (runsPerItem || pairsItems || mapper.takes === 'any')) return first.loop
  const lists = arrivals.filter(({ flow, loop }) => loop !== undefined || flow.count === 'many')
  if (!runsPerItem || lists.length === 0) return around
  if (arrivals.length > 1) {
    const message =
      'n8n runs this node for the items of every connection. Perdure merges what arrives, and may run the ' +
      'node for the items of one connection only: put a Merge node in front of it.'
    report('items', 'connections', message, node.name)
  }
  const { link, loop } = lists[0]!
  const list = loop ? { source: node.name, output: -1 } : { source: link.from, output: link.output }
  const known = loops.find((one) => one.source === list.source && one.output === list.output && !one.loopNode)
  if (known && arrivals.length === 1) return known
  const added: LoopBlock = { id: '', ...list, within: around, members: new Set() }
  loops.push(added)
  return added
}
