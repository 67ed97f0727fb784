import { type KeyboardEvent, useMemo, useState } from 'react'
import { NodeBox } from '../graph/box.tsx'
import {
  cutWord,
  type DrawnNode,
  drawHead,
  drawPlaces,
  drawWay,
  nameOf,
  placeLabels,
  shiftDrawing,
} from '../graph/lines.ts'
import type { Place } from '../graph/place.ts'
import { Button } from '../kit/controls/button.tsx'
import { nameStatus, StatusSign } from '../kit/status.tsx'
import type { Graph } from '../workflows/versions/data.ts'
import type { RecordState } from './records.ts'
import '../graph/graph.css'
import './graph.css'
import { type LoopCount, type Tree, tellLoop, worstOf } from './tree.ts'

const MARGIN = 24
const NAME_LENGTH = 19
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
  const { places, bends, bodies, labels, width, height } = useMemo(() => drawGraph(graph), [graph])
  const change = (by: number) => setZoom((now) => Math.min(ZOOM.most, Math.max(ZOOM.least, (now ?? 1) * by)))
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]))

  // The body of a loop is drawn, and comes to the keyboard, right after it.
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
  node: DrawnNode
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
  const name = nameOf(node)
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
      <NodeBox width={width} height={height} isLoop={isLoop} />
      <text className="name" x={14} y={20}>
        {cutWord(name, isLoop ? 60 : NAME_LENGTH)}
      </text>
      <text className={count ? 'type count' : 'type'} x={14} y={35}>
        {cutWord(below, isLoop ? 60 : 24)}
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

function drawGraph({ nodes, edges }: Graph) {
  const drawn = drawPlaces(nodes, edges)
  const { width, height } = shiftDrawing(drawn, { x: MARGIN, y: MARGIN })
  return { ...drawn, labels: placeLabels(edges, drawn), width: width + MARGIN, height: height + MARGIN }
}
