import { availableParallelism } from 'node:os'
import { applyLoad, type Load, median, percentile } from './load.ts'
import type { Stand } from './stand.ts'
import type { Usage } from './usage.ts'
import { createVariants, type Variant } from './variants.ts'

const IN_FLIGHT = 20
const HEAVY_IN_FLIGHT = 2
const WARM_UP_SECONDS = 3

/** `spent` is the CPU time in ms per run and program, under load. */
type Result = { alone: Load[]; loaded: Load[]; spent: Record<string, number>[] }

/**
 * Measures all variants in turn, round after round, so that
 * other work on this machine affects all of them alike.
 */
export async function measureSpeed(stand: Stand, args: string[]): Promise<void> {
  const rounds = Number(args[0] ?? 5)
  const seconds = Number(args[1] ?? 4)
  const { variants, readUsage, stop } = await createVariants(stand)
  try {
    const results = new Map(
      variants.map(({ name }): [string, Result] => [name, { alone: [], loaded: [], spent: [] }]),
    )
    for (const { one, heavy } of variants) await applyLoad(one, flying(heavy), WARM_UP_SECONDS)
    for (let round = 1; round <= rounds; round++) {
      for (const { name, one, heavy } of variants) {
        const { alone, loaded, spent } = results.get(name)!
        alone.push(await applyLoad(one, 1, seconds / 2))
        const before = readUsage()
        const load = await applyLoad(one, flying(heavy), seconds)
        loaded.push(load)
        spent.push(divide(readUsage(), before, load.total))
      }
      console.error(`[bench] round ${round} of ${rounds}`)
    }
    printTable(variants, results, readUsage())
    const text = [
      `${rounds} rounds of all variants in turn, each ${seconds / 2} s alone and ${seconds} s with ${IN_FLIGHT} in flight.`,
      `The servers, the service and this client share ${availableParallelism()} cores.`,
      'Figures are medians of the rounds, p99 is over all runs, and times are in ms.',
      'b to j: from POST execute to the GET that says SUCCESS. The client learns when to send its first GET (a little sooner',
      'if the first one found the execution ended, else closer to 0.9 of its duration), and then repeats it at intervals of',
      'a quarter of that time, at least 4 ms.',
      `e to j and fan take long, so under load only ${HEAVY_IN_FLIGHT} of them are in flight.`,
      'a, fan and twin: the same server, codec and worker options; one connection, eager starts, one long poll per run.',
    ]
    console.log(`\n${text.join('\n')}`)
  } finally {
    await stop()
  }
}

function flying(heavy: true | undefined): number {
  return heavy ? HEAVY_IN_FLIGHT : IN_FLIGHT
}

function divide(after: Record<string, Usage>, before: Record<string, Usage>, runs: number) {
  const names = Object.keys(after)
  return Object.fromEntries(names.map((name) => [name, (after[name]!.cpu - before[name]!.cpu) / runs]))
}

function printTable(variants: Variant[], results: Map<string, Result>, usage: Record<string, Usage>): void {
  const rows = variants.map(({ name, what, polls }) => {
    const { alone, loaded } = results.get(name)!
    const runs = [...alone, ...loaded].reduce((sum, load) => sum + load.total, 0)
    return {
      '': name,
      what,
      'runs/s at 20': round(median(loaded.map((load) => load.perSecond))),
      'p50 at 20': p50(loaded),
      'p99 at 20': p99(loaded),
      'p50 alone': p50(alone),
      'p99 alone': p99(alone),
      runs,
      'polls/run': polls ? round(polls() / runs) : '',
    }
  })
  console.table(Object.fromEntries(rows.map(({ '': name, ...row }) => [name, row])))

  const speed = (name: string) => ratio(name, 'a', (result) => result.loaded.map((load) => load.perSecond))
  const latency = (of: 'alone' | 'loaded', name = 'd', twin = 'twin') =>
    ratio(name, twin, (result) => result[of].map((load) => median(load.latencies)))
  function ratio(name: string, base: string, read: (result: Result) => number[]): number {
    const under = read(results.get(base)!)
    return median(read(results.get(name)!).map((value, i) => value / under[i]!))
  }
  console.table({
    'throughput b / a': compare(speed('b'), '>=', 0.7),
    'throughput c / a': compare(speed('c'), '>=', 0.6),
    'latency d / twin, alone': compare(latency('alone'), '<=', 1.3),
    'latency d / twin, at 20': compare(latency('loaded'), '<=', 1.3),
    'latency f / fan, alone': compare(latency('alone', 'f', 'fan'), '<=', 1.3),
    'latency e / 10 a, alone': compare(latency('alone', 'e', 'a') / 10, '<=', 1),
  })

  const spent = variants.map(({ name }) => {
    const all = results.get(name)!.spent
    const cells = Object.keys(usage).map((program) => [
      program,
      round(median(all.map((one) => one[program]!))),
    ])
    const total = median(all.map((one) => Object.values(one).reduce((sum, ms) => sum + ms, 0)))
    return [name, { ...Object.fromEntries(cells), total: round(total) }]
  })
  console.log('CPU time in ms per run, with 20 in flight (without other programs on this machine):')
  console.table({
    ...Object.fromEntries(spent),
    'MB in memory': Object.fromEntries(Object.entries(usage).map(([name, { memory }]) => [name, memory])),
  })
}

function compare(value: number, sign: '>=' | '<=', aim: number) {
  const met = sign === '>=' ? value >= aim : value <= aim
  return { ratio: Math.round(value * 100) / 100, aim: `${sign} ${aim}`, met: met ? 'yes' : 'no' }
}

const p50 = (loads: Load[]) => round(median(loads.map((load) => median(load.latencies))))
const p99 = (loads: Load[]) =>
  round(
    percentile(
      loads.flatMap((load) => load.latencies),
      0.99,
    ),
  )
const round = (value: number) => Math.round(value * 10) / 10
