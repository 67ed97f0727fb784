import type { StoredRule } from '../../../db/guardrails/enabled.ts'
import type { RuleConfigs } from '../../../db/guardrails/rules.ts'
import type { Evaluator } from '../../expressions/evaluator.ts'
import type { Asker } from '../../fairness/teamqueue.ts'
import type { UsageMeter } from '../../models/meter.ts'
import type { AskModel } from '../model/ask.ts'
import type { DetectorPool } from '../pool.ts'
import type { RuleResult, ThreadKind, ThreadRule } from './compiled.ts'
import { type Judged, judgeByCode } from './javascript.ts'

/** What rules need. Those of a kind for which something is missing cannot be applied. */
export type RuleDeps = {
  pool: DetectorPool
  evaluator?: Evaluator | undefined
  askModel?: AskModel | undefined
  /** How long a rule may wait for a thread or a process, if its caller will ask again: then it rejects. */
  patienceMs?: number | undefined
}

/** A text that rules are applied to, for whom. */
export type RuleRequest = Asker & {
  text: string
  rules: StoredRule[]
  /** The meter of an attempt: its model calls then count for the execution. */
  meter?: UsageMeter | undefined
  /** Ends the calls to models. */
  signal?: AbortSignal | undefined
}

/** The processor time of all rules that work in threads, and of all code. */
const RULES_MS = 2_000
/** How long all rules that ask a model may wait for it, by the clock. */
const MODEL_MS = 10_000
const CODES_AT_ONCE = 2
const QUESTIONS_AT_ONCE = 4

const NO_TIME = 'there was no time left for it'

/**
 * What each rule says of a text, in their order. Patterns and lists are looked for in a thread, code runs in evaluator
 * processes, models are asked, all side by side. Rejects with DetectorsBusy (threads.ts) when no thread was free in time.
 */
export async function judgeByRules(deps: RuleDeps, request: RuleRequest): Promise<Judged[]> {
  const { rules } = request
  const judged = new Map<StoredRule, Judged>()
  const of = (...kinds: StoredRule['kind'][]) => rules.filter(({ kind }) => kinds.includes(kind))
  await Promise.all([
    judgeInThread(deps, request, of('REGEX', 'KEYWORD_LIST'), judged),
    judgeWithCode(deps, request, of('JAVASCRIPT'), judged),
    judgeWithModel(deps, request, of('LLM_PROMPT'), judged),
  ])
  return rules.map((rule) => judged.get(rule)!)
}

async function judgeInThread(
  { pool, patienceMs }: RuleDeps,
  { team, workflow, text }: RuleRequest,
  rules: StoredRule[],
  judged: Map<StoredRule, Judged>,
): Promise<void> {
  if (rules.length === 0) return
  const sent = rules.map(({ id, version, kind, config }): ThreadRule => {
    return { id, version, kind: kind as ThreadKind, config }
  })
  const results = await pool.apply({ team, workflow }, { text, rules: sent }, RULES_MS, patienceMs)
  for (const [index, rule] of rules.entries()) judged.set(rule, readResult(results[index]!))
}

function readResult(result: RuleResult): Judged {
  const { ms } = result
  if (result.error !== undefined) return { ms, error: result.error }
  const { spans, more, most } = result
  return { ms, hits: spans.map((span) => ({ ...span, confidence: 1 })), more, most }
}

async function judgeWithCode(
  deps: RuleDeps,
  asker: RuleRequest,
  rules: StoredRule[],
  judged: Map<StoredRule, Judged>,
): Promise<void> {
  let spent = 0
  await eachOf(rules, CODES_AT_ONCE, async (rule) => {
    if (spent >= RULES_MS) judged.set(rule, { ms: 0, error: NO_TIME })
    else {
      const config = JSON.parse(rule.config) as RuleConfigs['JAVASCRIPT']
      const one = await judgeByCode(deps, asker, config, asker.text)
      spent += one.ms
      judged.set(rule, one)
    }
  })
}

async function judgeWithModel(
  { askModel }: RuleDeps,
  { team, text, meter, signal: given }: RuleRequest,
  rules: StoredRule[],
  judged: Map<StoredRule, Judged>,
): Promise<void> {
  if (rules.length === 0) return
  const clock = AbortSignal.timeout(MODEL_MS)
  const signal = given ? AbortSignal.any([clock, given]) : clock
  const over = new Promise<{ error: string }>((resolve) => {
    signal.addEventListener('abort', () => resolve({ error: 'the model took too long' }))
  })
  await eachOf(rules, QUESTIONS_AT_ONCE, async (rule) => {
    const began = performance.now()
    if (!askModel || signal.aborted) {
      judged.set(rule, { ms: 0, error: askModel ? NO_TIME : 'this process asks no models' })
      return
    }
    const { instruction } = JSON.parse(rule.config) as RuleConfigs['LLM_PROMPT']
    const verdict = await Promise.race([
      askModel({ team, purpose: 'rule', instruction, text, signal, meter }),
      over,
    ])
    judged.set(rule, { ms: performance.now() - began, ...readVerdict(verdict) })
  })
}

function readVerdict(verdict: Awaited<ReturnType<AskModel>>) {
  if ('error' in verdict) return { error: verdict.error }
  const hits = verdict.flagged ? [{ confidence: Math.min(1, Math.max(0, verdict.confidence)) }] : []
  return { hits, more: 0, most: 0 }
}

/** Does work for each of a list, for so many at once. */
export async function eachOf<T>(list: T[], atOnce: number, work: (one: T) => Promise<void>): Promise<void> {
  const left = list.values()
  const follow = async () => {
    for (const one of left) await work(one)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, list.length) }, follow))
}
