import { Hono } from 'hono'
import { demandRun, readChanges, readCursor } from '../db/changes.ts'
import { Fault } from '../db/fault.ts'
import { accept, ById } from './accept.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { createFeeds } from './feeds.ts'
import { authenticate } from './session.ts'
import { streamRun } from './stream.ts'

/** Open streams of one process; each holds a connection. */
const MAX_STREAMS = 10_000

/** The events of a run as it goes on. */
export function createEventRoutes(deps: ApiDeps) {
  const feeds = createFeeds(deps)
  return new Hono<AppEnv>().get(
    '/api/executions/:id/events',
    accept({
      id: 'followExecution',
      tag: 'Executions',
      summary: 'Follow an execution',
      description:
        'Server-Sent Events: `execution` {id, status, startedAt, completedAt, durationMs, errorMessage, ' +
        'cancelRequested} and `node` {id, nodeId, iteration, nodeName, nodeType, status, startedAt, completedAt, ' +
        'durationMs, errorMessage, handle, retryCount}, each as it stands whenever it has changed, first as they are; ' +
        'then `end` {status}. A client that comes back with `Last-Event-ID` is told what it missed; one that has ' +
        'been told the end is answered 204.',
      role: 'member',
      of: 'executions',
      params: ById,
      headers: { 'Last-Event-ID': { description: 'The id of the last event that arrived' } },
      responses: {
        200: { description: 'The events, until the run has ended', type: 'text/event-stream' },
        204: { description: 'The run has ended, and the client knows all of it' },
      },
    }),
    async (c) => {
      const { id } = c.req.valid('param')
      const { store, bus } = deps
      await demandRun(c.get('scope'), id)
      const cursor = readCursor((c.req.header('last-event-id') ?? '').split(',').at(-1)!.trim())
      if (cursor.ended) {
        const changes = await readChanges(store, id, cursor)
        if (changes?.ended && !changes.run && changes.nodes.length === 0) return c.body(null, 204)
      }
      if (feeds.count() >= MAX_STREAMS)
        throw new Fault('UNAVAILABLE', 'Too many streams are open; try again', { retryAfter: 5 })
      c.header('Content-Type', 'text/event-stream; charset=utf-8')
      // Proxies that buffer answers would hold the events back.
      c.header('X-Accel-Buffering', 'no')
      if (c.req.method === 'HEAD') return c.body(null, 200)
      const log = c.get('log')
      const { incoming } = (c.env ?? {}) as { incoming?: { socket?: { destroy(): void } } }
      const body = streamRun({
        feeds,
        executionId: id,
        cursor,
        stopping: bus.stopping,
        check: async () => demandRun(await authenticate(deps, c), id),
        drop: () => incoming?.socket?.destroy(),
        onError: (error) => log.error({ err: error, executionId: id }, 'a stream of events broke off'),
        ...deps.streams,
      })
      return c.body(body, 200)
    },
  )
}
