import type { GraphEdge } from '../graph.ts'
import type { Link, SourceNode } from './document.ts'
import type { Layout, Loop } from './layout.ts'
import { type Built, itemNode, type Mapper, mainOf, type NewNode, outputOf } from './mapper.ts'
import { batchOutputs } from './order.ts'
import type { Complain } from './report.ts'

/** Nodes and edges that stand for the connections. */
export type Drawn = { nodes: NewNode[]; edges: GraphEdge[] }

type End = { id: string; handle: string | null }

/** Connections as edges: into loops, out of them, and past nodes that are made on the way. */
export function drawEdges({
  layout,
  built,
  ids,
  mapperOf,
  complainOf,
}: {
  layout: Layout
  built: ReadonlyMap<string, Built>
  ids: ReadonlyMap<string, string>
  mapperOf: (node: SourceNode) => Mapper
  complainOf: (name: string) => Complain
}) {
  const made = new Map<string, NewNode>()
  const edges = new Map<string, GraphEdge>()
  const join = (from: End, to: string) => {
    const edge = { source: from.id, sourceHandle: from.handle, target: to }
    edges.set(JSON.stringify(edge), edge)
  }
  const make = (
    id: string,
    type: string,
    config: Record<string, unknown>,
    loop: Loop | undefined,
    near: SourceNode,
  ) => {
    const { position } = near
    made.set(id, {
      id,
      type,
      config,
      ...(position ? { position: { x: position.x + 80, y: position.y + 120 } } : {}),
      ...(loop ? { parentId: loop.id } : {}),
    })
    return id
  }
  const nodeOf = (name: string) => built.get(name)!.source

  /** Connections that end an iteration: back to the splitInBatches, or on to what takes the whole list. */
  function exitsOf(loop: Loop): Link[] {
    if (loop.own)
      return layout.links.filter((link) => link.to === loop.own!.name && loop.members.has(link.from))
    return layout.links.filter((link) => layout.loopOf(link.from) === loop && layout.loopOf(link.to) !== loop)
  }

  /** Whether every iteration ends with one and the same node, so that its result needs no telling apart. */
  function isPlain(loop: Loop): boolean {
    const exits = exitsOf(loop)
    const [first] = exits
    if (!first) return true
    const last = built.get(first.from)
    if (!last || exits.some(({ from }) => from !== first.from) || !leavesOneWay(last)) return false
    if (layout.loopOf(first.from) !== loop || layout.flowOf(first.from).output.card !== 'one') return false
    return [...loop.members].every((name) => {
      const member = built.get(name)
      if (!member) return true
      if (name === first.from || layout.loopOf(name) !== loop)
        return layout.loopOf(name)?.own !== undefined || name === first.from
      const inside = layout.links.filter((link) => link.from === name && loop.members.has(link.to))
      if (mapperOf(member.source).takes === 'loop')
        return inside.some(({ output }) => output === batchOutputs(member.source).done)
      const handles = member.handles.length + (branches(member) ? 1 : 0)
      const all = Array.from({ length: handles }, (_, output) => output)
      return (
        mainOf(member.mapped).type !== 'SWITCH' &&
        all.every((output) => inside.some((link) => link.output === output))
      )
    })
  }

  const branches = ({ source }: Built) => source.raw.onError === 'continueErrorOutput'
  const leavesOneWay = (node: Built) =>
    node.handles.length === 1 && node.handles[0] === null && !branches(node)

  /** Where a node leaves by an output; undefined for one that it has none of. */
  function leave({ from, output }: Link): End | undefined {
    const node = built.get(from)!
    const handle = node.handles[output]
    if (handle !== undefined && handle !== '') return { id: node.exit, handle }
    if (branches(node) && output === node.handles.length) return { id: node.id, handle: 'error' }
    return undefined
  }

  const markOf = (link: Link) => `${ids.get(link.from)}__out${link.output > 0 ? link.output : ''}`

  /** In the loop, keeps what leaves by this connection apart from whatever else an iteration ends with. */
  function mark(link: Link, loop: Loop): string {
    const id = markOf(link)
    const end = leave(link)
    if (!end) return id
    const { output } = layout.flowOf(link.from)
    const value = end.handle === 'error' ? '$input' : `$input${output.path}`
    const inner = layout.loopOf(link.from)
    if (inner && inner !== loop) {
      join(
        isPlain(inner)
          ? { id: inner.id, handle: null }
          : { id: collect(inner, [link], 'items'), handle: null },
        id,
      )
      make(id, 'TRANSFORM', { expression: `{"${id}": $input.items}` }, loop, nodeOf(link.from))
    } else {
      make(id, 'TRANSFORM', { expression: `{"${id}": ${value}}` }, loop, nodeOf(link.from))
      join(end, id)
    }
    return id
  }

  /** Behind the loop, the list of what left by these connections. */
  function collect(loop: Loop, links: Link[], suffix: string): string {
    const marks = [...new Set(links.map((link) => mark(link, loop)))]
    const id = `${suffix === 'items' ? marks[0] : loop.id}__${suffix}`
    const found = marks
      .map((name) => `($exists(${name}.${name}) ? ${name}.${name} : ${name})`)
      .reduceRight((rest, one) => `$append(${one}, ${rest})`)
    const expression = `{"items": [${outputOf(loop.id)}.items.(${found})]}`
    make(id, 'TRANSFORM', { expression }, loop.within, nodeOf(links[0]!.from))
    join({ id: loop.id, handle: null }, id)
    return id
  }

  /** The end of a connection that leads on from where it starts, in the target's own loop. */
  function startOf(link: Link): End | undefined {
    const node = nodeOf(link.from)
    if (mapperOf(node).takes === 'loop' && mainOf(built.get(link.from)!.mapped).type === 'FOR_EACH') {
      const loop = layout.loops.find(({ own }) => own === node)!
      if (link.output !== batchOutputs(node).done) return enterBatch(loop, node)
      const exits = exitsOf(loop)
      return { id: isPlain(loop) ? loop.id : collect(loop, exits, 'done'), handle: null }
    }
    const loop = layout.loopOf(link.from)
    if (!loop || loop.own || loop === layout.loopOf(link.to)) return leave(link)
    if (isPlain(loop)) return { id: loop.id, handle: null }
    return leave(link) && { id: collect(loop, [link], 'items'), handle: null }
  }

  /** The body's first nodes get the item by themselves; where loops are in it, they ask a node for it. */
  function enterBatch(loop: Loop, node: SourceNode): End | undefined {
    if (!layout.loops.some(({ within }) => within === loop)) return undefined
    return { id: make(itemNode(loop), 'NO_OP', {}, loop, node), handle: null }
  }

  /** A connection from a branch has a node of its own on it, so that its source has put out nothing where it is not taken. */
  function gate(link: Link, end: End): End {
    if (end.handle === null && !branches(built.get(link.from)!)) return end
    const id = make(
      `${end.id}__${end.handle ?? 'main'}`,
      'NO_OP',
      {},
      layout.loopOf(link.to),
      nodeOf(link.from),
    )
    join(end, id)
    return { id, handle: null }
  }

  /** What comes in by each input of a merge, as JSONata. */
  function readInputs(name: string): { text: string; card: 'one' | 'many' }[][] {
    return layout.inputsOf(name).map((arrivals) =>
      arrivals.flatMap(({ link, flow }) => {
        const end = startOf(link)
        if (!end) return []
        return [{ text: outputOf(gate(link, end).id, flow.path), card: flow.card }]
      }),
    )
  }

  function draw(): Drawn {
    for (const loop of layout.loops) if (!loop.own) makeLoop(loop)
    for (const { id, mapped } of built.values()) {
      for (const [i, { suffix }] of mapped.parts.slice(1).entries()) {
        join({ id: id + mapped.parts[i]!.suffix, handle: null }, id + suffix)
      }
    }
    for (const link of layout.links) {
      const to = layout.loops.find(({ own }) => own?.name === link.to)
      if (to?.members.has(link.from)) continue
      const start = startOf(link)
      const source = nodeOf(link.from)
      if (!start) {
        const entry =
          mapperOf(source).takes === 'loop' && mainOf(built.get(link.from)!.mapped).type === 'FOR_EACH'
        const further = built.get(link.from)!.mapped.more?.some(({ output }) => output === link.output)
        if (!entry && !further)
          complainOf(link.from)('connection', `main[${link.output}]`, 'It has no such output here', link)
        continue
      }
      const target = built.get(link.to)!
      const inner = layout.loopOf(link.to)
      const outer = layout.loopOf(link.from)
      const enters = inner !== undefined && !inner.own && inner !== outer && outer?.within !== inner
      const end = mapperOf(target.source).takes === 'merge' ? gate(link, start) : start
      join(end, enters ? inner.id : target.entry)
    }
    for (const { mapped, source, exit } of built.values()) {
      for (const { output, handle } of mapped.more ?? []) {
        for (const link of layout.links) {
          if (link.from === source.name && link.output === output)
            join({ id: exit, handle }, built.get(link.to)!.entry)
        }
      }
    }
    for (const link of layout.circles) breakCircle(link)
    return { nodes: [...made.values()], edges: [...edges.values()] }
  }

  function makeLoop(loop: Loop): void {
    const source = layout.loopOf(loop.source)
    const { output } = layout.flowOf(loop.source)
    const own = loop.output === -1 || (source !== undefined && source !== loop.within)
    const items = own ? '$input.items' : `$input${output.path}`
    const first = nodeOf([...loop.members][0]!)
    const calls = [...loop.members].some((name) => mainOf(built.get(name)!.mapped).type === 'HTTP_REQUEST')
    const { position } = first
    made.set(loop.id, {
      id: loop.id,
      type: 'FOR_EACH',
      name: `For each: ${first.name.slice(0, 150)}`,
      // n8n sends the requests of all items at once, and does everything else one by one.
      config: { items: `{{ ${items} }}`, concurrency: calls ? 10 : 1, onItemError: 'stop' },
      ...(position ? { position: { x: position.x - 120, y: position.y - 80 } } : {}),
      ...(loop.within ? { parentId: loop.within.id } : {}),
    })
  }

  /** A run must not end well where n8n would have gone round again. */
  function breakCircle(link: Link): void {
    const message = `n8n goes back from "${link.from}" to "${link.to}" here: see REPEAT and FOR_EACH`
    complainOf(link.from)('connection', `main[${link.output}]`, `A circle is no loop here: ${message}`, link)
    const id = make(
      `${ids.get(link.from)}__back${link.output}`,
      'STOP_AND_ERROR',
      { message },
      layout.loopOf(link.from),
      nodeOf(link.from),
    )
    const end = leave(link)
    if (end) join(end, id)
  }

  return { readInputs, draw }
}
