import type { Stand } from './stand.ts'
import { createGraphRun, FOUR } from './variants.ts'

const RUNS = 10_000
const IN_FLIGHT = 20
const EVERY = 500
/**
 * At first memory grows anyway: the heap until the collector
 * knows the load, the workflow cache until it is full.
 */
const WARM_UP = 3_000
const FLAT_MB = 5

/**
 * Executes variant b many times, and reports whether the
 * service's resident memory still grows after the warm-up.
 */
export async function measureMemory(stand: Stand, args: string[]): Promise<void> {
  const runs = Number(args[0] ?? RUNS)
  const graph = await createGraphRun(stand, 'four', FOUR)
  const samples: { runs: number; service: number; temporal: number; postgres: number }[] = []
  let begun = 0
  let done = 0
  async function repeat(): Promise<void> {
    while (begun < runs) {
      begun++
      await graph.one(IN_FLIGHT)
      if (++done % EVERY > 0) continue
      const { service, temporal, postgres } = stand.readUsage()
      samples.push({
        runs: done,
        service: service!.memory,
        temporal: temporal!.memory,
        postgres: postgres!.memory,
      })
      console.error(`[bench] ${done} runs, service ${service!.memory} MB`)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, repeat))
  console.log(`Resident memory in MB over ${runs} runs of the 4-node graph, ${IN_FLIGHT} in flight`)
  console.table(samples)
  const warm = samples.filter((sample) => sample.runs > WARM_UP)
  const slope = fitSlope(warm.map((sample) => [sample.runs / 1_000, sample.service]))
  const flat = slope < FLAT_MB ? 'yes' : 'no'
  console.log(
    `service after ${WARM_UP} runs: ${slope.toFixed(1)} MB per 1,000 runs; flat (under ${FLAT_MB}): ${flat}`,
  )
}

/** The slope of the line that fits the points best, by least squares. */
function fitSlope(points: [number, number][]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const x = mean(points.map(([at]) => at))
  const y = mean(points.map(([, value]) => value))
  const over = points.reduce((sum, [at, value]) => sum + (at - x) * (value - y), 0)
  return over / points.reduce((sum, [at]) => sum + (at - x) ** 2, 0)
}
