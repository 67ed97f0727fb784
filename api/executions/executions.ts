import { Hono } from 'hono'
import * as v from 'valibot'
import { CALLBACK_STATUSES } from '../../db/executions/callbacks.ts'
import { cancelExecution } from '../../db/executions/cancel.ts'
import {
  hasEnded,
  listTeamExecutions,
  listWorkflowExecutions,
  readExecution,
} from '../../db/executions/executions.ts'
import { EXECUTION_STATUSES, isEnded } from '../../db/executions/status.ts'
import { EXECUTION_TRIGGERS, RECOVERIES } from '../../db/executions/triggers.ts'
import { listNodeExecutions } from '../../db/records/records.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString, InTeam, uuidField } from '../http/fields.ts'
import { checkTimeRange, paging, timeRange } from '../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema, versionSchema } from '../http/responses.ts'
import { UsageSchema } from '../monitoring/amounts.ts'
import { carryOutEach } from '../outbox.ts'
import type { Seats } from './seats.ts'
import { awaitEnd, PREFER_HEADER, readWait, waitFor, waitMsField } from './wait.ts'

const END_WAIT_MS = 1_000

const filters = {
  ...paging,
  ...timeRange,
  status: v.optional(v.picklist(EXECUTION_STATUSES, `must be one of ${EXECUTION_STATUSES.join(', ')}`)),
}

const TeamExecutionsQuery = v.pipe(
  v.object({ ...filters, workflowId: v.optional(uuidField) }),
  checkTimeRange(),
)
const WorkflowExecutionsQuery = v.pipe(v.object({ ...filters, workflowId: uuidField }), checkTimeRange())

const NodeExecutionsQuery = v.object({
  ...paging,
  status: filters.status,
  nodeId: v.optional(boundedString(100)),
  steps: v.optional(
    v.pipe(
      v.picklist(['true', 'false'], 'must be true or false'),
      v.transform((text) => text === 'true'),
      v.description('`false` leaves the steps of agents out'),
    ),
  ),
})

