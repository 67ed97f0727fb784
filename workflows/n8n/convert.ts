// How an import goes through the files: document.ts reads n8n's JSON, ids.ts gives ids, loops.ts finds what Loop
// Over Items nodes repeat and circles.ts what ways back to an earlier node do, nodetypes.ts finds the mapper of each
// node and nodes/ maps one after the other, each to one node of ours that keeps the author's texts; drawing.ts draws
// the connections, nodesettings.ts and settings.ts map settings, and our caller lets repair.ts replace what is not
// valid. Every step reads only what earlier ones made.
import type { GraphEdge } from '../graph/graph.ts'
import type { CanvasNote } from '../graph/notes.ts'
import { TURN_UNITS, type Work } from '../turns.ts'
import { findReplies } from './ai/replies.ts'
import { findCircles, findReadBehind } from './circles.ts'
import { reportDifferences } from './differences.ts'
import {
  isN8nDocument,
  readN8nDocument,
  type SourceAttachment,
  type SourceNode,
  type SourceWorkflow,
} from './document.ts'
import { drawEdges, readInputs } from './drawing.ts'
import { createEdgeDrawing, type EdgeDrawing, idInside } from './edgedrawing.ts'
import { nameNodes } from './ids.ts'
import { findLoops } from './loops.ts'
import type { MapperTools } from './mapper.ts'
import { mapNodeSettings } from './nodesettings.ts'
import { findNodeMapper, isTrigger } from './nodetypes.ts'
import { orderNodes } from './order.ts'
import { type BuiltNode, createPlaceholder, type ImportedNode, type MappedNode } from './parts.ts'
import { findReaders } from './readers.ts'
import type { ImportProblem, ImportReport, ProblemReporter } from './report.ts'
import { rewriteExpressions } from './rewriting.ts'
import { type MappedSettings, mapSettings } from './settings.ts'
import type { NeededCredential } from './signins/needed.ts'

export type ConvertedWorkflow = {
  name: string | undefined
  description: string | null
  nodes: ImportedNode[]
  edges: GraphEdge[]
  settings: MappedSettings & { notes?: CanvasNote[] }
  report: Omit<ImportReport, 'totals' | 'groups' | 'credentials'>
  /** The credentials that nodes which are executed need. */
  needs: NeededCredential[]
}

type Conversion = {
  source: SourceWorkflow
  drawing: EdgeDrawing
  ends: string[]
  /** The node whose text is the reply in a chat. */
  reply: string | undefined
  reporterOf: (node: string | null) => ProblemReporter
  findWorkflow: (id: string) => string | undefined
  findCredential: (key: string) => string | undefined
  ownId: string | undefined
  usesFiles: boolean
  needs: NeededCredential[]
}

/** The units of work for mapping a node, and each character of it. */
const NODE_WORK = 50
const CHARACTER_WORK = 0.1

/**
 * Converts an n8n workflow and reports everything that is not the same in Perdure. A node without a
 * counterpart becomes one that fails the execution. `findWorkflow` and `findCredential` return the ids of ours that
 * replace n8n's. This workflow will have the id `ownId`. Undefined if `raw` is not an n8n workflow.
 */
export function* convertWorkflow(
  raw: unknown,
  findWorkflow: (id: string) => string | undefined,
  findCredential: (key: string) => string | undefined = () => undefined,
  ownId?: string,
): Work<ConvertedWorkflow | undefined> {
  if (!isN8nDocument(raw)) return undefined
  const problems: ImportProblem[] = []
  const reporterOf =
    (node: string | null): ProblemReporter =>
    (kind, path, message, original) =>
      void problems.push({ node, path, kind, message, original })
  yield TURN_UNITS
  const read = readN8nDocument(raw, reporterOf)
  yield TURN_UNITS
  const inFlow = read.nodes.filter(({ name }) => ownerOf(read, name) === undefined)
  const { loops, refused } = findLoops(inFlow, read.links)
  const circles = findCircles(inFlow, read.links, { loops, refused })
  const ids = nameNodes(read.nodes.map(({ name }) => name))
  const source = yield* rewriteExpressions(read, { loops, circles }, ids)
  const repeated = [...circles.values(), ...loops.values()].flatMap(({ members }) => [...members])
  const readers = yield* findReaders(source, [...loops.keys(), ...repeated])
  const readBehind = findReadBehind(circles, loops, source.links, readers)
  for (const name of readBehind) ids.set(name, idInside(ids.get(name)!))
  yield TURN_UNITS
  const order = orderNodes(source.nodes, source.links, source.nodes.filter(isTrigger))
  const drawing = createEdgeDrawing({ source, ids, loops, circles, readers, readBehind, refused, reporterOf })
  const ends = order.filter((name) => !ownerOf(source, name)).map((name) => ids.get(name)!)
  const reply = chooseReply(source, drawing, reporterOf)
  const needs: NeededCredential[] = []
  const usesFiles = source.nodes.some((node) =>
    /binary|extractFromFile|readPDF/i.test(JSON.stringify(node.raw)),
  )
  const found = { findWorkflow, findCredential, ownId, usesFiles }
  const conversion = { source, drawing, ends, reply, reporterOf, ...found, needs }
  for (const node of source.nodes) {
    yield Math.min(TURN_UNITS, NODE_WORK + CHARACTER_WORK * JSON.stringify(node.raw).length)
    drawing.built.set(node.name, buildNode(conversion, node))
  }
  yield TURN_UNITS
  drawEdges(drawing)
  yield* reportDifferences({ source, loops, circles, built: drawing.built, reporterOf })
  yield TURN_UNITS
  const nodes = source.nodes.flatMap((node) => placeNode(conversion, node))
  const all = nestPositions([...nodes, ...drawing.helpers.values()])
  return {
    name: source.name,
    description: source.description,
    nodes: all,
    edges: [...drawing.edges.values()],
    settings: {
      ...mapSettings(source.settings, reporterOf(null), findWorkflow),
      ...(source.notes.length > 0 ? { notes: source.notes } : {}),
    },
    report: { mapped: listMapped(conversion), problems, stickyNotes: source.notes.length },
    needs,
  }
}

