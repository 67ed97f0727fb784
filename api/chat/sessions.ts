import { Hono } from 'hono'
import * as v from 'valibot'
import { CHAT_OWNERS } from '../../db/chat/access.ts'
import { CHAT_ROLES, CHAT_STATUSES } from '../../db/chat/messages.ts'
import {
  createChatSession,
  deleteChatSession,
  listChatSessions,
  readChatSession,
  renameChatSession,
} from '../../db/chat/sessions.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString, trimmedString, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import {
  countSchema,
  EXAMPLE_ID,
  idSchema,
  LOCATION_HEADER,
  messageResponse,
  pageSchema,
  timeSchema,
} from '../http/responses.ts'

const NewSession = v.object({
  teamId: uuidField,
  workflowId: uuidField,
  title: v.optional(trimmedString(200)),
})
const SessionPatch = v.object({ title: trimmedString(200) })
const SessionListQuery = v.object({
  teamId: uuidField,
  workflowId: v.optional(uuidField),
  search: v.pipe(
    v.optional(boundedString(200, 0)),
    v.description('Any part of a title or of a message, ignoring case'),
  ),
  all: v.pipe(
    v.optional(v.picklist(['true', 'false'], 'must be true or false'), 'false'),
    v.description("Everybody's sessions in the team, without visitors of widgets: only for its ADMINs"),
  ),
  widgetId: v.pipe(
    v.optional(uuidField),
    v.description('The sessions of the visitors of this widget: only for ADMINs'),
  ),
  ...paging,
})

export const ChatMessageSchema = v.pipe(
  v.object({
    id: idSchema,
    role: v.picklist(CHAT_ROLES),
    status: v.pipe(
      v.picklist(CHAT_STATUSES),
      v.description(
        'STREAMING: the reply is being written, and has no content yet. STOPPED: the reply up to there. FAILED: ' +
          'the message got no reply, and later messages do not know of it',
      ),
    ),
    content: v.pipe(v.string(), v.examples(['Where is my parcel?'])),
    omitted: v.pipe(
      v.boolean(),
      v.description(
        'Whether the content is left out, because a response shows 32,000,000 characters of the newest messages: the ' +
          'message by itself has it',
      ),
    ),
    error: v.pipe(v.nullable(v.string()), v.description('Why it has failed')),
    createdAt: timeSchema,
    executionId: v.pipe(
      idSchema,
      v.description('The execution that the message has started, and that replies'),
    ),
    tokenUsage: v.optional(
      v.pipe(
        v.nullable(v.object({ input: countSchema, output: countSchema })),
        v.description(
          'Only of replies: the tokens of all calls to models of the execution, as far as vendors have reported them; null while it is STREAMING, and if none has been reported',
        ),
      ),
    ),
  }),
  v.title('ChatMessage'),
)

const session = {
  id: idSchema,
  workflowId: idSchema,
  teamId: idSchema,
  title: v.pipe(v.string(), v.examples(['Where is my parcel?'])),
  createdAt: timeSchema,
  updatedAt: timeSchema,
}
const item = {
  ...session,
  messageCount: countSchema,
  lastMessageAt: v.nullable(timeSchema),
  owner: v.object({
    kind: v.picklist(CHAT_OWNERS),
    id: idSchema,
    name: v.pipe(
      v.nullable(v.pipe(v.string(), v.examples(['Ada Byron']))),
      v.description('Of a VISITOR, the e-mail address that they gave'),
    ),
  }),
}
const NewSessionSchema = v.pipe(
  v.object({ ...session, messages: v.pipe(v.array(ChatMessageSchema), v.maxLength(0), v.examples([[]])) }),
  v.title('NewChatSession'),
)
const SessionItemSchema = v.pipe(v.object(item), v.title('ChatSessionItem'))
const SessionSchema = v.pipe(
  v.object({
    ...item,
    messages: v.pipe(
      v.array(ChatMessageSchema),
      v.maxLength(1_000),
      v.description(
        'The oldest first. If there are more than 1,000, the newest; all others by their own route',
      ),
    ),
  }),
  v.title('ChatSession'),
)

const MINE =
  'A session belongs to the user, or to the SDK token, who made it. Others get 403; ADMINs of the team may read it.'

