import type { GraphNode } from '../../workflows/graph/graph.ts'
import { itemNodeId } from '../../workflows/run/plan.ts'
import { expectAgent } from './agents.ts'
import type { Sample } from './graphs.ts'
import { handlesOf, START } from './graphs.ts'

/**
 * What the world does to a node that reaches out of the run: a call fails `failures` times before it is
 * answered, or for good; a pause is left by `handle`.
 */
export type Fate = { failures: number; isFinal: boolean; answer: unknown; decision: string | null }
export type FindFate = (nodeId: string, iteration: string) => Fate

export type ExpectedNode = {
  status: 'SUCCESS' | 'FAILED'
  /** Undefined for an error that nothing handles. */
  left?: { output: unknown; handle: string | null }
  /** How often the world is called, if no worker is lost. */
  calls: number
}

export type Expected = {
  /** By `nodeId#iteration`. */
  nodes: Map<string, ExpectedNode>
  /** The keys of nodes that a failure may have cut short. */
  loose: Set<string>
  /** Of those that nothing handles, each may be the failure that ends the run. */
  fatal: string[]
}

/** Stands in for every handled error: which one of several it is may depend on the order of events. */
export const HANDLED = { error: 'handled' }

/** Some samples double their outputs again and again. That is another promise, and takes long. */
const MAX_CHARS = 50_000
export class TooLarge extends Error {}

type Place = {
  path: string
  parentId: string | undefined
  item: unknown
  index: number | undefined
  /** The outputs of the nodes around, by node id. */
  around: Map<string, unknown>
}

/**
 * Carries out a graph the simple way, one node after the other and one iteration after the other, by the rules
 * that the users are told.
 */
