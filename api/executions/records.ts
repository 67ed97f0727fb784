import * as v from 'valibot'
import { EXECUTION_STATUSES } from '../../db/executions/status.ts'
import { countSchema, idSchema, timeSchema, versionSchema } from '../http/responses.ts'
import { UsageSchema } from '../monitoring/usage/amounts.ts'

export const valuesSchema = v.pipe(
  v.record(v.string(), v.unknown()),
  v.description('A value that is not an object is shown as `{value}`; expressions read the value itself'),
)

/** A node's record as responses show it. */
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
    status: v.picklist(EXECUTION_STATUSES),
    startedAt: timeSchema,
    completedAt: v.nullable(timeSchema),
    durationMs: v.nullable(countSchema),
    inputData: valuesSchema,
    outputData: v.nullable(valuesSchema),
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
