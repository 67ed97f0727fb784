import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { openChatSession } from '../../db/chat/access.ts'
import { listChatMessages, readChatMessage } from '../../db/chat/messages.ts'
import { postChatMessage, stopChatReply } from '../../db/chat/post.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { IDEMPOTENCY_HEADER, readIdempotencyKey } from '../executions/starts/idempotency.ts'
import { accept } from '../http/accept.ts'
import { ById, unblankString, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import { idSchema, pageSchema } from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'
import { authenticate } from '../people/session.ts'
import type { ReplyStreams } from './replies.ts'
import { ChatMessageSchema } from './sessions.ts'

/** The most characters of a message. */
const MAX_LENGTH = 100_000

const NewMessage = v.object({ content: unblankString(MAX_LENGTH) })
const InSession = v.object({ id: uuidField, messageId: uuidField })

const Resets = v.object({
  resets: v.optional(
    v.pipe(
      v.picklist(['0', '1'], 'must be 0 or 1'),
      v.transform((given) => given === '1'),
      v.description('Whether a text that is begun anew may be told by an event of the type `reset`'),
    ),
    '0',
  ),
})

/** The routes of a chat's messages, and of the replies as they come. */
export function createChatMessageRoutes(deps: ApiDeps, streams: ReplyStreams) {
  return new Hono<AppEnv>()
    .route('/', createMessageRoutes(deps, streams))
    .route('/', createReplyRoutes(deps, streams))
}

/** Rejects once the caller has lost the right to read the session. */
const checkSession = (deps: ApiDeps, c: Context<AppEnv>, id: string) => async () =>
  openChatSession(await authenticate(deps, c, { counts: false }), id, 'read')

function createMessageRoutes(deps: ApiDeps, streams: ReplyStreams) {
  return new Hono<AppEnv>()
    .post(
      '/api/agent-chat/sessions/:id/messages',
      accept({
        id: 'postChatMessage',
        tag: 'Agent chat',
        summary: 'Post a message, and get the reply as it comes',
        description:
          'Only the owner of the chat may. Starts an execution with the message, and responds with its reply as server-sent events: each has the event ' +
          '`message` and JSON as data, `{"type":"chunk","content"}` for each fragment of the text, in order, and at the ' +
          'end `{"type":"done","tokenUsage":{"input","output"}}` (with `"usageKnown":false` if a vendor has not reported the tokens of a call, which are then not in it), or `{"type":"error","message"}`, also for a reply that guardrails have blocked. If the model has to ' +
          'be asked again, its text is begun anew: with `resets=1` that is told by `{"type":"reset"}`, after which all ' +
          'of the text follows that still stands; else an `error` ends the stream. The execution goes on if nobody ' +
          'listens, and the stream can be asked for again (followChatReply). While a reply is being written, another ' +
          'message is refused (409). A person and a team with too many open streams get 429, and nothing is started.',
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: ById,
        query: Resets,
        json: NewMessage,
        headers: IDEMPOTENCY_HEADER,
        example: { content: 'Where is my parcel?' },
        responses: { 200: { description: 'The reply', type: 'text/event-stream' } },
        faults: [409, 422],
      }),
      async (c) => {
        const { content } = c.req.valid('json')
        const { id } = c.req.valid('param')
        const scope = c.get('scope')
        const { row } = await openChatSession(scope, id, 'own')
        const leave = streams.takeSeat(scope.userId!, row.teamId)
        try {
          const posted = await postChatMessage(scope, id, {
            content,
            idempotencyKey: readIdempotencyKey(c),
            ...c.get('trace'),
          })
          const { fresh, queued, executionId } = posted
          if (fresh && !queued) void carryOutEach(deps, 'START', [executionId])
          const { resets } = c.req.valid('query')
          const check = checkSession(deps, c, id)
          const personId = scope.userId!
          return streams.streamReply(c, { executionId, resets, isNew: fresh, personId, check, leave })
        } catch (error) {
          leave()
          throw error
        }
      },
    )
    .get(
      '/api/agent-chat/sessions/:id/messages',
      accept({
        id: 'listChatMessages',
        tag: 'Agent chat',
        summary: "List a chat's messages",
        description: 'For its owner, and for ADMINs of the team.',
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: ById,
        query: v.object(paging),
        responses: {
          200: {
            description: 'One page, newest first',
            schema: pageSchema('ChatMessagePage', ChatMessageSchema),
          },
        },
      }),
      async (c) =>
        c.json(await listChatMessages(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))),
    )
    .get(
      '/api/agent-chat/sessions/:id/messages/:messageId',
      accept({
        id: 'readChatMessage',
        tag: 'Agent chat',
        summary: 'Read a message of a chat',
        description: 'For its owner, and for ADMINs of the team.',
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: InSession,
        responses: { 200: { description: 'The message', schema: ChatMessageSchema } },
      }),
      async (c) => {
        const { id, messageId } = c.req.valid('param')
        return c.json(await readChatMessage(c.get('scope'), id, messageId))
      },
    )
}

function createReplyRoutes(deps: ApiDeps, streams: ReplyStreams) {
  return new Hono<AppEnv>()
    .get(
      '/api/agent-chat/sessions/:id/messages/:messageId/stream',
      accept({
        id: 'followChatReply',
        tag: 'Agent chat',
        summary: 'Follow a reply',
        description:
          'Streams a reply as the post of its message does: from its beginning, or after `Last-Event-ID`, so that a ' +
          'client that was disconnected misses nothing. A reply that is saved already comes at once. 204 if the client ' +
          'has received the last event. `messageId` is that of the reply, or of the message that it replies to.',
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: InSession,
        query: Resets,
        headers: { 'Last-Event-ID': { description: 'The id of the last event that the client received' } },
        responses: {
          200: { description: 'The reply', type: 'text/event-stream' },
          204: { description: 'The client has received all of the reply' },
        },
      }),
      async (c) => {
        const { id, messageId } = c.req.valid('param')
        const scope = c.get('scope')
        const { row } = await openChatSession(scope, id, 'read')
        const { executionId } = await readChatMessage(scope, id, messageId)
        const { resets } = c.req.valid('query')
        const leave = streams.takeSeat(scope.userId!, row.teamId)
        const check = checkSession(deps, c, id)
        return streams.streamReply(c, { executionId, resets, personId: scope.userId!, check, leave })
      },
    )
    .post(
      '/api/agent-chat/sessions/:id/stop',
      accept({
        id: 'stopChatReply',
        tag: 'Agent chat',
        summary: 'Stop the reply that is being written',
        description:
          'What has come of its text is kept, as STOPPED. If none is being written, nothing happens. Only its owner may.',
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: ById,
        responses: {
          200: {
            description: 'The reply that is being stopped',
            schema: v.object({
              message: v.pipe(v.string(), v.examples(['The reply is being stopped'])),
              messageId: v.pipe(v.nullable(idSchema), v.description('Null if none was being written')),
            }),
          },
        },
      }),
      async (c) => {
        const stopped = await stopChatReply(c.get('scope'), c.req.valid('param').id)
        if (stopped) await carryOutEach(deps, 'CANCEL', [stopped.executionId])
        const message = stopped ? 'The reply is being stopped' : 'No reply is being written'
        return c.json({ message, messageId: stopped?.replyId ?? null })
      },
    )
}
