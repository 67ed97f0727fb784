import type { Graph, GraphNode } from '../../workflows/graph/graph.ts'
import type { Random } from './random.ts'

/** A graph with what starts it, and how the world behaves around it. */
export type Sample = {
  seed: number
  graph: Graph
  data: Record<string, unknown>
  /** Outputs that nodes are given instead of being executed. */
  pinned: Record<string, { output: unknown; handle: string | null }>
  /** Somebody cancels the run after this many milliseconds. */
  cancelAfterMs: number | null
  timeoutMs: number | null
  /** The run continues as new after this many events; null is never. */
  drainAfter: number | null
  /** Larger outputs travel as references. */
  inlineBytes: number | null
  /** The most records of a segment. */
  records: number
  /** How likely each kind of trouble is, each time that it could happen. */
  trouble: { lostWorker: number; lostAttempt: number; away: number; outage: number }
}

export const START = 'start'

/** The time limits of pauses: with the one nobody ever answers, with the other somebody always does in time. */
export const TIMES_OUT = 30
const NEVER_OUT = 86_400_000
const DEPTH = 2
const LOOPS = ['FOR_EACH', 'REPEAT']
/** Ids that are names of Object.prototype, or look like something else. */
const IDS = ['toString', '__defineGetter__', '-', '0', 'then', 'valueOf', 'a-b', 'n_8', 'n9', 'n10', 'n11']

const STEPS = [
  ...['SET', 'SET', 'SET', 'IF_ELSE', 'IF_ELSE', 'SWITCH', 'MERGE', 'NO_OP', 'STOP_AND_ERROR', 'WAIT'],
  ...['HTTP_REQUEST', 'HTTP_REQUEST', 'HTTP_REQUEST', 'WAIT_FOR_EVENT', 'APPROVAL', 'AI_AGENT', 'AI_AGENT'],
]
const PURE = STEPS.slice(0, 9)
/** Nodes that may work on items. */
const ON_ITEMS = new Set([...PURE, 'HTTP_REQUEST'])

/** The handles that a node's edges may leave by. */
export function handlesOf({ type, config, onError }: GraphNode): (string | null)[] {
  const own: Partial<Record<string, (string | null)[]>> = {
    IF_ELSE: ['true', 'false'],
    SWITCH: ['one', 'default'],
    REPEAT: [null, 'exhausted'],
    WAIT_FOR_EVENT: [null, ...(config.timeoutMs ? ['timeout'] : [])],
    APPROVAL: ['approved', 'rejected', ...(config.timeoutMs ? ['timeout'] : [])],
  }
  return [...(own[type] ?? [null]), ...(onError === 'BRANCH' ? ['error'] : [])]
}

/** Makes a random sample. */
export function drawSample(seed: number, random: Random): Sample {
  const graph: Graph = { nodes: [node(START, 'MANUAL_TRIGGER', {})], edges: [] }
  const upstream = new Map([[START, new Set<string>()]])
  const root = { depth: 0, size: 2 + random.below(10), pureOnly: false }
  drawBody(random, graph, upstream, root, undefined, [START])
  const order = random.chance(0.3) ? graph.nodes.toReversed() : graph.nodes
  const pinned: Sample['pinned'] = {}
  if (random.chance(0.15)) {
    const chosen = random.pick(graph.nodes)
    const handle = random.pick(handlesOf(chosen))
    if (chosen.id !== START && !chosen.disabled)
      pinned[chosen.id] = { output: { n: 1, pinned: true }, handle }
  }
  const calm = random.chance(0.3)
  const rate = (most: number) => (calm || random.chance(0.5) ? 0 : random.next() * most)
  return {
    seed,
    graph: { nodes: order, edges: graph.edges },
    data: { n: 1, list: [1, { n: 2, list: [3, 4] }, 3] },
    pinned,
    cancelAfterMs: random.chance(0.06) ? random.below(4_000) : null,
    timeoutMs: random.chance(0.05) ? 1 + random.below(10_000) : null,
    drainAfter: random.chance(0.5) ? 3 + random.below(60) : null,
    inlineBytes: random.chance(0.2) ? 40 : null,
    records: random.chance(0.4) ? 1 + random.below(8) : 500,
    trouble: { lostWorker: rate(0.06), lostAttempt: rate(0.3), away: rate(0.2), outage: rate(0.05) },
  }
}

type Body = { depth: number; size: number; pureOnly: boolean }

