import { Hono } from 'hono'
import * as v from 'valibot'
import { Fault, invalid } from '../../db/fault.ts'
import { readNetwork } from '../../db/people/network.ts'
import { listVisitorMessages, openVisitorSession, postVisitorMessage } from '../../db/widgets/visitors.ts'
import type { ReplyStreams } from '../chat/replies.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { IDEMPOTENCY_HEADER, readIdempotencyKey } from '../executions/starts/idempotency.ts'
import { accept, SMALL_BODY } from '../http/accept.ts'
import { unblankString } from '../http/fields.ts'
import { idSchema, timeSchema } from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'
import { emailField } from '../people/accounts.ts'
import { PublicWidgetSchema, VisitorMessageSchema } from './fields.ts'
import {
  demandVisitor,
  demandVisitorStill,
  guardWidget,
  isOnPage,
  makeVisitorToken,
  openWidget,
  PAGE_HEADER,
  readOpenWidget,
  readVisitor,
} from './visitors.ts'

/** The most characters of a visitor's message. */
const MAX_VISITOR_MESSAGE = 4_000

/** For how long a page may keep how a widget looks, so that each of its pages does not ask for it. In seconds. */
const KEPT_S = 60

export const ByKey = v.object({
  key: v.pipe(v.string(), v.examples(['wk_3q2-7wAAAAAAAAAAAAAAAAAA'])),
})
const NewVisitor = v.object({ email: v.optional(emailField) })
const VisitorsMessage = v.object({ content: unblankString(MAX_VISITOR_MESSAGE) })
const Resets = v.object({
  resets: v.optional(
    v.pipe(
      v.picklist(['0', '1'], 'must be 0 or 1'),
      v.transform((given) => given === '1'),
    ),
    '0',
  ),
})

const FROM =
  "Only for pages of the widget's origins, and the service's own page of it. A widget that is disabled, or whose " +
  'workflow is inactive or no chat any more, is not there (404). The limits are those of widgets, not of the team: the ' +
  'headers show that of the widget, or the one that refuses.'
const PAGE_TOKEN = {
  [PAGE_HEADER]: { description: "The token of the service's own page of the widget" },
}

/** The routes that visitors of other people's pages use. */
export function createPublicWidgetRoutes(deps: ApiDeps, streams: ReplyStreams) {
  return new Hono<AppEnv>()
    .use('/api/public/widgets/:key/*', openWidget(deps))
    .route('/', createVisitorSessionRoutes(deps))
    .route('/', createVisitorMessageRoutes(deps, streams))
}

function createVisitorSessionRoutes(deps: ApiDeps) {
  const { store } = deps
  const guard = guardWidget(deps)
  return new Hono<AppEnv>()
    .get(
      '/api/public/widgets/:key',
      accept({
        id: 'readPublicWidget',
        tag: 'Widgets',
        summary: 'Read how a widget looks',
        description: FROM,
        role: 'public',
        guard,
        params: ByKey,
        headers: PAGE_TOKEN,
        responses: { 200: { description: 'Its theme and texts', schema: PublicWidgetSchema } },
        faults: [403],
      }),
      (c) => {
        const { theme, collectEmail } = readOpenWidget(c)
        c.header('Cache-Control', `private, max-age=${KEPT_S}`)
        return c.json({ theme, collectEmail })
      },
    )
    .post(
      '/api/public/widgets/:key/sessions',
      accept({
        id: 'openVisitorSession',
        tag: 'Widgets',
        summary: 'Begin to chat as a visitor',
        description:
          `${FROM} The token holds for two hours. With a token that still holds, the session goes on with a new one. If ` +
          'the widget has `collectEmail`, a new session needs an `email`.',
        role: 'public',
        guard,
        params: ByKey,
        json: NewVisitor,
        ...SMALL_BODY,
        example: {},
        visitor: 'taken',
        headers: PAGE_TOKEN,
        responses: {
          201: {
            description: 'The session',
            schema: v.object({
              sessionId: idSchema,
              token: v.string(),
              expiresAt: timeSchema,
              expiresIn: v.pipe(
                v.number(),
                v.integer(),
                v.description('In seconds, for whoever cannot trust their own clock'),
                v.examples([7200]),
              ),
            }),
          },
        },
        faults: [403],
      }),
      async (c) => {
        const widget = readOpenWidget(c)
        const visitor = readVisitor(c)
        const { email } = c.req.valid('json')
        const onPage = isOnPage(c)
        let sessionId: string
        if (visitor) sessionId = (await demandVisitor(deps, c)).id
        else {
          if (widget.collectEmail && email === undefined)
            throw invalid([{ path: 'email', message: 'is required' }])
          const network = readNetwork(c.get('ip'))
          const given = widget.collectEmail ? (email ?? null) : null
          sessionId = await openVisitorSession(store, widget, { email: given, network })
        }
        const token = await makeVisitorToken(deps, widget, { sessionId, onPage })
        return c.json({ sessionId, ...token }, 201)
      },
    )
}

