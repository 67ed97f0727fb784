import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { readDrawn } from '../../db/workflows/drawing.ts'
import { updateWorkflow } from '../../db/workflows/update.ts'
import { createWorkflow, deleteWorkflow, listWorkflows, readWorkflow } from '../../db/workflows/workflows.ts'
import { NEWEST_RULES } from '../../workflows/expressions/rules.ts'
import { findOpenWebhooks } from '../../workflows/graph/advice/open.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString, trimmedString, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import { EXAMPLE_ID, LOCATION_HEADER, messageResponse, pageSchema } from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'
import { listWarnings } from '../warnings.ts'
import { NewWorkflowSchema, WorkflowDetailSchema, WorkflowItemSchema, WorkflowQuery } from './fields.ts'
import { EXAMPLE_GRAPH, graphFields, rulesField, rulesOf } from './graph.ts'
import { ETAG_HEADER, IF_MATCH_HEADER, readIfMatch, respondWithWorkflow } from './headers.ts'
import { ABOUT_SECRETS, listMovedSecrets } from './moved.ts'
import { settingsField } from './settings.ts'
import { ABOUT_UNKNOWN_KEYS, findUnread, tellUnread, unknownKeysQuery } from './unknown.ts'
import { createValidateRoutes } from './validate.ts'

const workflowName = v.pipe(trimmedString(200), v.examples(['Orders']))
const description = v.nullable(boundedString(5_000, 0))
const yesOrNo = v.optional(
  v.pipe(
    v.picklist(['true', 'false'], 'must be true or false'),
    v.transform((text) => text === 'true'),
  ),
)
const WorkflowListQuery = v.object({
  teamId: uuidField,
  ...paging,
  search: v.optional(boundedString(200, 0)),
  active: yesOrNo,
  agent: yesOrNo,
})
const NewWorkflow = v.object({
  teamId: uuidField,
  name: workflowName,
  description: v.optional(description),
  ...graphFields,
  expressions: v.optional(rulesField, NEWEST_RULES),
  settings: v.optional(settingsField),
})
const WorkflowPatch = v.object({
  name: v.optional(workflowName),
  description: v.optional(description),
  active: v.optional(v.boolean('must be true or false')),
  ...graphFields,
  expressions: v.optional(rulesField),
  settings: v.optional(settingsField),
  draft: v.optional(
    v.pipe(
      v.boolean('must be true or false'),
      v.description(
        'Whether the graph, `expressions`, `settings.strict` and `settings.notes` become a draft instead of being ' +
          'published. The other fields have no versions: they count at once',
      ),
    ),
    false,
  ),
})
const BY_ID = { id: '$response.body#/id' }
const WORKFLOW_LINKS = {
  readWorkflow: { parameters: BY_ID },
  updateWorkflow: { parameters: BY_ID },
  executeWorkflow: { parameters: BY_ID, requestBody: { teamId: '$response.body#/teamId' } },
  listWorkflowExecutions: { parameters: { workflowId: '$response.body#/id' } },
  deleteWorkflow: { parameters: BY_ID },
}

/** The keys of a copy of a workflow that was read, beside those of a new one. */
const READ_ONLY = [
  ...['id', 'createdAt', 'updatedAt', 'version', 'publishedVersion', 'draftVersion', 'draftBase'],
  ...['warnings', 'credentials'],
]

/** A body's graph with that of the workflow, and the rules that the body names, else those of the workflow. */
async function findDrawing(
  c: Context<AppEnv>,
  { nodes, edges, expressions, draft }: Record<'nodes' | 'edges' | 'expressions' | 'draft', unknown>,
) {
  const known = await readDrawn(c.get('scope').store, v.parse(uuidField, c.req.param('id')), draft === true)
  return { nodes, edges, expressions: rulesOf(expressions, known.expressions), known }
}

/** A team's workflows. */
export function createWorkflowRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .route('/', createWorkflowListRoutes())
    .route('/', createValidateRoutes())
    .route('/', createOneWorkflowRoutes(deps))
}

function createWorkflowListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows',
      accept({
        id: 'listWorkflows',
        tag: 'Workflows',
        summary: "List a team's workflows",
        description:
          'Newest first. `search` matches any part of the name, ignoring case; `active` leaves only those that are ' +
          'active, or that are not; `agent` those that one can chat with while they are active (a CHAT_TRIGGER leads to ' +
          'an AI_AGENT or LLM node), or the others.',
        role: 'member',
        query: WorkflowListQuery,
        responses: {
          200: { description: 'One page', schema: pageSchema('WorkflowPage', WorkflowItemSchema) },
        },
      }),
      async (c) => c.json(await listWorkflows(c.get('scope'), c.req.valid('query'))),
    )
    .post(
      '/api/workflows',
      accept({
        id: 'createWorkflow',
        tag: 'Workflows',
        summary: 'Create a workflow',
        description:
          'The new workflow is inactive. All problems of the graph are reported at once. An inactive ' +
          `workflow may lack a trigger, or have nodes that no trigger leads to. ${ABOUT_SECRETS} ${ABOUT_UNKNOWN_KEYS}`,
        role: 'BUILDER',
        query: v.object(unknownKeysQuery),
        json: NewWorkflow,
        graph: ({ nodes, edges, expressions }) => ({ nodes, edges, expressions: rulesOf(expressions) }),
        example: { teamId: EXAMPLE_ID, name: 'Orders', description: 'Takes orders', ...EXAMPLE_GRAPH },
        responses: {
          201: {
            description: 'The workflow',
            schema: NewWorkflowSchema,
            headers: LOCATION_HEADER,
            links: WORKFLOW_LINKS,
          },
        },
        faults: [409],
      }),
      async (c) => {
        const json = c.req.valid('json')
        const unread = findUnread(c, json, { also: READ_ONLY })
        const { warnings, credentials, ...workflow } = await createWorkflow(c.get('scope'), {
          ...json,
          graph: c.get('graph'),
          warnings: c.get('graphWarnings'),
        })
        c.header('Location', `/api/workflows/${workflow.id}`)
        const told = { ...listWarnings(tellUnread(c, unread, warnings)), ...listMovedSecrets(credentials) }
        return c.json({ ...workflow, ...told }, 201)
      },
    )
}

function createOneWorkflowRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows/:id',
      accept({
        id: 'readWorkflow',
        tag: 'Workflows',
        summary: 'Read a workflow',
        description:
          'Includes its published graph, or that of its draft. Secrets that are still written into it are only shown to ' +
          'BUILDER and higher roles.',
        role: 'member',
        of: 'workflows',
        params: ById,
        query: WorkflowQuery,
        responses: {
          200: { description: 'The workflow', schema: WorkflowDetailSchema, headers: ETAG_HEADER },
        },
      }),
      async (c) => {
        const which = { draft: c.req.valid('query').version === 'draft' }
        return respondWithWorkflow(c, await readWorkflow(c.get('scope'), c.req.valid('param').id, which))
      },
    )
    .put(
      '/api/workflows/:id',
      accept({
        id: 'updateWorkflow',
        tag: 'Workflows',
        summary: 'Change a workflow',
        description:
          'Changes the fields that are given and keeps the others. A changed graph, `expressions`, ' +
          '`settings.strict` or `settings.notes` becomes a new version, which is published at once and leaves a draft ' +
          'alone; with `draft` it becomes the draft, and the response shows that. ' +
          'Executions keep the version that they started with. Without If-Match the last write wins; with `draft` it ' +
          'may be the ETag of the draft. ' +
          `An element that is the same as before is never refused for what is wrong with it alone. ${ABOUT_SECRETS} ${ABOUT_UNKNOWN_KEYS}`,
        role: 'BUILDER',
        of: 'workflows',
        params: ById,
        query: v.object(unknownKeysQuery),
        json: WorkflowPatch,
        // If only one of them is given, updateWorkflow takes the other from the stored graph and reads both.
        graph: (body, c) =>
          body.nodes && body.edges && v.is(uuidField, c.req.param('id')) ? findDrawing(c, body) : undefined,
        headers: IF_MATCH_HEADER,
        example: { name: 'Daily orders', active: false },
        responses: {
          200: { description: 'The workflow', schema: WorkflowDetailSchema, headers: ETAG_HEADER },
        },
        faults: [409, 412],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const json = c.req.valid('json')
        // A client may send what it has read.
        const unread = findUnread(c, json, { also: Object.keys(WorkflowDetailSchema.entries) })
        const patch = { ...json, graph: c.get('graph'), warnings: c.get('graphWarnings') }
        const workflow = await updateWorkflow(c.get('scope'), id, patch, readIfMatch(c))
        await carryOutEach(deps, 'SCHEDULE', [id])
        // Not when only its name or its settings change.
        const isDrawn = json.nodes !== undefined || json.edges !== undefined
        const isShown = workflow.active && (json.active === true || (isDrawn && !json.draft))
        const open = isShown ? findOpenWebhooks(workflow.nodes) : []
        const warnings = tellUnread(c, unread, [...open, ...workflow.warnings])
        return respondWithWorkflow(c, { ...workflow, warnings })
      },
    )
    .delete(
      '/api/workflows/:id',
      accept({
        id: 'deleteWorkflow',
        tag: 'Workflows',
        summary: 'Delete a workflow and its executions',
        description: 'Cannot be undone. Executions that are still running are ended.',
        role: 'BUILDER',
        of: 'workflows',
        params: ById,
        responses: { 200: messageResponse('Workflow deleted') },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const executions = await deleteWorkflow(c.get('scope'), id)
        await Promise.all([carryOutEach(deps, 'SCHEDULE', [id]), carryOutEach(deps, 'DELETE', executions)])
        return c.json({ message: 'Workflow deleted' })
      },
    )
}
