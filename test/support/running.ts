import { randomBytes } from 'node:crypto'
import { NativeConnection } from '@temporalio/worker'
import { pino } from 'pino'
import { inject } from 'vitest'
import type { EgressOptions } from '../../activities/egress/egress.ts'
import { createOutsides } from '../../activities/egress/outside.ts'
import { createEvaluator, type Evaluator } from '../../activities/expressions/evaluator.ts'
import { openSealer } from '../../activities/temporal/sealer.ts'
import { makeCallMark } from '../../db/operation/callmark.ts'
import { findTeamEgress } from '../../db/operation/egress.ts'
import { type Engine, startEngine } from '../../worker/engine/engine.ts'
import type {
  EngineLimits,
  EngineOptions,
  EngineProcess,
  EngineTemporal,
  EngineTimes,
} from '../../worker/engine/options.ts'
import { installRuntime } from '../../worker/service/runtime.ts'
import { createClient, ENDED, type ExecutionBody } from './client.ts'
import { CHILD, type Example } from './engine/graphs.ts'
import { settle, startService } from './service.ts'

export { nodeOf } from './client.ts'

const log = pino({ level: process.env.TEST_LOG ?? 'silent' })

let evaluator: Evaluator | undefined

/** The evaluator of all engines of this process that say nothing of theirs: starting one takes longer than most tests. */
const findEvaluator = () => (evaluator ??= createEvaluator())

/** The options of an engine, without their groups. */
type FlatOptions = Partial<EngineOptions & EngineTemporal & EngineProcess & EngineLimits & EngineTimes>

/** `binds`: whether it seals as a process with SEAL_VERSION=2 does. */
type EngineMore = FlatOptions & { binds?: boolean }

/** `egress`: the rules of the engines and of the API; loopback is allowed. */
type RunningOptions = FlatOptions & { egress?: EgressOptions; rateLimits?: boolean }

/**
 * Starts the API with an engine, on a task queue of its own. The API hands its errands to this engine,
 * until `use` names another one.
 */
export async function startRunning({ egress, rateLimits = true, ...options }: RunningOptions = {}) {
  installRuntime(log)
  let engine: Engine | undefined
  const { metrics, tracing } = options
  const service = await startService({
    rateLimits,
    ...(metrics ? { metrics } : {}),
    ...(options.log ? { log: options.log } : {}),
    tracing,
    outside: { forTeam: (teamId) => outside.forTeam(teamId), close: () => outside.close() },
    carryOut: async (errand, options) => (engine ? engine.carryOut(errand, options) : false),
    markAwaited: async (executionId, agoMs) => (await engine?.markAwaited(executionId, agoMs)) ?? false,
    describeSchedules: async (workflowId, nodeIds) => {
      if (!engine) throw new Error('there is no engine')
      return engine.describeSchedules(workflowId, nodeIds)
    },
  })
  const mark = makeCallMark(service.store.keys)
  const outside = createOutsides({ allowLoopback: true, allow: [], mark, ...egress }, (teamId) =>
    findTeamEgress(service.store, teamId),
  )
  const taskQueue = `test-${randomBytes(4).toString('hex')}`
  const connections: NativeConnection[] = []

  /** Starts an engine on the same database and task queue. The API hands errands to it only after `use`. */
  async function addEngine({ binds = true, ...more }: EngineMore = {}): Promise<Engine> {
    const heard = more.log ?? options.log ?? log
    const sealer = await openSealer({ store: service.store, binds, log: heard, watches: false })
    const connection = await NativeConnection.connect({
      address: inject('temporalAddress'),
      grpcCompression: { codec: 'none' },
    })
    connections.push(connection)
    const all = {
      store: service.store,
      bus: service.bus,
      replies: service.replies,
      sealer,
      connection,
      namespace: 'default',
      taskQueue,
      outside,
      publicUrl: 'http://127.0.0.1:3000',
      budgetBytes: 512 * 1024 * 1024,
      log,
      bundle: { codePath: inject('workflowBundle') },
      ...((options.expressions ?? more.expressions) ? {} : { evaluator: findEvaluator() }),
      ...options,
      ...more,
    }
    return startEngine({ ...all, temporal: all, process: all, limits: all, times: all })
  }

  const client = createClient({
    send: (path, init) => service.request(path, { as: service.admin, ...init }),
    teamId: service.teamId,
    watchEnd: service.bus.watchEnd,
  })

  engine = await addEngine()
  return {
    ...service,
    engine,
    taskQueue,
    addEngine,
    /** Sends the API's errands to this engine from now on; with undefined they stay in the outbox. */
    use(next: Engine | undefined) {
      engine = next
    },
    ...client,
    async stop() {
      await engine?.stop()
      for (const connection of connections) await connection.close()
      await outside.close()
      await service.stop()
    },
  }
}

