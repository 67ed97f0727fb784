import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { NodeAnswer, RunAnswer } from '../client.ts'
import { readEvents } from '../events.ts'
import type { Installation } from './installation.ts'

type Told = Pick<NodeAnswer, 'nodeId' | 'iteration' | 'status' | 'retryCount' | 'completedAt'>

/** How much later than the detail a stream may tell of the end: the bus connects anew in steps of up to some seconds. */
const BEHIND_MS = 20_000

/**
 * Follows a run by its events to the end, as an EventSource does: whenever the stream breaks off it comes back with the
 * last id. Answers what holds all that it was told against the run as it ended.
 */
export function followRun(host: Installation, id: string): (run: RunAnswer) => Promise<void> {
  const nodes = new Map<string, Told>()

  async function follow(): Promise<string> {
    let last: string | undefined
    for (;;) {
      const answer = await host.get(`/api/executions/${id}/events`, last ? { 'last-event-id': last } : {})
      if (!answer.ok) throw new Error(`the events answered ${answer.status}`)
      const events = readEvents(answer)
      for (let one = await events.next(); one; one = await events.next()) {
        last = one.id
        const node = one.data as Told
        if (one.event === 'node') nodes.set(`${node.nodeId}#${node.iteration ?? ''}`, node)
        if (one.event === 'end') return String(one.data.status)
      }
    }
  }
  async function stay(): Promise<string> {
    for (;;) {
      const status = await follow().catch(() => undefined)
      if (status) return status
      await sleep(100)
    }
  }
  const end = stay()

  return async (run) => {
    expect(await Promise.race([end, sleep(BEHIND_MS, 'not told of the end')])).toBe(run.status)
    for (const { nodeId, iteration, status, retryCount, completedAt } of run.nodeExecutions) {
      expect(nodes.get(`${nodeId}#${iteration ?? ''}`)).toMatchObject({ status, retryCount, completedAt })
    }
    expect(nodes.size).toBe(run.nodeExecutions.length)
  }
}
