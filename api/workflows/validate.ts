import { Hono } from 'hono'
import * as v from 'valibot'
import { validateGraph } from '../../db/workflows/validate.ts'
import { NEWEST_RULES } from '../../workflows/expressions/rules.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { uuidField } from '../http/fields.ts'
import { EXAMPLE_ID, ProblemSchema, warningsEntry } from '../http/responses.ts'
import { listWarnings } from '../warnings.ts'
import { EXAMPLE_GRAPH, graphFields, rulesField, rulesOf } from './graph.ts'
import { ABOUT_UNKNOWN_KEYS, findUnread, tellUnread, unknownKeysQuery } from './unknown.ts'

const Given = v.object({
  teamId: uuidField,
  ...graphFields,
  expressions: v.optional(rulesField, NEWEST_RULES),
})

const Validated = v.pipe(
  v.object({
    ...warningsEntry,
    activation: v.pipe(
      v.array(ProblemSchema),
      v.description('What would keep a workflow with this graph from being activated'),
    ),
  }),
  v.title('ValidatedGraph'),
)

/** The route that checks a graph without saving it, for programs that write graphs. */
export function createValidateRoutes() {
  return new Hono<AppEnv>().post(
    '/api/workflows/validate',
    accept({
      id: 'validateWorkflow',
      tag: 'Workflows',
      summary: "Check a workflow's graph without saving it",
      description: `All problems of the graph are reported at once, as when a workflow is created. ${ABOUT_UNKNOWN_KEYS}`,
      role: 'BUILDER',
      query: v.object(unknownKeysQuery),
      json: Given,
      graph: ({ nodes, edges, expressions }) => ({ nodes, edges, expressions: rulesOf(expressions) }),
      example: { teamId: EXAMPLE_ID, ...EXAMPLE_GRAPH },
      responses: { 200: { description: 'The graph can be saved', schema: Validated } },
    }),
    async (c) => {
      const json = c.req.valid('json')
      const unread = findUnread(c, json)
      const given = { ...json, graph: c.get('graph'), warnings: c.get('graphWarnings') }
      const { warnings, activation } = await validateGraph(c.get('scope'), given)
      return c.json({ ...listWarnings(tellUnread(c, unread, warnings)), activation })
    },
  )
}