export type Running = Awaited<ReturnType<typeof startRunning>>

let shared: Promise<{ running: Running; origin: string }> | undefined

/** The service that files of this process share. It ends with the process, and so does its database. */
const findShared = () =>
  (shared ??= startRunning({ rateLimits: false }).then(async (running) => ({
    running,
    origin: await running.listen(),
  })))

/**
 * A team of its own, with an ADMIN, on a service and an engine that other files of this process use too, which spares
 * seconds: for files that neither stop the engine nor change what is the instance's. Rate limits are off, and `admin` is
 * not the instance's. `stop` cancels what still runs, and switches workflows off.
 */
export async function shareRunning() {
  const { running, origin } = await findShared()
  const { use: _use, addEngine: _addEngine, ...rest } = running
  const { owners, ...own } = await settle(running)
  const client = createClient({
    send: (path, init) => running.request(path, { as: own.admin, ...init }),
    teamId: own.teamId,
    watchEnd: running.bus.watchEnd,
  })
  return {
    ...rest,
    ...own,
    ...client,
    listen: async () => origin,
    async stop() {
      for (const owner of owners) await leaveIdle(running, owner)
    },
  }
}

/** Cancels the executions of a team, and switches its workflows off. */
async function leaveIdle({ store, call }: Running, { teamId, cookie }: { teamId: string; cookie: string }) {
  const { db } = store
  const active = db
    .selectFrom('workflows')
    .select('id')
    .where('teamId', '=', teamId)
    .where('active', '=', true)
  for (const { id } of await active.execute())
    await call('PUT', `/api/workflows/${id}`, cookie, { active: false })
  const open = db.selectFrom('executions').select('id').where('teamId', '=', teamId)
  for (const { id } of await open.where('status', 'not in', ENDED).execute())
    await call('POST', `/api/executions/${id}/cancel`, cookie)
}

/** What tests get of a service with an engine, their own or a shared one. */
export type Host = Omit<Running, 'use' | 'addEngine'>

/** Executes an example, after creating it and the workflow that it calls. Returns the execution's id. */
export async function startExample(host: Host, example: Example): Promise<string> {
  const { child, credentials = {}, tables = {} } = example
  let text = JSON.stringify(example)
  for (const [name, columns] of Object.entries(tables)) {
    const body = { teamId: host.teamId, name: `${name} ${randomBytes(4).toString('hex')}`, columns }
    const { id } = await host.ask<{ id: string }>('POST', '/api/tables', body)
    text = text.replaceAll(name, id)
  }
  for (const [name, { type, data }] of Object.entries(credentials)) {
    const body = { teamId: host.teamId, name: `${name} ${randomBytes(4).toString('hex')}`, type, data }
    const { id } = await host.ask<{ id: string }>('POST', '/api/credentials', body)
    text = text.replaceAll(name, id)
  }
  const graph = child ? JSON.parse(text.replaceAll(CHILD, await host.create(child))) : JSON.parse(text)
  const workflowId = await host.create(graph)
  if (example.message === undefined) return host.execute(workflowId, example.data)
  return startChat(host, workflowId, graph.message)
}

/** Activates a workflow, and posts a message to a new chat with it. Returns the id of the execution that replies. */
async function startChat(host: Host, workflowId: string, content: string): Promise<string> {
  await host.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
  const chats = '/api/agent-chat/sessions'
  const { id } = await host.ask<{ id: string }>('POST', chats, { teamId: host.teamId, workflowId })
  const path = `${chats}/${id}/messages`
  const response = await host.request(path, { method: 'POST', as: host.admin, json: { content } })
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  await response.body!.cancel()
  type List = { content: { id: string }[] }
  const { content: runs } = await host.ask<List>('GET', `/api/executions?workflowId=${workflowId}`)
  return runs[0]!.id
}

/** Does to an execution what its example's `meddle` says: cancel, terminate, or answer its pauses. */
export async function meddle(host: Host, id: string, example: Example): Promise<void> {
  if (!example.meddle) return
  if (example.meddle.how === 'answer') return answerAll(host, id)
  const { when, how } = example.meddle
  await host.until(id, (run) => run.nodeExecutions.some((node) => node.nodeId === when))
  if (how === 'cancel') await host.ask('POST', `/api/executions/${id}/cancel`)
  else await host.engine.client.workflow.getHandle(id).terminate('by hand')
}

/** Approves approvals and sends events until the execution has ended, except those of nodes named `late`. */
async function answerAll(host: Host, id: string): Promise<void> {
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

/** Executes an example, does what its `meddle` says, and waits for its end. */
export async function runExample(host: Host, example: Example): Promise<ExecutionBody> {
  const id = await startExample(host, example)
  await meddle(host, id, example)
  return host.ended(id)
}
