import { type KeyboardEvent, useMemo, useState } from 'react'
import type { Graph } from '../data/graphs.ts'
import type { RecordState } from '../data/records.ts'
import { Button } from '../kit/button.tsx'
import { nameStatus, StatusSign } from '../kit/status.tsx'
import './graph.css'
import { type GraphNode, HEIGHT, LABEL_LENGTH, type Place, placeNodes } from '../workflows/placing.ts'
import { type LoopCount, type Tree, tellLoop, worstOf } from './tree.ts'

const MARGIN = 24
const NAME_LENGTH = 19
const LINE = 12
const LETTER = 6
const ZOOM = { least: 0.25, most: 3, step: 1.25 }

type GraphProps = {
  label: string
  graph: Graph
  tree: Tree
  over: boolean
  chosen: string
  onChoose: (nodeId: string) => void
  countOf: (loop: RecordState) => LoopCount
}

/** The graph of an execution, to look at: what ran, what runs, what was not reached. */
export function RunGraph({ label, graph, tree, over, chosen, onChoose, countOf }: GraphProps) {
  const [zoom, setZoom] = useState<number | null>(null)
  const drawing = useMemo(() => drawPlaces(graph), [graph])
  const { places, bends, bodies, width, height } = drawing
  const labels = useMemo(() => placeLabels(graph, drawing), [graph, drawing])
  const change = (by: number) => setZoom((now) => Math.min(ZOOM.most, Math.max(ZOOM.least, (now ?? 1) * by)))
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]))

  // What stands in a loop is drawn, and comes to the keyboard, right after it.
  const drawBody = (id: string | null): React.ReactNode[] => {
    const body = new Set((bodies.get(id) ?? []).map((node) => node.id))
    return [
      ...graph.edges.flatMap((edge, at) => {
        const from = places.get(edge.source)
        const to = places.get(edge.target)
        if (!body.has(edge.source) || !from || !to) return []
        const took = tellTaken(edge, tree)
        return [
          // biome-ignore lint/suspicious/noArrayIndexKey: the edges of a version do not change
          <g key={`edge ${at}`} className={`edge ${took}`}>
            <path d={drawWay(from, to, bends.get(edge) ?? [])} />
            <path className="head" d={drawHead(to)} />
          </g>,
        ]
      }),
      ...[...body].flatMap((one) => {
        const place = places.get(one)
        if (!place) return []
        return [
          <Box
            key={one}
            node={nodes.get(one)!}
            place={place}
            isLoop={bodies.has(one)}
            records={tree.byNode.get(one) ?? []}
            chosen={chosen === one}
            over={over}
            onChoose={onChoose}
            countOf={countOf}
          />,
          ...(bodies.has(one) ? drawBody(one) : []),
        ]
      }),
    ]
  }
  return (
    <div className="run-graph">
      <div className="graph-zoom">
        <Button small aria-label="Zoom out" onClick={() => change(1 / ZOOM.step)}>
          −
        </Button>
        <Button small aria-label="Zoom in" onClick={() => change(ZOOM.step)}>
          +
        </Button>
        <Button small onClick={() => setZoom(null)}>
          Fit
        </Button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className={zoom === null ? 'graph fitted' : 'graph'} aria-label={label} tabIndex={0}>
        {/* biome-ignore lint/a11y/useSemanticElements: a drawing is no fieldset */}
        <svg
          viewBox={`0 0 ${width} ${height}`}
          width={width * (zoom ?? 1)}
          height={height * (zoom ?? 1)}
          // Small enough to see the whole, large enough to read; what is still too wide scrolls.
          style={zoom === null ? { minWidth: Math.min(width, Math.round(width * 0.55)) } : undefined}
          role="group"
          aria-label={label}
        >
          {drawBody(null)}
          {labels.map(({ x, y, text }) => (
            <text key={`${x} ${y}`} x={x} y={y} className="handle">
              {text}
            </text>
          ))}
        </svg>
      </section>
    </div>
  )
}

type BoxProps = {
  node: GraphNode
  place: Place
  isLoop: boolean
  records: readonly RecordState[]
  chosen: boolean
  over: boolean
  onChoose: (id: string) => void
  countOf: (loop: RecordState) => LoopCount
}