export function interpret({ graph, data, pinned }: Sample, findFate: FindFate): Expected {
  const expected: Expected = { nodes: new Map(), loose: new Set(), fatal: [] }
  const byId = new Map(graph.nodes.map((node) => [node.id, node]))

  function carryOut(place: Place): { output: unknown; failed: boolean; fatal: string[] } {
    const { path, parentId } = place
    const nodes = graph.nodes.filter((node) => node.parentId === parentId)
    const outputs = new Map<string, unknown>()
    const handles = new Map<string, string | null>()
    /** The handles of nodes that may leave by several at once. */
    const several = new Map<string, (string | null)[]>()
    const stopped = new Set<string>()
    const seen = new Set<string>()
    const fatal: string[] = []
    const leave = (node: GraphNode, output: unknown, handle: string | null) => {
      if ((JSON.stringify(output) ?? '').length > MAX_CHARS) throw new TooLarge()
      outputs.set(node.id, output)
      handles.set(node.id, handle)
    }
    const record = (node: GraphNode, status: 'SUCCESS' | 'FAILED', calls = 0) => {
      const left = handles.has(node.id)
        ? { output: outputs.get(node.id), handle: handles.get(node.id)! }
        : undefined
      expected.nodes.set(`${node.id}#${path}`, { status, calls, ...(left ? { left } : {}) })
    }
    const fail = (node: GraphNode, calls = 0) => {
      if (node.onError === 'FAIL') {
        fatal.push(`${node.id}#${path}`)
        stopped.add(node.id)
      } else leave(node, HANDLED, node.onError === 'BRANCH' ? 'error' : null)
      record(node, 'FAILED', calls)
    }
    /** If no edge leaves by `exhausted`, the main edges are taken. */
    const wayOut = (id: string) => {
      const handle = handles.get(id)
      if (handle !== 'exhausted') return handle
      return graph.edges.some((edge) => edge.source === id && edge.sourceHandle === handle) ? handle : null
    }
    const takenOf = (id: string) =>
      graph.edges.filter(
        ({ source, sourceHandle, target }) =>
          target === id && (several.get(source)?.includes(sourceHandle) ?? wayOut(source) === sourceHandle),
      )
    /** What the taken edges into a node bring, each thing once. */
    const broughtTo = (id: string) => {
      const brought = new Map<string, unknown>()
      for (const { source, sourceHandle } of takenOf(id)) {
        const isPart = several.has(source)
        const value = isPart ? cut(outputs.get(source), sourceHandle) : outputs.get(source)
        const key = isPart ? `${source} ${sourceHandle}` : source
        if (!brought.has(key)) brought.set(key, value)
      }
      return [...brought.values()]
    }

    const settle = (node: GraphNode): void => {
      if (seen.has(node.id)) return
      seen.add(node.id)
      const edges = graph.edges.filter(({ target }) => target === node.id)
      for (const { source } of edges) settle(byId.get(source)!)
      if (node.id === START) {
        leave(node, data, null)
        record(node, 'SUCCESS')
        return
      }
      if (edges.some(({ source }) => stopped.has(source))) {
        stopped.add(node.id)
        return
      }
      const isEntry = parentId !== undefined && edges.length === 0
      const taken = takenOf(node.id)
      if (taken.length === 0 && !isEntry) return
      const inputs = isEntry ? [place.item] : broughtTo(node.id)
      const input = node.perItem && inputs.length > 1 ? { items: inputs.flatMap(listBrought) } : merge(inputs)
      if (node.disabled) {
        leave(node, input, firstHandle(node))
        return
      }
      if (Object.hasOwn(pinned, node.id)) {
        leave(node, pinned[node.id]!.output, pinned[node.id]!.handle)
        record(node, 'SUCCESS')
        return
      }
      const inScope = new Map([...place.around, ...outputs])
      const scope: Scope = { input, trigger: data, nodes: inScope, item: place.item, index: place.index }
      if (node.type === 'FOR_EACH' || node.type === 'REPEAT') {
        loop(node, scope)
        return
      }
      if (node.perItem) takeItems(node, scope, inputs.flatMap(listBrought))
      else take(node, scope, inputs)
    }

    /** Works on each of the items that come to a node. */
    const takeItems = (node: GraphNode, scope: Scope, items: unknown[]) => {
      const all = handlesOf(node)
      const parts = new Map(all.map((handle) => [handle, { items: [] as unknown[], from: [] as number[] }]))
      const put = (handle: string | null, entry: unknown, at: number) => {
        parts.get(handle)!.items.push(entry)
        parts.get(handle)!.from.push(at)
      }
      const before = new Set(expected.nodes.keys())
      const isOne = callsAtOnce(node) === 1
      let hasFailed = false
      for (const [at, item] of items.entries()) {
        const done =
          node.type === 'HTTP_REQUEST' ? callFor(node, at) : stepFor(node, { ...scope, item, index: at })
        if (done) {
          for (const entry of done.entries) put(done.handle, entry, at)
          continue
        }
        if (node.onError === 'FAIL') {
          hasFailed = true
          if (isOne) break
          continue
        }
        const plain = all.includes(null) ? null : all.at(-1)!
        const handle = node.onError === 'BRANCH' ? 'error' : plain
        put(
          handle,
          handle === null ? HANDLED : { ...(isPlain(item) ? item : { value: item }), ...HANDLED },
          at,
        )
      }
      if (hasFailed) {
        if (!isOne) for (const key of expected.nodes.keys()) if (!before.has(key)) expected.loose.add(key)
        return fail(node)
      }
      const left = [...parts].filter(([, part]) => part.items.length > 0).map(([handle]) => handle)
      const others = [...parts].filter(([handle]) => handle !== null)
      const output = {
        ...parts.get(null),
        ...(others.length > 0 ? { handles: Object.fromEntries(others) } : {}),
      }
      const isPlainLeft = all.length === 1 && left.length === 1 && left[0] === null
      if (!isPlainLeft) several.set(node.id, left)
      leave(node, output, isPlainLeft ? null : JSON.stringify(left))
      record(node, 'SUCCESS')
    }

    /** One call of a node for an item, with a record of its own; undefined if it fails. */
    const callFor = (node: GraphNode, at: number) => {
      const id = itemNodeId(node.id)
      const inner = path === '' ? String(at) : `${path}.${at}`
      const { calls, isAnswered, answer } = countCalls(node, findFate(id, inner))
      const key = `${id}#${inner}`
      expected.nodes.set(key, {
        ...{ status: isAnswered ? ('SUCCESS' as const) : ('FAILED' as const), calls },
        ...(isAnswered ? { left: { output: answer, handle: null } } : {}),
      })
      return isAnswered ? { handle: null, entries: [answer] } : undefined
    }

    const take = (node: GraphNode, scope: Scope, inputs: unknown[]) => {
      const { config, type } = node
      const { input } = scope
      const fate = findFate(node.id, path)
      const pass = (handle: string | null = null) => leave(node, input, handle)
      let calls = 0
      if (type === 'STOP_AND_ERROR') return fail(node)
      if (type === 'HTTP_REQUEST') {
        const call = countCalls(node, fate)
        calls = call.calls
        if (!call.isAnswered) return fail(node, calls)
        leave(node, fate.answer, null)
      } else if (type === 'AI_AGENT') {
        const { steps, told } = expectAgent(node, path, findFate)
        for (const [key, step] of steps) expected.nodes.set(key, step)
        if (!told) return fail(node)
        leave(node, { told }, null)
      } else if (type === 'SET') leave(node, render(config.values, scope), null)
      else if (type === 'IF_ELSE') pass(String(holds(config.condition, scope)))
      else if (type === 'SWITCH') {
        const found = (config.cases as { handle: string; condition: string }[]).find((one) =>
          holds(one.condition, scope),
        )
        pass(found?.handle ?? 'default')
      } else if (type === 'MERGE') leave(node, config.mode === 'append' ? inputs.flat() : input, null)
      else if (type === 'WAIT_FOR_EVENT') {
        if (fate.decision === 'timeout') pass('timeout')
        else leave(node, fate.answer, null)
      } else if (type === 'APPROVAL') leave(node, decide(input, fate.decision!), fate.decision)
      else pass()
      record(node, 'SUCCESS', calls)
    }

    const loop = (node: GraphNode, scope: Scope) => {
      const { config } = node
      const isEach = node.type === 'FOR_EACH'
      const items = isEach ? listItems(render(config.items, scope)) : []
      const most = isEach ? items.length : Number(config.maxIterations)
      const before = new Set(expected.nodes.keys())
      const isOne = Number(config.concurrency ?? 1) === 1
      const results: unknown[] = []
      let [item, isOver, hasFailed] = [scope.input, isEach, false]
      for (let at = 0; at < most; at++) {
        if (isEach) item = items[at]
        const known = new Set(expected.nodes.keys())
        const inner = path === '' ? String(at) : `${path}.${at}`
        const body = carryOut({ path: inner, parentId: node.id, item, index: at, around: scope.nodes })
        if (body.failed) {
          for (const key of expected.nodes.keys()) if (!known.has(key)) expected.loose.add(key)
          if (isEach && config.onItemError === 'collect') {
            results.push(HANDLED)
            continue
          }
          hasFailed = true
          // Others that run beside it are cut short, or are not begun at all.
          if (isOne) break
          for (const key of expected.nodes.keys()) if (!before.has(key)) expected.loose.add(key)
          continue
        }
        results.push(body.output)
        item = body.output
        if (isEach) continue
        isOver = holds(config.until, { ...scope, input: item, item, index: at })
        if (isOver) break
      }
      if (hasFailed) {
        if (!isOne) for (const key of expected.nodes.keys()) if (!before.has(key)) expected.loose.add(key)
        return fail(node)
      }
      leave(node, isEach ? { items: results } : item, isOver ? null : 'exhausted')
      record(node, 'SUCCESS')
    }

    for (const node of nodes) settle(node)
    const isLeft = (id: string) =>
      graph.edges.some(
        ({ source, target }) => source === id && takenOf(target).some((edge) => edge.source === id),
      )
    const ends = nodes.filter(({ id }) => outputs.has(id) && !isLeft(id)).map(({ id }) => id)
    const output =
      ends.length === 1 ? outputs.get(ends[0]!) : Object.fromEntries(ends.map((id) => [id, outputs.get(id)]))
    return { output, failed: fatal.length > 0, fatal }
  }

  const root = { path: '', parentId: undefined, item: undefined, index: undefined, around: new Map() }
  expected.fatal = carryOut(root).fatal
  return expected
}

