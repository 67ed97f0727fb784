import { findReferences } from '../expressions/references.ts'
import type { Rules } from '../expressions/rules.ts'
import { nodeType } from '../nodes/nodes.ts'
import {
  itemNodeId,
  type LoopNode,
  type LoopSpec,
  type Plan,
  type PlanNode,
  type Presets,
} from '../run/plan.ts'
import type { Work } from '../turns.ts'
import { listCredentials } from './credentials.ts'
import { callsPerItem, findNodeNames, type Graph, type GraphNode, isOnItems, languageOf } from './graph.ts'
import { sortTopologically } from './order.ts'
import { countRoom, createRoom, findInline } from './room.ts'
import { findReplyNode } from './triggers/chat.ts'

/** The most items that a FOR_EACH takes. */
export const MAX_ITEMS = 100_000

/** Code that may take longer than this is no step of a segment. */
const MAX_STEP_CODE_MS = 1_000

/** Thrown for a stored graph version that this release cannot execute. */
export class PlanError extends Error {}

/**
 * Compiles a graph version for a run that starts at `triggerNodeId`. The graph must have passed its checks.
 * Throws a PlanError if it has a node type that this release does not know.
 */
export function* compilePlan(
  graph: Graph,
  run: { workflowId: string; version: number; triggerNodeId: string },
): Work<Plan> {
  const bodies = {
    isPure: createPurity(graph),
    roomOf: createRoom(graph),
    between: createBetween(graph),
    rules: languageOf(graph).rules,
    names: findNodeNames(graph),
  }
  const chats = graph.nodes.some(({ id, type }) => id === run.triggerNodeId && type === 'CHAT_TRIGGER')
  const replyId = chats ? findReplyNode(graph)?.id : undefined
  const nodes: PlanNode[] = []
  for (const node of sortTopologically(graph)) {
    const planned = yield* planNode(node, run.triggerNodeId, bodies)
    if (node.id === replyId) planned.reply = true
    nodes.push(...(callsPerItem(node) ? splitCalls(node, planned) : [planned]))
  }
  const edges = graph.edges.map(({ source, sourceHandle, target }) => ({
    source,
    handle: sourceHandle,
    target,
  }))
  return { ...run, nodes, edges, inlineBytes: findInline(nodes, edges) }
}

/**
 * A copy of the plan in which the nodes of `given` are preset. Triggers and disabled nodes stay as they are.
 */
export function presetOutputs(plan: Plan, given: Presets): Plan {
  const nodes = plan.nodes.map((node): PlanNode => {
    const gift = given[node.id]
    if (!gift || node.silent || node.kind === 'trigger') return node
    if (gift.begun)
      return node.kind === 'agent' ? { ...node, begun: { ...gift.begun, from: gift.from } } : node
    const { alone: _, loop: __, queue: ___, ...rest } = node
    return { ...rest, kind: 'pure', given: gift, needs: [] }
  })
  return { ...plan, nodes }
}

/** Whether a segment can run the whole body of a loop, including the loops in it. */
function createPurity(graph: Graph): (loopId: string) => boolean {
  const isPure = (loopId: string): boolean =>
    graph.nodes
      .filter((node) => node.parentId === loopId && !node.disabled)
      .every((node) => {
        const kind = nodeType(node.type)?.kind
        if (kind === 'loop') return isPure(node.id)
        return kind === 'pure' && !isAlone(node)
      })
  return isPure
}

/** Whether a pure node is an activity of its own. One with a credential is: no segment opens a secret. */
function isAlone(node: GraphNode): boolean {
  const { type, config, retry, timeoutMs, perItem, allItems } = node
  const row = nodeType(type)
  if (listCredentials(node).length > 0 || row?.calls?.(config) || row?.stores?.(config)) return true
  if (row?.longOnItems && (perItem || allItems)) return true
  const codeMs = row?.codeMs?.(config) ?? 0
  return retry !== undefined || timeoutMs !== undefined || codeMs > MAX_STEP_CODE_MS
}

function planLoop(node: GraphNode, pure: boolean, room: number): LoopSpec {
  const { concurrency, onItemError, maxIterations } = node.config as Record<string, unknown>
  const mode = node.type === 'REPEAT' ? 'repeat' : 'each'
  return {
    mode,
    concurrency: pure || typeof concurrency !== 'number' ? 1 : Math.min(concurrency, room),
    collects: onItemError === 'collect',
    max: typeof maxIterations === 'number' ? maxIterations : MAX_ITEMS,
    pure,
  }
}

/**
 * A node that makes a call for each item is a loop, whose body is the node that makes one: each call is durable, and
 * none is made twice.
 */