function Box({ node, place, isLoop, records, chosen, over, onChoose, countOf }: BoxProps) {
  const { x, y, width, height } = place
  const name = node.name && node.name !== node.type ? node.name : node.id
  const status = worstOf(records)
  const loop = isLoop && records.length === 1 ? countOf(records[0]!) : null
  const count = loop ? tellLoop(loop) : records.length > 1 ? tellMany(records) : ''
  const plan = records.length === 1 ? tellPlan(records[0]!) : ''
  const state = status ? nameStatus(status) : node.disabled ? 'Off' : over ? 'Not executed' : 'Not yet'
  const said = `${name}, ${node.type}: ${state}${count ? `, ${count}` : ''}${plan && `, ${plan}`}`
  const keys = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' && event.key !== ' ') return
    event.preventDefault()
    onChoose(node.id)
  }
  const below = count || plan || (node.disabled ? `${node.type} · off` : node.type)
  return (
    // biome-ignore lint/a11y/useSemanticElements: a drawing has no buttons of its own
    <g
      className={`node ${isLoop ? 'loop' : ''} ${status?.toLowerCase() ?? 'idle'}`}
      transform={`translate(${x} ${y})`}
      data-node={node.id}
      data-chosen={chosen || undefined}
      role="button"
      tabIndex={0}
      aria-pressed={chosen}
      onClick={() => onChoose(node.id)}
      onKeyDown={keys}
    >
      <title>{said}</title>
      <rect className="box" width={width} height={height} rx={8} />
      <rect className="edge-mark" x={0} y={9} width={3} height={HEIGHT - 18} rx={1.5} />
      {isLoop && (
        <rect
          className="inside"
          x={6}
          y={HEIGHT - 2}
          width={width - 12}
          height={height - HEIGHT - 4}
          rx={5}
        />
      )}
      <text className="name" x={14} y={20}>
        {cut(name, isLoop ? 60 : NAME_LENGTH)}
      </text>
      <text className={count ? 'type count' : 'type'} x={14} y={35}>
        {cut(below, isLoop ? 60 : 24)}
      </text>
      {status && <StatusSign status={status} x={width - 24} y={8} />}
    </g>
  )
}

/** What a node has come to that waits: its next attempt, or the end of its wait. */
function tellPlan({ status, retryCount, nextAttemptAt, waitingUntil }: RecordState): string {
  const clock = (at: string) => new Date(at).toLocaleTimeString()
  if (status === 'RUNNING' && nextAttemptAt) return `attempt ${retryCount + 2} at ${clock(nextAttemptAt)}`
  if (status === 'RUNNING' && waitingUntil) return `until ${clock(waitingUntil)}`
  return retryCount > 0 ? `${retryCount + 1} attempts` : ''
}

/** How the records of a node in a loop stand: "188 success, 3 failed". */
function tellMany(records: readonly { status: string }[]): string {
  const counts = Map.groupBy(records, ({ status }) => status)
  const order = ['SUCCESS', 'FAILED', 'RUNNING', 'PENDING', 'CANCELLED']
  return order
    .flatMap((status) => {
      const count = counts.get(status)?.length
      return count ? [`${count.toLocaleString()} ${nameStatus(status).toLowerCase()}`] : []
    })
    .join(', ')
}

/** Whether an edge was gone, and whether something moves along it now. */
function tellTaken(edge: Graph['edges'][number], { byNode }: Tree): string {
  const handle = edge.sourceHandle ?? null
  const left = byNode.get(edge.source)?.some((one) => {
    if (one.completedAt === null) return false
    return (one.handles ?? [one.handle]).includes(handle)
  })
  const came = byNode.get(edge.target)
  if (!left || !came) return ''
  return came.some(({ status }) => status === 'RUNNING') ? 'taken moving' : 'taken'
}

function drawPlaces(graph: Graph) {
  const { places, bends, bodies } = placeNodes(graph.nodes, graph.edges)
  const all = [...places.values(), ...[...bends.values()].flat()]
  for (const place of all) {
    place.x += MARGIN
    place.y += MARGIN
    place.exit += MARGIN
  }
  const width = Math.max(0, ...all.map((place) => place.x + place.width)) + MARGIN
  const height = Math.max(0, ...all.map((place) => place.y + place.height)) + MARGIN
  return { places, bends, bodies, width, height }
}

/** The height at which edges come and go. */
function middle({ y, height }: Place): number {
  return y + height / 2
}

function drawWay(from: Place, to: Place, bends: readonly Place[]): string {
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
  return way
}

function drawHead(to: Place): string {
  const y = middle(to)
  return `M${to.x - 6} ${y - 4}L${to.x} ${y}L${to.x - 6} ${y + 4}z`
}

/**
 * The handles that edges leave by, in the gap after their source, where the columns leave them room: above all boxes,
 * and none over another.
 */
function placeLabels(graph: Graph, { places, bends }: ReturnType<typeof drawPlaces>) {
  const taken: { x: number; y: number; half: number; text: string }[] = []
  for (const edge of graph.edges) {
    const from = places.get(edge.source)
    const to = places.get(edge.target)
    if (!from || !to || !edge.sourceHandle) continue
    const text = cut(edge.sourceHandle, LABEL_LENGTH)
    const next = bends.get(edge)?.[0] ?? to
    const half = ([...text].length * LETTER) / 2
    const spot = {
      x: (from.exit + next.x - 4) / 2,
      y: (middle(from) + middle(next)) / 2 + 3,
      ...{ half, text },
    }
    // A level line would be hidden by its label.
    if (Math.abs(middle(next) - middle(from)) < 2 * LINE) spot.y -= 8
    while (
      taken.some((one) => Math.abs(one.x - spot.x) < one.half + half && Math.abs(one.y - spot.y) < LINE)
    ) {
      spot.y += LINE / 2
    }
    taken.push(spot)
  }
  return taken
}

function cut(text: string, length: number): string {
  const signs = [...text]
  return signs.length > length ? `${signs.slice(0, length - 1).join('')}…` : text
}
