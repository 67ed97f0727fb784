// How an import goes through the files: document.ts reads n8n's JSON, nodetypes.ts finds the mapper of each
// node, items/ finds out which nodes get lists and which run in loops, ids.ts gives ids, nodes/ maps one node
// after the other (what it reads is translated by parameters.ts, expressions/ and references.ts), edges/
// draws the connections, nodesettings.ts and settings.ts map settings, and our caller lets repair.ts replace
// what is not valid. Every step reads only what earlier steps made. Merge nodes are mapped last, because
// edges/ first draws what they read.
import type { GraphEdge } from '../graph/graph.ts'
import { TURN_UNITS, type Work } from '../turns.ts'
import { isN8nDocument, readN8nDocument, type SourceNode } from './document.ts'
import { createEdgeDrawing, type EdgeDrawing } from './edges/drawing.ts'
import { drawEdges, readMergeInputs } from './edges/edges.ts'
import { unknownCode } from './expressions/code.ts'
import { nameNodes } from './ids.ts'
import { analyzeItems, type ItemAnalysis } from './items/analysis.ts'
import { reportJoins } from './items/joins.ts'
import type { MapperTools, NodeMapper } from './mapper.ts'
import { mapNodeSettings } from './nodesettings.ts'
import { findNodeMapper } from './nodetypes.ts'
import { createParameterReader } from './parameters.ts'
import {
  type BuiltNode,
  createPlaceholder,
  findMainPart,
  type ImportedNode,
  type MappedNode,
} from './parts.ts'
import { createReferences } from './references.ts'
import type { ImportProblem, ImportReport, ProblemReporter } from './report.ts'
import { type MappedSettings, mapSettings } from './settings.ts'

export type ConvertedWorkflow = {
  name: string | undefined
  nodes: ImportedNode[]
  edges: GraphEdge[]
  settings: MappedSettings
  report: ImportReport
}

/** What the conversion of one workflow reads, and the nodes that it has built so far. */
type Conversion = {
  analysis: ItemAnalysis
  drawing: EdgeDrawing
  built: Map<string, BuiltNode>
  ids: ReadonlyMap<string, string>
  mapperOf: (node: SourceNode) => NodeMapper
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
  const mappers = new Map(source.nodes.map((node) => [node.name, findNodeMapper(node)]))
  const mapperOf = (node: SourceNode) => mappers.get(node.name)!
  yield TURN_UNITS
  const analysis = analyzeItems(source, mapperOf, reporterOf)
  reportJoins(analysis, mapperOf, reporterOf)
  yield TURN_UNITS
  const ids = nameNodes(analysis)
  const built = new Map<string, BuiltNode>()
  const drawing = createEdgeDrawing({ analysis, built, ids, mapperOf, reporterOf })
  const conversion = { analysis, drawing, built, ids, mapperOf, reporterOf, findWorkflow }

  // A Merge node reads the outputs of the nodes before it by their ids, so these must be built.
  const isMerge = (node: SourceNode) => mapperOf(node).takes === 'merge'
  for (const node of Array.from(analysis.order).sort((a, b) => Number(isMerge(a)) - Number(isMerge(b)))) {
    yield Math.min(TURN_UNITS, NODE_WORK + CHARACTER_WORK * JSON.stringify(node.raw).length)
    buildNode(conversion, node)
  }

  yield TURN_UNITS
  drawEdges(drawing)
  const nodes = analysis.order.flatMap((node) => placeNode(conversion, node))
  return {
    name: source.name,
    nodes: [...nodes, ...drawing.nodes.values()],
    edges: [...drawing.edges.values()],
    settings: mapSettings(source.settings, reporterOf(null), findWorkflow),
    report: { mapped: listMapped(conversion), problems, stickyNotes: source.stickyNotes },
  }
}

function buildNode(conversion: Conversion, node: SourceNode): void {
  const id = conversion.ids.get(node.name)!
  const mapped = mapNode(conversion, node, id)
  conversion.built.set(node.name, {
    source: node,
    id,
    mapped,
    entry: id + mapped.parts[0]!.suffix,
    exit: id + mapped.parts.at(-1)!.suffix,
    handles: mapped.handles ?? [null],
  })
}

function mapNode(conversion: Conversion, node: SourceNode, id: string): MappedNode {
  try {
    return conversion.mapperOf(node).map(node, createTools(conversion, node, id))
  } catch (error) {
    return createPlaceholder(node, (error as Error).message, 'parameters', conversion.reporterOf(node.name))
  }
}

function createTools(conversion: Conversion, node: SourceNode, id: string): MapperTools {
  const { analysis, drawing, built, mapperOf, findWorkflow } = conversion
  const { takes } = mapperOf(node)
  const report = conversion.reporterOf(node.name)
  const { input, plainOutput } = analysis.flowOf(node.name)
  const inputPath = `$input${input.path}`
  const getsList = input.count === 'many' && (takes === 'any' || takes === 'item')
  const current = getsList ? `${inputPath}[0]` : inputPath
  const references = createReferences({ analysis, built, mapperOf, node, current })
  const itemReferences = { ...references, current: () => unknownCode('$item') }
  const outputs = analysis.links.filter(({ from }) => from === node.name).map(({ output }) => output)
  return {
    id,
    report,
    reader: createParameterReader(references, report),
    itemReader: createParameterReader(itemReferences, report),
    input,
    inputCode: takes === 'item' ? current : inputPath,
    mergeInputs: takes === 'merge' ? readMergeInputs(drawing, node.name) : [],
    plainOutput,
    connectedOutputs: Math.max(-1, ...outputs) + 1,
    findWorkflow,
  }
}

/** Our nodes for one n8n node, at its place on the canvas. */
function placeNode({ analysis, built, reporterOf }: Conversion, node: SourceNode): ImportedNode[] {
  const { source, id, mapped } = built.get(node.name)!
  const { raw, position, name } = source
  const parentId = analysis.loopOf(name)?.id
  const mainPart = findMainPart(mapped)
  return mapped.parts.map((part, i) => {
    const isMain = part === mainPart
    const settings = isMain ? mapNodeSettings(part, raw, reporterOf(name)) : {}
    return {
      id: id + part.suffix,
      type: part.type,
      name: isMain ? name.slice(0, 200) : `${name.slice(0, 150)} (${part.type.toLowerCase()})`,
      config: part.config,
      ...(position ? { position: { x: position.x + 40 * i, y: position.y + 60 * i } } : {}),
      ...(parentId ? { parentId } : {}),
      ...(source.disabled ? { disabled: true } : {}),
      // Error handling would let an execution go past a placeholder.
      ...(mapped.isPlaceholder ? {} : settings),
    }
  })
}

function listMapped({ analysis, built }: Conversion): ImportReport['mapped'] {
  return analysis.order.map((node) => {
    const { id, mapped } = built.get(node.name)!
    return { node: node.name, type: node.fullType, id, as: findMainPart(mapped).type }
  })
}