/** How often a node calls, and whether it is answered in the end. */
export function countCalls(node: GraphNode, { failures, isFinal, answer }: Fate) {
  const most = node.retry?.maxAttempts ?? 3
  const isAnswered = !isFinal && failures < most
  const calls = isFinal ? Math.min(failures + 1, most) : isAnswered ? failures + 1 : most
  return { calls, isAnswered, answer }
}

/** How many calls a node that works on items makes at once. */
export function callsAtOnce({ perItem }: GraphNode): number {
  return typeof perItem === 'object' ? (perItem.concurrency ?? 1) : 1
}

/** What a pure node makes of an item; undefined if it fails. */
function stepFor({ type, config }: GraphNode, scope: Scope) {
  const { item } = scope
  if (type === 'STOP_AND_ERROR') return undefined
  if (type === 'SET') return { handle: null, entries: [render(config.values, scope)] }
  if (type === 'IF_ELSE') return { handle: String(holds(config.condition, scope)), entries: [item] }
  if (type === 'SWITCH') {
    const found = (config.cases as { handle: string; condition: string }[]).find((one) =>
      holds(one.condition, scope),
    )
    return { handle: found?.handle ?? 'default', entries: [item] }
  }
  return { handle: null, entries: type === 'MERGE' && config.mode === 'append' ? [item].flat() : [item] }
}

