import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { ExecutionBody, NodeBody } from '../client.ts'
import { readEvents } from '../events.ts'
import type { Installation } from './installation.ts'

type NodeEvent = Pick<NodeBody, 'nodeId' | 'iteration' | 'status' | 'retryCount' | 'completedAt'>

/**
 * How much later than GET the stream may report the end:
 * the bus waits up to some seconds before it reconnects.
 */
const BEHIND_MS = 20_000

/**
 * Follows an execution by its event stream to the end, as an EventSource does:
 * whenever the stream breaks off, it reconnects with the id of the last event.
 * Returns a function that compares the events with the ended execution.
 */
export function followExecution(host: Installation, id: string): (run: ExecutionBody) => Promise<void> {
  const nodes = new Map<string, NodeEvent>()

  async function follow(): Promise<string> {
    let last: string | undefined
    for (;;) {
      const response = await host.get(`/api/executions/${id}/events`, last ? { 'last-event-id': last } : {})
      if (!response.ok) throw new Error(`the event stream responded with ${response.status}`)
      const events = readEvents(response)
      for (let one = await events.next(); one; one = await events.next()) {
        last = one.id
        const node = one.data as NodeEvent
        if (one.event === 'node') nodes.set(`${node.nodeId}#${node.iteration ?? ''}`, node)
        if (one.event === 'end') return String(one.data.status)
      }
    }
  }
  async function followToEnd(): Promise<string> {
    for (;;) {
      const status = await follow().catch(() => undefined)
      if (status) return status
      await sleep(100)
    }
  }
  const end = followToEnd()

  return async (run) => {
    expect(await Promise.race([end, sleep(BEHIND_MS, 'no end event')])).toBe(run.status)
    for (const { nodeId, iteration, status, retryCount, completedAt } of run.nodeExecutions) {
      expect(nodes.get(`${nodeId}#${iteration ?? ''}`)).toMatchObject({ status, retryCount, completedAt })
    }
    expect(nodes.size).toBe(run.nodeExecutions.length)
  }
}
