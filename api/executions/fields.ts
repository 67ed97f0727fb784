import * as v from 'valibot'
import { CALLBACK_STATUSES } from '../../db/executions/callbacks.ts'
import { STARTER_KINDS } from '../../db/executions/starter.ts'
import { EXECUTION_STATUSES } from '../../db/executions/status.ts'
import { EXECUTION_TRIGGERS, RECOVERIES } from '../../db/executions/triggers.ts'
import { countSchema, idSchema, timeSchema, versionSchema } from '../http/responses.ts'
import { UsageSchema } from '../monitoring/amounts.ts'

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
    errorMessage,
    retriedFrom,
    startedBy,
  }),
  v.title('ExecutionItem'),
)
export const NodeExecutionSchema = v.pipe(
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
