import { Hono } from 'hono'
import * as v from 'valibot'
import { readNodeUsage } from '../../../db/monitoring/usage/nodes.ts'
import { readWorkflowUsage } from '../../../db/monitoring/usage/totals.ts'
import type { AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { InTeam } from '../../http/fields.ts'
import { countSchema, idSchema } from '../../http/responses.ts'
import { periodSchema, readSpan, UsageSpan } from '../spans.ts'
import { usageFields } from './amounts.ts'

const whose = {
  workflowId: v.pipe(v.nullable(idSchema), v.description('Null for calls outside of executions')),
  workflowName: v.pipe(v.nullable(v.string()), v.description('Null if there is no such workflow any more')),
}
const MOST = 'The ones that cost most first, at most 1,000'

const WorkflowsSchema = v.pipe(
  v.object({
    workflows: v.pipe(
      v.array(
        v.object({
          ...whose,
          ...usageFields,
          executionCount: v.pipe(countSchema, v.description('How many executions have made the calls')),
        }),
      ),
      v.maxLength(1_000),
      v.description(MOST),
    ),
    period: periodSchema,
  }),
  v.title('TokenUsageByWorkflow'),
)
const NodesSchema = v.pipe(
  v.object({
    nodes: v.pipe(
      v.array(v.object({ ...whose, nodeId: v.string(), ...usageFields })),
      v.maxLength(1_000),
      v.description(MOST),
    ),
    period: periodSchema,
  }),
  v.title('TokenUsageByNode'),
)

/** The routes that tell which workflows and nodes of a team have called models. */
export function createBreakdownRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/monitoring/teams/:teamId/token-usage/by-workflow',
      accept({
        id: 'readTokenUsageByWorkflow',
        tag: 'Monitoring',
        summary: "Read a team's token usage by workflow",
        role: 'member',
        params: InTeam,
        query: UsageSpan,
        responses: { 200: { description: 'The workflows', schema: WorkflowsSchema } },
      }),
      async (c) => {
        const { query, period } = readSpan(c.req.valid('query'))
        const found = await readWorkflowUsage(c.get('scope'), c.req.valid('param').teamId, query)
        const workflows = found.map(({ executions, ...one }) => ({ ...one, executionCount: executions }))
        return c.json({ workflows, period })
      },
    )
    .get(
      '/api/monitoring/teams/:teamId/token-usage/by-node',
      accept({
        id: 'readTokenUsageByNode',
        tag: 'Monitoring',
        summary: "Read a team's token usage by node",
        description: 'By the nodes of all workflows, or of one. An agent has the sum of its steps.',
        role: 'member',
        params: InTeam,
        query: UsageSpan,
        responses: { 200: { description: 'The nodes', schema: NodesSchema } },
      }),
      async (c) => {
        const { query, period } = readSpan(c.req.valid('query'))
        return c.json({
          nodes: await readNodeUsage(c.get('scope'), c.req.valid('param').teamId, query),
          period,
        })
      },
    )
}
