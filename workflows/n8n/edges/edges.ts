import type { SourceLink } from '../document.ts'
import { writeOutputPath } from '../expressions/code.ts'
import type { LoopBlock } from '../items/loops.ts'
import type { MapperTools } from '../mapper.ts'
import { type BuiltNode, findMainPart } from '../parts.ts'
import { addEdge, addHelperNode, type EdgeDrawing, findOutputHandle, findSourceNode } from './drawing.ts'
import { addBranchNode, findEdgeStart, isLoopNode } from './starts.ts'

/** Draws the edges for all connections, and the loops that the import adds. All nodes must be built. */
export function drawEdges(drawing: EdgeDrawing): void {
  const { analysis, built } = drawing
  for (const loop of analysis.loops) if (!loop.loopNode) addLoop(drawing, loop)
  for (const node of built.values()) connectParts(drawing, node)
  for (const link of analysis.links) if (!endsIteration(drawing, link)) drawEdge(drawing, link)
  for (const node of built.values()) drawExtraHandles(drawing, node)
  for (const link of analysis.circles) replaceCircle(drawing, link)
}

/** What arrives at each input of a Merge node, as JSONata. Adds the helper nodes that this needs. */
export function readMergeInputs(drawing: EdgeDrawing, name: string): MapperTools['mergeInputs'] {
  return drawing.analysis.inputsOf(name).map((arrivals) =>
    arrivals.flatMap(({ link, flow }) => {
      const start = findEdgeStart(drawing, link)
      if (!start) return []
      return [{ text: writeOutputPath(addBranchNode(drawing, link, start).id, flow.path), count: flow.count }]
    }),
  )
}

/** Adds a FOR_EACH around nodes that n8n runs for each item without a loop node. */
function addLoop({ analysis, built, nodes }: EdgeDrawing, loop: LoopBlock): void {
  const members = [...loop.members].map((name) => built.get(name)!)
  const { name, position } = members[0]!.source
  const sourceLoop = analysis.loopOf(loop.source)
  const readsLoop = loop.output === -1 || (sourceLoop !== undefined && sourceLoop !== loop.within)
  const path = readsLoop ? '.items' : analysis.flowOf(loop.source).output.path
  const sendsRequests = members.some(({ mapped }) => findMainPart(mapped).type === 'HTTP_REQUEST')
  nodes.set(loop.id, {
    id: loop.id,
    type: 'FOR_EACH',
    name: `For each: ${name.slice(0, 150)}`,
    // n8n sends the requests of all items at once, and does everything else for one item after the other.
    config: { items: `{{ $input${path} }}`, concurrency: sendsRequests ? 10 : 1, onItemError: 'stop' },
    ...(position ? { position: { x: position.x - 120, y: position.y - 80 } } : {}),
    ...(loop.within ? { parentId: loop.within.id } : {}),
  })
}

function connectParts(drawing: EdgeDrawing, { id, mapped: { parts } }: BuiltNode): void {
  for (const [i, { suffix }] of parts.slice(1).entries()) {
    addEdge(drawing, { id: id + parts[i]!.suffix, handle: null }, id + suffix)
  }
}

function endsIteration({ analysis }: EdgeDrawing, link: SourceLink): boolean {
  const loop = analysis.loops.find(({ loopNode }) => loopNode?.name === link.to)
  return loop?.members.has(link.from) === true
}

function drawEdge(drawing: EdgeDrawing, link: SourceLink): void {
  const { analysis, built, mapperOf } = drawing
  const start = findEdgeStart(drawing, link)
  if (!start) {
    reportMissingOutput(drawing, link)
    return
  }
  const target = built.get(link.to)!
  const from = mapperOf(target.source).takes === 'merge' ? addBranchNode(drawing, link, start) : start
  const inner = analysis.loopOf(link.to)
  const outer = analysis.loopOf(link.from)
  // An edge into an added loop leads to its FOR_EACH.
  const entersLoop = inner && !inner.loopNode && inner !== outer && outer?.within !== inner
  addEdge(drawing, from, entersLoop ? inner.id : target.entry)
}

/** Reports a connection without an edge. Into the body of a loop, or with extra handles, it needs none. */
function reportMissingOutput(drawing: EdgeDrawing, link: SourceLink): void {
  const { built, reporterOf } = drawing
  if (isLoopNode(drawing, link.from)) return
  if (built.get(link.from)!.mapped.extraHandles?.some(({ output }) => output === link.output)) return
  const message =
    'n8n continues from this output of the node. The imported node does not have it, so the connection was ' +
    'left out: connect the next node to another output.'
  reporterOf(link.from)('connection', `main[${link.output}]`, message, link)
}

function drawExtraHandles(drawing: EdgeDrawing, { mapped, source, exit }: BuiltNode): void {
  const { analysis, built } = drawing
  for (const { output, handle } of mapped.extraHandles ?? []) {
    for (const link of analysis.links) {
      if (link.from === source.name && link.output === output)
        addEdge(drawing, { id: exit, handle }, built.get(link.to)!.entry)
    }
  }
}

/** Where n8n goes back to repeat nodes, our execution must not end as a success. */
function replaceCircle(drawing: EdgeDrawing, link: SourceLink): void {
  const { analysis, ids, reporterOf } = drawing
  const way = `from "${link.from}" back to "${link.to}"`
  const message =
    `n8n goes ${way}. Perdure cannot, and a STOP_AND_ERROR node in this place fails the execution: repeat ` +
    'the nodes with REPEAT or FOR_EACH.'
  reporterOf(link.from)('connection', `main[${link.output}]`, message, link)
  const id = addHelperNode(drawing, findSourceNode(drawing, link.from), analysis.loopOf(link.from), {
    id: `${ids.get(link.from)}__back${link.output}`,
    type: 'STOP_AND_ERROR',
    config: { message: `The way ${way} was not imported from n8n: use REPEAT or FOR_EACH` },
  })
  const start = findOutputHandle(drawing, link)
  if (start) addEdge(drawing, start, id)
}
