import { Hono } from 'hono'
import { type BatchRun, findBatch, isBatchOpen, readBatchRun } from '../../../db/evaluation/batches/runs.ts'
import type { Store } from '../../../db/scope.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import {
  dropClient,
  type EventReader,
  readLastEventId,
  setEventHeaders,
  streamEvents,
} from '../../executions/eventstream.ts'
import { createSeats } from '../../executions/seats.ts'
import { accept } from '../../http/accept.ts'
import { watchCaller } from '../../people/lasting.ts'
import { authenticate } from '../../people/session.ts'
import { BatchParams } from './fields.ts'

/** How often it is looked how far a batch is. */
const LOOK_MS = 500

/** The route that streams how far a batch is. */
export function createBatchEventRoutes(deps: ApiDeps) {
  const { store, bus } = deps
  const seats = createSeats('event streams', deps.streams)
  return new Hono<AppEnv>().get(
    '/api/workflows/:workflowId/batch-eval/:runId/events',
    accept({
      id: 'followBatch',
      tag: 'Evaluation',
      summary: 'Follow a batch evaluation',
      description:
        'Streams Server-Sent Events: `progress` {id, status, totalCases, completedCases, passedCases, failedCases, cost, ' +
        'reason} at the beginning and after each change, and finally `end` {status}. A client that reconnects with ' +
        '`Last-Event-ID` gets what has changed since, or 204 if it has received `end`. A person and a team with too ' +
        'many open streams get 429.',
      role: 'member',
      params: BatchParams,
      headers: { 'Last-Event-ID': { description: 'The id of the last event that the client received' } },
      responses: {
        200: { description: 'The events, until the batch has ended', type: 'text/event-stream' },
        204: { description: 'The batch has ended, and the client has received all its events' },
      },
    }),
    async (c) => {
      const path = c.req.valid('param')
      const scope = c.get('scope')
      const run = await readBatchRun(scope, path)
      const last = readLastEventId(c)
      if (!isBatchOpen(run.status) && last === `end ${run.status}`) return c.body(null, 204)
      setEventHeaders(c)
      if (c.req.method === 'HEAD') return c.body(null, 200)
      const leave = seats.take(scope.userId ?? '', c.get('teamId') ?? '')
      const log = c.get('log')
      const body = streamEvents({
        join: async (wake) => watchBatch(store, run.id, last, wake),
        stopping: bus.stopping,
        check: async () => readBatchRun(await authenticate(deps, c, { counts: false }), path),
        watchRights: (check) => watchCaller(deps, c, scope.userId!, check),
        drop: () => dropClient(c),
        onEnd: leave,
        onError: (error) => log.error({ err: error, batch: run.id }, 'an event stream failed'),
        ...deps.streams,
      })
      return c.body(body, 200)
    },
  )
}

/** Reads a batch again and again; `known` is the id of the last event that its reader has. */
function watchBatch(store: Store, id: string, known: string, wake: () => void): EventReader {
  let last = known
  let due = true
  const timer = setInterval(() => {
    due = true
    wake()
  }, LOOK_MS)
  return {
    isBehind: () => due,
    async read() {
      const run = await findBatch(store.db, id)
      due = false
      if (!run) return null
      const ended = !isBatchOpen(run.status)
      const state = nameState(run)
      const progress = state === last ? '' : writeBatchEvent(state, 'progress', showProgress(run))
      last = state
      return {
        text: ended
          ? progress + writeBatchEvent(`end ${run.status}`, 'end', { status: run.status })
          : progress,
        ended,
      }
    },
    leave: () => clearInterval(timer),
  }
}

const nameState = ({ status, completedCases, passedCases }: BatchRun) =>
  `${status} ${completedCases} ${passedCases}`

const showProgress = (run: BatchRun) => ({
  ...{ id: run.id, status: run.status, totalCases: run.totalCases, completedCases: run.completedCases },
  ...{ passedCases: run.passedCases, failedCases: run.failedCases, cost: run.cost, reason: run.reason },
})

const writeBatchEvent = (id: string, event: string, data: object) =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`