function createVisitorMessageRoutes(deps: ApiDeps, streams: ReplyStreams) {
  const { store } = deps
  const guard = guardWidget(deps)
  return new Hono<AppEnv>()
    .post(
      '/api/public/widgets/:key/messages',
      accept({
        id: 'postVisitorMessage',
        tag: 'Widgets',
        summary: 'Post a message as a visitor, and get the reply as it comes',
        description:
          `${FROM} The reply is a stream as that of postChatMessage, with less: events have no ids, \`done\` has no token ` +
          'usage, and `error` a message for visitors. With `resets=1`, `{"type":"reset"}` says that the text is begun ' +
          'anew. While a reply is being written, another message is refused (409).',
        role: 'public',
        guard,
        params: ByKey,
        query: Resets,
        json: VisitorsMessage,
        ...SMALL_BODY,
        example: { content: 'Where is my parcel?' },
        visitor: 'needed',
        headers: IDEMPOTENCY_HEADER,
        responses: { 200: { description: 'The reply', type: 'text/event-stream' } },
        faults: [401, 409],
      }),
      async (c) => {
        const widget = readOpenWidget(c)
        const session = await demandVisitor(deps, c)
        const { content } = c.req.valid('json')
        const leave = takeVisitorSeat(streams, session.id, widget.id)
        try {
          const { executionId, fresh, queued } = await postVisitorMessage(store, widget, session, {
            content,
            idempotencyKey: readIdempotencyKey(c),
            network: readNetwork(c.get('ip')),
            ...c.get('trace'),
          })
          if (fresh && !queued) void carryOutEach(deps, 'START', [executionId])
          const { resets } = c.req.valid('query')
          const check = () => demandVisitorStill(deps, widget, session.id)
          const how = { resets, isPublic: true, isNew: true }
          // A change of the widget has this checked again at once.
          return streams.streamReply(c, { executionId, ...how, personId: widget.id, check, leave })
        } catch (error) {
          leave()
          throw error
        }
      },
    )
    .get(
      '/api/public/widgets/:key/messages',
      accept({
        id: 'listVisitorMessages',
        tag: 'Widgets',
        summary: "Read a visitor's own chat",
        description: `${FROM} The newest 100 messages, the oldest first.`,
        role: 'public',
        guard,
        params: ByKey,
        visitor: 'needed',
        responses: {
          200: {
            description: 'What the visitor has said, and was told',
            schema: v.object({ sessionId: idSchema, messages: v.array(VisitorMessageSchema) }),
          },
        },
        faults: [401, 403],
      }),
      async (c) => {
        const { id: sessionId } = await demandVisitor(deps, c)
        return c.json({ sessionId, messages: await listVisitorMessages(store, sessionId) })
      },
    )
}

/** Visitors have places of their own: they do not keep members of the team from their chats. Throws THROTTLED. */
function takeVisitorSeat(streams: ReplyStreams, sessionId: string, widgetId: string): () => void {
  try {
    return streams.takeSeat(sessionId, `widget ${widgetId}`, { isVisitor: true })
  } catch {
    throw new Fault('THROTTLED', 'Too many replies are being written. Try again later', { retryAfter: 5 })
  }
}
