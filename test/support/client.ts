import { randomBytes } from 'node:crypto'
import type { Example } from './engine/graphs.ts'
import { until } from './until.ts'

export const ENDED = ['SUCCESS', 'FAILED', 'CANCELLED']

export type NodeBody = {
  id: string
  nodeId: string
  iteration: string | null
  status: string
  retryCount: number
  nextAttemptAt: string | null
  waitingUntil: string | null
  itemCount: number | null
  itemsTaken?: number
  startedAt: string
  completedAt: string | null
  durationMs: number | null
  inputData: Record<string, unknown>
  outputData: Record<string, unknown> | null
  errorMessage: string | null
  handle: string | null
  handles?: (string | null)[]
  warnings?: { path: string; message: string }[]
}

export type ExecutionBody = {
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
  nodeExecutions: NodeBody[]
  nodeExecutionsTotal: number
}

export type Graph = Pick<Example, 'nodes' | 'edges' | 'settings'> & { expressions?: 1 | 2 }

/** Sends a request as the team's ADMIN, or as `as`: an SDK token or a cookie header. */
export type Send = (
  path: string,
  init: { method: string; as?: string; json?: unknown; headers?: Record<string, string> },
) => Promise<Response>

/** Calls `wake` when an execution may have ended. Returns the function that ends this. */
type WatchEnd = (id: string, wake: () => void) => () => void

/**
 * Creates a client of the API, for workflows and executions, that uses `send` for its requests. With `watchEnd` it need
 * not poll for the end of an execution, which would take more processor time than the execution itself.
 */
export function createClient(options: { send: Send; teamId: string; watchEnd?: WatchEnd }) {
  const { send, teamId, watchEnd } = options

  async function ask<T>(method: string, path: string, json?: unknown, as?: string): Promise<T> {
    const response = await send(path, { method, json, ...(as ? { as } : {}) })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} responded with ${response.status}: ${text}`)
    return (text ? JSON.parse(text) : undefined) as T
  }

  async function create(graph: Graph): Promise<string> {
    const name = `w ${randomBytes(6).toString('hex')}`
    const { nodes, edges, settings, expressions } = graph
    const json = { name, teamId, nodes, edges, settings, expressions }
    return (await ask<{ id: string }>('POST', '/api/workflows', json)).id
  }

  async function execute(workflowId: string, data: Record<string, unknown> = {}): Promise<string> {
    const path = `/api/workflows/${workflowId}/execute`
    return (await ask<{ executionId: string }>('POST', path, { teamId, data })).executionId
  }

  const read = (id: string) => ask<ExecutionBody>('GET', `/api/executions/${id}`)

  /** Polls the execution until `holds` returns true. */
  const untilRun = (
    id: string,
    holds: (run: ExecutionBody) => boolean,
    withinMs?: number,
  ): Promise<ExecutionBody> =>
    until(() => read(id), { holds, ...(withinMs === undefined ? {} : { withinMs }) })

  async function ended(id: string, withinMs?: number): Promise<ExecutionBody> {
    const holds = (run: ExecutionBody) => ENDED.includes(run.status)
    if (!watchEnd) return untilRun(id, holds, withinMs)
    const bell = createBell()
    const leave = watchEnd(id, bell.ring)
    const pause = (ms: number) => bell.rung(ms * SELDOM)
    return until(() => read(id), { holds, pause, ...(withinMs === undefined ? {} : { withinMs }) }).finally(
      leave,
    )
  }

  /** Saves the graph, executes it, and waits for its end. */
  async function run(graph: Graph, data: Record<string, unknown> = {}): Promise<ExecutionBody> {
    return ended(await execute(await create(graph), data))
  }

  return { ask, create, execute, read, until: untilRun, ended, run }
}

/** How much longer a pause is when a bell ends it. */
const SELDOM = 4

/** Something to wait for, and for a time at most. A ring is heard by the next wait too. */
function createBell() {
  let hear: (() => void) | undefined
  let rings = false
  return {
    ring(): void {
      rings = true
      hear?.()
    },
    async rung(withinMs: number): Promise<void> {
      if (!rings) {
        let timer: NodeJS.Timeout | undefined
        await new Promise<void>((resolve) => {
          hear = resolve
          timer = setTimeout(resolve, withinMs)
        })
        clearTimeout(timer)
      }
      hear = undefined
      rings = false
    },
  }
}

/** The first record of a node. Throws if it has none. */
export function nodeOf(run: ExecutionBody, nodeId: string): NodeBody {
  const found = run.nodeExecutions.find((node) => node.nodeId === nodeId)
  if (!found) throw new Error(`no record of ${nodeId}`)
  return found
}
