import type { SourceLink, SourceNode } from '../document.ts'
import { nameItemNode } from '../ids.ts'
import type { LoopBlock } from '../items/loops.ts'
import { readLoopOutputs } from '../items/nodekinds.ts'
import { findMainPart } from '../parts.ts'
import {
  addEdge,
  addHelperNode,
  type EdgeDrawing,
  type EdgeStart,
  findOutputHandle,
  findSourceNode,
  hasErrorOutput,
} from './drawing.ts'
import { collectResults, findExits, hasPlainResults } from './results.ts'

/** Where the edge for a connection begins, in the same loop as its target. Undefined if it has no start. */
export function findEdgeStart(drawing: EdgeDrawing, link: SourceLink): EdgeStart | undefined {
  const { analysis } = drawing
  if (isLoopNode(drawing, link.from)) return findLoopStart(drawing, link)
  const loop = analysis.loopOf(link.from)
  if (!loop || loop.loopNode || loop === analysis.loopOf(link.to)) return findOutputHandle(drawing, link)
  if (hasPlainResults(drawing, loop)) return { id: loop.id, handle: null }
  return (
    findOutputHandle(drawing, link) && { id: collectResults(drawing, loop, [link], 'items'), handle: null }
  )
}

/** Whether a node is a Loop Over Items node that has become a FOR_EACH. */
export function isLoopNode({ built, mapperOf }: EdgeDrawing, name: string): boolean {
  const { source, mapped } = built.get(name)!
  return mapperOf(source).takes === 'loop' && findMainPart(mapped).type === 'FOR_EACH'
}

function findLoopStart(drawing: EdgeDrawing, link: SourceLink): EdgeStart | undefined {
  const node = findSourceNode(drawing, link.from)
  const loop = drawing.analysis.loops.find(({ loopNode }) => loopNode === node)!
  if (link.output !== readLoopOutputs(node).done) return addItemNode(drawing, loop, node)
  if (hasPlainResults(drawing, loop)) return { id: loop.id, handle: null }
  return { id: collectResults(drawing, loop, findExits(drawing, loop), 'done'), handle: null }
}

/** The body of a loop gets the item without an edge. Inner loops read it from a node, which this adds. */
function addItemNode(drawing: EdgeDrawing, loop: LoopBlock, node: SourceNode): EdgeStart | undefined {
  if (!drawing.analysis.loops.some(({ within }) => within === loop)) return undefined
  const id = addHelperNode(drawing, node, loop, { id: nameItemNode(loop), type: 'NO_OP', config: {} })
  return { id, handle: null }
}

/**
 * A Merge node reads the output of the node before it by its id. If that node has branches, its output does
 * not say which one was taken. So this adds a node on the branch, which has an output only if it was taken.
 */
export function addBranchNode(drawing: EdgeDrawing, link: SourceLink, start: EdgeStart): EdgeStart {
  if (start.handle === null && !hasErrorOutput(drawing.built.get(link.from)!)) return start
  const loop = drawing.analysis.loopOf(link.to)
  const id = addHelperNode(drawing, findSourceNode(drawing, link.from), loop, {
    id: `${start.id}__${start.handle ?? 'main'}`,
    type: 'NO_OP',
    config: {},
  })
  addEdge(drawing, start, id)
  return { id, handle: null }
}
