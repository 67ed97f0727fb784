import type { GraphEdge } from '../graph/graph.ts'
import type { CircleBlock } from './circles.ts'
import type { SourceNode, SourceWorkflow } from './document.ts'
import type { LoopBlock } from './loops.ts'
import type { BuiltNode, ImportedNode } from './parts.ts'
import type { Readers } from './readers.ts'
import type { ProblemReporter } from './report.ts'

/** The edges that an import draws, and the nodes that it adds to draw them. */
export type EdgeDrawing = {
  source: SourceWorkflow
  ids: ReadonlyMap<string, string>
  built: Map<string, BuiltNode>
  loops: ReadonlyMap<string, LoopBlock>
  circles: ReadonlyMap<string, CircleBlock>
  refused: ReadonlyMap<string, string>
  edges: Map<string, GraphEdge>
  helpers: Map<string, ImportedNode>
  /** By which outputs of its nodes a circle is left, in the order in which they were found. */
  exits: Map<CircleBlock, string[]>
  /** Of the nodes that are repeated. */
  readers: Readers
  /** Nodes of circles and loops that are read behind them: a helper there has their name and id, and they have others. */
  readBehind: ReadonlySet<string>
  reporterOf: (node: string | null) => ProblemReporter
  /** The id of the FOR_EACH or REPEAT around a node. */
  loopAround: (name: string) => string | undefined
  /** The id of the one around the REPEAT of a circle. */
  aroundCircle: (circle: CircleBlock) => string | undefined
}

/** Where an edge begins. */
export type EdgeStart = { id: string; handle: string | null }

type DrawnGraph = Omit<EdgeDrawing, 'built' | 'edges' | 'helpers' | 'exits' | 'loopAround' | 'aroundCircle'>

export function createEdgeDrawing(given: DrawnGraph): EdgeDrawing {
  const { ids, loops, circles } = given
  const around = new Map<string, string>()
  const outer = new Map<CircleBlock, string | undefined>()
  const blocks = [
    ...[...loops].map(([name, { members }]) => ({ id: ids.get(name)!, members, circle: undefined })),
    ...[...circles.values()].map((circle) => {
      return { id: repeatId(ids, circle), members: circle.members, circle }
    }),
  ]
  for (const { id, members, circle } of blocks.sort((a, b) => b.members.size - a.members.size)) {
    if (circle) outer.set(circle, around.get(circle.head))
    for (const member of members) around.set(member, id)
  }
  return {
    ...given,
    built: new Map(),
    edges: new Map(),
    helpers: new Map(),
    exits: new Map(),
    loopAround: (name) => around.get(name),
    aroundCircle: (circle) => outer.get(circle),
  }
}

/** The id of the REPEAT that goes round a circle. */
export function repeatId(ids: ReadonlyMap<string, string>, { head }: CircleBlock): string {
  return `${ids.get(head)}__again`
}

/** The id of the node of ours that has the last output of one that is read behind its circle or loop. */
function idBehind(id: string): string {
  return id.replace(INNER, '')
}

const INNER = /__inner$/

/**
 * The nodes of a loop or circle whose last output is read behind it, and by which node of ours it leaves them. One that
 * leaves by several outputs has no list that could be kept. `parentId`: the FOR_EACH or REPEAT.
 */
export function listKept(
  { readBehind, built, loopAround }: EdgeDrawing,
  members: ReadonlySet<string>,
  parentId: string,
): { name: string; id: string; exit: string }[] {
  const own = [...members].filter((name) => readBehind.has(name))
  return own.flatMap((name) => {
    const { id, exit, mapped } = built.get(name)!
    const isKept = loopAround(name) === parentId && !mapped.handles
    return isKept ? [{ name, id: idBehind(id), exit }] : []
  })
}

/** The id of a node that is read behind its circle or loop. */
export function idInside(id: string): string {
  return `${id}__inner`
}

/** Adds an edge, unless the same one is there. */
export function addEdge({ edges }: EdgeDrawing, from: EdgeStart, target: string): void {
  const key = JSON.stringify([from.id, from.handle, target])
  edges.set(key, { source: from.id, target, sourceHandle: from.handle })
}

/** Adds a node near another one, and in the same loop, if it does not say otherwise. */
export function addHelper(
  { helpers, loopAround }: EdgeDrawing,
  near: SourceNode,
  node: ImportedNode & { parentId?: string | undefined },
): void {
  const { position } = near
  const parentId = 'parentId' in node ? node.parentId : loopAround(near.name)
  const { parentId: _, ...rest } = node
  helpers.set(node.id, {
    ...(position ? { position: { x: position.x + 80, y: position.y + 120 } } : {}),
    ...(parentId ? { parentId } : {}),
    ...rest,
  } as ImportedNode)
}
