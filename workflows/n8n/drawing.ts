import { drawCircles, enterCircle, leaveCircles } from './circledrawing.ts'
import { SEVERAL_INPUTS } from './circles.ts'
import type { SourceLink, SourceNode } from './document.ts'
import { addEdge, addHelper, type EdgeDrawing, type EdgeStart, listKept } from './edgedrawing.ts'
import { type LoopBlock, readLoopOutputs } from './loops.ts'
import { findSides } from './readers.ts'

/** For each input of a node that has several, an expression for what comes by it. */
export function readInputs({ source, ids }: EdgeDrawing, node: SourceNode): string[] {
  if (!SEVERAL_INPUTS.has(node.type)) return []
  const links = source.links.filter(({ to }) => to === node.name)
  const count = Math.max(2, Number(node.parameters.numberInputs) || 0, ...links.map(({ input }) => input + 1))
  return Array.from({ length: Math.min(count, 50) }, (_, input) =>
    links.some((link) => link.input === input)
      ? `{{ $nodes.${nameInput(ids, node.name, input)} }}`
      : '{{ null }}',
  )
}

function nameInput(ids: ReadonlyMap<string, string>, name: string, input: number): string {
  return `${ids.get(name)}__in${input}`
}

/** Draws the edges for all connections, and the nodes of loops. All nodes must be built. */
export function drawEdges(drawing: EdgeDrawing): void {
  const { source, loops } = drawing
  for (const { id, entry, exit, mapped } of drawing.built.values()) {
    if (entry !== id) addEdge(drawing, { id: entry, handle: null }, id)
    if (exit !== id) addEdge(drawing, { id, handle: mapped.shaper?.handle ?? null }, exit)
  }
  for (const loop of loops.values()) drawLoop(drawing, loop)
  const back = findWaysBack(drawing)
  for (const link of source.links) {
    if (back.has(link)) replaceWayBack(drawing, link)
    else drawLink(drawing, link)
  }
  drawCircles(drawing)
}

function drawLink(drawing: EdgeDrawing, link: SourceLink): void {
  const { built, loops, ids } = drawing
  const first = findStart(drawing, link)
  if (!first) return
  const start = leaveCircles(drawing, link, first)
  const loop = loops.get(link.to)
  const target = built.get(link.to)!
  const entry = enterCircle(drawing, link)
  if (entry !== undefined) addEdge(drawing, start, entry)
  else if (loop) {
    const end = loop.members.has(link.from) ? `${ids.get(link.to)}__back` : `${ids.get(link.to)}__list`
    addEdge(drawing, start, end)
  } else if (
    SEVERAL_INPUTS.has(target.source.type) &&
    !target.mapped.isPlaceholder &&
    !target.source.disabled
  ) {
    const id = nameInput(ids, link.to, link.input)
    if (!drawing.helpers.has(id)) {
      const name = `${link.to.slice(0, 150)} (input ${link.input + 1})`
      addHelper(drawing, target.source, { id, name, type: 'NO_OP', config: {}, perItem: true })
      addEdge(drawing, { id, handle: null }, target.id)
    }
    addEdge(drawing, start, id)
  } else if (!target.mapped.works && links(drawing, link.to) > 1) {
    const id = `${target.id}__in`
    if (!drawing.helpers.has(id)) {
      const name = `${link.to.slice(0, 150)} (input)`
      addHelper(drawing, target.source, { id, name, type: 'NO_OP', config: {}, perItem: true })
      addEdge(drawing, { id, handle: null }, target.id)
    }
    addEdge(drawing, start, id)
  } else addEdge(drawing, start, target.entry)
}

/** How many connections lead to a node. */
const links = ({ source }: EdgeDrawing, name: string) => source.links.filter(({ to }) => to === name).length

/** Where the edge for a connection begins. Reports an output that our node does not have. */
function findStart({ built, loops, ids, reporterOf }: EdgeDrawing, link: SourceLink): EdgeStart | undefined {
  const { source, exit, mapped } = built.get(link.from)!
  if (loops.has(link.from)) {
    const isDone = link.output === readLoopOutputs(source).done
    return { id: `${ids.get(link.from)}__${isDone ? 'done' : 'item'}`, handle: null }
  }
  const handles = mapped.handles ?? [null]
  const handle = handles[link.output]
  if (handle !== undefined && handle !== '') return { id: exit, handle }
  const failed = source.raw.onError === 'continueErrorOutput' && link.output === handles.length
  if (failed) return { id: built.get(link.from)!.id, handle: 'error' }
  // n8n sends nothing by an output that the node does not have.
  if (handle === '') return undefined
  const message =
    'n8n has a connection from this output of the node, by which nothing ever leaves. It was left out: connect the ' +
    'next node to another output if it should be executed.'
  reporterOf(link.from)('connection', `main[${link.output}]`, message, link)
  return undefined
}

/**
 * The nodes of a loop: `__list` collects what comes to it, the FOR_EACH goes through its batches, in which
 * `__item` has the items of one and `__back` what comes back; `__done` has all that came back.
 */
