import { expect } from 'vitest'
import type { ExecutionBody, NodeBody } from '../client.ts'
import type { Target } from '../servers/target.ts'
import { edges } from './graphs.ts'
import type { Installation } from './installation.ts'
import { followExecution } from './stream.ts'

/** Executions of one kind, which are started before a failure and checked after the recovery. */
export type Scenario = {
  name: string
  workflowIds: string[]
  /** These start executions: some seconds before the failure, about a second before it, right before it. */
  early?(): Promise<void>
  middle?(): Promise<void>
  late?(): Promise<void>
  /** Waits for the end of the executions started since the last check, checks them, and returns them. */
  check(brokenAt: number): Promise<ExecutionBody[]>
}

/** How long an execution may take. */
export const WITHIN_MS = 90_000

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const AT_ONCE = 3
const TURNS = 8

/** The ids of all nodes, in any scenario, that call the target. */
const CALLS = ['call', 'deep', 'again']

/**
 * Loops with calls: a FOR_EACH with three iterations at a time, each with a call, a wait and an inner loop
 * with calls, whose results are large enough to be folded; and beside it a REPEAT.
 */
export async function createLoopScenario(host: Installation, target: Target): Promise<Scenario> {
  const call = (id: string, parentId: string, query: string) => ({
    id,
    parentId,
    type: 'HTTP_REQUEST',
    config: { method: 'POST', url: `${target.url}/slow?${query}` },
  })
  const set = (id: string, values: Record<string, string>, parentId?: string) => ({
    id,
    type: 'SET',
    config: { values },
    ...(parentId ? { parentId } : {}),
  })
  const workflowId = await host.create({
    nodes: [
      start,
      {
        id: 'each',
        type: 'FOR_EACH',
        config: { items: '{{ [0..$input.count - 1] }}', concurrency: AT_ONCE },
      },
      call('call', 'each', 'ms=150&bytes=2500&key=each-{{ $item }}'),
      { id: 'wait', parentId: 'each', type: 'WAIT', config: { durationMs: 100 } },
      {
        id: 'inner',
        parentId: 'each',
        type: 'FOR_EACH',
        config: { items: '{{ [$item, -$item] }}', concurrency: 2 },
      },
      call('deep', 'inner', 'ms=50&key={{ $item }}'),
      set('key', { key: '{{ $input.body.key }}' }, 'inner'),
      set('picked', PICKED, 'each'),
      { id: 'repeat', type: 'REPEAT', config: { until: `$input.n >= ${TURNS}`, maxIterations: 50 } },
      call('again', 'repeat', 'ms=300&key=again-{{ $index }}-{{ $input.n }}'),
      set('count', { n: '{{ $index + 1 }}', key: '{{ $input.body.key }}' }, 'repeat'),
      { id: 'join', type: 'MERGE', config: { mode: 'append' } },
      set('last', { items: '{{ $nodes.each.items }}', repeat: '{{ $nodes.repeat }}' }),
    ],
    edges: edges(
      'start -> each',
      'call -> wait',
      'wait -> inner',
      'deep -> key',
      'inner -> picked',
      'start -> repeat',
      'again -> count',
      'each repeat -> join',
      'join -> last',
    ),
  })
  const times = (count: number) => Array.from({ length: count }, (_, at) => at)
  const recordsOf = (count: number) =>
    [
      ...['start', 'each', 'repeat', 'join', 'last'].map((id) => `${id}#`),
      ...times(count).flatMap((at) => ['call', 'wait', 'inner', 'picked'].map((id) => `${id}#${at}`)),
      ...times(count).flatMap((at) => ['deep', 'key'].flatMap((id) => [`${id}#${at}.0`, `${id}#${at}.1`])),
      ...times(TURNS).flatMap((at) => [`again#${at}`, `count#${at}`]),
    ].sort()
  const outputOf = (count: number) => ({
    items: times(count).map((at) => ({
      text: 'x'.repeat(2_500),
      key: `each-${at}`,
      deep: [String(at), String(-at)],
    })),
    repeat: { n: TURNS, key: `again-${TURNS - 1}-${TURNS - 1}` },
  })
  let begun: { id: string; count: number; compare: (run: ExecutionBody) => Promise<void> }[] = []

  async function begin(count: number): Promise<void> {
    const id = await host.execute(workflowId, { n: 0, count })
    begun.push({ id, count, compare: followExecution(host, id) })
  }

  async function check(id: string, count: number, brokenAt: number): Promise<ExecutionBody> {
    const run = await host.ended(id, WITHIN_MS)
    expect({ status: run.status, why: run.errorMessage }).toEqual({ status: 'SUCCESS', why: null })
    expect(run.outputData).toEqual(outputOf(count))
    const nodes = run.nodeExecutions
    expect(nodes.map(nameRecord).sort()).toEqual(recordsOf(count))
    expect(new Set(nodes.map(({ status }) => status))).toEqual(new Set(['SUCCESS']))
    for (const node of nodes) checkCalls(target, id, node, brokenAt)
    // FOR_EACH never has more iterations at once than its `concurrency`, and REPEAT has one at a time.
    expect(countAtOnce(nodes, 'call', 'picked')).toBe(AT_ONCE)
    expect(countAtOnce(nodes, 'again', 'count')).toBe(1)
    return run
  }

  return {
    name: 'loops',
    workflowIds: [workflowId],
    early: () => begin(20),
    middle: () => begin(9),
    async check(brokenAt) {
      const ended: ExecutionBody[] = []
      for (const { id, count, compare } of begun) {
        const run = await check(id, count, brokenAt)
        await compare(run)
        ended.push(run)
      }
      begun = []
      return ended
    },
  }
}

