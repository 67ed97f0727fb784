import type { Work } from '../../../workflows/turns.ts'

/** Does work in one go: nobody else waits for the thread. */
export function finish<T>(work: Work<T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}

/** The places in time of what a simulated team did before an hour, as rows are read: the same days, hours and limits. */
export function place<Sample extends { hour: number; order: number }>(
  samples: readonly Sample[],
  to: number,
  limits: { days: number; hours: number; ofDay: number; ofHours: number; ofCurrent: number },
): (Sample & { day: number; whole: boolean; short: boolean })[] {
  const aged = samples.flatMap((sample) => {
    const age = to - sample.hour
    const day = Math.floor(age / 24)
    return age <= 0 || day > limits.days || day === 1 ? [] : [{ sample, day, late: age % 24 < limits.hours }]
  })
  const chosen = new Map<(typeof aged)[number], { whole: boolean; short: boolean }>()
  for (const [day, all] of Map.groupBy(aged, ({ day }) => day)) {
    all.sort((a, b) => a.sample.order - b.sample.order)
    const [most, mostLate] = day === 0 ? [limits.ofCurrent, limits.ofCurrent] : [limits.ofDay, limits.ofHours]
    let [nth, nthLate] = [0, 0]
    for (const one of all) {
      const whole = nth++ < most
      const short = one.late && nthLate++ < mostLate
      if (whole || short) chosen.set(one, { whole, short })
    }
  }
  return [...chosen].map(([{ sample, day }, flags]) => ({ ...sample, day, ...flags }))
}

/** How many requests a simulated team has in an hour of its day and week, by one of four usual shapes. */
export function countAt(shape: number, perHour: number, hour: number, random: () => number): number {
  const daily = 1 + 0.8 * Math.sin(((hour % 24) - 8) * (Math.PI / 12))
  const busy = shape === 2 ? (random() < 0.15 ? 5 : 0.3) : 1
  if (shape === 3 && random() < 0.5) return 0
  return drawPoisson(perHour * busy * (shape === 1 ? daily : 1), random)
}

function drawPoisson(mean: number, random: () => number): number {
  let count = 0
  for (let product = random(); product > Math.exp(-mean); product *= random()) count++
  return count
}

/** What a simulation has come to: one line for people. */
export function tellSimulation(what: string, { delays, missed, falseAlarms, teamWeeks }: Simulated): string {
  const sorted = delays.toSorted((a, b) => a - b)
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? '-'
  const late = delays.filter((delay) => delay > 2).length
  return (
    `${what}: ${delays.length} of ${delays.length + missed} found, after ${at(0.5)} hours (median), ${at(0.95)} (p95), ` +
    `${at(1)} (most), ${late} later than two; ${falseAlarms} false alarms in ${teamWeeks.toFixed(0)} team-weeks`
  )
}

/** `delays` are in hours, of which each is judged, from the one in which the planted shift began (1). */
export type Simulated = { delays: number[]; missed: number; falseAlarms: number; teamWeeks: number }

/** Keeps count of windows in a row, as a workflow's checks do; returns whether an alert is raised in this one. */
export function createWatch(): (shift: { isHit: boolean; isPlain: boolean } | undefined) => {
  raised: boolean
} {
  let hits = 0
  let firing = false
  return (shift) => {
    hits = shift?.isHit ? hits + 1 : 0
    const now = hits > 1 || (hits > 0 && shift!.isPlain)
    const raised = now && !firing
    firing = now
    return { raised }
  }
}
