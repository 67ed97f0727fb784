import type { GraphEdge, GraphNode } from '../nodeform/contract.ts'
import { isRecord } from '../nodeform/schema.ts'

type Known = Record<string, unknown>
type Graph = { nodes: GraphNode[]; edges: GraphEdge[] }
export type Summaries = ReadonlyMap<string, string>

/** What n8n's webhooks give, which a WEBHOOK_TRIGGER with `shape: "n8n"` gives too. */
const N8N = ['body', 'headers', 'params', 'query', 'webhookUrl', 'executionMode']
const FULL = ['body', 'headers', 'statusCode', 'statusMessage']
const PASSES_ON = /passes its input on|input with \{/i

const EXECUTION = ['id', 'workflowId', 'workflowName', 'version', 'trigger', 'startedAt']

/**
 * The fields that a variable has in every run, as far as types and configs say: each with its value, or undefined. The
 * summaries of the types name them in braces: outputs {text, steps}.
 */
export function foresee(root: string, node: GraphNode, graph: Graph, summaries: Summaries): Known {
  if (root === '$input' || root === '$json') return foreseeInput(node, graph, summaries, new Set())
  if (root === '$execution') return nameAll(EXECUTION)
  if (root === '$trigger') {
    const targets = new Set(graph.edges.map(({ target }) => target))
    const [first, ...more] = graph.nodes.filter(({ id, parentId }) => !parentId && !targets.has(id))
    return first && more.length === 0 ? foreseeOutput(first, graph, summaries, new Set()) : {}
  }
  const named = graph.nodes.find(({ id }) => root === `$nodes.${id}` || root === `$nodes.\`${id}\``)
  return named ? foreseeOutput(named, graph, summaries, new Set()) : {}
}

function foreseeInput(node: GraphNode, graph: Graph, summaries: Summaries, seen: Set<string>): Known {
  const before = graph.edges.flatMap(({ source, target, sourceHandle }) =>
    target === node.id && sourceHandle !== 'error' ? [source] : [],
  )
  const sources = graph.nodes.filter(({ id }) => before.includes(id) && !seen.has(id))
  return Object.assign({}, ...sources.map((one) => foreseeOutput(one, graph, summaries, seen)))
}

function foreseeOutput(node: GraphNode, graph: Graph, summaries: Summaries, seen: Set<string>): Known {
  const { type, config, disabled } = node
  const summary = summaries.get(type) ?? ''
  // A loop in the graph leads back to a node that is being looked at.
  const input = () => foreseeInput(node, graph, summaries, new Set([...seen, node.id]))
  if (disabled) return input()
  if (node.perItem) return nameAll(['items'])
  const passed = PASSES_ON.test(summary) ? input() : {}
  return { ...passed, ...foreseeOwn(type, config, summary) }
}

function foreseeOwn(type: string, config: Record<string, unknown>, summary: string): Known {
  switch (type) {
    case 'SET':
      return isRecord(config.values) ? foreseeValues(config.values) : nameAll(listFields(config.fields))
    case 'WEBHOOK_TRIGGER':
      if (config.shape === 'n8n') return nameAll(N8N)
      break
    case 'HTTP_REQUEST':
      if (isRecord(config.response)) return config.response.full === true ? nameAll(FULL) : {}
      break
    case 'SUB_WORKFLOW':
      return config.wait === false ? nameAll(['executionId']) : {}
    case 'LLM':
    case 'EXTRACT':
      if (isRecord(config.schema)) return nameAll(Object.keys(Object(config.schema.properties)))
      break
    case 'SPLIT':
    case 'AI_AGENT':
      if (config.into !== undefined) return {}
  }
  const names = [...summary.matchAll(/\{([\w, ]+)\}/g)].flatMap(([, inner = '']) => inner.split(/,\s*/))
  return nameAll(names)
}

/** The values that are no expressions are known too. */
function foreseeValues(values: Record<string, unknown>): Known {
  const entries = Object.entries(values).map(([key, value]) => {
    if (typeof value === 'string')
      return [key, value.includes('{{') || value.startsWith('=') ? undefined : value]
    return [key, isRecord(value) ? foreseeValues(value) : value]
  })
  return Object.fromEntries(entries)
}

function listFields(fields: unknown): string[] {
  const names = Array.isArray(fields) ? fields.map((one) => (isRecord(one) ? one.name : undefined)) : []
  return names.filter((name): name is string => typeof name === 'string' && !name.includes('.'))
}

function nameAll(names: readonly string[]): Known {
  return Object.fromEntries(names.map((name) => [name, undefined]))
}
