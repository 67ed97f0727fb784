import type { CircleBlock } from './circles.ts'
import type { SourceLink } from './document.ts'
import { addEdge, addHelper, type EdgeDrawing, type EdgeStart, listKept, repeatId } from './edgedrawing.ts'

const PASS = { type: 'NO_OP', config: {}, perItem: true }
const MOST_ROUNDS = 100_000

/** By the end of which node of ours a connection enters a circle, or goes round it; undefined if it does neither. */
export function enterCircle({ ids, circles }: EdgeDrawing, { from, to }: SourceLink): string | undefined {
  const circle = circles.get(to)
  if (!circle) return undefined
  return `${ids.get(to)}__${circle.members.has(from) ? 'next' : 'enter'}`
}

/** Leads a connection that begins in circles out of those in which it does not end; returns where it goes on. */
export function leaveCircles(drawing: EdgeDrawing, link: SourceLink, start: EdgeStart): EdgeStart {
  const { ids, circles, built, exits } = drawing
  const left = [...circles.values()]
    .filter(({ members }) => members.has(link.from) && !members.has(link.to))
    .sort((a, b) => a.members.size - b.members.size)
  let at = start
  for (const circle of left) {
    const ways = exits.get(circle) ?? []
    exits.set(circle, ways)
    const way = JSON.stringify([link.from, link.output])
    if (!ways.includes(way)) ways.push(way)
    const base = ids.get(circle.head)
    const number = ways.indexOf(way)
    addHelper(drawing, built.get(link.from)!.source, {
      id: `${base}__exit${number}`,
      name: `${link.from.slice(0, 150)} (way out ${link.output + 1})`,
      ...createPlaces(drawing, circle).behind(1, number + 1),
      ...PASS,
      parentId: repeatId(ids, circle),
    })
    addEdge(drawing, at, `${base}__exit${number}`)
    at = { id: `${base}__out${number}`, handle: null }
  }
  return at
}

type Place = { x: number; y: number }

/** Places on n8n's canvas, counted in steps from the left and the right end of a circle's nodes. */
function createPlaces({ source }: EdgeDrawing, { head, members }: CircleBlock) {
  const places = source.nodes.flatMap(({ name, position }) =>
    position && members.has(name) ? [position] : [],
  )
  const [left, top] = [Math.min(...places.map(({ x }) => x)), Math.min(...places.map(({ y }) => y))]
  const right = Math.max(...places.map(({ x }) => x))
  const y = source.nodes.find(({ name }) => name === head)?.position?.y ?? top
  const at = (x: number, y: number): { position?: Place } => (places.length > 0 ? { position: { x, y } } : {})
  return {
    before: (steps: number) => at(left - steps * 220, y),
    behind: (steps: number, row: number) => at(right + steps * 220, top + row * 120),
    corner: at(left - 300, top - 80),
  }
}

/** Draws the REPEAT of each circle, with the nodes that lead into it and out of it. All connections must be drawn. */
export function drawCircles(drawing: EdgeDrawing): void {
  for (const circle of drawing.circles.values()) {
    drawRounds(drawing, circle)
    drawWaysOut(drawing, circle)
    report(drawing, circle)
  }
}

/**
 * `__enter` collects the items that come from outside. Each round begins at `__round` with those, or with what came
 * back at the end of the one before; `__next` has what goes back, `__exit0` and so on what leaves; `__left` is the result.
 */
function drawRounds(drawing: EdgeDrawing, circle: CircleBlock): void {
  const { ids, built, loops, exits } = drawing
  const base = ids.get(circle.head)!
  const id = repeatId(ids, circle)
  const near = built.get(circle.head)!
  const short = circle.head.slice(0, 150)
  const outside = { parentId: drawing.aroundCircle(circle) }
  const inside = { parentId: id }
  const left = `${base}__left`
  const before = readResult('$input', left)
  const places = createPlaces(drawing, circle)
  const enter = { id: `${base}__enter`, name: `${short} (items)`, ...places.before(3) }
  addHelper(drawing, near.source, { ...enter, ...PASS, ...outside })
  addHelper(drawing, near.source, {
    id,
    name: `${short} (repeated)`,
    type: 'REPEAT',
    config: { until: `$not($exists(${before}.items))`, maxIterations: MOST_ROUNDS },
    ...places.corner,
    ...outside,
  })
  const round = `{"items": [$exists($input.${left}) ? ${before}.items : $input.items]}`
  addHelper(drawing, near.source, {
    id: `${base}__round`,
    name: `${short} (round)`,
    type: 'TRANSFORM',
    config: { expression: round },
    ...places.before(1),
    ...inside,
  })
  const next = { id: `${base}__next`, name: `${short} (back)`, ...places.behind(1, 0) }
  addHelper(drawing, near.source, { ...next, ...PASS, ...inside })
  const ways = exits.get(circle) ?? []
  addHelper(drawing, near.source, {
    id: left,
    name: `${short} (result)`,
    type: 'TRANSFORM',
    config: { expression: writeResult(drawing, circle, ways.length) },
    ...places.behind(2, 0),
    ...inside,
  })
  addEdge(drawing, { id: `${base}__enter`, handle: null }, id)
  addEdge(
    drawing,
    { id: `${base}__round`, handle: null },
    loops.has(circle.head) ? `${base}__list` : near.entry,
  )
  for (const end of ['next', ...ways.map((_, i) => `exit${i}`)])
    addEdge(drawing, { id: `${base}__${end}`, handle: null }, left)
}

