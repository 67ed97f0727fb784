import { randomBytes } from 'node:crypto'
import { NativeConnection } from '@temporalio/worker'
import { pino } from 'pino'
import { inject } from 'vitest'
import { bundleWorkflows, type Engine, type EngineOptions, startEngine } from '../worker/engine.ts'
import { installRuntime } from '../worker/runtime.ts'
import type { Example } from './graphs.ts'
import { startService } from './service.ts'

const ENDED = ['SUCCESS', 'FAILED', 'CANCELLED']

export type NodeAnswer = {
  nodeId: string
  status: string
  retryCount: number
  startedAt: string
  completedAt: string | null
  durationMs: number | null
  inputData: Record<string, unknown>
  outputData: Record<string, unknown> | null
  errorMessage: string | null
}

export type RunAnswer = {
  id: string
  status: string
  trigger: string
  errorMessage: string | null
  createdAt: string
  startedAt: string | null
  completedAt: string | null
  durationMs: number | null
  inputData: Record<string, unknown>
  outputData: Record<string, unknown> | null
  workflowVersion: number
  nodeExecutions: NodeAnswer[]
}

type Graph = Pick<Example, 'nodes' | 'edges' | 'settings'>

const log = pino({ level: process.env.TEST_LOG ?? 'silent' })
let bundle: EngineOptions['bundle']

/** The API with an engine behind it, on a task queue of its own. Errands go to the engine while there is one. */
export async function startRunning(options: Partial<EngineOptions> = {}) {
  bundle ??= await bundleWorkflows()
  installRuntime(log)
  let engine: Engine | undefined
  const service = await startService({
    carryOut: async (executionId, kind) => (engine ? engine.carryOut(executionId, kind) : false),
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
      connection,
      namespace: 'default',
      taskQueue,
      egress: { allowLoopback: true, allow: [] },
      stuckRunMinutes: 60,
      log,
      bundle: bundle!,
      ...options,
      ...more,
    })
  }

  async function ask<T>(method: string, path: string, json?: unknown, as = service.admin): Promise<T> {
    const answer = await service.request(path, { method, as, json })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`)
    return (text ? JSON.parse(text) : undefined) as T
  }

  async function create(graph: Graph): Promise<string> {
    const name = `w ${randomBytes(6).toString('hex')}`
    const { nodes, edges, settings } = graph
    const json = { name, teamId: service.teamId, nodes, edges, settings }
    return (await ask<{ id: string }>('POST', '/api/workflows', json)).id
  }

  async function execute(workflowId: string, data: Record<string, unknown> = {}): Promise<string> {
    const json = { teamId: service.teamId, data }
    const path = `/api/workflows/${workflowId}/execute`
    return (await ask<{ executionId: string }>('POST', path, json)).executionId
  }

  const read = (id: string) => ask<RunAnswer>('GET', `/api/executions/${id}`)

  /** Polls as a client does, until `holds`; fails with what it saw last. */
  async function until(
    id: string,
    holds: (run: RunAnswer) => boolean,
    withinMs = 20_000,
  ): Promise<RunAnswer> {
    const giveUp = Date.now() + withinMs
    for (;;) {
      const run = await read(id)
      if (holds(run)) return run
      if (Date.now() > giveUp)
        throw new Error(`still not after ${withinMs} ms: ${JSON.stringify(run, null, 1)}`)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }

  const ended = (id: string, withinMs?: number) => until(id, (run) => ENDED.includes(run.status), withinMs)

  /** Saves the graph, executes it, and waits for its end. */
  async function run(graph: Graph, data: Record<string, unknown> = {}): Promise<RunAnswer> {
    return ended(await execute(await create(graph), data))
  }

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
    ask,
    create,
    execute,
    read,
    until,
    ended,
    run,
    async stop() {
      await engine?.stop()
      for (const connection of connections) await connection.close()
      await service.stop()
    },
  }
}

export type Running = Awaited<ReturnType<typeof startRunning>>

/** Runs an example to its end, with whatever is done to it from outside. */
export async function runExample(host: Running, example: Example): Promise<RunAnswer> {
  const id = await host.execute(await host.create(example), example.data)
  if (example.meddle) {
    const { when, how } = example.meddle
    await host.until(id, (run) => run.nodeExecutions.some((node) => node.nodeId === when))
    if (how === 'cancel') await host.ask('POST', `/api/executions/${id}/cancel`)
    else await host.engine.client.workflow.getHandle(id).terminate('by hand')
  }
  return host.ended(id)
}

/** The record of one node. */
export function nodeOf(run: RunAnswer, nodeId: string): NodeAnswer {
  const found = run.nodeExecutions.find((node) => node.nodeId === nodeId)
  if (!found) throw new Error(`no record of ${nodeId}`)
  return found
}
