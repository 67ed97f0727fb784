import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { recoverExecution, VERSION_CHOICES, type VersionChoice } from '../../../db/executions/starts/retry.ts'
import { RECOVERIES, type Recovery } from '../../../db/executions/triggers.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { ById } from '../../http/fields.ts'
import { idSchema, versionSchema } from '../../http/responses.ts'
import { IDEMPOTENCY_HEADER, readIdempotencyKey } from './idempotency.ts'
import { STARTED_RESPONSE, startAndRespond, startedEntries } from './start.ts'

/** The version of the graph that a retry executes. */
export const versionChoiceField = v.pipe(
  v.optional(v.picklist(VERSION_CHOICES, `must be one of ${VERSION_CHOICES.join(', ')}`), 'same'),
  v.description("The version of the graph: `same` as in that execution, or the workflow's `current` one"),
)

const RECOVERED_RESPONSE = {
  ...STARTED_RESPONSE,
  schema: v.pipe(
    v.object({
      ...startedEntries,
      retriedFrom: idSchema,
      recovery: v.picklist(RECOVERIES),
      workflowVersion: versionSchema,
      takenOver: v.pipe(
        v.array(v.string()),
        v.description('The nodes that are not executed again, because their outputs are reused'),
        v.examples([['fetch']]),
      ),
    }),
    v.title('RecoveredExecution'),
  ),
}

/** What the rules of both routes share. */
const RULE = {
  tag: 'Executions',
  role: 'OPERATOR',
  of: 'executions',
  params: ById,
  json: v.object({ version: versionChoiceField }),
  headers: IDEMPOTENCY_HEADER,
  responses: { 202: RECOVERED_RESPONSE },
  faults: [409],
} as const

/** The routes that retry an execution from its failed nodes, or rerun it from the start. */
export function createRetryRoutes(deps: ApiDeps) {
  const recover = async (c: Context<AppEnv>, how: Recovery, id: string, version: VersionChoice) => {
    const options = { version, idempotencyKey: readIdempotencyKey(c), ...c.get('trace') }
    return startAndRespond(deps, c, await recoverExecution(c.get('scope'), id, how, options))
  }
  return new Hono<AppEnv>()
    .post(
      '/api/executions/:id/retry',
      accept({
        id: 'retryExecution',
        summary: 'Retry an execution from its failed nodes',
        description:
          'Starts a new execution with the same trigger and input. It reuses the output of each node that ' +
          'succeeded, if the type and config of the node, and all nodes upstream of it, are unchanged in ' +
          'the version to be executed; the record of such a node names the earlier execution in ' +
          '`takenFrom`. A loop is reused as a whole, unless one of its iterations failed. A failed node is ' +
          'executed again, even if its error was handled, and so are all nodes after it. The response is ' +
          '409 if the execution did not end FAILED or CANCELLED, or if its data was not kept. An execution ' +
          'with pinned outputs, or of a single node, can only be retried by a BUILDER or a higher role.',
        ...RULE,
        example: { version: 'same' },
      }),
      (c) => recover(c, 'RETRY', c.req.valid('param').id, c.req.valid('json').version),
    )
    .post(
      '/api/executions/:id/rerun',
      accept({
        id: 'rerunExecution',
        summary: 'Rerun an execution from the start',
        description:
          'Starts a new execution with the same trigger and input, and the same pinned outputs if there ' +
          'are any. The response is 409 if the execution has not ended, or if its input was not kept. An ' +
          'execution with pinned outputs, or of a single node, can only be rerun by a BUILDER or a higher ' +
          'role.',
        ...RULE,
        example: { version: 'current' },
      }),
      (c) => recover(c, 'RERUN', c.req.valid('param').id, c.req.valid('json').version),
    )
}
