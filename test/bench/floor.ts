import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker } from '@temporalio/worker'
import { createDataConverter, FAILURE_CONVERTER } from '../../activities/temporal/codec.ts'
import { WORKER_OPTIONS } from '../../worker/engine/workers.ts'
import { readKeys } from '../../worker/keys.ts'

export type BenchActivities = {
  step(input: { amount: number }): Promise<{ amount: number }>
  call(input: { url: string }): Promise<unknown>
}

/** The messages between the benchmark and this process: run this workflow; it is done. */
export type Order = { id: number; run: 'runFloor' | 'runCalls' | 'runFan'; input: unknown }
export type Done = { id: number; error?: string }

const activities: BenchActivities = {
  step: async (input) => ({ amount: input.amount + 1 }),
  async call({ url }) {
    const response = await fetch(url)
    return { status: response.status, body: await response.json() }
  },
}

// A process of its own, like the service, with the same setup: client and worker share one connection, starts
// are eager, and codec and worker options are the service's. Its workflows are handwritten; results come by
// the server's long poll.
const [address, dataDir] = process.argv.slice(2) as [string, string]
const taskQueue = 'bench'
const dataConverter = createDataConverter({
  keys: readKeys({ keys: undefined, dataDir }, false),
  binds: () => true,
  mayBeUnbound: async () => false,
  isKey: async () => false,
  note() {},
  async settle() {},
  stop() {},
})
const connection = await NativeConnection.connect({ address, grpcCompression: { codec: 'none' } })
const client = new Client({ connection, dataConverter })
const worker = await Worker.create({
  ...WORKER_OPTIONS,
  connection,
  taskQueue,
  dataConverter,
  activities,
  workflowBundle: await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./workflows.ts', import.meta.url)),
    failureConverterPath: FAILURE_CONVERTER,
    logger: new DefaultLogger('WARN'),
  }),
})
const stopped = worker.run()

process.on('message', async ({ id, run, input }: Order) => {
  const options = { taskQueue, workflowId: randomUUID(), args: [input], requestEagerStart: true }
  const done: Done = await client.workflow
    .execute(run, options)
    .then(() => ({ id }))
    .catch((error) => ({ id, error: String(error) }))
  process.send?.(done)
})
process.once('disconnect', () => worker.shutdown())
process.send?.({ id: 0 } satisfies Done)
await stopped
await connection.close()
