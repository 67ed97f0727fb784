import { h, s } from './dom.js'
import { HEIGHT, LABEL_LENGTH, placeNodes } from './layout.js'

/** @typedef {import('./layout.js').Place} Place */

const MARGIN = 20
const NAME_LENGTH = 21
const LINE = 12
const LETTER = 6

/** Of a node that ran more than once, in a loop, the first of these that any of its records has. */
const WORST = ['FAILED', 'RUNNING', 'CANCELLED', 'PENDING', 'SUCCESS']

/**
 * Draws a graph, to look at; a loop is a box around its body. `onPick` is called with a node's id on a click, Enter
 * or Space; `update` colours the nodes by their status in a run.
 * @param {{ nodes: import('./layout.js').GraphNode[], edges: import('./layout.js').GraphEdge[] }} graph
 * @param {{ onPick?: (id: string) => void, label?: string }} [options]
 */
export function drawGraph({ nodes, edges }, { onPick, label } = {}) {
  const { places, bends, bodies } = placeNodes(nodes, edges)
  const all = [...places.values(), ...[...bends.values()].flat()]
  for (const place of all) {
    place.x += MARGIN
    place.y += MARGIN
    place.exit += MARGIN
  }
  const width = Math.max(0, ...all.map((place) => place.x + place.width)) + MARGIN
  const height = Math.max(0, ...all.map((place) => place.y + place.height)) + MARGIN

  const lines = edges.flatMap((edge) => {
    const from = places.get(edge.source)
    const to = places.get(edge.target)
    return from && to ? [{ edge, line: drawEdge(from, to, bends.get(edge) ?? []) }] : []
  })
  const boxes = new Map(
    nodes.flatMap((node) => {
      const place = places.get(node.id)
      return place ? [[node.id, drawNode(node, place, bodies.has(node.id), onPick)]] : []
    }),
  )
  const svg = s('svg', {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: 'group',
    'aria-label': label ?? 'Graph',
  })
  const labels = drawLabels(edges, places, bends)
  svg.append(...drawBody(null), ...labels)
  // Small enough to see the whole, large enough to read; what is still too wide scrolls.
  svg.style.minWidth = `${Math.round(width * 0.75)}px`
  const element = h(
    'div',
    { class: 'graph', tabindex: 0, role: 'region', 'aria-label': label ?? 'Graph' },
    svg,
  )

  /** What stands in a loop is drawn, and comes to the keyboard, right after it. @param {string | null} id @returns {SVGElement[]} */
  function drawBody(id) {
    const body = new Set((bodies.get(id) ?? []).map((node) => node.id))
    return [
      ...lines.flatMap(({ edge, line }) => (body.has(edge.source) ? [line] : [])),
      ...[...body].flatMap((one) => {
        const box = boxes.get(one)
        return box ? [box, ...(bodies.has(one) ? drawBody(one) : [])] : []
      }),
    ]
  }

  /** @param {{ nodeId: string, status: string }[]} records of a run; a node without one has not run */
  function update(records) {
    const statuses = Map.groupBy(records, ({ nodeId }) => nodeId)
    for (const node of nodes) {
      const box = boxes.get(node.id)
      const seen = new Set(statuses.get(node.id)?.map(({ status }) => status))
      const status = WORST.find((one) => seen.has(one))
      box?.setAttribute(
        'class',
        `${classOf(bodies.has(node.id))} run ${status ? status.toLowerCase() : 'idle'}`,
      )
      box?.setAttribute('aria-label', `${nameOf(node)}, ${node.type}: ${status ?? 'not executed'}`)
    }
    for (const { line, edge } of lines) {
      line.classList.toggle('taken', statuses.has(edge.source) && statuses.has(edge.target))
    }
  }

  /** @param {string | null} id */
  function mark(id) {
    for (const [one, box] of boxes) box.toggleAttribute('data-picked', one === id)
  }

  return { element, update, mark }
}

/** @param {boolean} isLoop */
function classOf(isLoop) {
  return isLoop ? 'node loop' : 'node'
}

/** The height at which edges come and go. @param {Place} place */
function middle({ y, height }) {
  return y + height / 2
}

/** @param {Place} from @param {Place} to @param {Place[]} bends */
function drawEdge(from, to, bends) {
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
  return s(
    'g',
    { class: 'edge' },
    s('path', { d: way }),
    s('path', { class: 'head', d: `M${to.x - 6} ${last - 4}L${to.x} ${last}L${to.x - 6} ${last + 4}z` }),
  )
}

/**
 * The handles that edges leave by, in the gap after their source, where the columns leave them room: above all
 * boxes, and none over another.
 * @param {import('./layout.js').GraphEdge[]} edges
 * @param {Map<string, Place>} places
 * @param {Map<import('./layout.js').GraphEdge, Place[]>} bends
 */
function drawLabels(edges, places, bends) {
  /** @type {{ x: number, y: number, half: number }[]} */
  const taken = []
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
    return [s('text', { x: spot.x, y: spot.y, class: 'handle' }, text)]
  })
}

/**
 * @param {import('./layout.js').GraphNode} node
 * @param {Place} place
 * @param {boolean} isLoop
 * @param {((id: string) => void) | undefined} onPick
 */
function drawNode(node, { x, y, width, height }, isLoop, onPick) {
  const pick = () => onPick?.(node.id)
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return
    event.preventDefault()
    pick()
  }
  const acts = onPick ? { tabindex: 0, role: 'button', onclick: pick, onkeydown: keys } : { role: 'img' }
  const disabled = node.disabled ? ', disabled' : ''
  const group = s(
    'g',
    {
      class: classOf(isLoop),
      transform: `translate(${x} ${y})`,
      'data-node': node.id,
      'data-disabled': Boolean(node.disabled),
      'aria-label': `${nameOf(node)}, ${node.type}${disabled}`,
      ...acts,
    },
    s('title', null, `${nameOf(node)} (${node.id})`),
    s('rect', { class: 'box', width, height, rx: 8 }),
    s('rect', { class: 'edge-mark', x: 0, y: 9, width: 3, height: HEIGHT - 18, rx: 1.5 }),
    s('text', { class: 'name', x: 14, y: 20 }, cut(nameOf(node), NAME_LENGTH)),
    s('text', { class: 'type', x: 14, y: 35 }, node.disabled ? `${node.type} · off` : node.type),
  )
  if (isLoop) {
    group.append(
      s('rect', {
        class: 'inside',
        x: 6,
        y: HEIGHT - 2,
        width: width - 12,
        height: height - HEIGHT - 4,
        rx: 5,
      }),
    )
  }
  return group
}

/** @param {import('./layout.js').GraphNode} node */
function nameOf(node) {
  // A node that was given no name has its type's.
  return node.name && node.name !== node.type ? node.name : node.id
}

/** @param {string} text @param {number} length */
function cut(text, length) {
  const signs = [...text]
  return signs.length > length ? `${signs.slice(0, length - 1).join('')}…` : text
}
