import { Hono } from 'hono'
import * as v from 'valibot'
import { DEFAULT_SETTINGS } from '../../db/workflows/settings.ts'
import { GraphEdgeSchema, GraphNodeSchema } from '../../workflows/graph/elements.ts'
import { type JsonSchema, translateSchema } from '../docs/jsonschema.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { SETTING_GROUPS, settingsField } from './settings.ts'

const anySchema = v.record(v.string(), v.unknown())

const WorkflowSchema = v.pipe(
  v.object({
    node: v.pipe(anySchema, v.description('The JSON Schema of a node, but for its `config`')),
    edge: v.pipe(anySchema, v.description('The JSON Schema of an edge')),
    settings: v.pipe(anySchema, v.description('The JSON Schema of the settings, with their defaults')),
    settingGroups: v.pipe(
      v.array(v.object({ title: v.string(), keys: v.array(v.string()) })),
      v.description('The settings that belong together, as a form shows them'),
    ),
  }),
  v.title('WorkflowSchema'),
)

/** What a workflow is made of, as data: a form for all of it can be drawn from this and the node types. */
export function createSchemaRoutes() {
  const settings = translateSchema(settingsField)
  const properties = Object.entries(settings.properties as Record<string, JsonSchema>).map(
    ([key, schema]) => [
      key,
      // A missing setting keeps what is stored; this is what is stored at first.
      { ...schema, default: DEFAULT_SETTINGS[key as keyof typeof DEFAULT_SETTINGS] },
    ],
  )
  const answer = {
    node: translateSchema(GraphNodeSchema),
    edge: translateSchema(GraphEdgeSchema),
    settings: { ...settings, properties: Object.fromEntries(properties) as JsonSchema },
    settingGroups: SETTING_GROUPS.map(({ title, keys }) => ({ title, keys: keys as string[] })),
  }
  return new Hono<AppEnv>().get(
    '/api/workflow-schema',
    accept({
      id: 'readWorkflowSchema',
      tag: 'Workflows',
      summary: 'Read the JSON Schemas of nodes, edges and settings',
      role: 'user',
      responses: { 200: { description: 'The schemas', schema: WorkflowSchema } },
    }),
    (c) => c.json(answer),
  )
}
