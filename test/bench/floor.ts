import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker } from '@temporalio/worker'
import { createDataConverter, FAILURE_CONVERTER } from '../../activities/codec.ts'
import { WORKER_OPTIONS } from '../../worker/engine.ts'
import { readKeys } from '../../worker/keys.ts'

export type BenchActivities = {
  step(input: { amount: number }): Promise<{ amount: number }>
  call(input: { url: string }): Promise<unknown>
}

/** What the bench asks of this process, and what it answers. */
export type Order = { id: number; run: 'runFloor' | 'runCalls' | 'runFan'; input: unknown }
export type Done = { id: number; error?: string }

const activities: BenchActivities = {
  step: async (input) => ({ amount: input.amount + 1 }),
  async call({ url }) {
    const answer = await fetch(url)
    return { status: answer.status, body: await answer.json() }
  },
}

// A process of its own, as the service is one: client and worker on one connection, eager starts, the service's
// codec and worker options. What it runs is written by hand and awaited by the server's long poll.
const [address, dataDir] = process.argv.slice(2) as [string, string]
const taskQueue = 'bench'
const dataConverter = createDataConverter(readKeys({ keys: undefined, dataDir }, false))
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
