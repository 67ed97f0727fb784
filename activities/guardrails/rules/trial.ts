import type { StoredRule } from '../../../db/guardrails/enabled.ts'
import type { Asker } from '../../fairness/teamqueue.ts'
import type { Hit, Judged } from './javascript.ts'
import { eachOf, judgeByRules, type RuleDeps } from './judge.ts'

/** What a rule says of a sample. `more`: how many matches there are besides, as far as they are counted. */
export type RuleTrial = {
  flagged: boolean
  matches: Hit[]
  more: number
  durationMs: number
  error?: string
}

/** How long a trial may take by the clock: samples that it does not come to have an error. */
const TRIAL_MS = 30_000
const SAMPLES_AT_ONCE = { REGEX: 1, KEYWORD_LIST: 1, JAVASCRIPT: 1, LLM_PROMPT: 4 }

/**
 * Applies one rule to samples, each as a check would, and tells what it makes of them in their order; of code that fails
 * also how. Nothing is stored. Rejects with DetectorsBusy (threads.ts).
 */
export async function tryRule(
  deps: RuleDeps,
  { team, workflow }: Asker,
  rule: StoredRule,
  samples: string[],
): Promise<RuleTrial[]> {
  const began = performance.now()
  const trials: RuleTrial[] = []
  await eachOf([...samples.entries()], SAMPLES_AT_ONCE[rule.kind], async ([index, text]) => {
    if (performance.now() - began > TRIAL_MS) {
      trials[index] = describe({ ms: 0, error: 'The samples before it took too long' }, 0)
      return
    }
    const start = performance.now()
    const [judged] = await judgeByRules(deps, { team, workflow, text, rules: [rule] })
    trials[index] = describe(judged!, performance.now() - start)
  })
  return trials
}

function describe(judged: Judged, ms: number): RuleTrial {
  const durationMs = Math.round(ms)
  if (judged.error === undefined) {
    const { hits, more } = judged
    return { flagged: hits.length > 0, matches: hits, more, durationMs }
  }
  const { error, said } = judged
  return { flagged: false, matches: [], more: 0, durationMs, error: said ?? error }
}
