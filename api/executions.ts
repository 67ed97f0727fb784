import { setTimeout as pause } from 'node:timers/promises'
import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import {
  cancelExecution,
  hasEnded,
  isEnded,
  listTeamExecutions,
  listWorkflowExecutions,
  readExecution,
} from '../db/executions.ts'
import { STATUSES } from '../db/listing.ts'
import type { Store } from '../db/scope.ts'
import { listNodeExecutions } from '../db/shown.ts'
import type { Started } from '../db/start.ts'
import { accept, ById, InTeam, uuid } from './accept.ts'
import { count, id, LOCATION, pageOf, time } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { runErrands } from './errands.ts'
import { isForward, paging, span } from './query.ts'

const POLL_MS = 25
const SETTLE_MS = 1_000

const filters = {
  ...paging,
  ...span,
  status: v.optional(v.picklist(STATUSES, `must be one of ${STATUSES.join(', ')}`)),
}
const TeamQuery = v.pipe(v.object({ ...filters, workflowId: v.optional(uuid) }), forward())
const WorkflowQuery = v.pipe(v.object({ ...filters, workflowId: uuid }), forward())

const status = v.picklist(STATUSES)
const values = v.pipe(
  v.record(v.string(), v.unknown()),
  v.description('What is no object is shown as {value}; expressions see it as it is'),
)
const trigger = v.picklist([
  'MANUAL',
  'API',
  'WEBHOOK',
  'SCHEDULE',
  'CHAT',
  'SUB_WORKFLOW',
  'ERROR',
  'EVALUATION',
  'PLAYBOOK',
])
const errorMessage = v.nullable(v.pipe(v.string(), v.examples(['connect ECONNREFUSED'])))
const retriedFrom = v.pipe(v.nullable(id), v.description('The run that this one takes up'))
const ExecutionItem = v.pipe(
  v.object({
    id,
    workflowId: id,
    workflowName: v.string(),
    status,
    startedAt: v.nullable(time),
    finishedAt: v.nullable(time),
    durationMs: v.nullable(count),
    triggerType: trigger,
    nodeCount: count,
    errorMessage,
    retriedFrom,
  }),
  v.title('ExecutionItem'),
)
const NodeAnswer = v.pipe(
  v.object({
    id,
    nodeId: v.pipe(v.string(), v.description("The node's id in the graph"), v.examples(['fetch'])),
    nodeName: v.pipe(v.string(), v.examples(['Fetch'])),
    nodeType: v.pipe(v.string(), v.examples(['HTTP_REQUEST'])),
    iteration: v.pipe(
      v.nullable(v.string()),
      v.description(
        "The number of its loop's iteration, from 0; `3.0` in a loop in a loop; null outside of loops",
      ),
      v.examples(['0']),
    ),
    status,
    startedAt: time,
    completedAt: v.nullable(time),
    durationMs: v.nullable(count),
    inputData: values,
    outputData: v.nullable(values),
    errorMessage,
    handle: v.pipe(
      v.nullable(v.string()),
      v.description(
        'The handle it left by: a branch, `timeout`, `error`; null is the main one, and of what has not left',
      ),
    ),
    retryCount: v.pipe(count, v.description('Attempts but the first')),
    pinned: v.pipe(v.boolean(), v.description('Its output was given with the start of the run')),
    takenFrom: v.pipe(v.nullable(id), v.description('The execution whose output was taken over')),
    childExecutionId: v.pipe(v.nullable(id), v.description('The run that a SUB_WORKFLOW node has started')),
  }),
  v.title('NodeExecution'),
)
const ExecutionAnswer = v.pipe(
  v.object({
    id,
    workflowId: id,
    workflowName: v.string(),
    workflowVersion: v.pipe(v.number(), v.integer(), v.minValue(1)),
    status,
    trigger,
    inputData: values,
    outputData: v.nullable(values),
    errorMessage,
    createdAt: time,
    queuedAt: v.pipe(
      v.nullable(time),
      v.description("Since when it waits, PENDING, for a place at its workflow's limit"),
    ),
    startedAt: v.nullable(time),
    completedAt: v.nullable(time),
    durationMs: v.nullable(count),
    parentExecutionId: v.pipe(
      v.nullable(id),
      v.description('The run whose SUB_WORKFLOW node started this one'),
    ),
    parentNodeId: v.nullable(v.string()),
    retriedFrom,
    recovery: v.pipe(
      v.nullable(v.picklist(['RETRY', 'RERUN'])),
      v.description('How it takes up that run: from its failed nodes on, or from the start'),
    ),
    retries: v.pipe(v.array(id), v.maxLength(100), v.description('The newest runs that take up this one')),
    onlyNode: v.pipe(v.nullable(v.string()), v.description('The one node that was run')),
    nodeExecutions: v.pipe(
      v.array(NodeAnswer),
      v.maxLength(1_000),
      v.description('At most 1,000: those outside of loops, then failed ones, then the newest'),
    ),
    nodeExecutionsTotal: count,
  }),
  v.title('Execution'),
)
const ExecutionPage = { description: 'The newest first', schema: pageOf('ExecutionPage', ExecutionItem) }

