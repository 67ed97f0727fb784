import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Plan, PlanNode } from '../../../workflows/run/plan.ts'
import {
  emptyOutcomes,
  endsOf,
  findReady,
  type Outcomes,
  settleFailure,
  sourcesOf,
} from '../../../workflows/run/walk.ts'

const RETRY = { maxAttempts: 1, initialIntervalMs: 1, backoffCoefficient: 1, maxIntervalMs: 1 }

function node(id: string): PlanNode {
  return { id, name: id, type: 'NO_OP', kind: 'pure', onError: 'FAIL', retry: RETRY, timeoutMs: 1, needs: [] }
}

function plan(ids: string[], edges: [string, string | null, string][]): Plan {
  return {
    workflowId: 'w',
    version: 1,
    triggerNodeId: ids[0]!,
    nodes: ids.map(node),
    edges: edges.map(([source, handle, target]) => ({ source, handle, target })),
    inlineBytes: 1_000,
  }
}

const HANDLES = [null, 'a', 'b'] as const

/** A random DAG with its nodes in topological order, and the handle by which each node leaves. */
const walks = fc.integer({ min: 1, max: 14 }).chain((size) => {
  const ids = Array.from({ length: size }, (_, at) => `n${at}`)
  const pairs = ids.flatMap((source, s) => ids.slice(s + 1).map((target) => [source, target] as const))
  const edge = fc.tuple(
    fc.constantFrom(...(pairs.length ? pairs : [['n0', 'n0'] as const])),
    fc.constantFrom(...HANDLES),
  )
  return fc.record({
    plan: fc.array(edge, { maxLength: pairs.length ? 40 : 0 }).map((edges) =>
      plan(
        ids,
        edges.map(([[source, target], handle]) => [source, handle, target]),
      ),
    ),
    leave: fc.array(fc.constantFrom(...HANDLES), { minLength: size, maxLength: size }),
    order: fc.infiniteStream(fc.nat()),
  })
})

/** Walks a plan to its end, settling one started node at a time: the one that `pick` chooses. */
function run(walk: Plan, leave: readonly (string | null)[], pick: (count: number) => number) {
  const outcomes = emptyOutcomes()
  const flying: string[] = []
  const begun: string[] = []
  for (;;) {
    for (const ready of findReady(walk, outcomes, new Set(flying))) {
      const inward = walk.edges.filter((edge) => edge.target === ready.id)
      expect(inward.every((edge) => outcomes[edge.source])).toBe(true)
      if (ready.id !== walk.triggerNodeId) expect(sourcesOf(walk, ready.id, outcomes)).not.toHaveLength(0)
      flying.push(ready.id)
      begun.push(ready.id)
    }
    if (flying.length === 0) return { outcomes, begun }
    const [id] = flying.splice(pick(flying.length), 1)
    outcomes[id!] = { handle: leave[walk.nodes.findIndex((candidate) => candidate.id === id)]! }
  }
}

/** The nodes that must have run, by a simple definition. */
function expected(walk: Plan, leave: readonly (string | null)[]): Set<string> {
  const ran = new Set<string>([walk.triggerNodeId])
  for (const { id } of walk.nodes) {
    const taken = walk.edges.some((edge) => {
      const at = walk.nodes.findIndex((candidate) => candidate.id === edge.source)
      return edge.target === id && ran.has(edge.source) && leave[at] === edge.handle
    })
    if (taken) ran.add(id)
  }
  return ran
}

describe('the walk', () => {
  test('runs exactly the nodes that taken edges reach, once each, in whatever order nodes finish', () => {
    fc.assert(
      fc.property(walks, ({ plan: walk, leave, order }) => {
        const numbers = order[Symbol.iterator]()
        const { outcomes, begun } = run(walk, leave, (count) => numbers.next().value! % count)
        const ran = expected(walk, leave)
        expect(new Set(begun)).toEqual(ran)
        expect(begun).toHaveLength(ran.size)
        for (const { id } of walk.nodes) expect('handle' in outcomes[id]!).toBe(ran.has(id))
        const first = run(walk, leave, () => 0)
        expect(first.outcomes).toEqual(outcomes)
      }),
      { numRuns: 500 },
    )
  })

  test('a walk that stops anywhere and goes on from its outcomes alone ends the same', () => {
    fc.assert(
      fc.property(walks, fc.nat({ max: 14 }), ({ plan: walk, leave }, stop) => {
        const whole = run(walk, leave, () => 0)
        const half: Outcomes = emptyOutcomes()
        const settled = whole.begun.slice(0, stop)
        for (const id of settled) half[id] = whole.outcomes[id]!
        const resumed = JSON.parse(JSON.stringify(half)) as Outcomes
        const outcomes = emptyOutcomes(resumed)
        for (
          let ready = findReady(walk, outcomes, new Set());
          ready.length > 0;
          ready = findReady(walk, outcomes, new Set())
        ) {
          const at = walk.nodes.indexOf(ready[0]!)
          outcomes[ready[0]!.id] = { handle: leave[at]! }
        }
        expect(outcomes).toEqual(whole.outcomes)
      }),
    )
  })

  test('a join waits for branches that may still come and ignores those not taken', () => {
    const walk = plan(
      ['t', 'x', 'y', 'join'],
      [
        ['t', 'a', 'x'],
        ['t', 'b', 'y'],
        ['x', null, 'join'],
        ['y', null, 'join'],
      ],
    )
    const outcomes = emptyOutcomes({ t: { handle: 'a' } })
    expect(findReady(walk, outcomes, new Set()).map((n) => n.id)).toEqual(['x'])
    expect(outcomes.y).toEqual({ skipped: true })
    outcomes.x = { handle: null }
    expect(findReady(walk, outcomes, new Set()).map((n) => n.id)).toEqual(['join'])
    expect(sourcesOf(walk, 'join', outcomes)).toEqual(['x'])
  })

  test('a source with two edges counts once, and sources are in edge order', () => {
    const walk = plan(
      ['t', 'x', 'join'],
      [
        ['x', null, 'join'],
        ['t', null, 'x'],
        ['t', null, 'join'],
        ['t', null, 'join'],
      ],
    )
    const outcomes = emptyOutcomes({ t: { handle: null }, x: { handle: null } })
    expect(sourcesOf(walk, 'join', outcomes)).toEqual(['x', 't'])
  })

  test('the ends are the nodes that ran and have no taken edge to another', () => {
    const walk = plan(
      ['t', 'x', 'y', 'z'],
      [
        ['t', null, 'x'],
        ['t', 'a', 'y'],
        ['x', 'a', 'z'],
      ],
    )
    const outcomes = emptyOutcomes({
      t: { handle: null },
      x: { handle: null },
      y: { skipped: true },
      z: { skipped: true },
    })
    expect(endsOf(walk, outcomes)).toEqual(['x'])
  })

  test('node ids that are names of Object.prototype are plain ids', () => {
    const walk = plan(['toString', 'valueOf'], [['toString', null, 'valueOf']])
    const { begun } = run(walk, [null, null], () => 0)
    expect(begun).toEqual(['toString', 'valueOf'])
  })

  test('onError decides how a failed node leaves', () => {
    const error = { message: 'no', type: 'Error' }
    expect(settleFailure(node('n'), error)).toBe('fatal')
    expect(settleFailure({ ...node('n'), onError: 'CONTINUE' }, error)).toMatchObject({ handle: null })
    expect(settleFailure({ ...node('n'), onError: 'BRANCH' }, error)).toEqual({
      handle: 'error',
      output: { error: { ...error, nodeId: 'n' } },
    })
  })
})