function buildNode(conversion: Conversion, node: SourceNode): BuiltNode {
  const id = conversion.drawing.ids.get(node.name)!
  const found = mapNode(conversion, node, id)
  // The input of a disabled node leaves it by its first output.
  const first = node.disabled && found.isPlaceholder
  const mapped = first ? { ...found, handles: [null, ...Array<string>(99).fill('')] } : found
  const [entry, exit] = [mapped.feeder ? `${id}__items` : id, mapped.shaper ? `${id}__shape` : id]
  return { source: node, id, entry, exit, mapped }
}

function mapNode(
  { drawing, ends, reply, reporterOf, findWorkflow, findCredential, ownId, usesFiles, needs }: Conversion,
  node: SourceNode,
  id: string,
): MappedNode {
  const report = reporterOf(node.name)
  const owner = ownerOf(drawing.source, node.name)
  if (owner !== undefined) return { type: 'NO_OP', config: {}, partOf: owner }
  const refusal = drawing.refused.get(node.name)
  if (refusal && !node.disabled) return createPlaceholder(node, refusal, 'type', report)
  if (isTrigger(node) && drawing.loopAround(node.name) !== undefined) {
    const reason = 'it starts executions, which no node in a loop can do'
    return createPlaceholder(node, reason, 'type', node.disabled ? () => {} : report)
  }
  const outputs = drawing.source.links.filter(({ from }) => from === node.name).map(({ output }) => output)
  const mine = drawing.source.attachments.filter(({ to }) => to === node.name)
  const read = new Set<string>()
  const attached: MapperTools['attached'] = (kind, part) => {
    if (part === undefined) read.add(kind)
    return listAttached(drawing.source, kind, (part ?? node).name)
  }
  try {
    const mapped = findNodeMapper(node)(node, {
      id,
      // A node that is not executed has no problems.
      report: node.disabled ? () => {} : report,
      reportOf: ({ name }) => (node.disabled ? () => {} : reporterOf(name)),
      repliesInChat: reply === node.name,
      inputs: readInputs(drawing, node),
      connectedOutputs: Math.max(-1, ...outputs) + 1,
      ends,
      findWorkflow,
      own: describeOwn(drawing.source, ownId),
      usesFiles,
      attached,
      findCredential,
      needs: node.disabled ? [] : needs,
    })
    if (!node.disabled)
      reportLeftOut(
        mine.filter(({ kind }) => !read.has(kind)),
        report,
      )
    // The input of a disabled node leaves it by its first output.
    const passes = node.disabled && mapped.handles && mapped.handles[0] !== null
    return passes ? { type: 'NO_OP', config: {}, works: 'each' } : mapped
  } catch (error) {
    return createPlaceholder(node, (error as Error).message, 'parameters', node.disabled ? () => {} : report)
  }
}

function listAttached({ attachments, nodes }: SourceWorkflow, kind: string, name: string): SourceNode[] {
  const byName = new Map(nodes.map((one) => [one.name, one]))
  return attachments
    .filter((one) => one.to === name && one.kind === kind)
    .sort((a, b) => a.input - b.input)
    .flatMap(({ from }) => byName.get(from) ?? [])
    .filter(({ disabled }) => !disabled)
}

/** What nodes that call their own workflow need to know of it: its id in n8n, and its id here if it can be called. */
function describeOwn({ id, nodes }: SourceWorkflow, ownId: string | undefined): MapperTools['own'] {
  const isCallable = nodes.some(({ type, disabled }) => type === 'executeWorkflowTrigger' && !disabled)
  return { theirs: id, ours: isCallable ? ownId : undefined }
}

