import { readFileSync } from 'node:fs'
import { type Calibration, calibrate, type LinearModel, openModel, type StoredModel } from '../linear.ts'
import { RULE_NAMES, type RuleHit } from './rules.ts'

/**
 * What makes a confidence of a window's evidence: what a score and each rule add to the log-odds. No rule takes
 * anything away, so more evidence never means less confidence.
 */
export type Weighing = Calibration & { rules: number[] }

/** The weights' file, which `npm run fit -- injection --data DIR` writes. `rules` has a figure for each rule by name. */
export type StoredWeights = { model: StoredModel; calibration: Calibration; rules: Record<string, number> }

export const WEIGHTS_FILE = new URL('./weights.json', import.meta.url)

/** The model and the weighing of a file's text; throws if the file has no figure for one of the rules. */
export function readWeights(text: string): { model: LinearModel; weighing: Weighing } {
  const { model, calibration, rules } = JSON.parse(text) as StoredWeights
  const figures = RULE_NAMES.map((name) => rules[name])
  if (figures.some((figure) => figure === undefined)) {
    throw new Error(
      'The weights of the injection detector are older than its rules: npm run fit -- injection',
    )
  }
  return { model: openModel(model), weighing: { ...calibration, rules: figures as number[] } }
}

let loaded: ReturnType<typeof readWeights> | undefined

/** The committed weights, read at the first use in a thread. */
export function loadWeights(): ReturnType<typeof readWeights> {
  loaded ??= readWeights(readFileSync(WEIGHTS_FILE, 'utf8'))
  return loaded
}

/** How many log-odds the rules that hit add, each rule once. */
function sumRules(hits: readonly RuleHit[], { rules }: Weighing): number {
  let sum = 0
  let seen = 0
  for (const { rule } of hits) {
    if (seen & (1 << rule)) continue
    seen |= 1 << rule
    sum += rules[rule]!
  }
  return sum
}

/** The confidence, 0 to 1, that a window is an attack; `more` log-odds come from elsewhere. */
export function judgeWindow(score: number, hits: readonly RuleHit[], weighing: Weighing, more = 0): number {
  const { slope, offset } = weighing
  return calibrate(score, { slope, offset: offset + sumRules(hits, weighing) + more })
}