const PICKED = {
  text: '{{ $nodes.call.body.text }}',
  key: '{{ $nodes.call.body.key }}',
  deep: '{{ [$input.items.key] }}',
}

export const nameRecord = ({ nodeId, iteration }: NodeBody) => `${nodeId}#${iteration ?? ''}`

/** Checks that a node called at most once per attempt, and not again after its end was recorded. */
export function checkCalls(target: Target, id: string, node: NodeBody, brokenAt: number): void {
  const key = node.iteration === null ? `${id}:${node.nodeId}` : `${id}:${nameRecord(node)}`
  const calls = target.calls.filter((call) => call.key === key)
  const seen = `${key}, ${node.retryCount} retries`
  if (!CALLS.includes(node.nodeId)) {
    expect(node.retryCount, seen).toBe(0)
    return
  }
  expect(calls.filter((call) => call.answered).length, seen).toBeGreaterThanOrEqual(1)
  expect(calls.length, seen).toBeLessThanOrEqual(node.retryCount + 1)
  if (Date.parse(node.completedAt!) < brokenAt || calls[0]!.at > Date.parse(node.completedAt!)) {
    expect(calls.length, seen).toBe(1)
  }
  if (Date.parse(node.completedAt!) < brokenAt) expect(node.retryCount, seen).toBe(0)
}

/**
 * The greatest number of iterations that were, at the same
 * time, between the start of `first` and the end of `last`.
 */
function countAtOnce(nodes: NodeBody[], first: string, last: string): number {
  const marks = nodes.flatMap(({ nodeId, startedAt, completedAt }) => {
    if (nodeId === first) return [{ at: Date.parse(startedAt), step: 1 }]
    return nodeId === last ? [{ at: Date.parse(completedAt!), step: -1 }] : []
  })
  marks.sort((a, b) => a.at - b.at || a.step - b.step)
  let open = 0
  return Math.max(...marks.map(({ step }) => (open += step)))
}

const MANY = 2_500

/**
 * Loops of thousands of pure iterations, which take several segments, with a wait beside them. They are
 * started right before the failure.
 */
export async function createPureLoopScenario(host: Installation): Promise<Scenario> {
  const workflowId = await host.create({
    nodes: [
      start,
      { id: 'each', type: 'FOR_EACH', config: { items: `{{ [1..${MANY}] }}` } },
      {
        id: 'double',
        parentId: 'each',
        type: 'SET',
        config: { values: { n: '{{ $item * 2 }}', at: '{{ $index }}' } },
      },
      { id: 'wait', type: 'WAIT', config: { durationMs: 3_000 } },
      {
        id: 'sums',
        type: 'TRANSFORM',
        config: { expression: '{"sum": $sum($nodes.each.items.n), "at": [$nodes.each.items.at]}' },
      },
    ],
    edges: edges('start -> each', 'start -> wait', 'each wait -> sums'),
  })
  let ids: string[] = []

  async function check(id: string, wholly: boolean): Promise<ExecutionBody> {
    const run = await host.ended(id, WITHIN_MS)
    expect({ status: run.status, why: run.errorMessage }).toEqual({ status: 'SUCCESS', why: null })
    const at = Array.from({ length: MANY }, (_, index) => index)
    expect(run.outputData).toEqual({ sum: MANY * (MANY + 1), at })
    expect(run.nodeExecutionsTotal).toBe(MANY + 4)
    if (!wholly) return run
    const pages = await Promise.all(
      Array.from({ length: Math.ceil((MANY + 4) / 100) }, (_, page) =>
        host.ask<{ content: NodeBody[] }>('GET', `/api/executions/${id}/nodes?size=100&page=${page}`),
      ),
    )
    const nodes = pages.flatMap(({ content }) => content)
    expect(nodes).toHaveLength(MANY + 4)
    expect(nodes.every(({ status, retryCount }) => status === 'SUCCESS' && retryCount === 0)).toBe(true)
    const doubles = nodes.filter(({ nodeId }) => nodeId === 'double')
    expect(new Set(doubles.map(({ iteration }) => iteration)).size).toBe(MANY)
    for (const { iteration, outputData } of doubles) {
      expect(outputData).toEqual({ n: (Number(iteration) + 1) * 2, at: Number(iteration) })
    }
    return run
  }

  return {
    name: 'pure loops',
    workflowIds: [workflowId],
    async middle() {
      ids.push(...(await Promise.all([host.execute(workflowId), host.execute(workflowId)])))
    },
    async late() {
      ids.push(await host.execute(workflowId))
    },
    async check() {
      const ended: ExecutionBody[] = []
      for (const [at, id] of ids.entries()) ended.push(await check(id, at === 0))
      ids = []
      return ended
    },
  }
}
