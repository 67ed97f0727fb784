import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { describeLarge, type JsonReading } from '../../../activities/reading/json.ts'
import {
  demandResumable,
  listEventWaits,
  resumeWait,
  sendEvent,
} from '../../../db/executions/waits/events.ts'
import { PAUSE_KINDS } from '../../../db/executions/waits/pauses.ts'
import type { BodyReader } from '../../bodies/away.ts'
import { decompressWhole, readEncodings } from '../../bodies/encodings.ts'
import { readBodyValue } from '../../bodies/value.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { MAX_BODY_BYTES, readBytes } from '../../http/body.ts'
import { ById, uuidField } from '../../http/fields.ts'
import { paging } from '../../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema, warningsEntry } from '../../http/responses.ts'
import { carryOutErrands } from '../../outbox.ts'
import { readOrigin } from '../../people/session.ts'
import { listWarnings } from '../../warnings.ts'

const OneEvent = v.object({
  id: uuidField,
  name: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be 1 to 100 letters, digits, _ or -')),
})
const OneToken = v.object({ token: v.pipe(v.string(), v.maxLength(1_000, 'is too long')) })

const WaitSchema = v.pipe(
  v.object({
    id: idSchema,
    kind: v.picklist(PAUSE_KINDS),
    nodeId: v.pipe(v.string(), v.examples(['paid'])),
    nodeName: v.string(),
    iteration: v.nullable(v.string()),
    step: v.pipe(
      v.nullable(countSchema),
      v.description("The number of the agent's step that waits, as in its record; null for other nodes"),
    ),
    name: v.pipe(v.nullable(v.string()), v.description('The name of the event')),
    deadline: v.nullable(timeSchema),
    createdAt: timeSchema,
    resumeUrl: v.pipe(
      v.nullable(v.string()),
      v.description(
        'For an event, the URL at which anybody can resume the node, once, with a POST request; for a FORM that of its page',
      ),
    ),
  }),
  v.title('Wait'),
)
const ResumedSchema = v.pipe(
  v.object({
    resumed: v.pipe(countSchema, v.description('How many nodes were resumed'), v.examples([1])),
    ...warningsEntry,
  }),
  v.title('Resumed'),
)

/** The routes that list what an execution waits for, and resume it by a named event or a one-time URL. */
export function createWaitRoutes(deps: ApiDeps, readAway: BodyReader) {
  return new Hono<AppEnv>()
    .get(
      '/api/executions/:id/waits',
      accept({
        id: 'listWaits',
        tag: 'Executions',
        summary: 'List what an execution waits for',
        description: 'Lists the approvals, events and forms that its nodes wait for at the moment.',
        role: 'OPERATOR',
        of: 'executions',
        params: ById,
        query: v.object(paging),
        responses: {
          200: { description: 'One page, oldest first', schema: pageSchema('WaitPage', WaitSchema) },
        },
      }),
      async (c) => {
        const page = await listEventWaits(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))
        const content = page.content.map(({ resumeToken, ...wait }) => ({
          ...wait,
          resumeUrl:
            resumeToken === null
              ? null
              : `${deps.publicUrl}/${wait.kind === 'FORM' ? 'form' : 'resume'}/${resumeToken}`,
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
          'Resumes all WAIT_FOR_EVENT nodes of the execution that wait for this name. The body becomes ' +
          'their output: a JSON value, the fields of a form, or other text as a string. If the body is an ' +
          'object with the single key `data`, its value is the output. If no node waits for the event, the ' +
          'response is 409.',
        role: 'OPERATOR',
        of: 'executions',
        params: OneEvent,
        anyBody: true,
        responses: { 200: { description: 'The nodes were resumed', schema: ResumedSchema } },
        faults: [409],
      }),
      async (c) => {
        const { id, name } = c.req.valid('param')
        const scope = c.get('scope')
        const asker = { team: c.get('teamId')!, workflow: id }
        const { value, ...large } = await readAnyBody(c, { readAway, asker, unwraps: true })
        const errands = await sendEvent(scope, id, name, value)
        await carryOutErrands(deps, errands)
        return c.json({ resumed: errands.length, ...warnOf(large) })
      },
    )
    .post(
      '/resume/:token',
      accept({
        id: 'resumeExecution',
        tag: 'Webhooks',
        summary: 'Resume a node by its one-time URL',
        description:
          'The URL of a WAIT_FOR_EVENT node is in `$execution.resumeUrls.<node id>`, and in the ' +
          "`resumeUrl` of the execution's waits. The body becomes the node's output. A request that " +
          'arrives before the node waits is kept for it.',
        role: 'public',
        params: OneToken,
        anyBody: true,
        responses: {
          200: {
            description:
              'The node was resumed. If `resumed` is 0, the execution has not reached the node yet, and ' +
              'will not wait there',
            schema: ResumedSchema,
          },
        },
        faults: [404, 409],
      }),
      async (c) => {
        const { token } = c.req.valid('param')
        // Before its body is read: only a caller who knows the address has it parsed.
        const { teamId, executionId } = await demandResumable(deps.store, token)
        c.set('teamId', teamId)
        const asker = { team: teamId, workflow: executionId }
        const { value, ...large } = await readAnyBody(c, { readAway, asker })
        const { early, errand } = await resumeWait(deps.store, token, value, readOrigin(c))
        await carryOutErrands(deps, [errand])
        return c.json({ resumed: early ? 0 : 1, ...warnOf(large) })
      },
    )
}

async function readAnyBody(c: Context, settings: Parameters<typeof readBodyValue>[2]) {
  const steps = readEncodings(c.req.header('content-encoding'))
  const bytes = await readBytes(c)
  const plain = steps.length === 0 ? bytes : await decompressWhole(bytes, steps, MAX_BODY_BYTES)
  return readBodyValue(plain, c.req.header('content-type') ?? '', settings)
}

function warnOf(reading: Pick<JsonReading, 'large'>) {
  const message = describeLarge(reading)
  return listWarnings(message === undefined ? [] : [{ path: 'body', message }])
}
