import type { Link, SourceNode, SourceWorkflow } from './document.ts'
import { type Flow, LIST, type Mapper, ONE } from './mapper.ts'
import { batchOutputs, findBody, findMixed, sort } from './order.ts'
import type { Complain } from './report.ts'

/** Nodes that run once for each item of a list: the body of a FOR_EACH. */
export type Loop = {
  id: string
  /** The node whose list it goes through; a splitInBatches is its own loop. */
  source: string
  output: number
  own?: SourceNode
  within: Loop | undefined
  members: Set<string>
}

/** How the nodes of a foreign workflow stand to items and loops. */
export type Layout = {
  /** In the order in which they can run. */
  order: SourceNode[]
  links: Link[]
  /** Connections that would close a circle: their source comes after their target. */
  circles: Link[]
  loops: Loop[]
  loopOf(name: string): Loop | undefined
  flowOf(name: string): { input: Flow; output: Flow; unwrap: boolean }
  /** What comes in by each input. */
  inputsOf(name: string): { link: Link; flow: Flow }[][]
  upstreamOf(name: string): ReadonlySet<string>
}

export function arrange(
  source: SourceWorkflow,
  mapperOf: (node: SourceNode) => Mapper,
  complainOf: (name: string) => Complain,
): Layout {
  const byName = new Map(source.nodes.map((node) => [node.name, node]))
  const given = source.links.filter((link) => {
    if (mapperOf(byName.get(link.to)!).takes !== 'trigger') return true
    complainOf(link.from)('connection', link.to, 'Nothing leads to a trigger here', link)
    return false
  })
  const isBatch = (name: string) => mapperOf(byName.get(name)!).takes === 'loop'
  const all = Map.groupBy(given, (link) => link.from)
  const batches = source.nodes.filter((node) => isBatch(node.name))
  const bodies = new Map(batches.map((node) => [node.name, findBody(node, all)]))
  const innermost = new Map<string, string>()
  for (const [batch, body] of [...bodies].sort(([, a], [, b]) => b.size - a.size)) {
    for (const name of body) innermost.set(name, batch)
  }
  /** The innermost splitInBatches around a node. */
  const batchOf = (name: string) => innermost.get(name)

  const links = given.filter((link) => {
    if (bodies.get(link.to)?.has(link.from)) return false
    const [from, to] = [batchOf(link.from), batchOf(link.to)]
    if (from === to || (isBatch(link.from) && to === link.from)) return true
    complainOf(link.from)('connection', link.to, 'A connection into or out of a loop was left out', link)
    return false
  })
  const { order, circles } = sort(source.nodes, links)
  const forward = links.filter((link) => !circles.includes(link))
  const inward = Map.groupBy(forward, (link) => link.to)
  const outward = Map.groupBy(forward, (link) => link.from)

  const loops: Loop[] = []
  const loopOf = new Map<string, Loop>()
  const flows = new Map<string, { input: Flow; output: Flow; unwrap: boolean }>()
  const upstream = new Map<string, Set<string>>()
  const mixed = findMixed(source.nodes, inward, outward, mapperOf)

  for (const node of order) {
    const incoming = inward.get(node.name) ?? []
    const before = new Set(incoming.flatMap(({ from }) => [from, ...(upstream.get(from) ?? [])]))
    upstream.set(node.name, before)
    const batch = batchOf(node.name)
    const around = batch === undefined ? undefined : loops.find((loop) => loop.own?.name === batch)
    const mapper = mapperOf(node)
    const entering = incoming.filter(
      ({ from, output }) => !(from === batch && output === batchOutputs(byName.get(from)!).loop),
    )
    const arrivals = entering.map((link) => ({
      link,
      flow: flowAlong(link),
      loop: innerOf(link.from, around),
    }))
    const loop = chooseLoop(node, mapper, arrivals, around)
    if (loop) loopOf.set(node.name, loop)
    loop?.members.add(node.name)
    for (let outer = loop?.within; outer; outer = outer.within) outer.members.add(node.name)

    const inner = loop !== around
    const many = !inner && arrivals.some(({ flow, loop }) => loop !== undefined || flow.card === 'many')
    const [only] = arrivals
    const leaves = only && only.loop !== undefined && only.loop !== loop
    const enters = inner && arrivals.every((arrival) => arrival.loop !== loop)
    let input: Flow = ONE
    if (arrivals.length === 1 && only && !enters) input = leaves ? LIST : only.flow
    else if (many) input = LIST
    const unwrap = mixed.has(node.name) || isLastInLoop(node.name)
    const once = node.raw.executeOnce === true && input.card === 'many'
    const inputs = group(
      arrivals.map(({ link, flow, loop: from }) => ({ link, flow: from && from !== loop ? LIST : flow })),
    )
    const asked = {
      unwrap,
      lists: inner ? false : feedsLists(node.name),
      inputs: inputs.map((all) => all.map(({ flow }) => flow)),
    }
    // A disabled node hands on what it gets.
    const output =
      (mapper.same && !once) || node.disabled ? input : (mapper.gives?.(node, asked) ?? defaultFlow(mapper))
    flows.set(node.name, { input, output, unwrap })
    if (mapper.takes === 'loop') {
      loops.push({ id: '', source: node.name, output: -1, own: node, within: around, members: new Set() })
    }
  }

  function flowAlong(link: Link): Flow {
    return flows.get(link.from)?.output ?? ONE
  }

  /** The loop that a source runs in, if it is one that its own level has made. */
  function innerOf(name: string, around: Loop | undefined): Loop | undefined {
    const loop = loopOf.get(name)
    return loop === around ? undefined : loop
  }

  type Arrival = { link: Link; flow: Flow; loop: Loop | undefined }

  function chooseLoop(
    node: SourceNode,
    mapper: Mapper,
    arrivals: Arrival[],
    around: Loop | undefined,
  ): Loop | undefined {
    const [first] = arrivals
    const together = first && arrivals.every(({ loop }) => loop === first.loop)
    const perItem = mapper.takes === 'item' && node.raw.executeOnce !== true
    const paired = mapper.takes === 'merge' && isPaired(node)
    if (first?.loop && together && (perItem || paired || mapper.takes === 'any')) return first.loop
    const lists = arrivals.filter(({ flow, loop }) => loop !== undefined || flow.card === 'many')
    if (!perItem || lists.length === 0) return around
    if (arrivals.length > 1) {
      complainOf(node.name)(
        'items',
        'connections',
        'Several lists come together here without a Merge node',
        node.name,
      )
    }
    const { link, loop } = lists[0]!
    const key = loop ? { source: node.name, output: -1 } : { source: link.from, output: link.output }
    const known = loops.find((one) => one.source === key.source && one.output === key.output && !one.own)
    if (known && arrivals.length === 1) return known
    const made: Loop = { id: '', ...key, within: around, members: new Set() }
    loops.push(made)
    return made
  }

  /** Whether what it puts out is what an iteration of a splitInBatches, or of a loop of ours, results in. */
  function isLastInLoop(name: string): boolean {
    const targets = outward.get(name) ?? []
    return given.some((link) => link.from === name && bodies.get(link.to)?.has(name)) ||
      (targets.length > 0 &&
        targets.some(({ to }) => !['item', 'any'].includes(mapperOf(byName.get(to)!).takes)))
      ? innerOf(name, undefined) !== undefined || batchOf(name) !== undefined
      : false
  }

  /** Whether nodes for lists come right behind it. */
  function feedsLists(name: string): boolean {
    const targets = (outward.get(name) ?? []).map(({ to }) => byName.get(to)!)
    return (
      targets.length > 0 &&
      targets.every((to) => ['list', 'collect', 'loop'].includes(mapperOf(to).takes) && !isSplit(to))
    )
  }

  return {
    order,
    links: [...forward, ...given.filter((link) => bodies.get(link.to)?.has(link.from))],
    circles,
    loops,
    loopOf: (name) => loopOf.get(name),
    flowOf: (name) => flows.get(name)!,
    inputsOf(name) {
      const loop = loopOf.get(name)
      const all = (inward.get(name) ?? []).map((link) => {
        const from = loopOf.get(link.from)
        return { link, flow: from && from !== loop && from.within === loop ? LIST : flowAlong(link) }
      })
      return group(all)
    },
    upstreamOf: (name) => upstream.get(name) ?? new Set(),
  }
}

function defaultFlow(mapper: Mapper): Flow {
  return mapper.takes === 'list' || mapper.takes === 'loop' ? LIST : ONE
}

/** Merge by position pairs what comes from one item. */
export function isPaired(node: SourceNode): boolean {
  const { mode, combineBy, combinationMode } = node.parameters
  return (
    mode === 'mergeByPosition' ||
    combinationMode === 'mergeByPosition' ||
    (mode === 'combine' && combineBy === 'combineByPosition')
  )
}

export function isSplit(node: SourceNode): boolean {
  if (node.type === 'splitOut') return true
  return node.type === 'itemLists' && (node.parameters.operation ?? 'splitOutItems') === 'splitOutItems'
}

function group(all: { link: Link; flow: Flow }[]): { link: Link; flow: Flow }[][] {
  const groups: { link: Link; flow: Flow }[][] = []
  for (const one of all) {
    while (groups.length <= Math.min(one.link.input, 100)) groups.push([])
    groups[Math.min(one.link.input, 100)]!.push(one)
  }
  return groups
}
