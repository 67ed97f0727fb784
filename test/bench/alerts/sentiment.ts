import { createRandom } from '../../../activities/monitoring/shifts/compare.ts'
import { judgeScores, SENTIMENT_DAYS } from '../../../activities/monitoring/shifts/sentiment/sentiment.ts'
import { SHORT_HOURS } from '../../../activities/monitoring/shifts/spans.ts'
import { countAt, createWatch, finish, place, type Simulated } from './world.ts'

const LIMITS = { days: SENTIMENT_DAYS, hours: SHORT_HOURS, ofDay: 100, ofHours: 60, ofCurrent: 400 }
/** As long as is looked back, then the days that are watched, and the planted shift at their end. */
const BEFORE = (SENTIMENT_DAYS + 1) * 24
const WATCHED = 4 * 24
const AFTER = 24
const SHIFT = -0.3
const PER_HOUR = [10, 20, 40]

/** Teams whose users sound as usual for a week, and then worse by 0.3: how long that takes to be found. */
export function simulateSentiment(seed: number, teams: number): Simulated {
  const random = createRandom(seed)
  const result: Simulated = { delays: [], missed: 0, falseAlarms: 0, teamWeeks: 0 }
  for (let team = 0; team < teams; team++) {
    const mood = 0.2 + 0.3 * random()
    const scores: { executionId: string; score: number; hour: number; order: number }[] = []
    const end = BEFORE + WATCHED + AFTER
    for (let hour = 0; hour < end; hour++) {
      const shifted = mood + (hour >= BEFORE + WATCHED ? SHIFT : 0)
      const count = countAt(team % 4, PER_HOUR[team % 3]!, hour, random)
      for (let n = 0; n < count; n++)
        scores.push({ executionId: 'e', score: say(shifted, random), hour, order: random() })
    }
    const watch = createWatch()
    let delay = 0
    for (let to = BEFORE; to < end && delay === 0; to++) {
      const from = to - (SENTIMENT_DAYS + 1) * 24
      const recent = scores.filter(({ hour }) => hour >= from && hour < to)
      const seen = finish(judgeScores(place(recent, to, LIMITS), 'w'))
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

/** A third of all messages are neutral, as VADER has it; the others scatter widely. */
function say(mean: number, random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const score = random() < 0.3 ? Math.max(-1, Math.min(1, mean * 1.3 - 0.06)) : mean + 0.45 * normal
  return Math.max(-1, Math.min(1, score))
}
