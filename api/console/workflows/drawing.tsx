import { type KeyboardEvent, useMemo } from 'react'
import './drawing.css'
import { DrawnNote, placeNotes } from './drawnnotes.tsx'
import type { Mark } from './marks.ts'
import type { Note } from './notes.ts'
import {
  type Bends,
  type GraphEdge,
  type GraphNode,
  HEIGHT,
  LABEL_LENGTH,
  type Place,
  type Places,
  placeNodes,
} from './placing.ts'

const MARGIN = 20
const NAME_LENGTH = 21
const LINE = 12
const LETTER = 6

type DrawingProps = {
  graph: { nodes: readonly GraphNode[]; edges: readonly GraphEdge[]; notes?: readonly Note[] | undefined }
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
export function keyOfEdge({ source, target, sourceHandle }: GraphEdge): string {
  return `${source} ${sourceHandle ?? ''} ${target}`
}

/** A graph, to look at; a loop is a box around its body. */
export function Drawing({ graph, label, picked, onPick, marks, edgeMarks, noteMarks }: DrawingProps) {
  const { nodes, edges, notes: given = NO_NOTES } = graph
  const { places, bends, bodies, notes, width, height } = useMemo(
    () => measure(nodes, edges, given),
    [nodes, edges, given],
  )
  // What stands in a loop is drawn, and comes to the keyboard, right after it.
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
    <section className="graph" tabIndex={0} aria-label={label}>
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
        {placeLabels(edges, places, bends).map(({ key, x, y, text }) => (
          <text key={key} x={x} y={y} className="handle">
            {text}
          </text>
        ))}
      </svg>
    </section>
  )
}

function measure(nodes: readonly GraphNode[], edges: readonly GraphEdge[], given: readonly Note[]) {
  const placed = placeNodes(nodes, edges)
  const all = [...placed.places.values(), ...[...placed.bends.values()].flat()]
  const lying = placeNotes(given, nodes, placed.places)
  // Notes may lie to the left of all nodes, and above them.
  const x = MARGIN - Math.min(0, ...lying.map(({ position }) => position.x))
  const y = MARGIN - Math.min(0, ...lying.map(({ position }) => position.y))
  for (const place of all) {
    place.x += x
    place.y += y
    place.exit += x
  }
  const notes = lying.map((note) => ({
    ...note,
    position: { x: note.position.x + x, y: note.position.y + y },
  }))
  const boxes = [...all, ...notes.map(({ position, size }) => ({ ...position, ...size }))]
  const width = Math.max(0, ...boxes.map((box) => box.x + box.width)) + MARGIN
  const height = Math.max(0, ...boxes.map((box) => box.y + box.height)) + MARGIN
  return { ...placed, notes, width, height }
}

/** The height at which edges come and go. */
function middle({ y, height }: Place): number {
  return y + height / 2
}

type EdgeProps = { from: Place; to: Place; bends: Place[]; mark: Mark | undefined }

function Edge({ from, to, bends, mark }: EdgeProps) {
  const last = middle(to)
  let at = from
  let way = `M${from.x + from.width} ${middle(from)}`
  for (const next of [...bends, to]) {
    // Beside what is wider in its column an edge goes on straight, and turns between the columns.
    const x = at.exit
    const end = next === to ? to.x - 5 : next.x
    const bend = Math.max(28, Math.abs(end - x) / 2)
    way += `H${x}C${x + bend} ${middle(at)} ${end - bend} ${middle(next)} ${end} ${middle(next)}`
    at = next
  }
  return (
    <g className={nameLook('edge', mark)}>
      {mark && <title>{mark.text}</title>}
      <path d={way} />
      <path className="head" d={`M${to.x - 6} ${last - 4}L${to.x} ${last}L${to.x - 6} ${last + 4}z`} />
    </g>
  )
}

/**
 * The handles that edges leave by, in the gap after their source, where the columns leave them room: above all boxes,
 * and none over another.
 */
function placeLabels(edges: readonly GraphEdge[], places: Places, bends: Bends) {
  const taken: { x: number; y: number; half: number }[] = []
  return edges.flatMap((edge) => {
    const from = places.get(edge.source)
    const to = places.get(edge.target)
    if (!from || !to || !edge.sourceHandle) return []
    const text = cut(edge.sourceHandle, LABEL_LENGTH)
    const next = bends.get(edge)?.[0] ?? to
    const rise = middle(next) - middle(from)
    const half = ([...text].length * LETTER) / 2
    const spot = { x: (from.exit + next.x - 4) / 2, y: (middle(from) + middle(next)) / 2 + 3, half }
    // A level line would be hidden by its label.
    if (Math.abs(rise) < 2 * LINE) spot.y -= 8
    const isTaken = () =>
      taken.some((one) => Math.abs(one.x - spot.x) < one.half + half && Math.abs(one.y - spot.y) < LINE)
    while (isTaken()) spot.y += LINE / 2
    taken.push(spot)
    return [{ key: keyOfEdge(edge), text, ...spot }]
  })
}

type NodeProps = {
  node: GraphNode
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
        <rect className="box" width={width} height={height} rx={8} />
        <rect className="edge-mark" x={0} y={9} width={3} height={HEIGHT - 18} rx={1.5} />
        {isLoop && (
          <rect
            className="inside"
            x={6}
            y={HEIGHT - 2}
            width={width - 12}
            height={Math.max(0, height - HEIGHT - 4)}
            rx={5}
          />
        )}
      </g>
      {/* The label says the same, and in full. */}
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can be focused */}
      <g className="words" aria-hidden="true">
        <text className="name" x={14} y={20}>
          {cut(name, NAME_LENGTH)}
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

/** A node that was given no name has its id. */
export function nameOf(node: GraphNode): string {
  return node.name && node.name !== node.type ? node.name : node.id
}

function cut(text: string, length: number): string {
  const signs = [...text]
  return signs.length > length ? `${signs.slice(0, length - 1).join('')}…` : text
}
