import { Hono } from 'hono'
import * as v from 'valibot'
import { ATTEMPT_STATUSES, listNodeAttempts } from '../../db/executions/attempts/attempts.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import { countSchema, pageSchema, timeSchema, versionSchema } from '../http/responses.ts'

const NodeAttemptSchema = v.pipe(
  v.object({
    attempt: v.pipe(versionSchema, v.description('From 1')),
    status: v.pipe(
      v.picklist(ATTEMPT_STATUSES),
      v.description(
        'RUNNING: it is under way. LOST: its worker was lost, so nobody noted how it ended. UNKNOWN: nothing was ' +
          'noted of it, because its execution had some 5,000 failed attempts already, or is of a release before',
      ),
      v.examples(['FAILED']),
    ),
    startedAt: v.pipe(
      v.nullable(timeSchema),
      v.description('Null if it is not known. Of a first attempt that succeeds, when it was planned'),
    ),
    endedAt: v.pipe(v.nullable(timeSchema), v.description('Null while it is under way, and if not known')),
    durationMs: v.nullable(countSchema),
    error: v.pipe(
      v.nullable(
        v.object({
          type: v.pipe(
            v.nullable(v.string()),
            v.description('The type of the failure; null if it was not noted'),
            v.examples(['Http503']),
          ),
          message: v.pipe(
            v.string(),
            v.description('At most 2,000 characters; secrets are `[redacted]`'),
            v.examples(['api.example.com responded with 503']),
          ),
        }),
      ),
      v.description('Why it FAILED; null otherwise'),
    ),
    counted: v.pipe(
      v.boolean(),
      v.description(
        "Whether it counts against the node's `maxAttempts`. Not if it succeeded, or if the failure is of the " +
          'service: a worker that shut down or was lost, or a database that was away',
      ),
    ),
  }),
  v.title('NodeAttempt'),
)

/** The route that shows every attempt of a node with its error. */
export function createAttemptRoutes() {
  return new Hono<AppEnv>().get(
    '/api/executions/:id/nodes/:recordId/attempts',
    accept({
      id: 'listNodeAttempts',
      tag: 'Executions',
      summary: "List a node record's attempts",
      description:
        'Every attempt of a node so far, in their order: each failed one with its error, and the one that is under ' +
        'way. `recordId` is the `id` of the node record, one for each iteration of a loop and each step of an agent. ' +
        "When the next attempt comes, the record's `nextAttemptAt` says. A record whose output was given has none.",
      role: 'member',
      of: 'executions',
      params: v.object({ id: uuidField, recordId: uuidField }),
      query: v.object(paging),
      responses: {
        200: { description: 'One page', schema: pageSchema('NodeAttemptPage', NodeAttemptSchema) },
      },
    }),
    async (c) => c.json(await listNodeAttempts(c.get('scope'), c.req.valid('param'), c.req.valid('query'))),
  )
}
