import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { listWaits, resumeWait, sendEvent } from '../db/waits.ts'
import { accept, ById, uuid } from './accept.ts'
import { count, id, pageOf, time } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { readBody } from './body.ts'
import { tellTemporal } from './errands.ts'
import { readCall } from './hooks.ts'
import { paging } from './query.ts'

const OneEvent = v.object({
  id: uuid,
  name: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be 1 to 100 letters, digits, _ or -')),
})
const OneToken = v.object({ token: v.pipe(v.string(), v.maxLength(1_000, 'is too long')) })

const WaitAnswer = v.pipe(
  v.object({
    id,
    kind: v.picklist(['APPROVAL', 'EVENT']),
    nodeId: v.pipe(v.string(), v.examples(['paid'])),
    nodeName: v.string(),
    iteration: v.nullable(v.string()),
    name: v.pipe(v.nullable(v.string()), v.description('Of the event')),
    deadline: v.nullable(time),
    createdAt: time,
    resumeUrl: v.pipe(
      v.nullable(v.string()),
      v.description('Of an event: a POST there, by anybody, resumes the node once'),
    ),
  }),
  v.title('Wait'),
)
const ResumedAnswer = v.pipe(
  v.object({ resumed: v.pipe(count, v.description('How many nodes go on'), v.examples([1])) }),
  v.title('Resumed'),
)

/** What runs wait for, and what makes them go on: events by name, and one-time URLs. */
export function createWaitRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>()
    .get(
      '/api/executions/:id/waits',
      accept({
        id: 'listWaits',
        tag: 'Executions',
        summary: 'List what an execution waits for',
        role: 'OPERATOR',
        of: 'executions',
        params: ById,
        query: v.object(paging),
        responses: { 200: { description: 'The oldest first', schema: pageOf('WaitPage', WaitAnswer) } },
      }),
      async (c) => {
        const page = await listWaits(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))
        const content = page.content.map(({ resumeToken, ...wait }) => ({
          ...wait,
          resumeUrl: resumeToken === null ? null : `${deps.publicUrl}/resume/${resumeToken}`,
        }))
        return c.json({ ...page, content })
      },
    )
    .post(
      '/api/executions/:id/events/:name',
      accept({
        id: 'sendEvent',
        tag: 'Executions',
        summary: 'Send an event to an execution',
        description:
          'All of its WAIT_FOR_EVENT nodes that wait for this name go on, with the body for their output: JSON, or a ' +
          "form's fields, or a text. A body of `{data}` alone stands for what it holds. Where none waits: 409.",
        role: 'OPERATOR',
        of: 'executions',
        params: OneEvent,
        anyBody: true,
        responses: { 200: { description: 'They go on', schema: ResumedAnswer } },
        faults: [409],
      }),
      async (c) => {
        const { id, name } = c.req.valid('param')
        const errands = await sendEvent(c.get('scope'), id, name, unwrap(await readAny(c)))
        await tellTemporal(deps, errands)
        return c.json({ resumed: errands.length })
      },
    )
    .post(
      '/resume/:token',
      accept({
        id: 'resumeExecution',
        tag: 'Webhooks',
        summary: 'Resume by a one-time URL',
        description:
          "`$execution.resumeUrls.<node id>` of a WAIT_FOR_EVENT node, or the `resumeUrl` of an execution's waits. The " +
          'body is the output. Needs no credentials. A call that comes before the node waits is kept for it.',
        role: 'public',
        params: OneToken,
        anyBody: true,
        responses: {
          200: {
            description: 'The node goes on, or, with `resumed` 0, will as soon as the run has reached it',
            schema: ResumedAnswer,
          },
        },
        faults: [404, 409],
      }),
      async (c) => {
        const { early, errand } = await resumeWait(deps.store, c.req.valid('param').token, await readAny(c))
        await tellTemporal(deps, [errand])
        return c.json({ resumed: early ? 0 : 1 })
      },
    )
}

async function readAny(c: Context): Promise<unknown> {
  return readCall(c, await readBody(c))
}

/** Over the API data stands in `data`, as it does where runs are started. */
function unwrap(body: unknown): unknown {
  const keys = Object.keys(Object(body))
  return keys.length === 1 && keys[0] === 'data' ? (body as { data: unknown }).data : body
}
