import { simulateDrift } from '../alerts/drift.ts'
import { simulateSentiment } from '../alerts/sentiment.ts'
import { tellSimulation } from '../alerts/world.ts'
import { measureAnomalies } from './anomalies.ts'
import type { MeasuredSignals } from './figures.ts'

/** Figures, or what is to be printed of them. */
type Measured = MeasuredSignals | string

/** What is planted and looked for, by a number that all chance comes from. */
const MEASURES: [name: string, measure: (seed: number) => Measured | Promise<Measured>][] = [
  ['anomalies', measureAnomalies],
  ['sentiment', (seed) => tellSimulation('sentiment -0.3', simulateSentiment(seed, 30))],
  ['drift', async (seed) => tellSimulation('topic drift of 30 %', await simulateDrift(seed, 30))],
]

const SEED = 1_717

/**
 * Prints how soon planted signals are found in simulated traffic of 30 teams over 30 days, and how many false alarms there
 * are: `npm run bench -- alerts [SEED]`. Needs no database.
 */
export async function measureAlerts([seed = String(SEED)]: string[]): Promise<void> {
  for (const [name, measure] of MEASURES) {
    const began = performance.now()
    const measured = await measure(Number(seed))
    if (typeof measured === 'string') {
      console.log(`\n${measured}`)
      continue
    }
    const { signals, falseAlarms, falseBy, weeks, onTooFew } = measured
    console.log(
      `\n${name}, seed ${seed}, ${falseAlarms.length} teams, ${weeks.toFixed(1)} weeks after the warm-up`,
    )
    console.log('signal               baseline        planted  found in 2 windows  later  never  mean delay')
    for (const { kind, baseline, planted, delays } of signals) {
      const soon = delays.filter((delay) => delay <= 2).length
      const mean = delays.reduce((sum, delay) => sum + delay, 0) / Math.max(1, delays.length)
      console.log(
        `${kind.padEnd(20)} ${baseline.padEnd(15)} ${String(planted).padStart(7)}  ` +
          `${`${soon} (${Math.round((100 * soon) / planted)} %)`.padStart(18)}  ` +
          `${String(delays.length - soon).padStart(5)}  ${String(planted - delays.length).padStart(5)}  ${mean.toFixed(2)}`,
      )
    }
    const aWeek = falseAlarms.map((alarms) => alarms / weeks)
    printFalse(aWeek)
    for (const [what, times] of falseBy) console.log(`  ${what}: ${times} in all`)
    console.log(`alerts on fewer requests than are judged: ${onTooFew}`)
    console.log(`${((performance.now() - began) / 1_000).toFixed(1)} s`)
  }
}

function printFalse(aWeek: number[]): void {
  const mean = aWeek.reduce((sum, alarms) => sum + alarms, 0) / aWeek.length
  console.log(
    `false alarms a team-week: ${mean.toFixed(2)} on average, ${Math.max(...aWeek).toFixed(2)} the worst team`,
  )
}
