// How an import goes through the files: document.ts reads n8n's JSON, ids.ts gives ids, loops.ts finds what Loop
// Over Items nodes repeat, nodetypes.ts finds the mapper of each node and nodes/ maps one after the other, each to
// one node of ours that keeps the author's texts; drawing.ts draws the connections, nodesettings.ts and settings.ts
// map settings, and our caller lets repair.ts replace what is not valid. Every step reads only what earlier ones made.
import type { GraphEdge } from '../graph/graph.ts'
import { TURN_UNITS, type Work } from '../turns.ts'
import { reportDifferences } from './differences.ts'
import { isN8nDocument, readN8nDocument, type SourceNode, type SourceWorkflow } from './document.ts'
import { createEdgeDrawing, drawEdges, type EdgeDrawing, readInputs } from './drawing.ts'
import { nameNodes } from './ids.ts'
import { findLoops } from './loops.ts'
import { mapNodeSettings } from './nodesettings.ts'
import { findNodeMapper, isTrigger } from './nodetypes.ts'
import { orderNodes } from './order.ts'
import { type BuiltNode, createPlaceholder, type ImportedNode, type MappedNode } from './parts.ts'
import type { ImportProblem, ImportReport, ProblemReporter } from './report.ts'
import { type MappedSettings, mapSettings } from './settings.ts'

export type ConvertedWorkflow = {
  name: string | undefined
  description: string | null
  nodes: ImportedNode[]
  edges: GraphEdge[]
  settings: MappedSettings
  report: Omit<ImportReport, 'totals' | 'groups'>
}

type Conversion = {
  source: SourceWorkflow
  drawing: EdgeDrawing
  ends: string[]
  reporterOf: (node: string | null) => ProblemReporter
  findWorkflow: (id: string) => string | undefined
}

/** What mapping a node takes, and each character of it, in units of work. */
const NODE_WORK = 50
const CHARACTER_WORK = 0.1

/**
 * Converts an n8n workflow and reports everything that is not the same in Perdure. A node without a
 * counterpart becomes one that fails the execution. `findWorkflow` returns the id of our workflow that
 * replaces one of n8n's. Undefined if `raw` is not an n8n workflow.
 */
export function* convertWorkflow(
  raw: unknown,
  findWorkflow: (id: string) => string | undefined,
): Work<ConvertedWorkflow | undefined> {
  if (!isN8nDocument(raw)) return undefined
  const problems: ImportProblem[] = []
  const reporterOf =
    (node: string | null): ProblemReporter =>
    (kind, path, message, original) =>
      void problems.push({ node, path, kind, message, original })
  yield TURN_UNITS
  const source = readN8nDocument(raw, reporterOf)
  yield TURN_UNITS
  const { loops, refused } = findLoops(source.nodes, source.links)
  const ids = nameNodes(source.nodes.map(({ name }) => name))
  yield TURN_UNITS
  const order = orderNodes(source.nodes, source.links, source.nodes.filter(isTrigger))
  const drawing = createEdgeDrawing({ source, ids, loops, refused, reporterOf })
  const conversion = { source, drawing, ends: order.map((name) => ids.get(name)!), reporterOf, findWorkflow }
  for (const node of source.nodes) {
    yield Math.min(TURN_UNITS, NODE_WORK + CHARACTER_WORK * JSON.stringify(node.raw).length)
    drawing.built.set(node.name, buildNode(conversion, node))
  }
  yield TURN_UNITS
  drawEdges(drawing)
  reportDifferences({ source, loops, built: drawing.built, reporterOf })
  const nodes = source.nodes.flatMap((node) => placeNode(conversion, node))
  return {
    name: source.name,
    description: source.description,
    nodes: [...nodes, ...drawing.helpers.values()],
    edges: [...drawing.edges.values()],
    settings: mapSettings(source.settings, reporterOf(null), findWorkflow),
    report: { mapped: listMapped(conversion), problems, stickyNotes: source.stickyNotes },
  }
}

function buildNode(conversion: Conversion, node: SourceNode): BuiltNode {
  const id = conversion.drawing.ids.get(node.name)!
  const mapped = mapNode(conversion, node, id)
  return { source: node, id, exit: mapped.shaper ? `${id}__shape` : id, mapped }
}

function mapNode(
  { drawing, ends, reporterOf, findWorkflow }: Conversion,
  node: SourceNode,
  id: string,
): MappedNode {
  const report = reporterOf(node.name)
  const refusal = drawing.refused.get(node.name)
  if (refusal && !node.disabled) return createPlaceholder(node, refusal, 'type', report)
  const outputs = drawing.source.links.filter(({ from }) => from === node.name).map(({ output }) => output)
  try {
    const mapped = findNodeMapper(node)(node, {
      id,
      // A node that is not executed has no problems.
      report: node.disabled ? () => {} : report,
      inputs: readInputs(drawing, node),
      connectedOutputs: Math.max(-1, ...outputs) + 1,
      ends,
      findWorkflow,
    })
    // What comes to a disabled node leaves it by its first output.
    const passes = node.disabled && mapped.handles && mapped.handles[0] !== null
    return passes ? { type: 'NO_OP', config: {}, works: 'each' } : mapped
  } catch (error) {
    return createPlaceholder(node, (error as Error).message, 'parameters', node.disabled ? () => {} : report)
  }
}

/** Our nodes for one n8n node, at its place on the canvas. */
function placeNode({ drawing, reporterOf }: Conversion, node: SourceNode): ImportedNode[] {
  const { id, exit, mapped } = drawing.built.get(node.name)!
  const { raw, position, name } = node
  const parentId = drawing.loopAround(name)
  const settings = mapped.isPlaceholder ? {} : mapNodeSettings(mapped, raw, reporterOf(name))
  const frame = {
    ...(parentId ? { parentId } : {}),
    ...(node.disabled ? { disabled: true } : {}),
  }
  const works = mapped.works === 'each' ? { perItem: true } : mapped.works === 'all' ? { allItems: true } : {}
  const main = {
    id,
    type: mapped.type,
    name: mapped.shaper || drawing.loops.has(name) ? `${name.slice(0, 150)} (start)` : name.slice(0, 200),
    config: mapped.config,
    ...(position ? { position } : {}),
    ...frame,
    ...works,
    ...settings,
  }
  if (!mapped.shaper) return [main]
  const at = position ? { position: { x: position.x + 40, y: position.y + 60 } } : {}
  return [main, { id: exit, name: name.slice(0, 200), ...mapped.shaper, ...at, ...frame }]
}

function listMapped({ source, drawing }: Conversion): ConvertedWorkflow['report']['mapped'] {
  return source.nodes.map((node) => {
    const { id, mapped } = drawing.built.get(node.name)!
    return {
      node: node.name,
      type: node.fullType,
      id,
      as: mapped.type,
      state: mapped.isPlaceholder && !node.disabled ? ('stopped' as const) : ('works' as const),
    }
  })
}
