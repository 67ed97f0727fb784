import type { Rules } from '../../workflows/expressions/rules.ts'
import type { FileResult, FileWork } from '../files/formats/work.ts'
import type { LargeAnswer, writeAnswer } from '../http/answer.ts'
import { SCRIPT_LOAD_MS, type ScriptFault, type ScriptJob, type ScriptReply } from '../javascript/job.ts'
import type { FormatConversion } from './formats.ts'

/**
 * A job for an evaluator process: evaluate expressions, evaluate one or several for each item, convert a format, read a
 * large answer, read or write a file, or run a script. `roots` and `items` are JSON: the values that the expressions
 * read, and the items.
 */
export type EvaluatorJob =
  | ExpressionJob
  | RowsJob
  | { conversion: FormatConversion }
  | { answer: LargeAnswer }
  | { file: FileWork }
  | ScriptJob
export type ExpressionJob = { roots: string; sources: ExpressionSource[] } | EachJob
/** Several expressions for each item: `indexes` are the items' numbers. What fails fails its item only. */
export type RowsJob = { roots: string; items: string; indexes: number[]; rows: ExpressionSource[] }
type EachJob = { roots: string; items: string; each: ExpressionSource; filter: boolean }

/**
 * `context`: the expression reads names without a variable, so `$input` is its context. `watch`: whether its paths that
 * lead nowhere are told, because some are known to be missing, or only if it finds nothing.
 */
export type ExpressionSource = { text: string; context: boolean; rules: Rules; watch?: 'always' | 'nothing' }

/** The paths of an expression of a job that lead nowhere, each in a sentence. */
export type Misses = { at: number; messages: string[] }

/**
 * The messages of an evaluator process. The result of a job is `values` (the JSON of each, null for nothing),
 * `kept` (the indexes of the items that a filter kept), `mapped` (the JSON of all values), `rows` (the JSON of a
 * list of RowReply), `answer`, `file`, `script` or `fault` (of a script), or `error` (at expression `at`). `odd` says of the
 * first condition of a filter that was no boolean what it was.
 */
export type EvaluatorReply =
  | { kind: 'ready' }
  | { kind: 'progress' }
  | { kind: 'values'; values: (string | null)[]; misses?: Misses[] }
  | { kind: 'kept'; kept: number[]; misses?: Misses[]; odd?: string | undefined }
  | { kind: 'mapped'; text: string; misses?: Misses[] }
  | { kind: 'rows'; text: string; misses?: Misses[] }
  | { kind: 'answer'; answer: ReturnType<typeof writeAnswer> }
  | { kind: 'file'; result: FileResult }
  | ScriptReply
  | ScriptFault
  | { kind: 'error'; at: number; cause: EvaluatorFault; message: string }

/** The values of one item's expressions, each in a list of its own that is empty for nothing; or the first fault. */
export type RowReply = unknown[][] | { at: number; cause: EvaluatorFault; message: string }

/**
 * Why a job failed. `DOWN` and `BUSY` come from the pool: no process could be started or the service is
 * stopping; or none was free while the one who asked had patience.
 */
export type EvaluatorFault = 'TIMEOUT' | 'TOTAL' | 'MEMORY' | 'SIZE' | 'ERROR' | 'DOWN' | 'BUSY'

/** All expressions of a job together, one conversion or one answer may take this many times the limit of one. */
export const JOB_TIME_FACTOR = 5

/** A file may take this many times the limit of one expression. */
const FILE_TIME_FACTOR = 10

/** How far past its own limit a script may go to tell its result: it may have to clean up its memory first. */
const SCRIPT_GRACE_MS = 800

/**
 * How much processor time a job may take until its first reply, and from each report of progress until the next,
 * in milliseconds; `timeoutMs` is the limit of one expression. Conversions, answers and files get more, because most
 * parsers cannot report progress. A script reports once, when its own evaluation begins.
 */
export function findTimeToReply(job: EvaluatorJob, timeoutMs: number): { first: number; further: number } {
  if ('script' in job) {
    const own = job.script.limits.timeoutMs + SCRIPT_GRACE_MS
    return { first: own + SCRIPT_LOAD_MS, further: own }
  }
  return { first: timeoutMs * findTimeFactor(job), further: timeoutMs }
}

/** How long a conversion, an answer or a file may take, as a multiple of one expression's limit. */
export function findTimeFactor(job: EvaluatorJob): number {
  if ('file' in job) return FILE_TIME_FACTOR
  if ('answer' in job) return JOB_TIME_FACTOR
  return 'conversion' in job && job.conversion.kind !== 'date' ? JOB_TIME_FACTOR : 1
}
