import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type createClient, type ExecutionBody, nodeOf } from '../client.ts'
import type { Call, Target } from '../servers/target.ts'
import { edges } from './graphs.ts'

/** The nodes that call the target. `once` has a single attempt. */
const CALLS = ['call', 'once', 'after']
const WAIT_MS = 2_500

/**
 * Two calls and a wait in parallel, a join, another call,
 * and a last value made from all of them. Takes about 3.5 s.
 */
export function loadGraph(url: string) {
  const call = (id: string, ms: number, more = {}) => ({
    id,
    type: 'HTTP_REQUEST',
    config: { method: 'POST', url: `${url}/slow?ms=${ms}&key=${id}-{{ $nodes.first.n }}` },
    ...more,
  })
  return {
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      {
        id: 'first',
        type: 'SET',
        config: { values: { n: '{{ $input.n }}', square: '{{ $input.n * $input.n }}' } },
      },
      call('call', 1_200),
      call('once', 1_700, { retry: { maxAttempts: 1 } }),
      { id: 'wait', type: 'WAIT', config: { durationMs: WAIT_MS } },
      { id: 'join', type: 'MERGE', config: { mode: 'append' } },
      call('after', 800),
      {
        id: 'last',
        type: 'SET',
        config: {
          values: {
            n: '{{ $nodes.first.n }}',
            square: '{{ $nodes.first.square }}',
            called: '{{ $nodes.call.body.key & "," & $nodes.once.body.key & "," & $input.body.key }}',
          },
        },
      },
    ],
    edges: edges(
      'start -> first',
      'first -> call',
      'first -> once',
      'first -> wait',
      'call once wait -> join',
      'join -> after',
      'after -> last',
    ),
  }
}

/**
 * An execution as its client knows it: `n` is its input,
 * `attempts` the number of requests until it was accepted.
 */
export type Sent = { n: number; id: string; attempts: number; sentAt: number }

/**
 * Executes the workflow with the input `n`. Like a careful client it repeats the request with the same
 * Idempotency-Key while there is no response or a 503. Every 202 must name the same execution.
 */
export async function send(
  post: (path: string, json: unknown, headers: Record<string, string>) => Promise<Response>,
  to: { workflowId: string; teamId: string },
  n: number,
): Promise<Sent> {
  const sentAt = Date.now()
  const path = `/api/workflows/${to.workflowId}/execute`
  const once = async () => {
    const response = await post(path, { teamId: to.teamId, data: { n } }, { 'idempotency-key': `run-${n}` })
    const text = await response.text()
    if (response.status !== 503 && response.status !== 202) throw new Refused(`${response.status} ${text}`)
    return response.status === 202 ? (JSON.parse(text) as { executionId: string }).executionId : undefined
  }
  for (let attempts = 1; ; attempts++) {
    const id = await once().catch((error) => {
      if (error instanceof Refused || Date.now() - sentAt > 120_000) throw error
      return undefined
    })
    if (id) {
      if (attempts > 1) expect(await once()).toBe(id)
      return { n, id, attempts, sentAt }
    }
    await sleep(50)
  }
}

class Refused extends Error {}

/** The calls that the target got from one node of an execution. */
export function callsOf(target: Target, id: string, nodeId: string): Call[] {
  return target.calls.filter((call) => call.key === `${id}:${nodeId}`)
}

/**
 * Waits for the end of every execution and checks it: SUCCESS with the right values, every call made, none
 * more often than there were attempts, and none repeated that had finished before `brokenAt`. Returns the
 * executions, and how many calls were made more than once.
 */
export async function checkRuns(
  client: Pick<ReturnType<typeof createClient>, 'ended'>,
  target: Target,
  runs: Sent[],
  brokenAt: number,
  withinMs = 90_000,
): Promise<{ ended: ExecutionBody[]; repeated: number }> {
  expect(new Set(runs.map((run) => run.id)).size).toBe(runs.length)
  const ended: ExecutionBody[] = []
  let repeated = 0
  for (const { id, n } of runs) {
    const run = await client.ended(id, withinMs)
    ended.push(run)
    const statuses = Object.fromEntries(run.nodeExecutions.map((node) => [node.nodeId, node.status]))
    expect({ status: run.status, why: run.errorMessage, statuses }).toEqual({
      status: 'SUCCESS',
      why: null,
      statuses: {
        start: 'SUCCESS',
        first: 'SUCCESS',
        call: 'SUCCESS',
        once: 'SUCCESS',
        wait: 'SUCCESS',
        join: 'SUCCESS',
        after: 'SUCCESS',
        last: 'SUCCESS',
      },
    })
    expect(run.nodeExecutions).toHaveLength(8)
    expect(run.outputData).toEqual({ n, square: n * n, called: `call-${n},once-${n},after-${n}` })
    const wait = nodeOf(run, 'wait')
    expect(wait.durationMs).toBeGreaterThanOrEqual(WAIT_MS - 5)
    expect(Date.parse(nodeOf(run, 'after').startedAt)).toBeGreaterThanOrEqual(Date.parse(wait.completedAt!))
    for (const nodeId of CALLS) {
      const node = nodeOf(run, nodeId)
      const calls = callsOf(target, id, nodeId)
      const seen = `${nodeId} of ${id}, ${node.retryCount} retries`
      expect(calls.filter((call) => call.answered).length, seen).toBeGreaterThanOrEqual(1)
      expect(calls.length, seen).toBeLessThanOrEqual(node.retryCount + 1)
      if (Date.parse(node.completedAt!) < brokenAt) {
        expect(calls.length, seen).toBe(1)
        expect(node.retryCount, seen).toBe(0)
      }
      if (calls.length > 1) repeated++
    }
  }
  return { ended, repeated }
}
