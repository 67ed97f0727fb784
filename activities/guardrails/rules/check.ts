import type { RuleConfigs, RuleKind } from '../../../db/guardrails/rules.ts'
import type { Problem } from '../../../workflows/problem.ts'
import type { Asker } from '../../fairness/teamqueue.ts'
import type { DetectorPool } from '../pool.ts'
import type { ThreadKind } from './compiled.ts'

/** The processor time that a pattern or a list may take to be compiled. */
const COMPILE_MS = 1_000

const FIELDS = { REGEX: 'pattern', KEYWORD_LIST: 'keywords' } as const
const isOfThread = (kind: RuleKind): kind is ThreadKind => kind in FIELDS

/**
 * Lists the problems of a config that only show when it is compiled, which is done in a thread.
 * Rejects with DetectorsBusy (threads.ts).
 */
export async function checkRuleConfig(
  pool: DetectorPool,
  asker: Asker,
  kind: RuleKind,
  config: RuleConfigs[RuleKind],
): Promise<Problem[]> {
  if (!isOfThread(kind)) return []
  const rule = { id: '', version: 0, kind, config: JSON.stringify(config) }
  const [result] = await pool.apply(asker, { text: '', rules: [rule] }, COMPILE_MS)
  const { error } = result!
  if (error === undefined) return []
  const message = error
    .replace(/^the (pattern|list) /, '')
    .replace(/^It took too long$/, 'takes too long to compile')
  return [{ path: `config.${FIELDS[kind]}`, message }]
}
