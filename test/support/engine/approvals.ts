import type { Approval } from '../../../db/executions/waits/approvals.ts'
import type { Page } from '../../../db/page.ts'
import type { Graph } from '../client.ts'
import type { Host } from '../running.ts'
import { until } from '../until.ts'
import { edges } from './graphs.ts'

export const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
export const ask = (config: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
  id: 'ask',
  type: 'APPROVAL',
  config: { message: 'Pay {{ $trigger.amount }}?', ...config },
  ...more,
})
export const ways = [
  { id: 'yes', type: 'SET', config: { values: { way: 'yes', amount: '{{ $input.amount }}' } } },
  { id: 'no', type: 'SET', config: { values: { way: 'no', why: '{{ $input.comment }}' } } },
  { id: 'late', type: 'SET', config: { values: { way: 'late' } } },
]
/** A graph that asks, and goes one of three ways. */
export const asked = (config?: Record<string, unknown>, more?: Record<string, unknown>) => ({
  nodes: [start, ask(config, more), ...ways],
  edges: edges('start -> ask', 'ask:approved -> yes', 'ask:rejected -> no', 'ask:timeout -> late'),
})

/** Asks the API for approvals. */
export function useApprovals(running: Host) {
  async function list(query: string, as?: string): Promise<Approval[]> {
    const path = `/api/approvals?teamId=${running.teamId}&size=100&${query}`
    return (await running.ask<Page<Approval>>('GET', path, undefined, as)).content
  }

  /** The open approvals of an execution, once there are at least `count`. */
  async function waitFor(executionId: string, count = 1): Promise<Approval[]> {
    return until(() => list(`executionId=${executionId}`), {
      holds: (found) => found.length >= count,
      explain: () => running.read(executionId),
    })
  }

  async function begin(graph: Graph, data: Record<string, unknown> = { amount: 7 }) {
    const id = await running.execute(await running.create(graph), data)
    return { id, approval: (await waitFor(id))[0]! }
  }

  async function decide(id: string, json: Record<string, unknown>, as = running.admin) {
    const answer = await running.request(`/api/approvals/${id}`, { method: 'POST', as, json })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> & Approval }
  }

  return { list, waitFor, begin, decide }
}
