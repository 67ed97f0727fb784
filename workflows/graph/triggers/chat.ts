import { nodeType } from '../../nodes/nodes.ts'
import type { Problem } from '../../problem.ts'
import { type Graph, type GraphNode, isOnItems } from '../graph.ts'

/** The node types whose text can be the reply in a chat. */
const REPLYING = new Set(['LLM', 'AI_AGENT'])

/** Where the messages of a chat come in; undefined if the graph has no such node. */
export function findChatTrigger(graph: Graph): GraphNode | undefined {
  return graph.nodes.find((node) => node.type === 'CHAT_TRIGGER' && !node.disabled)
}

/** Whether messages of a chat reach a model: only then can the workflow be chatted with, while it is active. */
export function isAgentGraph(graph: Graph): boolean {
  return findReplying(graph).length > 0
}

/**
 * The node whose text is the reply in a chat: the one marked `reply: true`, else the only LLM or AI_AGENT that leads to
 * no other. Undefined if a chat reaches none, or if it is not clear which one it is (checkChat names the reason).
 */
export function findReplyNode(graph: Graph): GraphNode | undefined {
  const found = findCandidates(graph)
  return found.length === 1 && findFault(found[0]!) === undefined ? found[0] : undefined
}

/** The problems that keep an active workflow from replying in chats. A graph without a chat has none. */
export function checkChat(graph: Graph): Problem[] {
  const at = (node: GraphNode) => `nodes[${graph.nodes.indexOf(node)}]`
  const [, ...more] = graph.nodes.filter((node) => node.type === 'CHAT_TRIGGER' && !node.disabled)
  const found = findCandidates(graph)
  const others = [
    ...more.map((node) => ({
      path: at(node),
      message: 'is a second CHAT_TRIGGER: an active workflow can have one',
    })),
    ...listUnreachedMarks(graph).map((node) => ({
      path: `${at(node)}.config.reply`,
      message: 'is true, but no CHAT_TRIGGER leads to the node: it cannot reply in a chat',
    })),
  ]
  if (found.length > 1) {
    const ids = found.map(({ id }) => `"${id}"`).join(', ')
    const isMarked = found[0]!.config.reply === true
    const message = isMarked
      ? `only one node of a chat replies, and ${ids} are marked with reply: true`
      : `${ids} could be the reply in a chat: mark the one that is with reply: true in its config`
    return [...others, ...found.map((node) => ({ path: `${at(node)}.config.reply`, message }))]
  }
  const [node] = found
  const message = node && findFault(node)
  return message === undefined ? others : [...others, { path: at(node!), message }]
}

/** Why the node cannot be the reply; undefined if it can. */
function findFault(node: GraphNode): string | undefined {
  if (node.parentId !== undefined)
    return 'the node that replies in a chat must not be inside a loop: there would be many replies'
  if (isOnItems(node)) return 'the node that replies in a chat must not work on items'
  if (node.config.into !== undefined)
    return 'the node that replies in a chat must output its text, and not put it into its input'
  if (node.config.output === 'json') return 'the node that replies in a chat must have text as its output'
  return undefined
}

/** The marked nodes that a chat reaches, else those that lead to no other. */
function findCandidates(graph: Graph): GraphNode[] {
  const replying = findReplying(graph)
  const marked = replying.filter(({ config }) => config.reply === true)
  if (marked.length > 0) return marked
  const after = createReach(graph)
  return replying.filter((node) => {
    const later = after([node.id])
    return !replying.some(({ id }) => id !== node.id && later.has(id))
  })
}

/** The marked nodes of a graph with a chat that it does not reach. */
function listUnreachedMarks(graph: Graph): GraphNode[] {
  if (!findChatTrigger(graph)) return []
  const reached = new Set(findReplying(graph))
  return graph.nodes.filter(
    (node) => REPLYING.has(node.type) && !node.disabled && node.config.reply === true && !reached.has(node),
  )
}

/** The nodes with a model's text that a CHAT_TRIGGER leads to. */
function findReplying(graph: Graph): GraphNode[] {
  const trigger = findChatTrigger(graph)
  if (!trigger) return []
  const reached = createReach(graph)([trigger.id])
  return graph.nodes.filter(({ id, type, disabled }) => REPLYING.has(type) && !disabled && reached.has(id))
}

/** Finds all nodes after some: along the edges, into the bodies of loops, and from a body on after its loop. */
function createReach({ nodes, edges }: Graph): (ids: string[]) => Set<string> {
  const targets = Map.groupBy(edges, ({ source }) => source)
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const children = Map.groupBy(
    nodes.filter(({ parentId }) => parentId !== undefined),
    ({ parentId }) => parentId!,
  )
  return (ids) => {
    const reached = new Set<string>()
    const open = [...ids]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const around = byId.get(id)?.parentId
      const isLoop = nodeType(byId.get(id)?.type ?? '')?.kind === 'loop'
      const next = [
        ...(targets.get(id) ?? []).map(({ target }) => target),
        ...(isLoop ? (children.get(id) ?? []).map((child) => child.id) : []),
        ...(around === undefined ? [] : (targets.get(around) ?? []).map(({ target }) => target)),
      ]
      for (const one of next) {
        if (reached.has(one)) continue
        reached.add(one)
        open.push(one)
      }
    }
    return reached
  }
}
