import { randomBytes } from 'node:crypto'
import { NativeConnection } from '@temporalio/worker'
import { pino } from 'pino'
import { inject } from 'vitest'
import { type Engine, type EngineOptions, startEngine } from '../worker/engine.ts'
import { installRuntime } from '../worker/runtime.ts'
import { createClient, ENDED, type RunAnswer } from './client.ts'
import { CHILD, type Example } from './graphs.ts'
import { startService } from './service.ts'

export { nodeOf } from './client.ts'

const log = pino({ level: process.env.TEST_LOG ?? 'silent' })

/** The API with an engine behind it, on a task queue of its own. Errands go to the engine while there is one. */
export async function startRunning(options: Partial<EngineOptions> = {}) {
  installRuntime(log)
  let engine: Engine | undefined
  const { metrics, tracing } = options
  const service = await startService({
    ...(metrics ? { metrics } : {}),
    tracing,
    carryOut: async (errand) => (engine ? engine.carryOut(errand) : false),
    describeSchedules: async (workflowId, nodeIds) => {
      if (!engine) throw new Error('no engine')
      return engine.describeSchedules(workflowId, nodeIds)
    },
  })
  const taskQueue = `test-${randomBytes(4).toString('hex')}`
  const connections: NativeConnection[] = []

  /** Starts one more engine on the same database and task queue; it takes the API's errands. */
  async function addEngine(more: Partial<EngineOptions> = {}): Promise<Engine> {
    const connection = await NativeConnection.connect({
      address: inject('temporalAddress'),
      grpcCompression: { codec: 'none' },
    })
    connections.push(connection)
    return startEngine({
      store: service.store,
      bus: service.bus,
      connection,
      namespace: 'default',
      taskQueue,
      egress: { allowLoopback: true, allow: [] },
      publicUrl: 'http://127.0.0.1:3000',
      stuckRunMinutes: 60,
      log,
      bundle: { codePath: inject('workflowBundle') },
      ...options,
      ...more,
    })
  }

  const client = createClient({
    send: (path, init) => service.request(path, { as: service.admin, ...init }),
    teamId: service.teamId,
  })

  engine = await addEngine()
  return {
    ...service,
    engine,
    taskQueue,
    addEngine,
    /** Errands go to this engine from now on; to none with undefined. */
    use(next: Engine | undefined) {
      engine = next
    },
    ...client,
    async stop() {
      await engine?.stop()
      for (const connection of connections) await connection.close()
      await service.stop()
    },
  }
}

export type Running = Awaited<ReturnType<typeof startRunning>>

/** Starts an example, with the workflow that it calls. */
export async function startExample(host: Running, example: Example): Promise<string> {
  const { child } = example
  const text = JSON.stringify(example)
  const graph = child ? JSON.parse(text.replaceAll(CHILD, await host.create(child))) : example
  return host.execute(await host.create(graph), example.data)
}

/** Does to a run from outside what its example asks for. */
export async function meddle(host: Running, id: string, example: Example): Promise<void> {
  if (!example.meddle) return
  if (example.meddle.how === 'answer') return answerAll(host, id)
  const { when, how } = example.meddle
  await host.until(id, (run) => run.nodeExecutions.some((node) => node.nodeId === when))
  if (how === 'cancel') await host.ask('POST', `/api/executions/${id}/cancel`)
  else await host.engine.client.workflow.getHandle(id).terminate('by hand')
}

/** Approves and sends whatever a run waits for, but at nodes that are to be late, until it has ended. */
async function answerAll(host: Running, id: string): Promise<void> {
  type Waits = { content: { id: string; kind: string; name: string; nodeId: string }[] }
  while (!ENDED.includes((await host.read(id)).status)) {
    const { content } = await host.ask<Waits>('GET', `/api/executions/${id}/waits`)
    for (const wait of content.filter(({ nodeId }) => nodeId !== 'late')) {
      if (wait.kind === 'EVENT')
        await host.ask('POST', `/api/executions/${id}/events/${wait.name}`, { came: wait.name })
      else await host.ask('POST', `/api/approvals/${wait.id}`, { decision: 'approved' })
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

/** Runs an example to its end, with whatever is done to it from outside. */
export async function runExample(host: Running, example: Example): Promise<RunAnswer> {
  const id = await startExample(host, example)
  await meddle(host, id, example)
  return host.ended(id)
}
