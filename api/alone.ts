import { Hono } from 'hono'
import * as v from 'valibot'
import { runAlone } from '../db/alone.ts'
import { accept, text, uuid } from './accept.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { answerStarted, STARTED } from './executions.ts'
import { ONCE, readKey } from './headers.ts'
import { data } from './pins.ts'

const OneNode = v.object({ id: uuid, nodeId: text(100) })
const anything = (description: string) => v.optional(v.pipe(v.unknown(), v.description(description)))
const Bench = v.object({
  input: anything("The node's `$input`; without it the item, else an empty object"),
  nodes: v.optional(v.pipe(data, v.description('Outputs of other nodes by id, for expressions'))),
  item: anything("`$item`, of a node in a loop's body"),
  version: v.pipe(
    v.optional(
      v.pipe(
        v.number('must be a number'),
        v.integer('must be a whole number'),
        v.minValue(1, 'must be at least 1'),
        v.maxValue(2_147_483_647, 'must be at most 2147483647'),
      ),
    ),
    v.description("The graph's; the newest without it"),
  ),
})

/** The run of one node, for tests. */
export function createAloneRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>().post(
    '/api/workflows/:id/nodes/:nodeId/run',
    accept({
      id: 'runNode',
      tag: 'Workflows',
      summary: 'Run one node alone',
      description:
        'Starts a run of this node only, with its body if it is a loop, and answers at once: poll the execution. ' +
        '`$trigger` is the output of the trigger where `nodes` has that, else the input. What the node does to the ' +
        'world it does. Triggers and disabled nodes: 409.',
      role: 'BUILDER',
      of: 'workflows',
      params: OneNode,
      json: Bench,
      headers: ONCE,
      example: { input: { order: 17 } },
      responses: { 202: STARTED },
      faults: [409],
    }),
    async (c) => {
      const { id, nodeId } = c.req.valid('param')
      const bench = { ...c.req.valid('json'), idempotencyKey: readKey(c), traceparent: c.get('traceparent') }
      return answerStarted(deps, c, await runAlone(c.get('scope'), id, nodeId, bench))
    },
  )
}