const status = v.picklist(EXECUTION_STATUSES)
const values = v.pipe(
  v.record(v.string(), v.unknown()),
  v.description('A value that is not an object is shown as `{value}`; expressions read the value itself'),
)
const trigger = v.picklist(EXECUTION_TRIGGERS)
const errorMessage = v.nullable(v.pipe(v.string(), v.examples(['connect ECONNREFUSED'])))
const retriedFrom = v.pipe(
  v.nullable(idSchema),
  v.description('The execution that this one retries or reruns'),
)
const ExecutionItemSchema = v.pipe(
  v.object({
    id: idSchema,
    workflowId: idSchema,
    workflowName: v.string(),
    status,
    startedAt: v.nullable(timeSchema),
    finishedAt: v.nullable(timeSchema),
    durationMs: v.nullable(countSchema),
    triggerType: trigger,
    nodeCount: countSchema,
    errorMessage,
    retriedFrom,
  }),
  v.title('ExecutionItem'),
)
const NodeExecutionSchema = v.pipe(
  v.object({
    id: idSchema,
    nodeId: v.pipe(v.string(), v.description("The node's id in the graph"), v.examples(['fetch'])),
    nodeName: v.pipe(v.string(), v.examples(['Fetch'])),
    nodeType: v.pipe(v.string(), v.examples(['HTTP_REQUEST'])),
    iteration: v.pipe(
      v.nullable(v.string()),
      v.description(
        "The number of the loop's iteration, from 0; `3.0` for a loop inside a loop; null outside of loops",
      ),
      v.examples(['0']),
    ),
    step: v.pipe(
      v.nullable(versionSchema),
      v.description(
        "For a step of an agent, its number, from 1: its record comes right under the agent's own, and has " +
          "the agent's nodeId. Null in all other records",
      ),
      v.examples([null]),
    ),
    tool: v.pipe(
      v.nullable(v.string()),
      v.description('The tool that the step calls; null in a turn of the model, and in all other records'),
      v.examples([null]),
    ),
    status,
    startedAt: timeSchema,
    completedAt: v.nullable(timeSchema),
    durationMs: v.nullable(countSchema),
    inputData: values,
    outputData: v.nullable(values),
    errorMessage: v.pipe(
      v.nullable(v.string()),
      v.description('Why the node failed; while it retries, why its last attempt failed'),
      v.examples(['connect ECONNREFUSED']),
    ),
    handle: v.pipe(
      v.nullable(v.string()),
      v.description(
        'The source handle that the node took: a branch, `timeout` or `error`. Null for the main handle, ' +
          'and as long as the node has not taken one',
      ),
    ),
    handles: v.optional(
      v.pipe(
        v.array(v.nullable(v.string())),
        v.description(
          'Instead of `handle`, the source handles that a node with perItem or allItems left by: all that have ' +
            'items. Null is the main handle',
        ),
      ),
    ),
    retryCount: v.pipe(
      countSchema,
      v.description(
        'The number of attempts after the first, so far: 2 while the third is made or has failed',
      ),
    ),
    nextAttemptAt: v.pipe(
      v.nullable(timeSchema),
      v.description('When the next attempt comes, while the node (RUNNING) waits for it after a failed one'),
    ),
    waitingUntil: v.pipe(
      v.nullable(timeSchema),
      v.description(
        'Until when the node (RUNNING) waits: the end of a WAIT, the time limit of an APPROVAL or WAIT_FOR_EVENT. Null ' +
          'if it does not wait, or without a limit',
      ),
    ),
    itemCount: v.pipe(
      v.nullable(countSchema),
      v.description(
        'How many items a loop has: of a FOR_EACH, and of a node that is called once for each. Null for others, a REPEAT ' +
          'among them',
      ),
    ),
    itemsTaken: v.optional(
      v.pipe(
        countSchema,
        v.description(
          'How many of them have no records here, because they succeeded in the execution that this one retries; left ' +
            'out if none',
        ),
      ),
    ),
    pinned: v.pipe(
      v.boolean(),
      v.description(
        'Whether its output was given when the execution was started, instead of executing the node',
      ),
    ),
    takenFrom: v.pipe(v.nullable(idSchema), v.description('The earlier execution whose output was reused')),
    childExecutionId: v.pipe(
      v.nullable(idSchema),
      v.description('The execution that a SUB_WORKFLOW node has started'),
    ),
    warnings: v.optional(
      v.pipe(
        v.array(v.object({ path: v.string(), message: v.string() })),
        v.description(
          'What its expressions read that is not there, by the path in its config; left out if nothing',
        ),
        v.examples([
          [{ path: 'config.url', message: '`$input.emial`: no such field; there are `email`, `name`' }],
        ]),
      ),
    ),
    console: v.optional(
      v.pipe(
        v.array(v.object({ level: v.string(), text: v.string() })),
        v.description('What its code wrote to the console; left out if nothing'),
        v.examples([[{ level: 'log', text: '3 orders' }]]),
      ),
    ),
    usage: v.optional(UsageSchema),
  }),
  v.title('NodeExecution'),
)
const CallbackSchema = v.pipe(
  v.object({
    id: v.pipe(idSchema, v.description('What the header X-Perdure-Delivery has')),
    url: v.pipe(
      v.string(),
      v.description('Without the secrets in it'),
      v.examples(['https://example.com/ended']),
    ),
    status: v.pipe(
      v.picklist(CALLBACK_STATUSES),
      v.description('WAITING for the end, PENDING until it is DELIVERED, or FAILED for good'),
    ),
    attempts: countSchema,
    nextAttemptAt: v.nullable(timeSchema),
    deliveredAt: v.nullable(timeSchema),
    lastError: v.nullable(v.string()),
  }),
  v.title('Callback'),
)
export const ExecutionSchema = v.pipe(
  v.object({
    id: idSchema,
    workflowId: idSchema,
    workflowName: v.string(),
    workflowVersion: versionSchema,
    status,
    trigger,
    hidden: v.pipe(
      v.boolean(),
      v.description(
        'Whether its values are not shown, because it is part of a chat of somebody else: then there are no inputs, ' +
          'outputs, errors, requests and files, and no steps of agents',
      ),
    ),
    inputData: values,
    outputData: v.nullable(values),
    errorMessage,
    createdAt: timeSchema,
    queuedAt: v.pipe(
      v.nullable(timeSchema),
      v.description("When it began to wait, PENDING, because its workflow's concurrency limit was reached"),
    ),
    startedAt: v.nullable(timeSchema),
    completedAt: v.nullable(timeSchema),
    durationMs: v.nullable(countSchema),
    parentExecutionId: v.pipe(
      v.nullable(idSchema),
      v.description('The execution whose SUB_WORKFLOW node started this one'),
    ),
    parentNodeId: v.nullable(v.string()),
    retriedFrom,
    recovery: v.pipe(
      v.nullable(v.picklist(RECOVERIES)),
      v.description('How it repeats that execution: RETRY from the failed nodes, RERUN from the start'),
    ),
    retries: v.pipe(
      v.array(idSchema),
      v.maxLength(100),
      v.description('The newest executions that retry or rerun this one, at most 100'),
    ),
    onlyNode: v.pipe(
      v.nullable(v.string()),
      v.description('The node that was executed alone; null if the whole workflow was executed'),
    ),
    callback: v.pipe(
      v.nullable(CallbackSchema),
      v.description('The `callbackUrl` that it was started with, and whether it has been told of the end'),
    ),
    usage: v.pipe(
      v.nullable(UsageSchema),
      v.description(
        'What its calls to models took, those of its sub-workflows not included; null if it has made none',
      ),
    ),
    nodeExecutions: v.pipe(
      v.array(NodeExecutionSchema),
      v.maxLength(1_000),
      v.description(
        'At most 1,000, in the order they started. If there are more: those outside of loops first, then ' +
          'failed ones, then the newest',
      ),
    ),
    nodeExecutionsTotal: countSchema,
  }),
  v.title('Execution'),
)
const TIME_RANGE = '`from` (inclusive) and `to` (exclusive) select executions by their creation time.'
const EXECUTION_PAGE = {
  description: 'One page, newest first',
  schema: pageSchema('ExecutionPage', ExecutionItemSchema),
}