/** The routes of chats with AI agent workflows, but for those of their messages. */
export function createChatSessionRoutes() {
  return new Hono<AppEnv>().route('/', createSessionListRoutes()).route('/', createOneSessionRoutes())
}

function createSessionListRoutes() {
  return new Hono<AppEnv>()
    .post(
      '/api/agent-chat/sessions',
      accept({
        id: 'createChatSession',
        tag: 'Agent chat',
        summary: 'Open a chat with an agent',
        description:
          'The workflow must be active, and a CHAT_TRIGGER of it must lead to an AI_AGENT or LLM node (422). Without a ' +
          '`title`, one is cut from the first message.',
        role: 'OPERATOR',
        json: NewSession,
        example: { teamId: EXAMPLE_ID, workflowId: EXAMPLE_ID, title: 'Parcels' },
        responses: {
          201: {
            description: 'The session',
            schema: NewSessionSchema,
            headers: LOCATION_HEADER,
            links: { readChatSession: { parameters: { id: '$response.body#/id' } } },
          },
        },
        faults: [422],
      }),
      async (c) => {
        const session = await createChatSession(c.get('scope'), c.req.valid('json'))
        c.header('Location', `/api/agent-chat/sessions/${session.id}`)
        return c.json(session, 201)
      },
    )
    .get(
      '/api/agent-chat/sessions',
      accept({
        id: 'listChatSessions',
        tag: 'Agent chat',
        summary: 'List your chats',
        description:
          'Those with the newest messages first. Everybody sees their own; an SDK token those that it has opened.',
        role: 'OPERATOR',
        query: SessionListQuery,
        responses: {
          200: { description: 'One page', schema: pageSchema('ChatSessionPage', SessionItemSchema) },
        },
      }),
      async (c) => {
        const { all, ...query } = c.req.valid('query')
        return c.json(await listChatSessions(c.get('scope'), { ...query, all: all === 'true' }))
      },
    )
}

function createOneSessionRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/agent-chat/sessions/:id',
      accept({
        id: 'readChatSession',
        tag: 'Agent chat',
        summary: 'Read a chat',
        description: MINE,
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: ById,
        responses: { 200: { description: 'The session with its messages', schema: SessionSchema } },
      }),
      async (c) => c.json(await readChatSession(c.get('scope'), c.req.valid('param').id)),
    )
    .put(
      '/api/agent-chat/sessions/:id',
      accept({
        id: 'renameChatSession',
        tag: 'Agent chat',
        summary: 'Rename a chat',
        description: 'Only its owner may.',
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: ById,
        json: SessionPatch,
        example: { title: 'Parcels' },
        responses: {
          200: {
            description: 'The new title',
            schema: v.object({ id: idSchema, title: v.string(), updatedAt: timeSchema }),
          },
        },
      }),
      async (c) =>
        c.json(await renameChatSession(c.get('scope'), c.req.valid('param').id, c.req.valid('json').title)),
    )
    .delete(
      '/api/agent-chat/sessions/:id',
      accept({
        id: 'deleteChatSession',
        tag: 'Agent chat',
        summary: 'Delete a chat',
        description:
          'Removes it and all its messages permanently, with the executions that replied: their values, files and ' +
          'histories. What the calls to models took stays counted. ADMINs may delete chats of others.',
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: ById,
        responses: { 200: messageResponse('Chat session deleted') },
      }),
      async (c) => {
        await deleteChatSession(c.get('scope'), c.req.valid('param').id, { keep: false })
        return c.json({ message: 'Chat session deleted' })
      },
    )
    .post(
      '/api/agent-chat/sessions/:id/clear',
      accept({
        id: 'clearChatSession',
        tag: 'Agent chat',
        summary: 'Remove all messages of a chat',
        description:
          'Keeps the session; a title that was cut from a message goes with that. The executions that replied are ' +
          'removed as if it were deleted. Only its owner may.',
        role: 'OPERATOR',
        of: 'agentChatSessions',
        params: ById,
        responses: {
          200: {
            description: 'Done',
            schema: v.object({
              message: v.pipe(v.string(), v.examples(['Chat session cleared'])),
              sessionId: idSchema,
            }),
          },
        },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        await deleteChatSession(c.get('scope'), id, { keep: true })
        return c.json({ message: 'Chat session cleared', sessionId: id })
      },
    )
}