/** What is said of a run that was accepted. */
export const started = {
  executionId: id,
  status: v.pipe(
    status,
    v.description('RUNNING once Temporal took it, else PENDING'),
    v.examples(['RUNNING']),
  ),
  startedAt: time,
}
const StartedAnswer = v.pipe(v.object(started), v.title('StartedExecution'))

const BY_ID = { id: '$response.body#/executionId' }
/** The answer to whatever starts a run. */
export const STARTED = {
  description: 'The run is accepted',
  schema: StartedAnswer,
  headers: LOCATION,
  links: { readExecution: { parameters: BY_ID }, cancelExecution: { parameters: BY_ID } },
}

/** Executions: their lists, their details, their cancel. */
export function createExecutionRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/executions',
      accept({
        id: 'listWorkflowExecutions',
        tag: 'Executions',
        summary: "List a workflow's executions",
        role: 'member',
        query: WorkflowQuery,
        responses: { 200: ExecutionPage },
      }),
      async (c) => {
        const { workflowId, ...query } = c.req.valid('query')
        return c.json(await listWorkflowExecutions(c.get('scope'), workflowId, query))
      },
    )
    .get(
      '/api/executions/team/:teamId',
      accept({
        id: 'listTeamExecutions',
        tag: 'Executions',
        summary: "List a team's executions",
        role: 'member',
        params: InTeam,
        query: TeamQuery,
        responses: { 200: ExecutionPage },
      }),
      async (c) =>
        c.json(await listTeamExecutions(c.get('scope'), c.req.valid('param').teamId, c.req.valid('query'))),
    )
    .get(
      '/api/executions/:id',
      accept({
        id: 'readExecution',
        tag: 'Executions',
        summary: 'Read an execution',
        role: 'member',
        of: 'executions',
        params: ById,
        responses: {
          200: { description: 'The execution, its nodes in the order they started', schema: ExecutionAnswer },
        },
      }),
      async (c) => c.json(await readExecution(c.get('scope'), c.req.valid('param').id)),
    )
    .get(
      '/api/executions/:id/nodes',
      accept({
        id: 'listNodeExecutions',
        tag: 'Executions',
        summary: "List an execution's node records",
        description: 'All of them, in the order they started; the execution itself shows 1,000 at most.',
        role: 'member',
        of: 'executions',
        params: ById,
        query: v.object(paging),
        responses: { 200: { description: 'A page', schema: pageOf('NodeExecutionPage', NodeAnswer) } },
      }),
      async (c) =>
        c.json(await listNodeExecutions(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))),
    )
    .post(
      '/api/executions/:id/cancel',
      accept({
        id: 'cancelExecution',
        tag: 'Executions',
        summary: 'Cancel an execution',
        description: 'From now on the run can only end CANCELLED. One that has ended answers 409.',
        role: 'OPERATOR',
        of: 'executions',
        params: ById,
        responses: { 200: { description: 'It is told; no body' } },
        faults: [409],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const status = await cancelExecution(c.get('scope'), id)
        if (isEnded(status)) void deps.carryOut({ kind: 'CANCEL', subjectId: id, key: '' })
        else if (await runErrands(deps, 'CANCEL', [id])) await awaitEnd(deps.store, id)
        return c.body(null, 200)
      },
    )
}

/** Has an accepted execution started and answers 202: RUNNING once Temporal took it, else PENDING. */
export async function answerStarted(
  deps: ApiDeps,
  c: Context<AppEnv>,
  { fresh, queued, ...started }: Started,
) {
  c.header('Location', `/api/executions/${started.executionId}`)
  const taken = fresh && !queued && (await runErrands(deps, 'START', [started.executionId]))
  return c.json(taken ? { ...started, status: 'RUNNING' } : started, 202)
}

// So that the caller's next GET says CANCELLED; a run that needs longer is told already.
async function awaitEnd(store: Store, id: string): Promise<void> {
  const deadline = Date.now() + SETTLE_MS
  while (!(await hasEnded(store, id)) && Date.now() < deadline) await pause(POLL_MS)
}

function forward<T extends { from?: Date | undefined; to?: Date | undefined }>() {
  return v.forward(v.check<T, string>(isForward, 'must not be after to'), ['from'] as never)
}
