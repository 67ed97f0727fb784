import { beforeAll, expect, test } from 'vitest'
import type { Plan } from '../../../workflows/run/plan.ts'
import { openSandbox, type Sandbox } from '../../simulator/sandbox.ts'
import { judge, sampleOf } from '../../simulator/simulator.ts'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await openSandbox()
})

test('a few random graphs go as the interpreter says, whatever becomes of their workers', () =>
  judgeMany(20, 1))

test('200 random graphs do', { tags: 'long' }, () => judgeMany(200, 11))

/** Judges as many random graphs, of which at least `leastContinued` must have continued as new. */
async function judgeMany(graphs: number, leastContinued: number): Promise<void> {
  let continued = 0
  for (let seed = 1; seed <= graphs; seed++) {
    const { faults, runs } = await judge(sandbox, sampleOf(seed))
    expect(faults, `npm run simulate -- --seed ${seed} --graphs 1`).toEqual([])
    if (runs > 1) continued++
  }
  expect(continued).toBeGreaterThanOrEqual(leastContinued)
}

test('the same seed goes the same way again, also in other company', async () => {
  const first = await judge(sandbox, sampleOf(19))
  await judge(sandbox, sampleOf(20))
  expect(await judge(sandbox, sampleOf(19))).toEqual(first)
})

test('a run that leaves out a branch is found', async () => {
  const spoil = (plan: Plan): Plan => ({ ...plan, edges: plan.edges.slice(0, -1) })
  const found: number[] = []
  for (let seed = 1; seed <= 20; seed++) {
    const { faults } = await judge(sandbox, sampleOf(seed), spoil)
    if (faults.length > 0) found.push(seed)
  }
  expect(found.length).toBeGreaterThan(5)
})
