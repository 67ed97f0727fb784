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
import { NodeExecutionSchema, valuesSchema } from './records.ts'
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
    inputData: valuesSchema,
    outputData: v.nullable(valuesSchema),
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
    temporal: v.pipe(
      v.nullable(
        v.object({
          namespace: v.pipe(v.string(), v.examples(['default'])),
          workflowId: idSchema,
          runId: v.pipe(v.string(), v.description('Of its newest run: a long execution goes on in others')),
          url: v.pipe(v.string(), v.description("The history of that run in Temporal's UI")),
          runsUrl: v.pipe(v.string(), v.description('All runs of the execution there')),
        }),
      ),
      v.description(
        "Where it is in Temporal's UI, for the instance's admin, since all teams are seen there; null for others, if " +
          'TEMPORAL_UI_URL is not set, and at the beginning',
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
        return c.json(await readExecution(c.get('scope'), id, deps.temporalUi))
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
