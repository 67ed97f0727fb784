import { randomBytes } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import { pino } from 'pino'
import { v7 as uuid } from 'uuid'
import { expect, inject } from 'vitest'
import type { ErrandCarrier } from '../../activities/temporal/carrier.ts'
import { createDataConverter } from '../../activities/temporal/codec.ts'
import { carryOutErrand } from '../../activities/temporal/outbox.ts'
import { openSealer } from '../../activities/temporal/sealer.ts'
import { CLIENT_OPTIONS } from '../../worker/temporal.ts'
import { type Body, startService } from './service.ts'

const nodes = [
  { id: 'start', type: 'MANUAL_TRIGGER' },
  { id: 'set', type: 'SET', config: { values: { x: 1 } } },
]
const edges = [{ source: 'start', target: 'set' }]

/**
 * The API with a Temporal that no worker polls: an execution that Temporal takes stays RUNNING. It is
 * reachable only within `withTemporal`; before and after, every execution stays PENDING.
 */
export async function startWorkerless() {
  const connection = await Connection.connect({ ...CLIENT_OPTIONS, address: inject('temporalAddress') })
  let isReachable = false
  const service = await startService({
    carryOut: async (errand) => isReachable && carryOutErrand(carrier, errand),
  })
  const log = pino({ level: 'silent' })
  const sealer = await openSealer({ store: service.store, binds: true, log, watches: false })
  const carrier: ErrandCarrier & { client: Client } = {
    store: service.store,
    client: new Client({ connection, dataConverter: createDataConverter(sealer) }),
    sealer,
    taskQueue: `nobody-${randomBytes(4).toString('hex')}`,
    eager: () => false,
    log,
  }
  const builder = (await service.signUp('BUILDER')).cookie
  const operator = (await service.signUp('OPERATOR')).cookie
  const viewer = await service.token('VIEWER')

  /** Creates a workflow with a trigger and one node, and returns its id. */
  async function create(more: object = {}, as = builder, teamId = service.teamId): Promise<string> {
    const json = { teamId, name: `w ${uuid()}`, nodes, edges, ...more }
    const { status, body } = await service.call('POST', '/api/workflows', as, json)
    expect(status, JSON.stringify(body)).toBe(201)
    return body.id
  }

  const execute = (id: string, json: unknown = { teamId: service.teamId }, as = operator, headers = {}) =>
    service.call('POST', `/api/workflows/${id}/execute`, as, json, headers)

  return {
    ...service,
    builder,
    operator,
    viewer,
    carrier,
    create,
    execute,
    /** Executes a workflow and returns the execution's id. */
    start: async (id: string): Promise<string> => (await execute(id)).body.executionId,
    read: async (id: string): Promise<Body> =>
      (await service.call('GET', `/api/executions/${id}`, viewer)).body,
    /** The kinds of the errands that are queued for an execution, sorted. */
    async errandsOf(id: string): Promise<string[]> {
      const errands = service.store.db.selectFrom('outbox').select('kind').where('subjectId', '=', id)
      return (await errands.orderBy('kind').execute()).map(({ kind }) => kind)
    },
    async withTemporal<T>(work: () => Promise<T>): Promise<T> {
      isReachable = true
      try {
        return await work()
      } finally {
        isReachable = false
      }
    },
    async stop() {
      await service.stop()
      await connection.close()
    },
  }
}