/** The items that an edge brings. */
function listBrought(value: unknown): unknown[] {
  const isList =
    isPlain(value) && Object.keys(value).every((key) => ['items', 'from', 'handles'].includes(key))
  return isList && Array.isArray(value.items) ? value.items : listItems(value)
}

/** What a node that has left by several handles has sent by one of them. */
function cut(output: unknown, handle: string | null): unknown {
  const { handles, ...main } = output as { handles: Record<string, unknown> }
  return handle === null ? main : handles[handle]
}

function firstHandle({ type }: GraphNode): string | null {
  return { IF_ELSE: 'true', SWITCH: 'one', APPROVAL: 'approved' }[type] ?? null
}

function decide(input: unknown, decision: string): unknown {
  const facts = { decision, approved: decision === 'approved', timedOut: decision === 'timeout' }
  const nobody = { comment: null, form: null, decidedBy: null, decidedAt: null, decisions: [] }
  return { ...(isPlain(input) ? input : { value: input }), ...facts, ...nobody }
}

function listItems(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  return value === null || value === undefined ? [] : [value]
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function merge(values: unknown[]): unknown {
  if (values.length === 1) return values[0]
  const isList = (value: unknown) => isPlain(value) && listBrought(value) === value.items
  const isMade = (value: unknown) => isPlain(value) && Array.isArray(value.from)
  if (values.every(isList) && values.some(isMade)) return { items: values.flatMap(listBrought) }
  return values.every(isPlain) ? Object.assign({}, ...values) : values
}

type Scope = {
  input: unknown
  trigger: unknown
  nodes: Map<string, unknown>
  item: unknown
  index: number | undefined
}

function render(value: unknown, scope: Scope): unknown {
  if (Array.isArray(value)) return value.map((entry) => render(entry, scope))
  if (isPlain(value))
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, render(entry, scope)]))
  if (typeof value !== 'string') return value
  const [, path] = /^\{\{ (.*) \}\}$/.exec(value) ?? []
  return path === undefined ? value : (find(path, scope) ?? null)
}

function holds(condition: unknown, scope: Scope): boolean {
  const [, path, number] = /^(\S+) = (\d+)$/.exec(String(condition)) ?? []
  return path === undefined ? condition === 'true' : find(path, scope) === Number(number)
}

/** The value of a path such as `$nodes.a.n`. */
function find(text: string, { input, trigger, nodes, item, index }: Scope): unknown {
  const [root, ...names] = text.split('.').map((name) => name.replaceAll('`', ''))
  if (root === '$nodes') return look(nodes.get(names[0]!), names[1]!)
  const value = { $input: input, $trigger: trigger, $item: item, $index: index }[root!]
  return names.length === 0 ? value : look(value, names[0]!)
}

/** As JSONata steps from a value to a name: through arrays, and one value is no array. */
function look(value: unknown, name: string): unknown {
  if (isPlain(value)) return Object.hasOwn(value, name) ? value[name] : undefined
  if (!Array.isArray(value)) return undefined
  const found = value.flatMap((entry) => {
    const one = look(entry, name)
    return one === undefined ? [] : one
  })
  return found.length > 1 ? found : found[0]
}
