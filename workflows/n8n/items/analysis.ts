import type { SourceLink, SourceNode, SourceWorkflow } from '../document.ts'
import { ITEM_LIST, type ItemFlow, type NodeMapper, ONE_ITEM } from '../mapper.ts'
import type { ProblemReporter } from '../report.ts'
import { chooseLoop, type ItemArrival, type LoopBlock } from './loops.ts'
import { readLoopOutputs } from './nodekinds.ts'
import { feedsLists, findPlainOutputs, isIterationResult } from './outputs.ts'
import { readSourceGraph, type SourceGraph } from './sourcegraph.ts'

export type NodeFlow = { input: ItemFlow; output: ItemFlow; plainOutput: boolean }

/**
 * n8n runs a node once for each item that arrives. We run it once, or in a loop if a list arrives. This says
 * which nodes get one item and which get a list, and in which loop each of them runs.
 */
export type ItemAnalysis = {
  /** In an order in which they can run. */
  order: SourceNode[]
  /** All connections that the import follows, except for `circles`. */
  links: SourceLink[]
  /** Connections that lead back to an earlier node and belong to no Loop Over Items node. */
  circles: SourceLink[]
  loops: LoopBlock[]
  loopOf(name: string): LoopBlock | undefined
  flowOf(name: string): NodeFlow
  /** What arrives at each input. */
  inputsOf(name: string): { link: SourceLink; flow: ItemFlow }[][]
  upstreamOf(name: string): ReadonlySet<string>
}

/** What we know so far. The nodes are analyzed in order, so everything before a node is known. */
type State = {
  graph: SourceGraph
  reporterOf: (name: string) => ProblemReporter
  plainOutputs: ReadonlySet<string>
  loops: LoopBlock[]
  loopOf: Map<string, LoopBlock>
  flows: Map<string, NodeFlow>
  upstream: Map<string, Set<string>>
}

export function analyzeItems(
  source: SourceWorkflow,
  mapperOf: (node: SourceNode) => NodeMapper,
  reporterOf: (name: string) => ProblemReporter,
): ItemAnalysis {
  const graph = readSourceGraph(source, mapperOf, reporterOf)
  const state: State = {
    graph,
    reporterOf,
    plainOutputs: findPlainOutputs(graph),
    loops: [],
    loopOf: new Map(),
    flows: new Map(),
    upstream: new Map(),
  }
  for (const node of graph.order) analyzeNode(state, node)
  return {
    order: graph.order,
    links: [...graph.forward, ...graph.iterationEnds],
    circles: graph.circles,
    loops: state.loops,
    loopOf: (name) => state.loopOf.get(name),
    flowOf: (name) => state.flows.get(name)!,
    inputsOf: (name) => readInputs(state, name),
    upstreamOf: (name) => state.upstream.get(name) ?? new Set(),
  }
}

function analyzeNode(state: State, node: SourceNode): void {
  const { graph, loops, loopOf, flows, upstream } = state
  const incoming = graph.inward.get(node.name) ?? []
  upstream.set(node.name, new Set(incoming.flatMap(({ from }) => [from, ...(upstream.get(from) ?? [])])))
  const mapper = graph.mapperOf(node)
  const loopNode = graph.findLoopNode(node.name)
  const around = loopNode === undefined ? undefined : loops.find((loop) => loop.loopNode?.name === loopNode)
  const arrivals = findArrivals(state, node, around)
  const loop = chooseLoop({ node, mapper, arrivals, around }, loops, state.reporterOf(node.name))
  if (loop) {
    loopOf.set(node.name, loop)
    for (let outer: LoopBlock | undefined = loop; outer; outer = outer.within) outer.members.add(node.name)
  }
  const input = combineArrivals(arrivals, loop, around)
  const isInLoop = loop !== undefined || loopNode !== undefined
  const plainOutput = state.plainOutputs.has(node.name) || (isInLoop && isIterationResult(graph, node.name))
  const inputs = groupByInput(
    arrivals.map(({ link, flow, loop: from }) => ({ link, flow: from && from !== loop ? ITEM_LIST : flow })),
  )
  const use = {
    plainOutput,
    feedsLists: loop === around && feedsLists(graph, node.name),
    inputs: inputs.map((all) => all.map(({ flow }) => flow)),
  }
  const takesFirstOnly = node.raw.executeOnce === true && input.count === 'many'
  // A disabled node passes its input on.
  const passesInput = (mapper.passesInput && !takesFirstOnly) || node.disabled
  const output = passesInput ? input : (mapper.outputFlow?.(node, use) ?? findDefaultFlow(mapper))
  flows.set(node.name, { input, output, plainOutput })
  if (mapper.takes === 'loop') {
    loops.push({ id: '', source: node.name, output: -1, loopNode: node, within: around, members: new Set() })
  }
}

/** What arrives at a node by its edges. In the body of a loop node, the item arrives without an edge. */
function findArrivals(state: State, node: SourceNode, around: LoopBlock | undefined): ItemArrival[] {
  const { graph, loopOf } = state
  const incoming = graph.inward.get(node.name) ?? []
  const loopNode = graph.findLoopNode(node.name)
  return incoming
    .filter(({ from, output }) => {
      return from !== loopNode || output !== readLoopOutputs(graph.nodes.get(from)!).loop
    })
    .map((link) => {
      const loop = loopOf.get(link.from)
      return { link, flow: findOutput(state, link), loop: loop === around ? undefined : loop }
    })
}

/** What a node gets from all its connections together. */
function combineArrivals(
  arrivals: ItemArrival[],
  loop: LoopBlock | undefined,
  around: LoopBlock | undefined,
): ItemFlow {
  const isInner = loop !== around
  const [only] = arrivals
  // The first node of a loop gets the item of the iteration.
  const isFirst = isInner && arrivals.every((arrival) => arrival.loop !== loop)
  if (arrivals.length === 1 && only && !isFirst) {
    const leavesLoop = only.loop !== undefined && only.loop !== loop
    return leavesLoop ? ITEM_LIST : only.flow
  }
  const hasList = arrivals.some(({ flow, loop }) => loop !== undefined || flow.count === 'many')
  return !isInner && hasList ? ITEM_LIST : ONE_ITEM
}

function findOutput({ flows }: State, link: SourceLink): ItemFlow {
  return flows.get(link.from)?.output ?? ONE_ITEM
}

function findDefaultFlow(mapper: NodeMapper): ItemFlow {
  return mapper.takes === 'list' || mapper.takes === 'loop' ? ITEM_LIST : ONE_ITEM
}

function readInputs(state: State, name: string): { link: SourceLink; flow: ItemFlow }[][] {
  const { graph, loopOf } = state
  const loop = loopOf.get(name)
  const arrivals = (graph.inward.get(name) ?? []).map((link) => {
    const from = loopOf.get(link.from)
    const leavesLoop = from && from !== loop && from.within === loop
    return { link, flow: leavesLoop ? ITEM_LIST : findOutput(state, link) }
  })
  return groupByInput(arrivals)
}

/** A document may say any number, but no n8n node has more inputs than this. */
const MAX_INPUT = 100

function groupByInput<T extends { link: SourceLink }>(arrivals: T[]): T[][] {
  const groups: T[][] = []
  for (const arrival of arrivals) {
    const input = Math.min(arrival.link.input, MAX_INPUT)
    while (groups.length <= input) groups.push([])
    groups[input]!.push(arrival)
  }
  return groups
}
