import { Hono } from 'hono'
import * as v from 'valibot'
import { STATUSES } from '../db/listing.ts'
import { startExecution } from '../db/start.ts'
import {
  createWorkflow,
  deleteWorkflow,
  listWorkflows,
  readWorkflow,
  updateWorkflow,
} from '../db/workflows.ts'
import { type Problem, readGraph } from '../workflows/graph.ts'
import { accept, ById, line, text, uuid } from './accept.ts'
import { count, EXAMPLE_ID, id, LOCATION, pageOf, said, time } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { runErrands } from './errands.ts'
import { answerStarted, STARTED } from './executions.ts'
import { addProblems, drawing, EXAMPLE, edges, nodes } from './graph.ts'
import { answerTagged, MATCH, ONCE, readKey, readTags, TAGGED, tellUnknown } from './headers.ts'
import { data, pinned } from './pins.ts'
import { paging } from './query.ts'
import { settings, settingsShown } from './settings.ts'

const name = v.pipe(line(200), v.examples(['Orders']))
const description = v.nullable(text(5_000, 0))
const WorkflowQuery = v.object({ teamId: uuid, ...paging, search: v.optional(text(200, 0)) })
const NewWorkflow = v.pipe(
  v.object({
    teamId: uuid,
    name,
    description: v.optional(description),
    ...drawing,
    settings: v.optional(settings),
  }),
  v.rawCheck(({ dataset, addIssue }) => addProblems(findProblems(dataset.value), addIssue)),
)
const WorkflowPatch = v.pipe(
  v.object({
    name: v.optional(name),
    description: v.optional(description),
    active: v.optional(v.boolean('must be true or false')),
    ...drawing,
    settings: v.optional(settings),
  }),
  v.rawCheck(({ dataset, addIssue }) => {
    const { nodes, edges } = Object(dataset.value)
    // Where one of them is missing, the stored one counts: the verb sees to that.
    if (nodes && edges) addProblems(findProblems({ nodes, edges }), addIssue)
  }),
)
const NewExecution = v.object({
  teamId: uuid,
  data: v.optional(data),
  pinned,
})

const workflow = {
  id,
  name: v.pipe(v.string(), v.examples(['Orders'])),
  description: v.nullable(v.pipe(v.string(), v.examples(['Takes orders']))),
  active: v.boolean(),
  teamId: id,
  createdAt: time,
  updatedAt: time,
}
export const WorkflowAnswer = v.pipe(v.object(workflow), v.title('Workflow'))
const WorkflowItem = v.pipe(
  v.object({ ...workflow, nodeCount: count, lastExecutionStatus: v.nullable(v.picklist(STATUSES)) }),
  v.title('WorkflowItem'),
)
export const WorkflowDetail = v.pipe(
  v.object({
    ...workflow,
    nodes,
    edges,
    settings: settingsShown,
    version: v.pipe(v.number(), v.integer(), v.minValue(1)),
  }),
  v.title('WorkflowDetail'),
)
const UNKNOWN =
  "Keys of a config that the node's type does not know are dropped; the header X-Unknown-Fields, a JSON array of " +
  'paths, then names them.'
const BY_ID = { id: '$response.body#/id' }
const WORKFLOW_LINKS = {
  readWorkflow: { parameters: BY_ID },
  updateWorkflow: { parameters: BY_ID },
  executeWorkflow: { parameters: BY_ID, requestBody: { teamId: '$response.body#/teamId' } },
  listWorkflowExecutions: { parameters: { workflowId: '$response.body#/id' } },
  deleteWorkflow: { parameters: BY_ID },
}

