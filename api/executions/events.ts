import { Hono } from 'hono'
import { demandExecution, readChanges, readCursor } from '../../db/records/changes.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById } from '../http/fields.ts'
import { authenticate } from '../people/session.ts'
import { createFeeds } from './feeds.ts'
import { createSeats } from './seats.ts'
import { streamExecution } from './stream.ts'

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
        'errorMessage, cancelRequested}, `node` {id, nodeId, iteration, nodeName, nodeType, status, ' +
        'startedAt, completedAt, durationMs, errorMessage, handle, retryCount, nextAttemptAt}, and finally ' +
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
      const teamId = await demandExecution(scope, id)
      const cursor = readCursor((c.req.header('last-event-id') ?? '').split(',').at(-1)!.trim())
      if (cursor.ended) {
        const changes = await readChanges(store, id, cursor)
        if (changes?.ended && !changes.run && changes.nodes.length === 0) return c.body(null, 204)
      }
      c.header('Content-Type', 'text/event-stream; charset=utf-8')
      // Tells nginx not to buffer the response, which would delay the events.
      c.header('X-Accel-Buffering', 'no')
      if (c.req.method === 'HEAD') return c.body(null, 200)
      const leave = seats.take(scope.userId!, teamId)
      const log = c.get('log')
      const { incoming } = (c.env ?? {}) as { incoming?: { socket?: { destroy(): void } } }
      const body = streamExecution({
        feeds,
        executionId: id,
        cursor,
        stopping: bus.stopping,
        check: async () => demandExecution(await authenticate(deps, c, { counts: false }), id),
        drop: () => incoming?.socket?.destroy(),
        onEnd: leave,
        onError: (error) => log.error({ err: error, executionId: id }, 'an event stream failed'),
        ...deps.streams,
      })
      return c.body(body, 200)
    },
  )
}
