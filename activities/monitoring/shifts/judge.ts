import type { Work } from '../../../workflows/turns.ts'
import { compareMeans, countPoints, type Distance, measureSquare, type Points, summarise } from './compare.ts'

/** The same measure of samples: those of the days before, of each day by itself, and the current ones. */
export type MeanComparison = {
  reference: Points
  current: Points
  /** Parts of the reference as long as what is current, each of a day of its own and of the same hours. */
  blocks: Points[]
  /** Divides distances, so that they can be compared with the floor; 1 if they are in figures that mean something. */
  scale: number
  /** The least distance that is of any interest. */
  floor: number
}

/** The result of a comparison: a shift if it is neither chance, nor as small as days differ from each other anyway. */
export type Shift = Distance & { threshold: number; isHit: boolean; isPlain: boolean }

/** How likely all comparisons of one window together take chance for a shift. */
const CHANCE = 0.01
/** So unlikely, and so far beyond the threshold, one window is evidence enough. */
const PLAIN_CHANCE = 1e-4
const PLAIN_TIMES = 1.3
/** With so many days it is not the one that differs most that counts: it may have been an incident. */
const MANY_DAYS = 7
const LEAST_BLOCK = 8
/** A distance that is this many times the scatter of chance is not chance. */
const NOISE_TIMES = 2
/** How much further the current days must be than the days before, which are part of the comparison. */
const USUAL_TIMES = 1.25

/** Compares what is current with the days before; `tests` is how many such comparisons its window has. */
export function* judgeShift(
  { reference, current, blocks, scale, floor }: MeanComparison,
  { tests, seed }: { tests: number; seed: number },
): Work<Shift> {
  const found = yield* compareMeans(reference, current, seed)
  const effect = found.effect / scale
  const whole = summarise(reference)
  const usual: number[] = []
  for (const block of blocks) {
    const count = countPoints(block)
    if (count < LEAST_BLOCK) continue
    yield Math.ceil(block.figures.length / 2_000)
    // A small one is far from the others by chance alone.
    const chance = (NOISE_TIMES * found.noise * countPoints(current)) / count
    usual.push(Math.sqrt(Math.max(0, measureSquare(whole, summarise(block)) - chance)) / scale)
  }
  usual.sort((a, b) => b - a)
  const most = usual[usual.length >= MANY_DAYS ? 1 : 0] ?? 0
  const threshold = Math.max(floor, USUAL_TIMES * most)
  const isFar = effect >= threshold
  return {
    effect,
    threshold,
    likelihood: found.likelihood,
    noise: found.noise,
    isHit: isFar && found.likelihood < CHANCE / tests,
    isPlain: effect >= PLAIN_TIMES * threshold && found.likelihood < PLAIN_CHANCE,
  }
}

/** A plain shift counts more than a hit, and a hit more than none; then the distance beyond the threshold decides. */
export function isWorse(shift: Shift, than: Shift | undefined): boolean {
  if (!than) return true
  const rank = ({ isHit, isPlain }: Shift) => Number(isHit) + Number(isPlain)
  const apart = rank(shift) - rank(than)
  return apart !== 0 ? apart > 0 : shift.effect / shift.threshold > than.effect / than.threshold
}
