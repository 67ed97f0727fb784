import type { Context } from 'hono'
import { createReplies } from '../../activities/chat/replies.ts'
import type { ReplyState } from '../../db/chat/chunks.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import {
  dropClient,
  type EventReader,
  readLastEventId,
  setEventHeaders,
  streamEvents,
} from '../executions/eventstream.ts'
import { createSeats } from '../executions/seats.ts'
import { watchCaller } from '../people/lasting.ts'
import {
  createReplyReader,
  type ReplyCursor,
  type ReplyNews,
  readReplyCursor,
  START,
  writeReplyCursor,
} from './reading.ts'

/** How many streams of replies a process keeps open for one person, for a team, and for a visitor. */
const OF_PERSON = 10
const OF_TEAM = 200
const OF_VISITOR = 2

export type ReplyStreamOptions = {
  /** The execution whose reply is streamed. */
  executionId: string
  /** Whether a text that is begun anew may be told by `reset`; else that ends the stream. */
  resets: boolean
  /** For visitors of a page: nothing that says how the reply came about. */
  isPublic?: boolean
  /** The person who reads it, also by a token of theirs. */
  personId: string
  /** The reply is new, so it has no earlier readers: a Last-Event-ID that came along is that of another reply. */
  isNew?: boolean
  /** Rejects once the caller has lost the right to read the reply. */
  check: () => Promise<unknown>
  /** Gives back the place that `takeSeat` gave. */
  leave: () => void
}

/** The streams of replies of one process. */
export function createReplyStreams(deps: ApiDeps) {
  const replies = deps.replies ?? createReplies(deps)
  const { ofPerson = OF_PERSON, ofTeam = OF_TEAM, ofVisitor = OF_VISITOR } = deps.replyStreams ?? {}
  const seats = createSeats('replies', { ofPerson, ofTeam })

  async function join(executionId: string, from: ReplyCursor, how: Telling, wake: () => void) {
    const { feed, leave } = await replies.join(executionId, wake)
    const reader = createReplyReader(deps.store, feed, 'ended' in from ? START : from)
    return {
      isBehind: reader.isBehind,
      async read() {
        const news = await reader.next()
        return news ? writeNews(news, how) : { text: '', ended: false }
      },
      leave,
    } satisfies EventReader
  }

  return {
    /**
     * Takes a place for a stream, before anything is started for it. Throws THROTTLED if the person (or the visitor of
     * a page) or the team has too many. Returns what gives it back, which may be called again.
     */
    takeSeat: (personId: string, teamId: string, { isVisitor = false } = {}): (() => void) =>
      isVisitor ? seats.take(`visitor ${personId}`, teamId, ofVisitor) : seats.take(personId, teamId),

    /**
     * Responds with the text of a reply as Server-Sent Events: after Last-Event-ID if the client names one. 204 if it
     * has received the end already.
     */
    streamReply(
      c: Context<AppEnv>,
      { executionId, resets, isPublic = false, isNew = false, personId, check, leave }: ReplyStreamOptions,
    ): Response {
      const given = readReplyCursor(readLastEventId(c))
      // A caller who posts a message wants its reply, also if they repeat the message.
      const from = isNew || (c.req.method === 'POST' && 'ended' in given) ? START : given
      if ('ended' in from) {
        leave()
        return c.body(null, 204)
      }
      setEventHeaders(c)
      if (c.req.method === 'HEAD') {
        leave()
        return c.body(null, 200)
      }
      const log = c.get('log')
      const body = streamEvents({
        join: (wake) => join(executionId, from, { resets, isPublic }, wake),
        stopping: deps.bus.stopping,
        check,
        watchRights: (lost) => watchCaller(deps, c, personId, lost),
        drop: () => dropClient(c),
        onEnd: leave,
        onError: (error) => log.error({ err: error, executionId }, 'the stream of a reply failed'),
        ...deps.streams,
      })
      return c.body(body, 200)
    },
  }
}

export type ReplyStreams = ReturnType<typeof createReplyStreams>

type Telling = { resets: boolean; isPublic: boolean }

function writeNews(news: ReplyNews, { resets, isPublic }: Telling): { text: string; ended: boolean } {
  const writeEvent = isPublic ? writePublicEvent : writeOwnEvent
  if (news.kind === 'text')
    return { text: writeEvent(news.cursor, { type: 'chunk', content: news.text }), ended: false }
  if (news.kind === 'reset' && resets) return { text: writeEvent(START, { type: 'reset' }), ended: false }
  const describe = isPublic ? describePublicEnd : describeEnd
  const last = news.kind === 'end' ? describe(news.state) : { type: 'error', message: BEGUN_ANEW }
  return { text: writeEvent({ ended: true }, last), ended: true }
}

const BEGUN_ANEW =
  'The text was begun anew, because the model had to be asked again. Ask for the stream again, without Last-Event-ID.'

function describeEnd(state: ReplyState | 'gone'): object {
  if (state === 'gone') return { type: 'error', message: 'The message was deleted' }
  if (state.status === 'FAILED') return { type: 'error', message: state.error ?? 'There is no reply' }
  const tokenUsage = { input: state.inputTokens ?? 0, output: state.outputTokens ?? 0 }
  return { type: 'done', tokenUsage, ...(state.isUsageKnown ? {} : { usageKnown: false }) }
}

/** The message to a visitor in place of an error. */
const NO_REPLY = 'There is no reply to this message. Please try again.'

function describePublicEnd(state: ReplyState | 'gone'): object {
  if (state === 'gone') return { type: 'error', message: NO_REPLY }
  if (state.status !== 'FAILED') return { type: 'done' }
  // A node's answer in place of a reply that its guardrails have blocked is meant for the user who asked.
  return { type: 'error', message: (state.length > 0 && state.error) || NO_REPLY }
}

function writeOwnEvent(cursor: ReplyCursor, data: object): string {
  return `id: ${writeReplyCursor(cursor)}\n${writePublicEvent(cursor, data)}`
}

/** Without an id, which would count the turns of the model. */
function writePublicEvent(_: ReplyCursor, data: object): string {
  return `event: message\ndata: ${JSON.stringify(data)}\n\n`
}
