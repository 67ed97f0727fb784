import type { RuleConfigs } from '../../../db/guardrails/rules.ts'
import { cleanText } from '../../../db/text.ts'
import { readCode } from '../../../workflows/javascript/code.ts'
import type { ScriptReads } from '../../../workflows/javascript/reads.ts'
import { isObject } from '../../../workflows/json.ts'
import type { Evaluator } from '../../expressions/evaluator.ts'
import { EXPRESSIONS_BUSY, EXPRESSIONS_DOWN } from '../../expressions/failures.ts'
import type { Asker } from '../../fairness/teamqueue.ts'
import { emptyReads } from '../../javascript/texts.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { MAX_TOLD } from './places.ts'

/** What a rule says of a text: a place in it, or all of it, and what its author says about that. */
export type Hit = { start?: number; end?: number; message?: string; confidence: number }

/**
 * The result of a rule: its hits, and how many there are besides; or why it could not be applied. `said` says it in
 * words that the text may be in. `ms` is processor time.
 */
export type Judged = { ms: number } & (
  | { hits: Hit[]; more: number; most: number; error?: undefined }
  | { error: string; said?: string; hits?: undefined }
)

/** The processor time of a code, in milliseconds, and what its values may take in the sandbox. */
const CODE_RULE_MS = 250
const MEMORY_MB = 32
const PATIENCE_MS = 60_000

/** The longest message of a code that is told. */
const MAX_MESSAGE = 500

/** The code sees the text as `text`. On the line of the code, so that lines keep their numbers. */
const HEAD = 'const text = $input; '

/** What every code reads: checkRuleCode has seen to that when the rule was saved. */
const READS: ScriptReads = { ...emptyReads(), roots: new Set(['input']) }

/** Lists the problems of a code, each in a sentence with its line. */
export function checkRuleCode(code: string): string[] {
  const { problems, roots, nodes } = readCode(HEAD + code)
  if (problems.length > 0) return problems.map(moveColumn)
  const foreign = [...roots].filter((root) => root !== 'input').map((root) => `$${root}`)
  if (nodes.size > 0) foreign.push('$nodes')
  return foreign.length === 0 ? [] : [`sees only the text, as \`text\`: not ${foreign.join(', ')}`]
}

/** Places are those in the code as it was written. */
function moveColumn(message: string): string {
  return message.replace(/\bline 1, column (\d+)/, (_, column: string) => {
    return `line 1, column ${Math.max(1, Number(column) - HEAD.length)}`
  })
}

/**
 * Runs the code of a rule on a text, in a sandbox of its own in an evaluator process. Throws only if no process was
 * free in `patienceMs`.
 */
export async function judgeByCode(
  { evaluator, patienceMs }: { evaluator?: Evaluator | undefined; patienceMs?: number | undefined },
  { team, workflow }: Asker,
  { code }: RuleConfigs['JAVASCRIPT'],
  text: string,
): Promise<Judged> {
  if (!evaluator) return { ms: 0, error: 'this process runs no code' }
  const whole = HEAD + code
  const bindings = { input: text, nodes: {}, trigger: null, vars: {}, execution: { workflowId: workflow } }
  const began = performance.now()
  const job = { text: whole, reads: READS, timeoutMs: CODE_RULE_MS, memoryMb: MEMORY_MB }
  try {
    const { value, spentMs } = await evaluator
      .for({ team, patienceMs: patienceMs ?? PATIENCE_MS })
      .run(job, bindings)
    return { ms: spentMs, ...readVerdict(value, text.length) }
  } catch (error) {
    if (!(error instanceof NodeFailure)) throw error
    const { type, message } = error
    if (type === EXPRESSIONS_BUSY || type === EXPRESSIONS_DOWN) {
      if (patienceMs !== undefined) throw error
      return { ms: 0, error: 'no process was free for it' }
    }
    if (type === 'CodeLimit') return { ms: CODE_RULE_MS, error: message }
    const ms = Math.min(CODE_RULE_MS, performance.now() - began)
    return { ms, error: 'its code failed', said: moveColumn(message) }
  }
}

const NO_VERDICT =
  'its code returned neither true nor false, nor {flagged}, nor {violations: [{start, end, message, confidence}]}'

/** Code that returns nothing has found nothing. A value in none of the forms is a fault, never a pass. */
function readVerdict(value: unknown, length: number): OmitMs<Judged> {
  if (value === undefined || value === null || value === false) return { hits: [], more: 0, most: 0 }
  if (value === true) return { hits: [{ confidence: 1 }], more: 0, most: 0 }
  if (!isObject(value)) return { error: NO_VERDICT }
  const given = value.violations
  if (given === undefined && typeof value.flagged !== 'boolean') return { error: NO_VERDICT }
  if (given !== undefined && !Array.isArray(given)) return { error: NO_VERDICT }
  const found = given ?? (value.flagged ? [value] : [])
  const hits: Hit[] = []
  for (const [index, one] of found.entries()) {
    const hit = readHit(one, length)
    if (typeof hit === 'string')
      return { error: `its code returned ${given ? `violations[${index}]` : 'an answer'} with ${hit}` }
    if (hits.length < MAX_TOLD) hits.push(hit)
  }
  // A list that contradicts its flag is not what its author meant, either way.
  if (given && value.flagged === true && hits.length === 0)
    return { hits: [{ confidence: 1 }], more: 0, most: 0 }
  return { hits, more: found.length - hits.length, most: Number.POSITIVE_INFINITY }
}

type OmitMs<T> = T extends unknown ? Omit<T, 'ms'> : never

/** A hit, or what is wrong with it. */
function readHit(value: unknown, length: number): Hit | string {
  if (!isObject(value)) return 'something that is no object'
  const { start, end, message, confidence = 1 } = value
  const hit: Hit = { confidence: 1 }
  if (typeof confidence !== 'number' || !(confidence >= 0 && confidence <= 1))
    return 'a confidence that is not from 0 to 1'
  hit.confidence = confidence
  if (message !== undefined && message !== null) {
    if (typeof message !== 'string') return 'a message that is no string'
    hit.message = cleanText(message, MAX_MESSAGE)
  }
  if ((start ?? undefined) === undefined && (end ?? undefined) === undefined) return hit
  if (!isPlace(start, length) || !isPlace(end, length) || start > end)
    return `a place that is not in the text: start and end are whole numbers from 0 to its length`
  return Object.assign(hit, { start, end })
}

const isPlace = (value: unknown, length: number): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= length
