import { toJsonSchema } from '@valibot/to-json-schema'
import { Hono } from 'hono'
import { NODES, type NodeType } from '../workflows/nodes.ts'
import { accept } from './accept.ts'
import type { AppEnv } from './app.ts'

/** The node types, each with the JSON Schema of its config. `handles` null is the main one. */
export function createNodeTypeRoutes() {
  const types = Object.entries<NodeType>(NODES).map(([type, row]) => ({
    type,
    kind: row.kind,
    summary: row.summary,
    handles: row.handles({}),
    retry: row.retry,
    timeoutMs: row.timeoutMs,
    config: toJsonSchema(row.config, {
      typeMode: 'input',
      // Checks by a function have no JSON Schema; saving makes them all the same.
      errorMode: 'ignore',
      overrideSchema: ({ valibotSchema }) =>
        valibotSchema.type === 'custom' ? { type: 'object' } : undefined,
    }),
  }))
  return new Hono<AppEnv>().get(
    '/api/node-types',
    accept({ summary: 'List the node types', role: 'user' }),
    (c) => c.json(types),
  )
}
