import { Hono } from 'hono'
import * as v from 'valibot'
import { Fault } from '../db/fault.ts'
import { startExecution } from '../db/start.ts'
import {
  createWorkflow,
  deleteWorkflow,
  listWorkflows,
  readWorkflow,
  tagWorkflow,
  updateWorkflow,
} from '../db/workflows.ts'
import { readGraph } from '../workflows/graph.ts'
import { accept, text, uuid } from './accept.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { runErrands } from './errands.ts'
import { answerStarted } from './executions.ts'
import { paging } from './query.ts'

const DAY_MS = 86_400_000
const MAX_ERRANDS = 100

const name = v.pipe(text(200), v.trim(), v.nonEmpty('must not be empty'))
const description = v.nullable(text(5_000, 0))
const settings = v.object(
  {
    timeoutMs: v.optional(
      v.nullable(
        v.pipe(
          v.number('must be a number of milliseconds'),
          v.integer('must be a whole number of milliseconds'),
          v.minValue(1_000, 'must be at least 1000 (a second)'),
          v.maxValue(366 * DAY_MS, 'must be at most 366 days'),
        ),
      ),
    ),
  },
  'must be an object',
)
// What nodes and edges must be is the graph's to say, as a whole.
const drawing = { nodes: v.optional(v.unknown()), edges: v.optional(v.unknown()) }

const OneWorkflow = v.object({ id: uuid })
const WorkflowQuery = v.object({ teamId: uuid, ...paging, search: v.optional(text(200, 0)) })
const NewWorkflow = v.pipe(
  v.object({
    teamId: uuid,
    name,
    description: v.optional(description),
    ...drawing,
    settings: v.optional(settings),
  }),
  v.rawCheck(({ dataset, addIssue }) => addGraphIssues(dataset.value, addIssue)),
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
    if (nodes && edges) addGraphIssues({ nodes, edges }, addIssue)
  }),
)
// Valibot's own record would drop the keys `constructor` and `prototype`.
const data = v.custom<Record<string, unknown>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'must be an object',
)
const NewExecution = v.object({ teamId: uuid, data: v.optional(data) })

/** Workflows, and the start of their runs. */
export function createWorkflowRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows',
      accept({ summary: "List a team's workflows", role: 'member', query: WorkflowQuery }),
      async (c) => c.json(await listWorkflows(c.get('scope'), c.req.valid('query'))),
    )
    .post(
      '/api/workflows',
      accept({ summary: 'Create a workflow', role: 'BUILDER', json: NewWorkflow }),
      async (c) => {
        const workflow = await createWorkflow(c.get('scope'), c.req.valid('json'))
        c.header('Location', `/api/workflows/${workflow.id}`)
        return c.json(workflow, 201)
      },
    )
    .get(
      '/api/workflows/:id',
      accept({ summary: 'Read a workflow', role: 'member', of: 'workflows', params: OneWorkflow }),
      async (c) => {
        const workflow = await readWorkflow(c.get('scope'), c.req.valid('param').id)
        c.header('ETag', `"${tagWorkflow(workflow)}"`)
        return c.json(workflow)
      },
    )
    .put(
      '/api/workflows/:id',
      accept({
        summary: 'Change a workflow',
        role: 'BUILDER',
        of: 'workflows',
        params: OneWorkflow,
        json: WorkflowPatch,
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const expected = readTags(c.req.header('if-match'))
        const workflow = await updateWorkflow(c.get('scope'), id, c.req.valid('json'), expected)
        c.header('ETag', `"${tagWorkflow(workflow)}"`)
        return c.json(workflow)
      },
    )
    .delete(
      '/api/workflows/:id',
      accept({
        summary: 'Delete a workflow and its executions',
        role: 'BUILDER',
        of: 'workflows',
        params: OneWorkflow,
      }),
      async (c) => {
        const executions = await deleteWorkflow(c.get('scope'), c.req.valid('param').id)
        await runErrands(deps, 'DELETE', executions.slice(0, MAX_ERRANDS))
        return c.json({ message: 'Workflow deleted' })
      },
    )
    .post(
      '/api/workflows/:id/execute',
      accept({
        summary: 'Execute a workflow',
        role: 'OPERATOR',
        of: 'workflows',
        params: OneWorkflow,
        json: NewExecution,
      }),
      async (c) => {
        const { teamId, data = {} } = c.req.valid('json')
        const idempotencyKey = readKey(c.req.header('idempotency-key'))
        const scope = c.get('scope')
        const input = { teamId, data, idempotencyKey }
        return answerStarted(deps, c, await startExecution(scope, c.req.valid('param').id, input))
      },
    )
}

/** The tags of an If-Match header; undefined where it is not sent, or is * (whatever stands is right). */
function readTags(header: string | undefined): string[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined
  // A proxy that compresses makes a tag weak; it still names the same state.
  return header.split(',').map((tag) =>
    tag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1'),
  )
}

function readKey(key: string | undefined): string | undefined {
  if (key === undefined || /^[\x20-\x7e]{1,255}$/.test(key)) return key
  const problem = { path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters' }
  throw new Fault('INVALID', `${problem.path} ${problem.message}`, { problems: [problem] })
}

// The verb checks the graph again; here its faults are named beside those of the other fields.
function addGraphIssues(
  body: unknown,
  addIssue: (issue: { message: string; path: [v.ObjectPathItem] }) => void,
): void {
  const input: { nodes?: unknown; edges?: unknown } = Object(body)
  for (const { path, message } of readGraph(input, () => crypto.randomUUID()).problems) {
    addIssue({ message, path: [{ type: 'object', origin: 'value', input: {}, key: path, value: null }] })
  }
}