function splitCalls({ perItem }: GraphNode, { onError, ...node }: PlanNode): [LoopNode, PlanNode] {
  const wanted = (typeof perItem === 'object' && perItem.concurrency) || 1
  const id = itemNodeId(node.id)
  const { needs, pairs, retry, timeoutMs, queue, readsInput, alone, readsItem: _, ...head } = node
  const loop: LoopSpec = {
    mode: 'each',
    concurrency: Math.min(wanted, countRoom({ id })),
    collects: onError !== 'FAIL',
    max: MAX_ITEMS,
    pure: false,
  }
  const one = {
    ...{ needs, retry, timeoutMs },
    ...(queue ? { queue } : {}),
    ...(alone ? { alone } : {}),
    ...(readsInput ? { readsInput } : {}),
    ...(pairs ? { pairs } : {}),
  }
  return [
    { ...head, kind: 'loop', loop, items: 'each', onError, retry, timeoutMs, needs: [] },
    { ...head, ...one, id, parentId: node.id, readsItem: true, itemOf: node.id, onError: 'FAIL' },
  ]
}

type Bodies = {
  isPure: (loopId: string) => boolean
  roomOf: (loopId: string) => number
  between: (nodeId: string, before: Set<string>) => string[]
  rules: Rules
  names: Record<string, string>
}

/** Whether a config's JavaScript may ask for the item of another node that an item came from. */
const PAIRS = /\$\(.*\.(?:item|pairedItem|itemMatching)\b|\$node\b/s

/** Finds the nodes through which items may come from those in `before` to a node, outside of its loops too. */
function createBetween(graph: Graph): Bodies['between'] {
  const byId = new Map(graph.nodes.map((node) => [node.id, node]))
  const inward = Map.groupBy(graph.edges, ({ target }) => target)
  return (nodeId, before) => {
    const leads = new Map<string, boolean>()
    const look = (id: string): boolean => {
      const known = leads.get(id)
      if (known !== undefined) return known
      leads.set(id, false)
      const parent = byId.get(id)?.parentId
      const sources = [...(inward.get(id) ?? []).map(({ source }) => source), ...(parent ? [parent] : [])]
      const found = sources.map(look).some(Boolean) || before.has(id)
      leads.set(id, found)
      return found
    }
    look(nodeId)
    return [...leads].filter(([id, found]) => found && id !== nodeId).map(([id]) => id)
  }
}

function* planNode(
  node: GraphNode,
  triggerNodeId: string,
  { isPure, roomOf, between, rules, names }: Bodies,
): Work<PlanNode> {
  const type = nodeType(node.type)
  if (!type) throw new PlanError(`the node "${node.id}" has the unknown type ${node.type}`)
  const { parentId } = node
  const items = isOnItems(node) ? { items: node.perItem ? ('each' as const) : ('all' as const) } : {}
  const head = {
    ...{ id: node.id, name: node.name, type: node.type },
    ...(parentId ? { parentId } : {}),
    ...items,
  }
  const retry = { ...type.retry, ...node.retry }
  if (node.disabled) {
    const [handle = null] = type.handles(node.config)
    const passing = { kind: 'pure', silent: { handle }, onError: 'FAIL' } as const
    return { ...head, ...passing, needs: [], retry, timeoutMs: type.timeoutMs }
  }
  const conditions = type.conditions?.(node.config)
  const {
    nodes,
    context,
    pairs: isPaired,
  } = yield* findReferences(
    node.config,
    'config',
    conditions,
    undefined,
    rules,
    false,
    type.texts?.(node.config),
  )
  const needs = new Set(nodes.map(({ id, isName }) => (isName && Object.hasOwn(names, id) ? names[id]! : id)))
  const config = JSON.stringify(node.config)
  for (const { id } of type.reads?.(node.config) ?? []) needs.add(id)
  if (config.includes('$trigger')) needs.add(triggerNodeId)
  const readsItem = parentId !== undefined && /\$(item|index)\b/.test(config)
  const own = type.kind === 'pure' && isAlone(node)
  const codeMs = type.codeMs?.(node.config)
  const queue = type.calls?.(node.config) ? 'models' : type.queue
  return {
    ...head,
    kind: type.kind,
    ...(own ? { alone: true as const } : {}),
    ...(type.kind === 'loop' ? { loop: planLoop(node, isPure(node.id), roomOf(node.id)) } : {}),
    ...(readsItem ? { readsItem: true as const } : {}),
    ...(callsPerItem(node) && (context || /\$(?:input|items)\b/.test(config))
      ? { readsInput: true as const }
      : {}),
    onError: node.onError,
    retry,
    timeoutMs: node.timeoutMs ?? type.timeoutMs,
    ...(queue ? { queue } : {}),
    ...(codeMs === undefined ? {} : { codeMs }),
    needs: [...needs],
    ...(needs.size > 0 && (isPaired || PAIRS.test(config)) ? { pairs: between(node.id, needs) } : {}),
  }
}
