import * as v from 'valibot'
import { isRules, NEWEST_RULES, RULES, type Rules } from '../../workflows/expressions/rules.ts'
import { GraphEdgeSchema, GraphNodeSchema } from '../../workflows/graph/elements.ts'
import { MAX_EDGES, MAX_NODES } from '../../workflows/graph/graph.ts'
import { NODES } from '../../workflows/nodes/nodes.ts'
import type { NodeType } from '../../workflows/nodes/nodetype.ts'
import type { Problem } from '../../workflows/problem.ts'
import { ON_ERROR } from '../../workflows/run/plan.ts'
import { type JsonSchema, translateSchema } from '../docs/jsonschema.ts'
import { documentAs } from '../http/fields.ts'

const base = translateSchema(GraphNodeSchema) as {
  properties: Record<string, JsonSchema>
  required: string[]
}

/** HTTP_REQUEST -> HttpRequest */
const nameOf = (type: string) =>
  type.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase())

// Each type has a whole schema of its own, which demands the `type`: a generator can tell them apart by it.
const NodeSchema: JsonSchema = {
  title: 'Node',
  description:
    'One node. Its type says what `config` must hold. If `config` is missing, `data` is read instead.',
  oneOf: Object.entries<NodeType>(NODES).map(([type, row]) => ({
    title: `${nameOf(type)}Node`,
    description: row.summary,
    ...base,
    properties: { ...base.properties, type: { const: type }, config: translateSchema(row.config) },
    required: ['type'],
  })),
}

/** Under which rules a request wants the expressions of its graph to be read. */
export const rulesField = v.picklist(RULES, 'must be 1 or 2')

export const rulesSchema = v.pipe(
  v.picklist(RULES),
  v.description(
    "The rules of the graph's expressions. 1 is for graphs that were saved before there were others; under 2, " +
      'expressions that read nothing leave a warning in the record of their node',
  ),
  v.examples([2]),
)

/** The nodes and edges of a request. readGraph checks them as a whole; the OpenAPI document describes each. */
export const graphFields = {
  nodes: v.optional(
    v.pipe(v.unknown(), documentAs<unknown>({ type: 'array', maxItems: MAX_NODES, items: NodeSchema })),
  ),
  edges: v.optional(
    v.pipe(
      v.unknown(),
      documentAs<unknown>({
        type: 'array',
        maxItems: MAX_EDGES,
        items: {
          title: 'Edge',
          description: 'A connection from one node to another.',
          ...translateSchema(GraphEdgeSchema),
        },
      }),
    ),
  ),
}

/** Reports the problems of a graph together with those of the other fields. */
export function addProblemIssues(problems: Problem[], addIssue: AddIssue): void {
  for (const { path, message } of problems) addIssue({ message, path: [makePathItem(path)] })
}

type AddIssue = (issue: { message: string; path: [v.ObjectPathItem] }) => void

/** Makes one key of a path as Valibot's issues have it. */
export function makePathItem(key: string): v.ObjectPathItem {
  return { type: 'object', origin: 'value', input: {}, key, value: null }
}

/** The nodes of a stored graph, with defaults filled in. */
export const nodesSchema = v.array(
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
      onError: v.picklist(ON_ERROR),
      disabled: v.optional(v.boolean()),
      perItem: v.optional(v.union([v.boolean(), v.object({ concurrency: v.optional(v.number()) })])),
      allItems: v.optional(v.boolean()),
      itemOptions: v.optional(
        v.object({
          firstOnly: v.optional(v.boolean()),
          alwaysOne: v.optional(v.boolean()),
          errors: v.optional(v.picklist(['text', 'pass'])),
        }),
      ),
    }),
    v.title('StoredNode'),
  ),
)
export const edgesSchema = v.array(
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

/** A small graph that can be saved, activated and executed. */
export const EXAMPLE_GRAPH = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'greet', type: 'SET', config: { values: { text: 'Order {{ $input.order }}' } } },
  ],
  edges: [{ source: 'start', target: 'greet' }],
}

/** The rules that a body names, else (also for what is not one of them, which is refused) the given ones. */
export function rulesOf(given: unknown, otherwise: Rules = NEWEST_RULES): Rules {
  return isRules(given) ? given : otherwise
}
