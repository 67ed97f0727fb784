import { type KeyboardEvent, useMemo } from 'react'
import { NodeBox } from './box.tsx'
import {
  cutWord,
  type DrawnEdge,
  type DrawnNode,
  drawHead,
  drawPlaces,
  drawWay,
  measureBoxes,
  nameOf,
  placeLabels,
  shiftDrawing,
} from './lines.ts'
import type { Place } from './place.ts'
import './graph.css'
import './drawing.css'
import { DrawnNote, placeNotes } from './drawnnotes.tsx'
import type { Mark } from './marks.ts'
import type { Note } from './notes.ts'

const MARGIN = 20
const NAME_LENGTH = 21

type DrawingProps = {
  graph: { nodes: readonly DrawnNode[]; edges: readonly DrawnEdge[]; notes?: readonly Note[] | undefined }
  label: string
  /** The node that was chosen, and what is done when one is. */
  picked?: string | null
  onPick?: (id: string) => void
  marks?: ReadonlyMap<string, Mark>
  edgeMarks?: ReadonlyMap<string, Mark>
  noteMarks?: ReadonlyMap<string, Mark>
}

const NO_NOTES: readonly Note[] = []

/** By what an edge is known in `edgeMarks`. */
export function keyOfEdge({ source, target, sourceHandle }: DrawnEdge): string {
  return `${source} ${sourceHandle ?? ''} ${target}`
}

/** A graph, to look at; a loop is a box around its body. */
export function Drawing({ graph, label, picked, onPick, marks, edgeMarks, noteMarks }: DrawingProps) {
  const { nodes, edges, notes: given = NO_NOTES } = graph
  const { places, bends, bodies, notes, labels, width, height } = useMemo(
    () => measure(nodes, edges, given),
    [nodes, edges, given],
  )
  // The body of a loop is drawn, and comes to the keyboard, right after it.
  const drawBody = (id: string | null) => {
    const body = bodies.get(id) ?? []
    const own = new Set(body.map((node) => node.id))
    return (
      <>
        {edges.map((edge) => {
          const from = places.get(edge.source)
          const to = places.get(edge.target)
          if (!from || !to || !own.has(edge.source)) return null
          const key = keyOfEdge(edge)
          return (
            <Edge key={key} from={from} to={to} bends={bends.get(edge) ?? []} mark={edgeMarks?.get(key)} />
          )
        })}
        {body.map((node) => {
          const place = places.get(node.id)
          if (!place) return null
          const isLoop = bodies.has(node.id)
          return (
            <g key={node.id}>
              <Node
                node={node}
                place={place}
                isLoop={isLoop}
                mark={marks?.get(node.id)}
                picked={picked === node.id}
                onPick={onPick}
              />
              {isLoop && drawBody(node.id)}
            </g>
          )
        })}
      </>
    )
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <section className="drawing graph" tabIndex={0} aria-label={label}>
      {/* Small enough to see the whole, large enough to read; what is still too wide scrolls. */}
      {/* biome-ignore lint/a11y/useSemanticElements: there is no other element for a group in a drawing */}
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="group"
        aria-label={`Nodes: ${label}`}
        style={{ minWidth: Math.round(width * 0.75) }}
      >
        {notes.map((note) => (
          <DrawnNote key={note.id} note={note} mark={noteMarks?.get(note.id)} />
        ))}
        {drawBody(null)}
        {labels.map(({ edge, x, y, text }) => (
          <text key={keyOfEdge(edge)} x={x} y={y} className="handle">
            {text}
          </text>
        ))}
      </svg>
    </section>
  )
}

function measure(nodes: readonly DrawnNode[], edges: readonly DrawnEdge[], given: readonly Note[]) {
  const placed = drawPlaces(nodes, edges)
  const lying = placeNotes(given, nodes, placed.places)
  // Notes may lie to the left of all nodes, and above them.
  const x = MARGIN - Math.min(0, ...lying.map(({ position }) => position.x))
  const y = MARGIN - Math.min(0, ...lying.map(({ position }) => position.y))
  const size = shiftDrawing(placed, { x, y })
  const notes = lying.map((note) => ({
    ...note,
    position: { x: note.position.x + x, y: note.position.y + y },
  }))
  const { width, height } = measureBoxes([
    { x: 0, y: 0, ...size },
    ...notes.map((note) => ({ ...note.position, ...note.size })),
  ])
  return {
    ...placed,
    notes,
    labels: placeLabels(edges, placed),
    width: width + MARGIN,
    height: height + MARGIN,
  }
}

type EdgeProps = { from: Place; to: Place; bends: Place[]; mark: Mark | undefined }

function Edge({ from, to, bends, mark }: EdgeProps) {
  return (
    <g className={nameLook('edge', mark)}>
      {mark && <title>{mark.text}</title>}
      <path d={drawWay(from, to, bends)} />
      <path className="head" d={drawHead(to)} />
    </g>
  )
}

type NodeProps = {
  node: DrawnNode
  place: Place
  isLoop: boolean
  mark: Mark | undefined
  picked: boolean
  onPick: ((id: string) => void) | undefined
}

function Node({ node, place: { x, y, width, height }, isLoop, mark, picked, onPick }: NodeProps) {
  const press = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' && event.key !== ' ') return
    event.preventDefault()
    onPick?.(node.id)
  }
  const acts = onPick
    ? ({ tabIndex: 0, role: 'button', onClick: () => onPick(node.id), onKeyDown: press } as const)
    : ({ role: 'img' } as const)
  const name = nameOf(node)
  const said = [name, node.type, node.disabled && 'disabled'].filter(Boolean).join(', ')
  return (
    <g
      className={nameLook(isLoop ? 'node loop' : 'node', mark)}
      transform={`translate(${x} ${y})`}
      data-node={node.id}
      data-disabled={Boolean(node.disabled)}
      data-picked={picked || undefined}
    >
      <g className="act" aria-label={mark ? `${said}: ${mark.text}` : said} {...acts}>
        <title>{mark ? `${name}: ${mark.text}` : `${name} (${node.id})`}</title>
        <NodeBox width={width} height={height} isLoop={isLoop} />
      </g>
      {/* The label says the same, and in full. */}
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can be focused */}
      <g className="words" aria-hidden="true">
        <text className="name" x={14} y={20}>
          {cutWord(name, NAME_LENGTH)}
        </text>
        <text className="type" x={14} y={35}>
          {node.disabled ? `${node.type} · off` : node.type}
        </text>
        {mark?.sign && (
          <g className="sign" transform={`translate(${width - 4} 4)`}>
            <circle r={9} />
            <text y={4}>{mark.sign}</text>
          </g>
        )}
      </g>
    </g>
  )
}

function nameLook(base: string, mark: Mark | undefined): string {
  return [base, mark && `marked ${mark.tone}`, mark?.dashed && 'dashed'].filter(Boolean).join(' ')
}
