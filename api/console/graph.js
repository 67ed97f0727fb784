import { h, s } from './dom.js'
import { HEIGHT, placeNodes, WIDTH } from './layout.js'

const MARGIN = 20
const NAME_LENGTH = 21

/**
 * Draws a graph, to look at. `onPick` is called with a node's id on a click, Enter or Space; `update` colours the
 * nodes by their status in a run.
 * @param {{ nodes: import('./layout.js').GraphNode[], edges: import('./layout.js').GraphEdge[] }} graph
 * @param {{ onPick?: (id: string) => void, label?: string }} [options]
 */
export function drawGraph({ nodes, edges }, { onPick, label } = {}) {
  const { places, bends } = placeNodes(nodes, edges)
  const xs = [...places.values()].map(({ x }) => x)
  const ys = [...places.values(), ...[...bends.values()].flat()].map(({ y }) => y)
  const left = Math.min(...xs)
  const top = Math.min(...ys)
  const width = (xs.length ? Math.max(...xs) - left + WIDTH : 0) + 2 * MARGIN
  const height = (ys.length ? Math.max(...ys) - top + HEIGHT : 0) + 2 * MARGIN
  /** @param {{ x: number, y: number }} place */
  const shift = (place) => ({ x: place.x - left + MARGIN, y: place.y - top + MARGIN })
  /** @param {string} id */
  const placeOf = (id) => {
    const place = places.get(id)
    return place && shift(place)
  }

  const lines = edges.flatMap((edge) => {
    const from = placeOf(edge.source)
    const to = placeOf(edge.target)
    return from && to ? [drawEdge(edge, from, to, (bends.get(edge) ?? []).map(shift))] : []
  })
  const boxes = new Map(
    nodes.flatMap((node) => {
      const place = placeOf(node.id)
      return place ? [[node.id, drawNode(node, place, onPick)]] : []
    }),
  )
  const svg = s('svg', {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: 'group',
    'aria-label': label ?? 'Graph',
  })
  svg.append(...lines.map(({ line }) => line), ...boxes.values())
  // Small enough to see the whole, large enough to read; what is still too wide scrolls.
  svg.style.minWidth = `${Math.round(width * 0.75)}px`
  const element = h(
    'div',
    { class: 'graph', tabindex: 0, role: 'region', 'aria-label': label ?? 'Graph' },
    svg,
  )

  /** @param {Map<string, string>} statuses by node id; a node without one has not run */
  function update(statuses) {
    for (const node of nodes) {
      const box = boxes.get(node.id)
      const status = statuses.get(node.id)
      box?.setAttribute('class', `node run ${status ? status.toLowerCase() : 'idle'}`)
      box?.setAttribute('aria-label', `${nameOf(node)}, ${node.type}: ${status ?? 'did not run'}`)
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

/**
 * @param {import('./layout.js').GraphEdge} edge
 * @param {{ x: number, y: number }} from
 * @param {{ x: number, y: number }} to
 * @param {{ x: number, y: number }[]} bends
 */
function drawEdge(edge, from, to, bends) {
  const y1 = from.y + HEIGHT / 2
  const x2 = to.x
  const y2 = to.y + HEIGHT / 2
  let x = from.x + WIDTH
  let y = y1
  let way = `M${x} ${y}`
  for (const next of [...bends, to]) {
    const end = next === to ? x2 - 5 : next.x
    const height = next.y + HEIGHT / 2
    const bend = Math.max(28, Math.abs(end - x) / 2)
    way += `C${x + bend} ${y} ${end - bend} ${height} ${end} ${height}`
    if (next !== to) way += `H${next.x + WIDTH}`
    x = next.x + WIDTH
    y = height
  }
  const line = s(
    'g',
    { class: 'edge' },
    s('path', { d: way }),
    s('path', { class: 'head', d: `M${x2 - 6} ${y2 - 4}L${x2} ${y2}L${x2 - 6} ${y2 + 4}z` }),
  )
  if (edge.sourceHandle) {
    const text = cut(edge.sourceHandle, 8)
    // Near where the branch begins: further on the lines of other branches cross.
    const first = (bends[0] ?? to).y + HEIGHT / 2
    line.append(s('text', { x: from.x + WIDTH + 16, y: y1 + (first - y1) * 0.28 - 4, class: 'handle' }, text))
  }
  return { line, edge }
}

/** @param {import('./layout.js').GraphNode} node @param {{ x: number, y: number }} place @param {((id: string) => void) | undefined} onPick */
function drawNode(node, { x, y }, onPick) {
  const pick = () => onPick?.(node.id)
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return
    event.preventDefault()
    pick()
  }
  const acts = onPick ? { tabindex: 0, role: 'button', onclick: pick, onkeydown: keys } : { role: 'img' }
  const disabled = node.disabled ? ', disabled' : ''
  return s(
    'g',
    {
      class: 'node',
      transform: `translate(${x} ${y})`,
      'data-node': node.id,
      'data-disabled': Boolean(node.disabled),
      'aria-label': `${nameOf(node)}, ${node.type}${disabled}`,
      ...acts,
    },
    s('title', null, `${nameOf(node)} (${node.id})`),
    s('rect', { class: 'box', width: WIDTH, height: HEIGHT, rx: 8 }),
    s('rect', { class: 'edge-mark', x: 0, y: 9, width: 3, height: HEIGHT - 18, rx: 1.5 }),
    s('text', { class: 'name', x: 14, y: 20 }, cut(nameOf(node), NAME_LENGTH)),
    s('text', { class: 'type', x: 14, y: 35 }, node.disabled ? `${node.type} · off` : node.type),
  )
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
