import { randomBytes } from 'node:crypto'
import type { Example } from './graphs.ts'

export const ENDED = ['SUCCESS', 'FAILED', 'CANCELLED']

export type NodeAnswer = {
  nodeId: string
  iteration: string | null
  status: string
  retryCount: number
  startedAt: string
  completedAt: string | null
  durationMs: number | null
  inputData: Record<string, unknown>
  outputData: Record<string, unknown> | null
  errorMessage: string | null
  handle: string | null
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
  nodeExecutionsTotal: number
}

export type Graph = Pick<Example, 'nodes' | 'edges' | 'settings'>

/** Sends one request as the team's ADMIN, or as whoever `as` names. */
export type Send = (
  path: string,
  init: { method: string; as?: string; json?: unknown; headers?: Record<string, string> },
) => Promise<Response>

/** What a client does with workflows and runs, over `send`. */
export function createClient(options: { send: Send; teamId: string }) {
  const { send, teamId } = options

  async function ask<T>(method: string, path: string, json?: unknown, as?: string): Promise<T> {
    const answer = await send(path, { method, json, ...(as ? { as } : {}) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`)
    return (text ? JSON.parse(text) : undefined) as T
  }

  async function create(graph: Graph): Promise<string> {
    const name = `w ${randomBytes(6).toString('hex')}`
    const { nodes, edges, settings } = graph
    return (await ask<{ id: string }>('POST', '/api/workflows', { name, teamId, nodes, edges, settings })).id
  }

  async function execute(workflowId: string, data: Record<string, unknown> = {}): Promise<string> {
    const path = `/api/workflows/${workflowId}/execute`
    return (await ask<{ executionId: string }>('POST', path, { teamId, data })).executionId
  }

  const read = (id: string) => ask<RunAnswer>('GET', `/api/executions/${id}`)

  /** Polls as a client does, until `holds`; fails with what it saw last. */
  async function until(
    id: string,
    holds: (run: RunAnswer) => boolean,
    withinMs = 45_000,
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

  return { ask, create, execute, read, until, ended, run }
}

/** The record of one node. */
export function nodeOf(run: RunAnswer, nodeId: string): NodeAnswer {
  const found = run.nodeExecutions.find((node) => node.nodeId === nodeId)
  if (!found) throw new Error(`no record of ${nodeId}`)
  return found
}
