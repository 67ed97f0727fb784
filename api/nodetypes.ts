import { Hono } from 'hono'
import * as v from 'valibot'
import { KINDS, NODES, type NodeType } from '../workflows/nodes.ts'
import { accept } from './accept.ts'
import type { AppEnv } from './app.ts'
import { translate } from './jsonschema.ts'

const NodeTypeAnswer = v.pipe(
  v.object({
    type: v.pipe(v.string(), v.examples(['IF_ELSE'])),
    kind: v.picklist(KINDS),
    summary: v.string(),
    handles: v.pipe(
      v.array(v.nullable(v.string())),
      v.description('Source handles of its edges; null is the main one'),
      v.examples([['true', 'false']]),
    ),
    retry: v.object({
      maxAttempts: v.number(),
      initialIntervalMs: v.number(),
      backoffCoefficient: v.number(),
      maxIntervalMs: v.number(),
    }),
    timeoutMs: v.number(),
    config: v.pipe(v.record(v.string(), v.unknown()), v.description('JSON Schema of its config')),
  }),
  v.title('NodeType'),
)

/** The node types, each with the JSON Schema of its config. `handles` null is the main one. */
export function createNodeTypeRoutes() {
  const types = Object.entries<NodeType>(NODES).map(([type, row]) => ({
    type,
    kind: row.kind,
    summary: row.summary,
    handles: row.handles({}),
    retry: row.retry,
    timeoutMs: row.timeoutMs,
    // Checks by a function have no JSON Schema; saving makes them all the same.
    config: { $schema: 'https://json-schema.org/draft/2020-12/schema', ...translate(row.config) },
  }))
  return new Hono<AppEnv>().get(
    '/api/node-types',
    accept({
      id: 'listNodeTypes',
      tag: 'Workflows',
      summary: 'List the node types',
      role: 'user',
      responses: { 200: { description: 'Every node type', schema: v.array(NodeTypeAnswer) } },
    }),
    (c) => c.json(types),
  )
}