function drawBody(
  random: Random,
  graph: Graph,
  upstream: Map<string, Set<string>>,
  { depth, size, pureOnly }: Body,
  parentId: string | undefined,
  first: string[],
): void {
  const ids = [...first]
  for (let at = 0; at < size; at++) {
    const id = parentId === undefined ? (IDS[at] ?? `m${at}`) : `${parentId}_${at}`
    const isLoop = depth < DEPTH && random.chance(parentId === undefined ? 0.3 : 0.15)
    const type = isLoop ? random.pick(LOOPS) : random.pick(pureOnly ? PURE : STEPS)
    const drawn = node(id, type, {}, parentId)
    drawn.onError = random.pick([
      'CONTINUE',
      'BRANCH',
      depth === 0 && random.chance(0.8) ? 'CONTINUE' : 'FAIL',
    ])
    if (random.chance(0.08)) drawn.disabled = true
    if (!isLoop && (type === 'HTTP_REQUEST' || (!pureOnly && random.chance(0.1)))) {
      drawn.retry = { maxAttempts: 1 + random.below(3), initialIntervalMs: 1 + random.below(300) }
    }
    if (ON_ITEMS.has(type) && random.chance(0.35))
      drawn.perItem =
        type === 'HTTP_REQUEST' && random.chance(0.5) ? { concurrency: 1 + random.below(4) } : true
    // In a body, some nodes get no edge, so that they begin with the iteration.
    const isEntry = parentId !== undefined && (at === 0 || random.chance(0.25))
    const wanted = isEntry ? 0 : 1 + (random.chance(0.4) ? 1 + random.below(2) : 0)
    const before = new Set(parentId === undefined ? [] : upstream.get(parentId))
    for (let edge = 0; edge < wanted; edge++) {
      const source = ids[Math.max(0, ids.length - 1 - random.below(4))]!
      const handle = random.pick(handlesOf(graph.nodes.find((one) => one.id === source)!))
      const isThere = graph.edges.some(
        (other) => other.source === source && other.target === id && other.sourceHandle === handle,
      )
      if (!isThere) graph.edges.push({ source, sourceHandle: handle, target: id })
      for (const one of [source, ...upstream.get(source)!]) before.add(one)
    }
    upstream.set(id, before)
    drawn.config = drawConfig(random, type, depth > 0 || Boolean(drawn.perItem), [...before])
    graph.nodes.push(drawn)
    ids.push(id)
    if (!isLoop) continue
    const inner = { depth: depth + 1, size: 1 + random.below(4), pureOnly: pureOnly || random.chance(0.3) }
    drawBody(random, graph, upstream, inner, id, [])
  }
}

function node(id: string, type: string, config: Record<string, unknown>, parentId?: string): GraphNode {
  const head = { id, type, name: type, config, onError: 'FAIL', disabled: false }
  return { ...head, ...(parentId === undefined ? {} : { parentId }) } as GraphNode
}

function drawConfig(
  random: Random,
  type: string,
  inLoop: boolean,
  before: string[],
): Record<string, unknown> {
  const other = random.pick([START, ...before])
  const texts = ['{{ $input.n }}', '{{ $trigger.n }}', `{{ $nodes.\`${other}\`.n }}`]
  const items = inLoop ? ['{{ $index }}', '{{ $item }}', '{{ $item.n }}'] : []
  const value = () => random.pick([0, 1, 2, ...texts, ...items])
  const condition = () =>
    random.pick([
      ...['$input.n = 0', '$input.n = 1', '$input.n = 2', 'true', 'false'],
      ...(inLoop ? ['$index = 0', '$index = 1', '$item.n = 1'] : []),
    ])
  const limit = () => (random.chance(0.5) ? { timeoutMs: random.pick([TIMES_OUT, NEVER_OUT]) } : {})
  switch (type) {
    case 'SET':
      return { values: { n: value(), list: random.pick(['{{ $input.list }}', [1, 2], value()]) } }
    case 'IF_ELSE':
      return { condition: condition() }
    case 'SWITCH':
      return { cases: [{ handle: 'one', condition: condition() }] }
    case 'MERGE':
      return { mode: random.pick(['combine', 'append']) }
    case 'STOP_AND_ERROR':
      return { message: 'stopped' }
    case 'WAIT':
      return { durationMs: random.pick([0, 1, 20, 700]) }
    case 'HTTP_REQUEST':
      return { url: 'http://world.test/', method: random.pick(['POST', 'PUT']) }
    case 'WAIT_FOR_EVENT':
      return { name: 'news', ...limit() }
    case 'APPROVAL':
      return { ...limit() }
    case 'AI_AGENT': {
      const turns = Array.from({ length: random.below(4) }, () => random.below(4))
      return { tools: [], turns, asks: random.chance(0.4), ...limit() }
    }
    case 'FOR_EACH':
      return {
        items: random.pick([
          ...['{{ $input.list }}', '{{ $trigger.list }}', '{{ $input }}'],
          [1, { n: 2, list: [3, 4] }, 3],
          Array.from({ length: random.below(random.chance(0.1) ? 130 : 8) }, (_, at) => at),
        ]),
        concurrency: random.pick([1, 1, 2, 3, 10]),
        onItemError: random.pick(['stop', 'collect']),
      }
    case 'REPEAT':
      return { until: condition(), maxIterations: random.pick([1, 3, 5]) }
    default:
      return {}
  }
}