/** The routes that list, read and cancel executions. */
export function createExecutionRoutes(deps: ApiDeps, seats: Seats) {
  return new Hono<AppEnv>()
    .get(
      '/api/executions',
      accept({
        id: 'listWorkflowExecutions',
        tag: 'Executions',
        summary: "List a workflow's executions",
        description: TIME_RANGE,
        role: 'member',
        query: WorkflowExecutionsQuery,
        responses: { 200: EXECUTION_PAGE },
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
        description: TIME_RANGE,
        role: 'member',
        params: InTeam,
        query: TeamExecutionsQuery,
        responses: { 200: EXECUTION_PAGE },
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
        description:
          'With `waitMs`, or the header `Prefer: wait=<seconds>`, the response waits for the end of the ' +
          'execution, and shows it as it is then or when the time is over. A person and a team with too many ' +
          'waiting requests get 429.',
        role: 'member',
        of: 'executions',
        params: ById,
        query: v.object({ waitMs: waitMsField }),
        headers: PREFER_HEADER,
        responses: {
          200: {
            description: 'The execution, with its nodes in the order they started',
            schema: ExecutionSchema,
          },
        },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const wait = readWait(c, c.req.valid('query'))
        if (wait.ms > 0) await awaitEnd(deps, c, id, { seats, ...wait })
        return c.json(await readExecution(c.get('scope'), id))
      },
    )
    .get(
      '/api/executions/:id/nodes',
      accept({
        id: 'listNodeExecutions',
        tag: 'Executions',
        summary: "List an execution's node records",
        description:
          'All records, in the order the nodes started, or those of a `status`, of a node, or of both, with the ' +
          'steps of agents unless `steps` is false. The ' +
          'execution itself shows at most 1,000.',
        role: 'member',
        of: 'executions',
        params: ById,
        query: NodeExecutionsQuery,
        responses: {
          200: { description: 'One page', schema: pageSchema('NodeExecutionPage', NodeExecutionSchema) },
        },
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
        description:
          'After the response, the execution can only end CANCELLED. An execution that has ended cannot ' +
          'be cancelled (409).',
        role: 'OPERATOR',
        of: 'executions',
        params: ById,
        responses: { 200: { description: 'The execution is being cancelled; the response has no body' } },
        faults: [409],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const status = await cancelExecution(c.get('scope'), id)
        if (isEnded(status)) {
          // It was PENDING and has ended in the database. Temporal is told in case a start is under way.
          void deps.carryOut({ kind: 'CANCEL', subjectId: id, key: '' })
        } else if (await carryOutEach(deps, 'CANCEL', [id])) {
          // So that the caller's next GET shows CANCELLED. The cancel itself is already stored.
          await waitFor(
            deps.bus,
            id,
            { ms: END_WAIT_MS },
            async () => (await hasEnded(deps.store, id)) || undefined,
          )
        }
        return c.body(null, 200)
      },
    )
}