function drawLoop(drawing: EdgeDrawing, { node, members }: LoopBlock): void {
  const { ids, readers } = drawing
  const id = ids.get(node.name)!
  const read = findSides(readers, node.name, members)
  const isReadInside = read.inside || !read.outside
  const short = node.name.slice(0, 150)
  const helper = (
    suffix: string,
    label: string,
    rest: { type: string; config: Record<string, unknown> } & Record<string, unknown>,
  ) => addHelper(drawing, node, { id: `${id}__${suffix}`, name: label, ...rest })
  const pass = { type: 'NO_OP', config: {}, perItem: true }
  helper('list', `${short} (items)`, pass)
  const inside = { ...pass, parentId: id }
  helper('item', isReadInside ? node.name.slice(0, 200) : `${short} (batch)`, inside)
  helper('back', `${short} (back)`, inside)
  const mark = `${id}__mark`
  const kept = listKept(drawing, members, id)
  const parts = kept.map(
    ({ exit }) => `$exists($nodes.${exit}) ? {"${exit}": {"items": [$nodes.${exit}.items]}} : {}`,
  )
  const result = `{"${mark}": $input.items}`
  helper('mark', `${short} (result)`, {
    type: 'TRANSFORM',
    config: { expression: parts.length === 0 ? result : `$merge([${[result, ...parts].join(', ')}])` },
    parentId: id,
  })
  const back = `($exists(${mark}.${mark}) ? ${mark}.${mark} : ${mark})`
  helper('done', isReadInside ? `${short} (done)` : node.name.slice(0, 200), {
    type: 'TRANSFORM',
    config: { expression: `{"items": [$nodes.${id}.items.${back}]}` },
  })
  addEdge(drawing, { id: `${id}__list`, handle: null }, id)
  addEdge(drawing, { id: `${id}__back`, handle: null }, mark)
  addEdge(drawing, { id, handle: null }, `${id}__done`)
  if (kept.length > 0) drawKept(drawing, node, mark, kept)
}

/** Behind a loop, the last outputs of nodes in it that are read there; none of a node that was never executed. */
function drawKept(
  drawing: EdgeDrawing,
  node: SourceNode,
  mark: string,
  kept: ReturnType<typeof listKept>,
): void {
  const id = drawing.ids.get(node.name)!
  const short = node.name.slice(0, 150)
  const last = (exit: string) =>
    `($nodes.${id}.items.($exists(${mark}.${exit}) ? ${mark}.${exit} : ${exit}))[-1]`
  const cases = kept.map(({ exit }) => ({ handle: exit, condition: `$exists(${last(exit)})` }))
  addHelper(drawing, node, {
    id: `${id}__kept`,
    name: `${short} (last outputs)`,
    type: 'SWITCH',
    config: { cases, all: true },
  })
  addEdge(drawing, { id, handle: null }, `${id}__kept`)
  for (const one of kept) {
    const config = { expression: `{"items": [${last(one.exit)}.items]}` }
    addHelper(drawing, node, { id: one.id, name: one.name.slice(0, 200), type: 'TRANSFORM', config })
    addEdge(drawing, { id: `${id}__kept`, handle: one.exit }, one.id)
    addEdge(drawing, { id: one.id, handle: null }, `${id}__done`)
  }
}

/** Connections that lead back to a node before them, besides those that end a batch of a loop or a round of a circle. */
function findWaysBack({ source, loops, circles, built }: EdgeDrawing): Set<SourceLink> {
  const back = new Set<SourceLink>()
  const outward = Map.groupBy(source.links, ({ from }) => from)
  const state = new Map<string, 'open' | 'done'>()
  const endsRound = ({ from, to }: SourceLink) =>
    [loops, circles].some((blocks) => blocks.get(to)?.members.has(from))
  for (const { name: first } of source.nodes) {
    const stack = [{ name: first, at: 0 }]
    if (state.has(first)) continue
    state.set(first, 'open')
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const link = (outward.get(top.name) ?? [])[top.at++]
      if (!link) {
        state.set(top.name, 'done')
        stack.pop()
      } else if (!endsRound(link) && built.has(link.to)) {
        const known = state.get(link.to)
        if (known === 'open') back.add(link)
        else if (!known) {
          state.set(link.to, 'open')
          stack.push({ name: link.to, at: 0 })
        }
      }
    }
  }
  return back
}

/** Where n8n goes back to repeat nodes, our execution must not end as a success. */
function replaceWayBack(drawing: EdgeDrawing, link: SourceLink): void {
  const start = findStart(drawing, link)
  if (!start) return
  const way = `from "${link.from}" back to "${link.to}"`
  const message =
    `n8n goes ${way}. Perdure cannot, and a STOP_AND_ERROR node in this place fails the execution: repeat ` +
    'the nodes with REPEAT or FOR_EACH.'
  drawing.reporterOf(link.from)('connection', `main[${link.output}]`, message, link)
  const id = `${drawing.ids.get(link.from)}__back${link.output}`
  addHelper(drawing, drawing.built.get(link.from)!.source, {
    id,
    name: `Back to ${link.to.slice(0, 150)}`,
    type: 'STOP_AND_ERROR',
    config: {
      message: `The way ${way} was not imported from n8n: use REPEAT or FOR_EACH`.replaceAll('{', '('),
    },
  })
  addEdge(drawing, start, id)
}