/** The node that replies in a chat. If none can, or several could, the report says so. */
function chooseReply(
  source: SourceWorkflow,
  { loopAround }: EdgeDrawing,
  reporterOf: Conversion['reporterOf'],
): string | undefined {
  const found = findReplies(source)
  if (!found) return undefined
  const { trigger, replies } = found
  const [only, ...more] = replies
  if (only !== undefined && more.length === 0 && loopAround(only) === undefined) {
    const behind = source.links.filter(({ from }) => from === only)
    const message = `n8n replies with what its last node puts out. Perdure replies with the text of "${only}", whatever is behind it.`
    if (behind.length > 0) reporterOf(trigger)('parameter', 'connections', message, behind)
    return only
  }
  const message =
    replies.length === 0
      ? 'In Perdure the text of one LLM or AI_AGENT is the reply in a chat, and there is none here whose answer is a text.'
      : `In Perdure one node replies in a chat, once, and not in a loop. Here these could: ${replies.join(', ')}. Mark one ` +
        'with reply: true, without perItem and into.'
  reporterOf(trigger)('parameter', 'parameters.options.responseMode', message, replies)
  return undefined
}

/** The node that n8n attaches one to which has no place of its own in the flow; undefined for all others. */
function ownerOf({ attachments, links }: SourceWorkflow, name: string): string | undefined {
  if (links.some(({ from, to }) => from === name || to === name)) return undefined
  return attachments.find(({ from }) => from === name)?.to
}

function reportLeftOut(attachments: SourceAttachment[], report: ProblemReporter): void {
  for (const { from, kind } of attachments) {
    const message =
      `n8n attaches the node "${from}" to this one by a connection of the type "${kind}". Perdure has no counterpart, ` +
      'and left it out: check that the node works without it.'
    report('connection', `${kind}.${from}`, message, { from, kind })
  }
}

/** Our nodes for one n8n node, at its place on the canvas. */
function placeNode({ drawing, reporterOf }: Conversion, node: SourceNode): ImportedNode[] {
  const { id, entry, exit, mapped } = drawing.built.get(node.name)!
  if (mapped.partOf !== undefined) return []
  const { raw, position, name } = node
  const parentId = drawing.loopAround(name)
  const settings = mapped.isPlaceholder ? {} : mapNodeSettings(mapped, raw, reporterOf(name))
  const frame = {
    ...(parentId ? { parentId } : {}),
    ...(node.disabled ? { disabled: true } : {}),
  }
  const works = mapped.works === 'each' ? { perItem: true } : mapped.works === 'all' ? { allItems: true } : {}
  const shown = drawing.readBehind.has(name) ? `${name.slice(0, 150)} (in a round)` : name.slice(0, 200)
  const main = {
    id,
    type: mapped.type,
    name: mapped.shaper || drawing.loops.has(name) ? `${name.slice(0, 150)} (start)` : shown,
    config: mapped.config,
    ...(position ? { position } : {}),
    ...frame,
    ...works,
    ...settings,
  }
  const beside = (by: number) => (position ? { position: { x: position.x + by, y: position.y + 60 } } : {})
  const before = mapped.feeder
    ? [
        {
          id: entry,
          name: `${name.slice(0, 150)} (values)`,
          ...mapped.feeder,
          perItem: true,
          ...beside(-40),
          ...frame,
        },
      ]
    : []
  if (!mapped.shaper) return [...before, main]
  const { handle: _, ...shaper } = mapped.shaper
  return [...before, main, { id: exit, name: shown, ...shaper, ...beside(40), ...frame }]
}

/** n8n's places are those of the canvas; here they are measured from the loop that a node is in. */
function nestPositions(nodes: ImportedNode[]): ImportedNode[] {
  const spots = new Map(
    nodes.map(({ id, position }) => [id, position as { x: number; y: number } | undefined]),
  )
  return nodes.map((node) => {
    const own = spots.get(node.id)
    const loop = typeof node.parentId === 'string' ? spots.get(node.parentId) : undefined
    return own && loop ? { ...node, position: { x: own.x - loop.x, y: own.y - loop.y } } : node
  })
}

function listMapped({ source, drawing }: Conversion): ConvertedWorkflow['report']['mapped'] {
  return source.nodes.map((node) => {
    const { id, mapped } = findOwner(drawing, drawing.built.get(node.name)!)
    return {
      node: node.name,
      type: node.fullType,
      id,
      as: mapped.type,
      state: mapped.isPlaceholder && !node.disabled ? ('stopped' as const) : ('works' as const),
    }
  })
}

/** The node that does what this one did in n8n: the one to which it belongs, if it is no node of its own. */
function findOwner({ built }: EdgeDrawing, start: BuiltNode): BuiltNode {
  let node = start
  // A part may belong to a part; a circle of them ends.
  for (let hops = 0; hops < 10 && node.mapped.partOf !== undefined; hops++)
    node = built.get(node.mapped.partOf) ?? node
  return node
}
