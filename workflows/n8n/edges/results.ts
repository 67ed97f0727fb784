import type { SourceLink } from '../document.ts'
import { writeOutputPath } from '../expressions/code.ts'
import type { LoopBlock } from '../items/loops.ts'
import { readLoopOutputs } from '../items/nodekinds.ts'
import { findMainPart } from '../parts.ts'
import {
  addEdge,
  addHelperNode,
  type EdgeDrawing,
  findOutputHandle,
  findSourceNode,
  hasErrorOutput,
} from './drawing.ts'

/** Connections that end an iteration: back to the Loop Over Items node, or to a node outside of the loop. */
export function findExits({ analysis }: EdgeDrawing, loop: LoopBlock): SourceLink[] {
  const { links, loopOf } = analysis
  if (loop.loopNode) {
    const { name } = loop.loopNode
    return links.filter((link) => link.to === name && loop.members.has(link.from))
  }
  return links.filter((link) => loopOf(link.from) === loop && loopOf(link.to) !== loop)
}

/**
 * Whether every iteration ends at the same node, with one item. Then the output of the FOR_EACH is the list
 * of these items. Otherwise collectResults must pick the items out of the results of the iterations.
 */
export function hasPlainResults(drawing: EdgeDrawing, loop: LoopBlock): boolean {
  const { analysis, built } = drawing
  const exits = findExits(drawing, loop)
  const [first] = exits
  if (!first) return true
  const last = built.get(first.from)
  if (!last || exits.some(({ from }) => from !== first.from)) return false
  if (last.handles.length !== 1 || last.handles[0] !== null || hasErrorOutput(last)) return false
  if (analysis.loopOf(first.from) !== loop || analysis.flowOf(first.from).output.count !== 'one') return false
  return [...loop.members].every((name) => name === first.from || alwaysLeadsOn(drawing, loop, name))
}

/** Whether no iteration can end at this node, because all its outputs lead to nodes of the loop. */
function alwaysLeadsOn({ analysis, built, mapperOf }: EdgeDrawing, loop: LoopBlock, name: string): boolean {
  const node = built.get(name)
  if (!node) return true
  const inner = analysis.loopOf(name)
  if (inner !== loop) return inner?.loopNode !== undefined
  const inside = analysis.links.filter((link) => link.from === name && loop.members.has(link.to))
  if (mapperOf(node.source).takes === 'loop') {
    const { done } = readLoopOutputs(node.source)
    return inside.some(({ output }) => output === done)
  }
  // An iteration ends at a SWITCH if none of its cases matches.
  if (findMainPart(node.mapped).type === 'SWITCH') return false
  const outputs = Array.from({ length: node.handles.length + (hasErrorOutput(node) ? 1 : 0) }, (_, i) => i)
  return outputs.every((output) => inside.some((link) => link.output === output))
}

/** Adds a node after the loop that lists what left the loop by these connections. Returns its id. */
export function collectResults(
  drawing: EdgeDrawing,
  loop: LoopBlock,
  links: SourceLink[],
  suffix: 'items' | 'done',
): string {
  const marks = [...new Set(links.map((link) => markResult(drawing, loop, link)))]
  const id = `${suffix === 'items' ? marks[0] : loop.id}__${suffix}`
  // An iteration results in {mark: item}, or in {id: {mark: item}, ...} if it ended at several nodes.
  const found = marks
    .map((mark) => `($exists(${mark}.${mark}) ? ${mark}.${mark} : ${mark})`)
    .reduceRight((rest, one) => `$append(${one}, ${rest})`)
  const expression = `{"items": [${writeOutputPath(loop.id)}.items.(${found})]}`
  addHelperNode(drawing, findSourceNode(drawing, links[0]!.from), loop.within, {
    id,
    type: 'TRANSFORM',
    config: { expression },
  })
  addEdge(drawing, { id: loop.id, handle: null }, id)
  return id
}

/**
 * Adds a node at the end of the loop's body that outputs {mark: item} for one connection, so that its items
 * can be told apart from the other results. Returns the mark, which is the id of the node.
 */
function markResult(drawing: EdgeDrawing, loop: LoopBlock, link: SourceLink): string {
  const { analysis, ids } = drawing
  const mark = `${ids.get(link.from)}__out${link.output > 0 ? link.output : ''}`
  const start = findOutputHandle(drawing, link)
  if (!start) return mark
  const { output } = analysis.flowOf(link.from)
  const inner = analysis.loopOf(link.from)
  const leavesInner = inner !== undefined && inner !== loop
  const path = leavesInner ? '.items' : start.handle === 'error' ? '' : output.path
  const from = leavesInner ? { id: findListNode(drawing, inner, link), handle: null } : start
  addEdge(drawing, from, mark)
  return addHelperNode(drawing, findSourceNode(drawing, link.from), loop, {
    id: mark,
    type: 'TRANSFORM',
    config: { expression: `{"${mark}": $input${path}}` },
  })
}

/** The id of the node that outputs the list of what leaves a loop by a connection. */
function findListNode(drawing: EdgeDrawing, loop: LoopBlock, link: SourceLink): string {
  return hasPlainResults(drawing, loop) ? loop.id : collectResults(drawing, loop, [link], 'items')
}
