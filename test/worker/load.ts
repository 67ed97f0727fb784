import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type createClient, nodeOf, type RunAnswer } from '../client.ts'
import { edges } from '../graphs.ts'
import type { Call, Target } from '../target.ts'

/** The nodes with an effect outside: `once` may fail only once itself. */
const CALLS = ['call', 'once', 'after']
const WAIT_MS = 2_500

/** Two calls and a wait side by side, a join, one more call, a last value made of all. Takes some 3.5 s. */
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

/** A run as its client knows it. */
export type Sent = { n: number; id: string; attempts: number; sentAt: number }

/**
 * Executes the workflow with the number, repeating the request with the same Idempotency-Key for as long as there
 * is no answer or it is 503, as a careful client does. Every 202 must name the same run.
 */
export async function send(
  post: (path: string, json: unknown, headers: Record<string, string>) => Promise<Response>,
  to: { workflowId: string; teamId: string },
  n: number,
): Promise<Sent> {
  const sentAt = Date.now()
  const path = `/api/workflows/${to.workflowId}/execute`
  const once = async () => {
    const answer = await post(path, { teamId: to.teamId, data: { n } }, { 'idempotency-key': `run-${n}` })
    const text = await answer.text()
    if (answer.status !== 503 && answer.status !== 202) throw new Refused(`${answer.status} ${text}`)
    return answer.status === 202 ? (JSON.parse(text) as { executionId: string }).executionId : undefined
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

/** What the target was asked for by one node of a run. */
export function callsOf(target: Target, id: string, nodeId: string): Call[] {
  return target.calls.filter((call) => call.key === `${id}:${nodeId}`)
}

/**
 * Waits for the end of every run and holds it to what was promised: SUCCESS with the right values, every call made,
 * none more often than attempts were counted, none again that was done before `brokenAt`. Answers the runs as they
 * are, and how many calls were made more than once.
 */
export async function checkRuns(
  client: Pick<ReturnType<typeof createClient>, 'ended'>,
  target: Target,
  runs: Sent[],
  brokenAt: number,
  withinMs = 90_000,
): Promise<{ ended: RunAnswer[]; repeated: number }> {
  expect(new Set(runs.map((run) => run.id)).size).toBe(runs.length)
  const ended: RunAnswer[] = []
  let repeated = 0
  for (const { id, n } of runs) {
    const run = await client.ended(id, withinMs)
    ended.push(run)
    const statuses = Object.fromEntries(run.nodeExecutions.map((node) => [node.nodeId, node.status]))
    expect({ status: run.status, why: run.errorMessage, statuses }).toEqual({
      status: 'SUCCESS',
      why: null,
      statuses: {
        ...{ start: 'SUCCESS', first: 'SUCCESS', call: 'SUCCESS', once: 'SUCCESS', wait: 'SUCCESS' },
        ...{ join: 'SUCCESS', after: 'SUCCESS', last: 'SUCCESS' },
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
