import { openRows, packRows, ROW_LENGTH } from '../../../activities/guardrails/semantic/embedder.ts'
import { createSemanticPool, embedExemplar } from '../../../activities/guardrails/semantic/similar.ts'
import { createRandom, meanOf } from '../../../activities/monitoring/shifts/compare.ts'
import { DRIFT_DAYS, judgeSamples } from '../../../activities/monitoring/shifts/drift/drift.ts'
import { SHORT_HOURS } from '../../../activities/monitoring/shifts/spans.ts'
import { TOPICS } from './topics.ts'
import { countAt, createWatch, finish, place, type Simulated } from './world.ts'

const LIMITS = { days: DRIFT_DAYS, hours: SHORT_HOURS, ofDay: 60, ofHours: 30, ofCurrent: 200 }
const BEFORE = (DRIFT_DAYS + 1) * 24
const WATCHED = 4 * 24
const AFTER = 48
/** This part of what is asked for is of the second topic, once it has drifted. */
const DRIFT = 0.3
const PER_HOUR = [8, 16, 24]
/** So many executions of a workflow are sampled in an hour. */
const SAMPLED = 24

/** Teams whose executions are about one topic for a week of windows, and then to 30 % about another one. */
export async function simulateDrift(seed: number, teams: number): Promise<Simulated> {
  const random = createRandom(seed)
  const meanings = await embedTopics()
  const result: Simulated = { delays: [], missed: 0, falseAlarms: 0, teamWeeks: 0 }
  for (let team = 0; team < teams; team++) {
    const topic = team % meanings.length
    const other = (topic + 1 + Math.floor(random() * (meanings.length - 1))) % meanings.length
    const end = BEFORE + WATCHED + AFTER
    const samples: { executionId: string; length: number; meaning: Buffer; hour: number; order: number }[] =
      []
    for (let hour = 0; hour < end; hour++) {
      const drifted = hour >= BEFORE + WATCHED
      const count = Math.min(SAMPLED, countAt(team % 4, PER_HOUR[team % 3]!, hour, random))
      for (let n = 0; n < count; n++) {
        const of = meanings[drifted && random() < DRIFT ? other : topic]!
        const one = of[Math.floor(random() * of.length)]!
        samples.push({ executionId: 'e', ...one, hour, order: random() })
      }
    }
    const watch = createWatch()
    let delay = 0
    for (let to = BEFORE; to < end && delay === 0; to++) {
      const from = to - (DRIFT_DAYS + 1) * 24
      const recent = samples.filter(({ hour }) => hour >= from && hour < to)
      const placed = place(recent, to, LIMITS)
      const seen = finish(judgeSamples(placed, { workflowId: 'w', metric: 'drift.input', side: 'INPUT' }))
      const { raised } = watch('lack' in seen ? undefined : seen.shift)
      if (!raised) continue
      if (to > BEFORE + WATCHED) delay = to - BEFORE - WATCHED
      else result.falseAlarms++
    }
    if (delay > 0) result.delays.push(delay)
    else result.missed++
    result.teamWeeks += WATCHED / 168
  }
  return result
}

async function embedTopics(): Promise<{ meaning: Buffer; length: number }[][]> {
  const pool = createSemanticPool({ threads: 1 })
  try {
    const topics = []
    for (const sentences of TOPICS) {
      const made = []
      for (const text of sentences) {
        const { rows } = await embedExemplar(pool, 'simulation', text)
        const mean = meanOf({ figures: openRows(rows), width: ROW_LENGTH })
        made.push({ meaning: Buffer.from(packRows(mean)), length: text.length })
      }
      topics.push(made)
    }
    return topics
  } finally {
    await pool.close()
  }
}
