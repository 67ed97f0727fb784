import { Markdown } from '../kit/code/markdown.tsx'
import type { Mark } from './marks.ts'
import { followNodes, type Note } from './notes.ts'
import './notes.css'
import type { DrawnNode } from './lines.ts'
import type { Box } from './place.ts'

/** The notes where they lie in a drawing, whose nodes may stand elsewhere than on the canvas. */
export function placeNotes(
  notes: readonly Note[],
  nodes: readonly DrawnNode[],
  places: ReadonlyMap<string, Box>,
): Note[] {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const spots = new Map(
    nodes.flatMap((node) => {
      const spot = { x: 0, y: 0 }
      const seen = new Set<string>()
      for (let at: DrawnNode | undefined = node; at && !seen.has(at.id); at = byId.get(at.parentId ?? '')) {
        seen.add(at.id)
        const { x, y } = (at.position ?? {}) as { x?: number; y?: number }
        if (x === undefined || y === undefined) return []
        spot.x += x
        spot.y += y
      }
      const place = places.get(node.id)
      return place ? [[node.id, { ...spot, width: place.width, height: place.height }] as const] : []
    }),
  )
  return followNodes(notes, spots, places)
}

/** A note behind the nodes of a drawing. */
export function DrawnNote({ note, mark }: { note: Note; mark: Mark | undefined }) {
  const { position, size, colour, text } = note
  return (
    <foreignObject x={position.x} y={position.y} width={size.width} height={size.height}>
      <div className="drawn-note" data-colour={colour} data-tone={mark?.tone}>
        {mark && (
          <strong className="drawn-mark">
            {mark.sign} Note {mark.text}
          </strong>
        )}
        <Markdown text={text} />
      </div>
    </foreignObject>
  )
}
