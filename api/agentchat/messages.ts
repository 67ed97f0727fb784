import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { listChatMessages, readChatMessage } from '../../db/agentchat/messages.ts'
import { postChatMessage, stopChatReply } from '../../db/agentchat/post.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import { idSchema, pageSchema } from '../http/responses.ts'
import { carryOutEach } from '../outbox.ts'
import { IDEMPOTENCY_HEADER, readIdempotencyKey } from '../starts/idempotency.ts'
import { ChatMessageSchema } from './sessions.ts'

/** The most characters of a message. */
const MAX_LENGTH = 100_000

const NewMessage = v.object({ content: boundedString(MAX_LENGTH) })
const InSession = v.object({ id: uuidField, messageId: uuidField })

/** The routes of a chat's messages. `streamReply` responds with the reply to a message as it comes. */
export function createChatMessageRoutes(
  deps: ApiDeps,
  streamReply: (c: Context<AppEnv>, messageId: string) => Promise<Response>,
) {
  return new Hono<AppEnv>()
    .post(
      '/api/agent-chat/sessions/:id/messages',
      accept({
        id: 'postChatMessage',
        tag: 'Agent chat',
        summary: 'Post a message, and get the reply as it comes',
        description:
          'Starts an execution with the message, and responds with its reply as server-sent events: each has the event ' +
          '`message` and JSON as data, `{"type":"chunk","content"}` for each fragment of the text, in order, and at the ' +
          'end `{"type":"done","tokenUsage":{"input","output"}}`, or `{"type":"error","message"}`. The execution goes ' +
          'on if nobody listens. While a reply is being written, another message is refused (409).',
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: ById,
        json: NewMessage,
        headers: IDEMPOTENCY_HEADER,
        example: { content: 'Where is my parcel?' },
        responses: { 200: { description: 'The reply', type: 'text/event-stream' } },
        faults: [409, 422],
      }),
      async (c) => {
        const { content } = c.req.valid('json')
        const posted = await postChatMessage(c.get('scope'), c.req.valid('param').id, {
          content,
          idempotencyKey: readIdempotencyKey(c),
          ...c.get('trace'),
        })
        const { fresh, queued, executionId, replyId } = posted
        if (fresh && !queued) void carryOutEach(deps, 'START', [executionId])
        return streamReply(c, replyId)
      },
    )
    .get(
      '/api/agent-chat/sessions/:id/messages',
      accept({
        id: 'listChatMessages',
        tag: 'Agent chat',
        summary: "List a chat's messages",
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
    .post(
      '/api/agent-chat/sessions/:id/stop',
      accept({
        id: 'stopChatReply',
        tag: 'Agent chat',
        summary: 'Stop the reply that is being written',
        description:
          'What has come of its text is kept, as STOPPED. If none is being written, nothing happens.',
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
