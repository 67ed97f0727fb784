import { Hono } from 'hono'
import { isPrivate, openExecution } from '../../db/chat/privacy.ts'
import { type Cursor, readChanges, readCursor } from '../../db/executions/records/changes.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById } from '../http/fields.ts'
import { watchCaller } from '../people/lasting.ts'
import { authenticate } from '../people/session.ts'
import {
  dropClient,
  type EventReader,
  readLastEventId,
  setEventHeaders,
  streamEvents,
} from './eventstream.ts'
import { createFeeds, type Feeds } from './feeds.ts'
import { createSeats } from './seats.ts'

/** The route that streams the events of an execution until it has ended. */
export function createEventRoutes(deps: ApiDeps) {
  const feeds = createFeeds(deps)
  const seats = createSeats('event streams', deps.streams)
  return new Hono<AppEnv>().get(
    '/api/executions/:id/events',
    accept({
      id: 'followExecution',
      tag: 'Executions',
      summary: 'Follow an execution',
      description:
        'Streams Server-Sent Events: `execution` {id, status, startedAt, completedAt, durationMs, ' +
        'errorMessage, cancelRequested}, `node` {id, nodeId, iteration, step, tool, nodeName, nodeType, status, ' +
        'startedAt, completedAt, durationMs, errorMessage, handle, retryCount, nextAttemptAt, waitingUntil, ' +
        'itemCount}, and finally ' +
        '`end` {status}. The stream begins with the current state of the execution and its nodes. After that, ' +
        'each change is an event with the full new state. A client that reconnects with `Last-Event-ID` ' +
        'receives what it missed, or 204 if it has already received `end`. A person and a team with too ' +
        'many open streams get 429.',
      role: 'member',
      of: 'executions',
      params: ById,
      headers: { 'Last-Event-ID': { description: 'The id of the last event that the client received' } },
      responses: {
        200: { description: 'The events, until the execution has ended', type: 'text/event-stream' },
        204: { description: 'The execution has ended, and the client has received all its events' },
      },
    }),
    async (c) => {
      const { id } = c.req.valid('param')
      const { store, bus } = deps
      const scope = c.get('scope')
      const { teamId, hidden } = await openExecution(scope, id)
      const cursor = readCursor(readLastEventId(c))
      if (cursor.ended) {
        const changes = await readChanges(store, id, cursor, hidden)
        if (changes?.ended && !changes.run && changes.nodes.length === 0) return c.body(null, 204)
      }
      setEventHeaders(c)
      if (c.req.method === 'HEAD') return c.body(null, 200)
      const leave = seats.take(scope.userId!, teamId)
      const log = c.get('log')
      const body = streamEvents({
        join: (wake) => joinFeed(feeds, { id, hidden, cursor }, wake),
        stopping: bus.stopping,
        check: async () => {
          const now = await openExecution(await authenticate(deps, c, { counts: false }), id)
          if (now.hidden && !hidden) throw isPrivate()
        },
        watchRights: (check) => watchCaller(deps, c, scope.userId!, check),
        drop: () => dropClient(c),
        onEnd: leave,
        onError: (error) => log.error({ err: error, executionId: id }, 'an event stream failed'),
        ...deps.streams,
      })
      return c.body(body, 200)
    },
  )
}

/** Reads a feed from a cursor on: a client that reads slowly skips states that have changed again since. */
async function joinFeed(
  feeds: Feeds,
  { id, hidden, cursor: from }: { id: string; hidden: boolean; cursor: Cursor },
  wake: () => void,
): Promise<EventReader> {
  const { isBehind, read, leave } = await feeds.join(id, hidden, wake)
  let cursor = from
  return {
    isBehind: () => isBehind(cursor),
    async read() {
      const page = await read(cursor)
      if (page) cursor = page.next
      return page
    },
    leave,
  }
}
