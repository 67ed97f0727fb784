import type { Rules } from '../../workflows/expressions/rules.ts'
import type { LargeAnswer, writeAnswer } from '../http/answer.ts'
import type { FormatConversion } from './formats.ts'

/**
 * A job for an evaluator process: evaluate expressions, evaluate one expression for each item, convert a
 * format, or read a large answer. `roots` and `items` are JSON: the values that the expressions read, and the
 * items.
 */
export type EvaluatorJob = ExpressionJob | { conversion: FormatConversion } | { answer: LargeAnswer }
export type ExpressionJob = { roots: string; sources: ExpressionSource[] } | EachJob
type EachJob = { roots: string; items: string; each: ExpressionSource; filter: boolean }

/** `context`: the expression reads names without a variable, so `$input` is its context. */
export type ExpressionSource = { text: string; context: boolean; rules: Rules }

/**
 * The messages of an evaluator process. The result of a job is `values` (the JSON of each, null for nothing),
 * `kept` (the indexes of the items that a filter kept), `mapped` (the JSON of all values), `answer` or `error`
 * (at expression `at`).
 */
export type EvaluatorReply =
  | { kind: 'ready' }
  | { kind: 'progress' }
  | { kind: 'values'; values: (string | null)[] }
  | { kind: 'kept'; kept: number[] }
  | { kind: 'mapped'; text: string }
  | { kind: 'answer'; answer: ReturnType<typeof writeAnswer> }
  | { kind: 'error'; at: number; cause: EvaluatorFault; message: string }

/**
 * Why a job failed. `DOWN` and `BUSY` come from the pool: no process could be started or the service is
 * stopping; or none was free while the one who asked had patience.
 */
export type EvaluatorFault = 'TIMEOUT' | 'TOTAL' | 'MEMORY' | 'SIZE' | 'ERROR' | 'DOWN' | 'BUSY'

/** All expressions of a job together, one conversion or one answer may take this many times the limit of one. */
export const JOB_TIME_FACTOR = 5

/**
 * How long a job may go without a reply, as a multiple of one expression's limit. Conversions and answers get
 * more, because most parsers cannot report progress.
 */
export function findTimeFactor(job: EvaluatorJob): number {
  if ('answer' in job) return JOB_TIME_FACTOR
  return 'conversion' in job && job.conversion.kind !== 'date' ? JOB_TIME_FACTOR : 1
}
