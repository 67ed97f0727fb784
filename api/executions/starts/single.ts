import { Hono } from 'hono'
import * as v from 'valibot'
import { startSingleNode } from '../../../db/executions/starts/single.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { boundedString, objectField, uuidField } from '../../http/fields.ts'
import { chosenVersionField } from './chosenversion.ts'
import { IDEMPOTENCY_HEADER, readIdempotencyKey } from './idempotency.ts'
import { STARTED_RESPONSE, startAndRespond } from './start.ts'

const OneNode = v.object({ id: uuidField, nodeId: boundedString(100) })
const anything = (description: string) => v.optional(v.pipe(v.unknown(), v.description(description)))
const NewSingleRun = v.object({
  input: anything("The node's `$input`. Default: the item, or an empty object without one"),
  nodes: v.optional(v.pipe(objectField, v.description('Outputs of other nodes by id, for its expressions'))),
  item: anything('The value of `$item`, for a node in the body of a loop'),
  version: chosenVersionField,
})

/** The route that executes a single node, for tests. */
export function createSingleRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>().post(
    '/api/workflows/:id/nodes/:nodeId/run',
    accept({
      id: 'runNode',
      tag: 'Workflows',
      summary: 'Execute a single node',
      description:
        'Starts an execution of this node only (and of its body, if it is a loop). The response does not ' +
        'wait for its end: poll or follow the execution. `$trigger` is the output of the trigger if ' +
        '`nodes` has it, otherwise the input. The effects of the node are real: a request that it makes is ' +
        'sent. Triggers and disabled nodes cannot be executed alone (409). An execution of another version than the ' +
        'published one is a test (`draft`).',
      role: 'BUILDER',
      of: 'workflows',
      params: OneNode,
      json: NewSingleRun,
      headers: IDEMPOTENCY_HEADER,
      example: { input: { order: 17 } },
      responses: { 202: STARTED_RESPONSE },
      faults: [409],
    }),
    async (c) => {
      const { id, nodeId } = c.req.valid('param')
      const input = {
        ...c.req.valid('json'),
        idempotencyKey: readIdempotencyKey(c),
        inputWarning: c.get('largeNumbers'),
        ...c.get('trace'),
      }
      return startAndRespond(deps, c, await startSingleNode(c.get('scope'), id, nodeId, input))
    },
  )
}
