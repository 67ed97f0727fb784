import { expect, test } from 'vitest'
import { compilePlan } from '../../workflows/graph/compile.ts'
import { readGraph } from '../../workflows/graph/read.ts'
import { TURN_UNITS, takeTurn, type Work, workInTurns } from '../../workflows/turns.ts'

const set = (id: string, values: object) => ({ id, type: 'SET', config: { values } })
const start = { id: 'start', type: 'MANUAL_TRIGGER' }

/** Does the work and counts the units of each of its turns. */
async function countUnits<T>(work: Work<T>): Promise<{ result: T; turns: number[] }> {
  const turns: number[] = []
  function* counted(): Work<T> {
    for (;;) {
      const { done, value } = work.next()
      if (done) return value
      // Before any turn was taken, nothing may be done.
      yield value
      turns.push(turns.pop()! + value)
    }
  }
  const result = await workInTurns(counted(), '', async () => void turns.push(0))
  return { result, turns }
}

/** Graphs that are as much work as a graph can be, of different kinds. */
const GRAPHS: Record<string, { nodes: object[]; edges?: object[] }> = {
  '10,000 small expressions': {
    nodes: Array.from({ length: 100 }, (_, node) =>
      set(
        `n${node}`,
        Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`k${at}`, `{{ a + ${at} }}`])),
      ),
    ),
  },
  'long expressions': {
    nodes: Array.from({ length: 20 }, (_, at) => set(`n${at}`, { t: `{{ ${'a+'.repeat(4_900)}a }}` })),
  },
  'many empty values': { nodes: [set('n', { t: Array(240_000).fill([]) })] },
  'many numbers': { nodes: [set('n', { t: Array(480_000).fill(1) })] },
  'one long text': { nodes: [set('n', { t: 'x'.repeat(990_000) })] },
  'many nodes and edges': {
    nodes: Array.from({ length: 499 }, (_, at) => ({ id: `n${at}`, type: 'NO_OP' })),
    edges: Array.from({ length: 498 }, (_, at) => ({ source: `n${at}`, target: `n${at + 1}` })),
  },
}

test.each(Object.entries(GRAPHS))(
  'a graph of %s is read and compiled in small pieces',
  async (_what, graph) => {
    const nodes = [start, ...graph.nodes]
    const read = await countUnits(readGraph({ edges: [], ...graph, nodes }, () => crypto.randomUUID()))
    expect(read.result.problems).toEqual([])
    expect(read.turns.length).toBeGreaterThan(0)
    expect(Math.max(...read.turns)).toBeLessThanOrEqual(TURN_UNITS)
    const run = { workflowId: 'w', version: 1, triggerNodeId: 'start' }
    const compiled = await countUnits(compilePlan(read.result.graph, run))
    expect(compiled.result.nodes).toHaveLength(nodes.length)
    expect(Math.max(0, ...compiled.turns)).toBeLessThanOrEqual(TURN_UNITS)
  },
)

test('each round of the event loop has one turn, and the keys take turns', async () => {
  let round = 0
  let counting = true
  const count = () => {
    round++
    if (counting) setImmediate(count)
  }
  setImmediate(count)
  const taken: { key: string; round: number }[] = []
  const take = (key: string) => takeTurn(key).then(() => taken.push({ key, round }))
  await Promise.all([...['a', 'a', 'a', 'a', 'b', 'b', 'c'].map(take)])
  counting = false
  expect(taken.map(({ key }) => key).join('')).toBe('abcabaa')
  const rounds = taken.map(({ round }) => round)
  expect(new Set(rounds).size).toBe(rounds.length)
})

test('work that fails ends its turn, and others get theirs', async () => {
  function* fail(): Work<void> {
    yield 1
    throw new Error('it failed')
  }
  function* succeed(): Work<string> {
    yield TURN_UNITS
    yield TURN_UNITS
    return 'done'
  }
  const [failed, done] = await Promise.allSettled([workInTurns(fail(), 'a'), workInTurns(succeed(), 'a')])
  expect(failed).toMatchObject({ status: 'rejected', reason: new Error('it failed') })
  expect(done).toEqual({ status: 'fulfilled', value: 'done' })
})
