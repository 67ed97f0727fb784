import { Hono } from 'hono'
import * as v from 'valibot'
import { listNodeRequests } from '../../db/executions/requests/requests.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { uuidField } from '../http/fields.ts'
import { paging, queryInteger } from '../http/query.ts'
import { countSchema, pageSchema, timeSchema } from '../http/responses.ts'

/** A page is small enough for one response: each request has up to 64 KB of bodies. */
const MAX_SIZE = 20

const RequestsQuery = v.object({ ...paging, size: v.optional(queryInteger(1, MAX_SIZE), '10') })

const method = v.pipe(v.string(), v.examples(['POST']))
const url = v.pipe(v.string(), v.examples(['https://api.example.com/orders?token=[redacted]']))
const httpStatus = v.pipe(v.number(), v.integer(), v.examples([503]))
const headers = v.pipe(
  v.record(v.string(), v.string()),
  v.description('By their names in lower case'),
  v.examples([{ 'content-type': 'application/json', authorization: '[redacted]' }]),
)
const answerHeaders = v.pipe(
  v.record(v.string(), v.union([v.string(), v.array(v.string())])),
  v.description(
    'By their names in lower case; several Set-Cookie headers are a list, others are joined by a comma',
  ),
  v.examples([{ 'content-type': 'application/json', 'set-cookie': '[redacted]' }]),
)
const body = {
  body: v.pipe(
    v.nullable(v.string()),
    v.description('The first 32 KB; null if there is none, or if it is not text'),
    v.examples(['{"amount":5}']),
  ),
  bodyBytes: v.pipe(countSchema, v.description('The size of the whole body, decompressed')),
  bodyCut: v.pipe(v.boolean(), v.description('Whether `body` is only the beginning')),
}

const NodeRequestSchema = v.pipe(
  v.object({
    attempt: v.pipe(v.number(), v.integer(), v.minValue(1), v.description("The node's attempt, from 1")),
    startedAt: timeSchema,
    durationMs: v.pipe(
      v.nullable(countSchema),
      v.description('Null while it is under way, and if nobody noted its end'),
    ),
    method,
    url,
    headers,
    ...body,
    redirects: v.pipe(
      v.array(v.object({ status: httpStatus, method, url })),
      v.description('The redirects that were followed: the status, and the request that was sent then'),
    ),
    response: v.pipe(
      v.nullable(
        v.object({
          status: httpStatus,
          statusText: v.pipe(v.string(), v.examples(['Service Unavailable'])),
          headers: answerHeaders,
          ...body,
        }),
      ),
      v.description('The last response; null if none has come'),
    ),
    error: v.pipe(
      v.nullable(v.string()),
      v.description('Why there is no response, or no whole one'),
      v.examples(['no complete response from api.example.com within 5000 ms']),
    ),
  }),
  v.title('NodeRequest'),
)

/** The route that shows what a node has sent over HTTP. */
export function createRequestRoutes() {
  return new Hono<AppEnv>().get(
    '/api/executions/:id/nodes/:recordId/requests',
    accept({
      id: 'listNodeRequests',
      tag: 'Executions',
      summary: "List a node record's HTTP requests",
      description:
        'What every attempt of an HTTP_REQUEST node has really sent, and what came back, in the order of the ' +
        'attempts: also those that failed, were lost or were cancelled. `recordId` is the `id` of the node ' +
        'record, one for each iteration of a loop. Secrets are `[redacted]`. Other nodes have none, nor have ' +
        "executions whose workflow's `saveData` keeps not both inputs and outputs. A request that has just " +
        'ended is shown a moment later.',
      role: 'member',
      of: 'executions',
      params: v.object({ id: uuidField, recordId: uuidField }),
      query: RequestsQuery,
      responses: {
        200: { description: 'One page', schema: pageSchema('NodeRequestPage', NodeRequestSchema) },
      },
    }),
    async (c) => c.json(await listNodeRequests(c.get('scope'), c.req.valid('param'), c.req.valid('query'))),
  )
}