/** The result of a round, which has several ends if some of its nodes lead nowhere. */
function readResult(value: string, left: string): string {
  return `($exists(${value}.${left}.${left}) ? ${value}.${left}.${left} : ${value}.${left})`
}

function writeResult(drawing: EdgeDrawing, circle: CircleBlock, ways: number): string {
  const base = drawing.ids.get(circle.head)!
  const left = `${base}__left`
  const going = `$nodes.${base}__next.items`
  const parts = Array.from({ length: ways }, (_, i) => {
    const leaving = `$nodes.${base}__exit${i}.items`
    return `$count(${leaving}) > 0 ? {"exit${i}": [${leaving}]} : {}`
  })
  const kept = listKept(drawing, circle.members, repeatId(drawing.ids, circle)).map(({ exit }) => {
    const earlier = `${readResult('$item', left)}.${exit}`
    return `$exists($nodes.${exit}) ? {"${exit}": [$nodes.${exit}.items]} : $exists(${earlier}) ? {"${exit}": [${earlier}]} : {}`
  })
  const message =
    `A round that begins with "${circle.head}" has items that go back and others that go on. n8n executes what follows ` +
    'once for each round, which Perdure cannot: let all items of a round take the same way'
  return (
    `($ways := $merge([${parts.join(', ') || '{}'}]); ` +
    `$count(${going}) > 0 and $count($keys($ways)) > 0 ? $error(${JSON.stringify(message.replaceAll(/[{}]/g, ''))}) : ` +
    `{"${left}": $merge([$count(${going}) > 0 ? {"items": [${going}]} : {}, $ways, ${['{}', ...kept].join(', ')}])})`
  )
}

/** One `__out0` for each way has what leaves by it; before them come the last outputs that are read behind the circle. */
function drawWaysOut(drawing: EdgeDrawing, circle: CircleBlock): void {
  const { ids, built, exits } = drawing
  const base = ids.get(circle.head)!
  const id = repeatId(ids, circle)
  const near = built.get(circle.head)!.source
  const short = circle.head.slice(0, 150)
  const outside = { parentId: drawing.aroundCircle(circle) }
  const result = readResult(`$nodes.${id}`, `${base}__left`)
  const places = createPlaces(drawing, circle)
  const route = (suffix: string, name: string, keys: string[], steps: number) => {
    const cases = keys.map((key) => ({ handle: key, condition: `$exists(${result}.${key})` }))
    addHelper(drawing, near, {
      id: `${base}__${suffix}`,
      name,
      type: 'SWITCH',
      config: { cases, all: true },
      ...places.behind(steps, 0),
      ...outside,
    })
    addEdge(drawing, { id, handle: null }, `${base}__${suffix}`)
  }
  const list = (nodeId: string, name: string, key: string, at: { position?: Place }) =>
    addHelper(drawing, near, {
      id: nodeId,
      name,
      type: 'TRANSFORM',
      config: { expression: `{"items": [${result}.${key}]}` },
      ...at,
      ...outside,
    })
  const ways = (exits.get(circle) ?? []).map((_, i) => `exit${i}`)
  const kept = listKept(drawing, circle.members, repeatId(drawing.ids, circle))
  if (ways.length > 0) route('ways', `${short} (ways out)`, ways, 5)
  for (const [i, key] of ways.entries()) {
    list(`${base}__out${i}`, `${short} (out ${i + 1})`, key, places.behind(6, i))
    addEdge(drawing, { id: `${base}__ways`, handle: key }, `${base}__out${i}`)
  }
  if (kept.length > 0 && ways.length > 0) {
    const keys = kept.map(({ exit }) => exit)
    route('kept', `${short} (last outputs)`, keys, 3)
    for (const [row, one] of kept.entries()) {
      list(one.id, one.name.slice(0, 200), one.exit, places.behind(4, row + 1))
      addEdge(drawing, { id: `${base}__kept`, handle: one.exit }, one.id)
      addEdge(drawing, { id: one.id, handle: null }, `${base}__ways`)
    }
  }
  const message = `The nodes from "${circle.head}" on were repeated ${MOST_ROUNDS} times`.replaceAll('{', '(')
  addHelper(drawing, near, {
    id: `${base}__endless`,
    name: `${short} (without end)`,
    type: 'STOP_AND_ERROR',
    config: { message },
    ...places.behind(3, -1),
    ...outside,
  })
  addEdge(drawing, { id, handle: 'exhausted' }, `${base}__endless`)
}

function report({ source, reporterOf }: EdgeDrawing, { head, members, beside }: CircleBlock): void {
  for (const name of beside) {
    const message =
      `This node is executed in each round that begins with "${head}". n8n executes it once for each round too, but only ` +
      'after the last one, and the answer may be that of the first.'
    reporterOf(name)('items', 'connections', message, head)
  }
  for (const link of source.links.filter(({ from, to }) => to === head && members.has(from))) {
    const message =
      `n8n goes from "${link.from}" back to "${head}". Here a REPEAT does, with the nodes in between. Where items of one ` +
      'round go back and others go on, n8n executes what follows several times, and this execution fails: let all items ' +
      'of a round take the same way.'
    reporterOf(link.from)('connection', `main[${link.output}]`, message, link)
  }
}
