import { Hono } from 'hono'
import * as v from 'valibot'
import { NODES } from '../../workflows/nodes/nodes.ts'
import type { NodeType } from '../../workflows/nodes/nodetype.ts'
import { NODE_KINDS } from '../../workflows/run/plan.ts'
import { CREDENTIAL_USES } from '../../workflows/secrets/uses.ts'
import { translateSchema } from '../docs/jsonschema.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString } from '../http/fields.ts'

const NodeTypeSchema = v.pipe(
  v.object({
    type: v.pipe(v.string(), v.examples(['IF_ELSE'])),
    kind: v.picklist(NODE_KINDS),
    summary: v.string(),
    handles: v.pipe(
      v.array(v.nullable(v.string())),
      v.description('The source handles of its edges; null is the main one'),
      v.examples([['true', 'false']]),
    ),
    retry: v.object({
      maxAttempts: v.number(),
      initialIntervalMs: v.number(),
      backoffCoefficient: v.number(),
      maxIntervalMs: v.number(),
    }),
    timeoutMs: v.number(),
    credentialUses: v.pipe(
      v.array(v.picklist(CREDENTIAL_USES)),
      v.description('What the credential of its `credentialId` must be good for; empty if it takes none'),
    ),
    main: v.pipe(
      v.array(v.string()),
      v.description(
        'The settings of its config that most people set, in their order; the others are options',
      ),
      v.examples([['method', 'url']]),
    ),
    mainBy: v.pipe(
      v.nullable(v.object({ key: v.string(), keys: v.record(v.string(), v.array(v.string())) })),
      v.description(
        'Further ones by the value of the setting `key`; the empty string stands for its absence',
      ),
    ),
    config: v.pipe(
      v.record(v.string(), v.unknown()),
      v.description('The JSON Schema of its config, with a description of every setting'),
    ),
  }),
  v.title('NodeType'),
)

function copyMain(given: NodeType['mainBy']) {
  if (!given) return null
  const keys = Object.entries(given.keys).map(([value, names]) => [value, [...names]] as const)
  return { key: given.key, keys: Object.fromEntries(keys) }
}

const Which = v.object({
  type: v.pipe(v.optional(boundedString(100)), v.description('Only this one')),
  config: v.optional(
    v.pipe(
      v.picklist(['true', 'false'], 'must be true or false'),
      v.transform((text) => text === 'true'),
      v.description('With `false` each `config` is empty: the schemas are long'),
    ),
    'true',
  ),
})

/** The node types, each with the JSON Schema of its config. */
export function createNodeTypeRoutes() {
  const types = Object.entries<NodeType>(NODES).map(([type, row]) => ({
    type,
    kind: row.kind,
    summary: row.summary,
    handles: row.handles({}),
    retry: row.retry,
    timeoutMs: row.timeoutMs,
    credentialUses: [...(row.credentialUses ?? [])],
    main: [...(row.main ?? [])],
    mainBy: copyMain(row.mainBy),
    // JSON Schema cannot express the checks that are functions. They are made when a workflow is saved.
    config: { $schema: 'https://json-schema.org/draft/2020-12/schema', ...translateSchema(row.config) },
  }))
  return new Hono<AppEnv>().get(
    '/api/node-types',
    accept({
      id: 'listNodeTypes',
      tag: 'Workflows',
      summary: 'List the node types',
      role: 'user',
      query: Which,
      responses: { 200: { description: 'Every node type', schema: v.array(NodeTypeSchema) } },
    }),
    (c) => {
      const { type, config: isWhole } = c.req.valid('query')
      const chosen = type === undefined ? types : types.filter((one) => one.type === type)
      return c.json(isWhole ? chosen : chosen.map((one) => ({ ...one, config: {} })))
    },
  )
}
