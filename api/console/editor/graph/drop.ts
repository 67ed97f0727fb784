import type { Point, Size } from '../../graph/place.ts'
import { putInto } from './edits.ts'
import { isTrigger, type NodeTypes } from './kinds.ts'
import { type Draft, type EditorNode, findLoopAt, findSpot, fitLoops } from './model.ts'

/** What a node is dropped by: a point near the top of a tall one, as it is taken there. */
const GRIP = 60

type Sizes = ReadonlyMap<string, Size>

/** Moves nodes and notes to these places. Nodes go into the loop that they lie on then, unless they `stay` in theirs. */
export function dropAt(
  draft: Draft,
  places: ReadonlyMap<string, Point>,
  types: NodeTypes,
  stay: boolean,
): Draft {
  const { nodes, sizes } = fitLoops(draft.nodes, types)
  const move = <T extends { id: string; position: Point }>(one: T): T => {
    const place = places.get(one.id)
    return place ? { ...one, position: { x: Math.round(place.x), y: Math.round(place.y) } } : one
  }
  const moved = { ...draft, nodes: nodes.map(move), notes: draft.notes.map(move) }
  if (stay) return moved
  // What moves with its loop stays in it.
  const movers = moved.nodes.filter(
    ({ id, type, parentId }) => places.has(id) && !isTrigger(type, types) && !places.has(parentId ?? ''),
  )
  const loops = Map.groupBy(movers, ({ id }) => findLoopUnder(moved.nodes, id, sizes))
  return [...loops].reduce(
    (next, [loop, some]) =>
      putInto(
        next,
        some.map(({ id }) => id),
        loop,
      ),
    moved,
  )
}

/** The loop that a node lies on, which is not in that node. */
export function findLoopUnder(nodes: EditorNode[], id: string, sizes: Sizes): string | undefined {
  const spot = findSpot(nodes, id)
  const { width, height } = sizes.get(id)!
  const grip = { x: spot.x + width / 2, y: spot.y + Math.min(height / 2, GRIP) }
  const inside = new Set(nodes.filter((node) => isUnder(nodes, node, id)).map((node) => node.id))
  return findLoopAt(nodes, sizes, grip, inside)
}

function isUnder(nodes: EditorNode[], node: EditorNode, loop: string): boolean {
  const byId = new Map(nodes.map((one) => [one.id, one]))
  const seen = new Set<string>()
  for (let at: EditorNode | undefined = node; at && !seen.has(at.id); at = byId.get(at.parentId ?? '')) {
    if (at.id === loop) return true
    seen.add(at.id)
  }
  return false
}
