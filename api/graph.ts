import * as v from 'valibot'
import { Edge, Node } from '../workflows/elements.ts'
import { MAX_EDGES, MAX_NODES, type Problem } from '../workflows/graph.ts'
import { NODES, type NodeType } from '../workflows/nodes.ts'
import { shown } from './accept.ts'
import { type JsonSchema, translate } from './jsonschema.ts'

const base = translate(Node) as { properties: Record<string, JsonSchema>; required: string[] }

/** HTTP_REQUEST -> HttpRequest */
const nameOf = (type: string) =>
  type.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase())

const NodeSchema: JsonSchema = {
  title: 'Node',
  ...base,
  description: 'One node. Its config is as its type asks; `data` is taken where `config` is missing.',
  properties: {
    ...base.properties,
    type: { type: 'string', enum: Object.keys(NODES) },
    config: { type: 'object' },
  },
  oneOf: Object.entries<NodeType>(NODES).map(([type, row]) => ({
    title: `${nameOf(type)}Node`,
    description: row.summary,
    properties: { type: { const: type }, config: translate(row.config) },
  })),
}

/** What nodes and edges must be is the graph's to say, as a whole; the document shows what it asks of each. */
export const drawing = {
  nodes: v.optional(
    v.pipe(v.unknown(), shown<unknown>({ type: 'array', maxItems: MAX_NODES, items: NodeSchema })),
  ),
  edges: v.optional(
    v.pipe(
      v.unknown(),
      shown<unknown>({
        type: 'array',
        maxItems: MAX_EDGES,
        items: { title: 'Edge', description: 'From one node to another.', ...translate(Edge) },
      }),
    ),
  ),
}

/** Names what is wrong with a graph among the faults of the other fields. */
export function addProblems(problems: Problem[], addIssue: AddIssue): void {
  for (const { path, message } of problems) addIssue({ message, path: [pathTo(path)] })
}

type AddIssue = (issue: { message: string; path: [v.ObjectPathItem] }) => void

/** A place for Valibot, by its key. */
export function pathTo(key: string): v.ObjectPathItem {
  return { type: 'object', origin: 'value', input: {}, key, value: null }
}

/** A graph as it is answered: defaults filled in. */
export const nodes = v.array(
  v.pipe(
    v.object({
      id: v.pipe(v.string(), v.examples(['fetch'])),
      type: v.picklist(Object.keys(NODES)),
      name: v.string(),
      config: v.record(v.string(), v.unknown()),
      position: v.optional(v.object({ x: v.number(), y: v.number() })),
      parentId: v.optional(v.string()),
      retry: v.optional(
        v.object({
          maxAttempts: v.optional(v.number()),
          initialIntervalMs: v.optional(v.number()),
          backoffCoefficient: v.optional(v.number()),
          maxIntervalMs: v.optional(v.number()),
        }),
      ),
      timeoutMs: v.optional(v.number()),
      onError: v.picklist(['FAIL', 'CONTINUE', 'BRANCH']),
      disabled: v.optional(v.boolean()),
    }),
    v.title('StoredNode'),
  ),
)
export const edges = v.array(
  v.pipe(
    v.object({
      id: v.optional(v.string()),
      source: v.string(),
      target: v.string(),
      sourceHandle: v.nullable(v.string()),
      targetHandle: v.optional(v.nullable(v.string())),
    }),
    v.title('StoredEdge'),
  ),
)

/** A small graph that can be saved, activated and run. */
export const EXAMPLE = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'greet', type: 'SET', config: { values: { text: 'Order {{ $input.order }}' } } },
  ],
  edges: [{ source: 'start', target: 'greet' }],
}