/** Workflows, and the start of their runs. */
export function createWorkflowRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows',
      accept({
        id: 'listWorkflows',
        tag: 'Workflows',
        summary: "List a team's workflows",
        description: 'The newest first. `search` is found anywhere in the name, in any case.',
        role: 'member',
        query: WorkflowQuery,
        responses: { 200: { description: 'One page', schema: pageOf('WorkflowPage', WorkflowItem) } },
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
          'Inactive at first. All faults of the graph are named at once; a draft may lack a trigger, or have nodes ' +
          `out of reach. ${UNKNOWN}`,
        role: 'BUILDER',
        json: NewWorkflow,
        example: { teamId: EXAMPLE_ID, name: 'Orders', description: 'Takes orders', ...EXAMPLE },
        responses: {
          201: {
            description: 'The workflow',
            schema: WorkflowAnswer,
            headers: LOCATION,
            links: WORKFLOW_LINKS,
          },
        },
        faults: [409],
      }),
      async (c) => {
        const workflow = await createWorkflow(c.get('scope'), c.req.valid('json'))
        tellUnknown(c, c.req.valid('json').nodes)
        c.header('Location', `/api/workflows/${workflow.id}`)
        return c.json(workflow, 201)
      },
    )
    .get(
      '/api/workflows/:id',
      accept({
        id: 'readWorkflow',
        tag: 'Workflows',
        summary: 'Read a workflow',
        description: 'With its newest graph. Secrets of webhooks are hidden from those below BUILDER.',
        role: 'member',
        of: 'workflows',
        params: ById,
        responses: { 200: { description: 'The workflow', schema: WorkflowDetail, headers: TAGGED } },
      }),
      async (c) => {
        return answerTagged(c, await readWorkflow(c.get('scope'), c.req.valid('param').id))
      },
    )
    .put(
      '/api/workflows/:id',
      accept({
        id: 'updateWorkflow',
        tag: 'Workflows',
        summary: 'Change a workflow',
        description:
          'Changes what is given and keeps the rest. A changed graph is a new version; runs keep the one they ' +
          `started with. Without If-Match the last write wins. ${UNKNOWN}`,
        role: 'BUILDER',
        of: 'workflows',
        params: ById,
        json: WorkflowPatch,
        headers: MATCH,
        example: { name: 'Orders of today', active: false },
        responses: { 200: { description: 'The workflow', schema: WorkflowDetail, headers: TAGGED } },
        faults: [409, 412],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const workflow = await updateWorkflow(c.get('scope'), id, c.req.valid('json'), readTags(c))
        await runErrands(deps, 'SCHEDULE', [id])
        tellUnknown(c, c.req.valid('json').nodes)
        return answerTagged(c, workflow)
      },
    )
    .delete(
      '/api/workflows/:id',
      accept({
        id: 'deleteWorkflow',
        tag: 'Workflows',
        summary: 'Delete a workflow and its executions',
        description: 'For good. Runs under way are ended.',
        role: 'BUILDER',
        of: 'workflows',
        params: ById,
        responses: { 200: said('Workflow deleted') },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const executions = await deleteWorkflow(c.get('scope'), id)
        await Promise.all([runErrands(deps, 'SCHEDULE', [id]), runErrands(deps, 'DELETE', executions)])
        return c.json({ message: 'Workflow deleted' })
      },
    )
    .post(
      '/api/workflows/:id/execute',
      accept({
        id: 'executeWorkflow',
        tag: 'Workflows',
        summary: 'Execute a workflow',
        description:
          'Starts a run at the MANUAL_TRIGGER, else at the first trigger (without any: 409), active or not, and ' +
          'answers at once: poll the execution.',
        role: 'OPERATOR',
        of: 'workflows',
        params: ById,
        json: NewExecution,
        headers: ONCE,
        example: { teamId: EXAMPLE_ID, data: { order: 17 } },
        responses: { 202: STARTED },
        faults: [409],
      }),
      async (c) => {
        const { teamId, data = {}, pinned } = c.req.valid('json')
        const { id } = c.req.valid('param')
        const input = { teamId, data, pinned, idempotencyKey: readKey(c), traceparent: c.get('traceparent') }
        return answerStarted(deps, c, await startExecution(c.get('scope'), id, input))
      },
    )
}

// The verb checks the graph again; here its faults are named beside those of the other fields.
function findProblems(body: unknown): Problem[] {
  const input: { nodes?: unknown; edges?: unknown } = Object(body)
  return readGraph(input, () => crypto.randomUUID()).problems
}
