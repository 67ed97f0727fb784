import * as v from 'valibot'
import { CALLBACK_STATUSES } from '../../db/executions/callbacks.ts'
import { STARTER_KINDS } from '../../db/executions/starter.ts'
import { EXECUTION_STATUSES } from '../../db/executions/status.ts'
import { EXECUTION_TRIGGERS, RECOVERIES } from '../../db/executions/triggers.ts'
import { countSchema, idSchema, timeSchema, versionSchema } from '../http/responses.ts'
import { UsageSchema } from '../monitoring/usage/amounts.ts'
import { NodeExecutionSchema, valuesSchema } from './records.ts'

const status = v.picklist(EXECUTION_STATUSES)
const trigger = v.picklist(EXECUTION_TRIGGERS)
const errorMessage = v.nullable(v.pipe(v.string(), v.examples(['connect ECONNREFUSED'])))
const retriedFrom = v.pipe(
  v.nullable(idSchema),
  v.description('The execution that this one retries or reruns'),
)
const retriedBy = v.pipe(
  v.nullable(idSchema),
  v.description(
    'The newest execution that retries this one from its failed nodes, so that retryExecutions leaves it out',
  ),
)
const startedBy = v.pipe(
  v.nullable(
    v.object({
      kind: v.pipe(
        v.picklist(STARTER_KINDS),
        v.description(
          'Of a retry or a rerun, who asked for it. EXECUTION: as its sub-workflow. FAILURE: of another workflow. VISITOR: ' +
            'of a widget',
        ),
      ),
      id: v.pipe(
        v.nullable(idSchema),
        v.description('Of a user, an SDK token or an execution; null for others'),
      ),
      name: v.pipe(
        v.nullable(v.string()),
        v.description(
          "The user's, the token's, or the workflow's of that execution; null for others, and if it has been deleted",
        ),
        v.examples(['Ada Byron']),
      ),
    }),
  ),
  v.description('Who or what started it; null for a VIEWER, and if the execution is hidden from the caller'),
)
const draft = v.pipe(
  v.boolean(),
  v.description(
    'Whether it is a test: of another version than the published one, by a call at a test address, or started by a ' +
      'test. It is no part of monitoring and evaluation, and starts no error workflow',
  ),
)
export const ExecutionItemSchema = v.pipe(
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
    draft,
    errorMessage,
    retriedFrom,
    retriedBy,
    startedBy,
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
    startedBy,
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
    retriedBy,
    retries: v.pipe(
      v.array(idSchema),
      v.maxLength(100),
      v.description('The newest executions that retry or rerun this one, at most 100'),
    ),
    onlyNode: v.pipe(
      v.nullable(v.string()),
      v.description('The node that was executed alone; null if it was not one node alone'),
    ),
    until: v.pipe(
      v.nullable(v.string()),
      v.description('The node up to which it was executed: no record of others says that they were skipped'),
    ),
    draft,
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
