import { parseArgs } from 'node:util'
import { reduceSample } from './reduce.ts'
import { openSandbox } from './sandbox.ts'
import { judge, sampleOf } from './simulator.ts'

/**
 * `npm run simulate -- --seed N --graphs N` executes that many random graphs, beginning with that seed, and ends
 * with the first fault: it prints the seed and the smallest sample that still has a fault.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    graphs: { type: 'string', default: '1000' },
    'keep-going': { type: 'boolean', default: false },
  },
})
const from = Number(values.seed)
const count = Number(values.graphs)
const sandbox = await openSandbox()
const began = performance.now()
let [events, runs, faulty] = [0, 0, 0]
for (let seed = from; seed < from + count; seed++) {
  const sample = sampleOf(seed)
  const verdict = await judge(sandbox, sample)
  events += verdict.events
  runs += verdict.runs
  if (verdict.faults.length === 0) continue
  faulty++
  process.exitCode = 1
  console.log(`Seed ${seed}:\n  ${verdict.faults.slice(0, 5).join('\n  ')}`)
  if (values['keep-going']) continue
  const { sample: smallest, faults } = await reduceSample(sandbox, sample)
  console.log(`Reduced, with the fault: ${faults[0]}\n${JSON.stringify(smallest, null, 1)}`)
  break
}
const seconds = ((performance.now() - began) / 1_000).toFixed(1)
console.log(
  `${count} graphs from seed ${from}: ${runs} runs, ${events} events, ${faulty} faulty, ${seconds} s`,
)
process.exit()
