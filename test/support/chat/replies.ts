import { EventSourceParserStream } from 'eventsource-parser/stream'
import { pino } from 'pino'
import { createReplies } from '../../../activities/chat/replies.ts'
import { createApp } from '../../../api/app.ts'
import type { ApiDeps } from '../../../api/env.ts'
import { openBus } from '../../../db/bus.ts'
import { openDatabase } from '../../../db/connection.ts'
import { startListener } from '../../../worker/service/listener.ts'
import { createRuns } from '../engine/runs.ts'
import type { Service } from '../service.ts'

export type ReplyEvent = { id: string | undefined; type: string } & Record<string, unknown>

/** Reads the stream of a reply with a public parser. `comments` counts its comments. */
export function readReply(response: Response) {
  let comments = 0
  const reader = response
    .body!.pipeThrough(new TextDecoderStream('utf-8', { fatal: true }))
    .pipeThrough(new EventSourceParserStream({ onError: 'terminate', onComment: () => comments++ }))
    .getReader()

  async function next(): Promise<ReplyEvent | undefined> {
    const { done, value } = await reader.read()
    if (done) return undefined
    if (value.event !== 'message') throw new Error(`an event is called ${value.event}`)
    return { ...JSON.parse(value.data), id: value.id }
  }

  async function all(): Promise<ReplyEvent[]> {
    const events: ReplyEvent[] = []
    for (let one = await next(); one; one = await next()) events.push(one)
    return events
  }

  /** Reads chunks until they are this text; fails with what came if that is something else. */
  async function until(text: string): Promise<ReplyEvent> {
    let got = ''
    for (;;) {
      const event = await next()
      if (event?.type !== 'chunk' || !text.startsWith(got + event.content))
        throw new Error(`after ${JSON.stringify(got)} came ${JSON.stringify(event)}`)
      got += event.content
      if (got === text) return event
    }
  }
  return { next, all, until, comments: () => comments, cancel: () => reader.cancel() }
}

/** The text of the chunks, what followed the last one, and the text that stands after each reset. */
export function sumUp(events: ReplyEvent[]): { text: string; last: ReplyEvent | undefined; resets: number } {
  let text = ''
  let resets = 0
  for (const event of events) {
    if (event.type === 'reset') {
      text = ''
      resets++
    } else if (event.type === 'chunk') text += event.content
  }
  return { text, last: events.at(-1), resets }
}

/** Writes chats as the service does, for tests that need no engine. */
export function createChats(service: Service, owner: { id: string } = service.user) {
  const { db } = service.store
  const runs = createRuns(service)

  /** A message with its reply, which is STREAMING, and their execution, in a session of their own. */
  async function addReply(teamId = service.teamId) {
    const executionId = await runs.addRun()
    const { workflowId } = await db
      .selectFrom('executions')
      .select('workflowId')
      .where('id', '=', executionId)
      .executeTakeFirstOrThrow()
    const [sessionId, messageId, replyId] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
    const of = { teamId, ownerId: owner.id }
    await db
      .insertInto('agentChatSessions')
      .values({ id: sessionId, ...of, workflowId, ownerKind: 'USER', title: 't', untitled: false })
      .execute()
    const message = { ...of, sessionId, executionId, content: '' }
    await db
      .insertInto('agentChatMessages')
      .values([
        { ...message, id: messageId, role: 'user', status: 'COMPLETE', content: 'Hello?' },
        { ...message, id: replyId, role: 'assistant', status: 'STREAMING' },
      ])
      .execute()
    return { executionId, sessionId, messageId, replyId, path: pathOf({ sessionId, replyId }) }
  }

  /** Saves a reply as the service does at the end of its execution. */
  async function save(replyId: string, content: string, more: { status?: string; error?: string } = {}) {
    await db
      .updateTable('agentChatMessages')
      .set({ status: 'COMPLETE', content, inputTokens: 3, outputTokens: 5, ...more })
      .where('id', '=', replyId)
      .execute()
  }

  return { addReply, save, runs }
}

export const pathOf = ({ sessionId, replyId }: { sessionId: string; replyId: string }) =>
  `/api/agent-chat/sessions/${sessionId}/messages/${replyId}/stream`

/** Starts a second API on the same database, as in another process, over real HTTP. */
export async function addApi(service: Service, more: Partial<ApiDeps> = {}) {
  const { db, close } = openDatabase(service.database.url, { max: 5, name: 'another' })
  const bus = openBus(service.database.url, { name: 'another' })
  const log = pino({ level: process.env.TEST_LOG ?? 'silent' })
  const store = { db, keys: service.store.keys }
  const replies = createReplies({ store, bus, log })
  const app = createApp({
    store,
    bus,
    replies,
    log,
    publicUrl: 'http://127.0.0.1:3000',
    rateLimits: false,
    isReady: async () => ({ database: true, temporal: true, worker: true }),
    carryOut: async () => false,
    ...more,
  })
  const listener = await startListener(app.fetch, 0, '127.0.0.1')
  const url = `http://127.0.0.1:${listener.port}`
  return {
    app,
    url,
    bus,
    replies,
    get: (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
      fetch(url + path, { headers: { cookie: service.admin, ...headers }, ...init }),
    async stop() {
      await bus.stop()
      await listener.stop(4_000)
      await close()
    },
  }
}
