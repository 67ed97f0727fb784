import { availableParallelism } from 'node:os'
import type { WrittenOutput } from '../../db/executions/records/written.ts'
import type { Reading } from '../../workflows/expressions/rules.ts'
import type { FileResult, FileWork } from '../files/formats/work.ts'
import type { LargeAnswer } from '../http/answer.ts'
import { type Code, type CodeResult, runCodeAway } from '../javascript/scripts.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { evaluateRows, type ItemRow, type RowsHow } from '../run/items/rows.ts'
import { type Bindings, findQueueKey } from './bindings.ts'
import { type EvaluationDeps, evaluateAll, findHolding, mapItems } from './evaluation.ts'
import { describeFault, describeReply, type ExpressionLimits } from './failures.ts'
import type { FormatConversion } from './formats.ts'
import { findTimeFactor } from './job.ts'
import { createEvaluatorPool, type EvaluatorPool, type PoolAsker } from './pool.ts'
import { collectExpressions, compileBareExpression, compileCondition, holds, isScript } from './templates.ts'
import { createWatch } from './watch/watch.ts'

/**
 * Evaluates what users write. All methods throw a NodeFailure: ExpressionFailed, ExpressionLimit for time,
 * memory and size, or ExpressionsUnavailable (retryable) if no process can be had. Results may share the
 * values that the expressions read: do not change them.
 */
export type Evaluator = {
  /**
   * Renders every string in a config value. A string that is a single expression becomes its value of any
   * JSON type, or null if it finds nothing. In a string with other text around, nothing becomes '' and
   * objects become JSON.
   */
  render(value: unknown, bindings: Bindings): Promise<unknown>
  /** Tests a condition: a boolean, or an expression with or without `{{ }}`, cast as by `$boolean`. */
  test(condition: unknown, bindings: Bindings): Promise<boolean>
  /** The indexes of the items for which the condition holds, with `$item` and `$index` bound. */
  holding(items: unknown[], condition: unknown, bindings: Bindings): Promise<number[]>
  /** The value of one expression, with or without `{{ }}`; null if it finds nothing. */
  evaluate(expression: unknown, bindings: Bindings): Promise<unknown>
  /** The value of one expression for each item, with `$item` and `$index` bound. */
  map(items: unknown[], expression: unknown, bindings: Bindings): Promise<unknown[]>
  /**
   * As render, test or evaluate (`how`), for each row, with its `$item` and `$index` bound. A row whose expressions
   * fail gives its NodeFailure; what hinders all rows is thrown.
   */
  rows(how: RowsHow, value: unknown, rows: ItemRow[], bindings: Bindings): Promise<unknown[]>
  /** Runs the code of a node. Fails with CodeFailed or CodeLimit. */
  run(code: Code, bindings: Bindings): Promise<CodeResult>
  /**
   * Reads or writes XML, HTML or a formatted date, or checks a value against a JSON Schema. Invalid input fails with
   * InvalidInput.
   */
  convert(conversion: FormatConversion, bindings: Bindings): Promise<unknown>
  /**
   * Reads a large answer and writes it as an output. `what` begins the message of a failure: InvalidResponse,
   * OutputTooLarge, or for an answer on which a process ends or spends too long, HttpTooLarge (retryable).
   */
  readAnswer(
    answer: LargeAnswer,
    what: string,
    bindings: Bindings,
  ): Promise<{ output: WrittenOutput; warnings: string[] }>
  /**
   * Reads or writes a file. `what` begins the message of a failure: what the work itself fails with, or FileTooLarge if
   * it takes too long or too much memory.
   */
  workOnFile(work: FileWork, what: string, bindings: Bindings): Promise<FileDone>
  /** The same evaluator, for the expressions of a graph version, which say what they mean. */
  under(reading: Reading): Evaluator
  /** The same evaluator for one asker: a team that shares the processes with others. */
  for(asker: EvaluatorAsker): Evaluator
  /** From now on only answers are read: all else fails with ExpressionsUnavailable, what is under way too. */
  drain(): void
  close(): Promise<void>
}

/** The result of work on a file that did not fail. */
type FileDone = Exclude<FileResult, { fault: unknown }>

/**
 * Who asks. Without it each workflow counts as a team. An evaluation that gets no process in `patienceMs` fails
 * with ExpressionsBusy; one whose `signal` is aborted before it gets one throws the signal's reason.
 */
type EvaluatorAsker = Partial<Omit<PoolAsker, 'workflow'>>

/**
 * How long an evaluation waits for a process, unless its asker says otherwise. An attempt may have waited for
 * its share before (activities/run/share.ts): with that, it stays well below what Temporal's limit on it
 * leaves beyond the node's own.
 */
const PATIENCE_MS = 30_000

/** The most characters of JSON of all results of one call. */
const MAX_RESULT = 8_000_000

export function createEvaluator(
  options: {
    processes?: number
    timeoutMs?: number
    heapMb?: number
    patienceMs?: number
    /** How long an evaluation may take by the clock, which only a machine without processor time needs. */
    farMs?: number
    /** The most characters of JSON of all results of one call. */
    maxChars?: number
  } = {},
): Evaluator {
  // Twice as many as can work at once: a team never has more than half of them.
  const { timeoutMs = 1_000, heapMb = 128, processes = 2 * Math.min(4, availableParallelism()) } = options
  const limits = { timeoutMs, heapMb, maxChars: options.maxChars ?? MAX_RESULT }
  const asker = { patienceMs: options.patienceMs ?? PATIENCE_MS }
  return createEvaluatorFor(
    createEvaluatorPool({ processes, farMs: options.farMs, ...limits }),
    limits,
    asker,
    { rules: 1, strict: false },
  )
}

function createEvaluatorFor(
  pool: EvaluatorPool,
  limits: ExpressionLimits,
  asker: EvaluatorAsker,
  reading: Reading,
): Evaluator {
  const { rules } = reading
  const watch = createWatch(reading)
  const depsOf = (who: EvaluatorAsker): EvaluationDeps => ({
    limits,
    rules,
    watch,
    pool: { run: (workflow, prepare) => pool.run({ team: workflow, ...who, workflow }, prepare) },
  })
  const deps = depsOf(asker)
  return {
    async render(value, bindings) {
      const { expressions, fill } = await collectExpressions(value, rules)
      return fill ? fill(await evaluateAll(deps, expressions, bindings)) : value
    },
    async test(condition, bindings) {
      const expression = await compileCondition(condition, rules)
      if (typeof expression === 'boolean') return expression
      const [value] = await evaluateAll(deps, [expression], bindings)
      if (!isScript(expression)) watch?.judge(expression.text, value)
      return holds(expression, value)
    },
    async holding(items, condition, bindings) {
      const expression = await compileCondition(condition, rules)
      if (typeof expression === 'boolean') return expression ? [...items.keys()] : []
      return findHolding(deps, items, expression, bindings)
    },
    async evaluate(text, bindings) {
      const [value] = await evaluateAll(deps, [await compileBareExpression(text, rules)], bindings)
      return value ?? null
    },
    async map(items, text, bindings) {
      return mapItems(deps, items, await compileBareExpression(text, rules), bindings)
    },
    rows: (how, value, rows, bindings) => evaluateRows(deps, how, value, rows, bindings),
    run: (code, bindings) => runCodeAway(deps, code, bindings),
    convert: (conversion, bindings) => convertAway(deps, conversion, bindings),
    readAnswer(answer, what, bindings) {
      // The call has been made: without its answer it would have to be made again.
      const patient = depsOf({ ...asker, patienceMs: undefined, answered: true })
      return readAnswerAway(patient, answer, what, bindings)
    },
    workOnFile: (work, what, bindings) => workOnFileAway(deps, work, what, bindings),
    under: (other) => createEvaluatorFor(pool, limits, asker, other),
    for: (other) => createEvaluatorFor(pool, limits, { ...asker, ...other }, reading),
    drain: pool.drain,
    close: pool.close,
  }
}

const WHATS: Partial<Record<FormatConversion['kind'], string>> = {
  schema: 'the JSON Schema',
  openapi: 'the OpenAPI document',
}

async function convertAway(
  { pool, limits }: EvaluationDeps,
  conversion: FormatConversion,
  bindings: Bindings,
): Promise<unknown> {
  const job = { conversion }
  const reply = await pool.run(findQueueKey(bindings), () => job)
  if (reply.kind === 'values') return JSON.parse(reply.values[0]!)
  if (reply.kind !== 'error') throw describeReply(reply, [], limits)
  const what = WHATS[conversion.kind] ?? `the ${conversion.kind.toUpperCase()}`
  if (reply.cause === 'ERROR') {
    throw new NodeFailure(`${what} cannot be converted: ${reply.message}`, { type: 'InvalidInput' })
  }
  const timeoutMs = limits.timeoutMs * findTimeFactor(job)
  throw describeFault(reply.cause, what, { ...limits, timeoutMs }, reply.message)
}

async function readAnswerAway(
  { pool, limits }: EvaluationDeps,
  answer: LargeAnswer,
  what: string,
  bindings: Bindings,
): Promise<{ output: WrittenOutput; warnings: string[] }> {
  const job = { answer }
  const reply = await pool.run(findQueueKey(bindings), () => job)
  if (reply.kind === 'answer') {
    if ('output' in reply.answer) return reply.answer
    const { fault, message } = reply.answer
    if (fault === 'size') throw new NodeFailure(message, { type: 'OutputTooLarge' })
    throw new NodeFailure(`${what} and a body that ${message}`, { type: 'InvalidResponse' })
  }
  if (reply.kind !== 'error' || reply.cause === 'DOWN') throw describeReply(reply, [], limits)
  const seconds = (limits.timeoutMs * findTimeFactor(job)) / 1_000
  const needs =
    reply.cause === 'TIMEOUT' ? `takes more than ${seconds} s` : `takes more than ${limits.heapMb} MB`
  const message = `${what} and a body that ${needs} to be read`
  throw new NodeFailure(message, { type: 'HttpTooLarge', retryable: true })
}

async function workOnFileAway(
  { pool, limits }: EvaluationDeps,
  work: FileWork,
  what: string,
  bindings: Bindings,
): Promise<FileDone> {
  const job = { file: work }
  const reply = await pool.run(findQueueKey(bindings), () => job)
  if (reply.kind === 'file') {
    if (!('fault' in reply.result)) return reply.result
    throw new NodeFailure(reply.result.message, { type: reply.result.fault })
  }
  if (reply.kind !== 'error' || reply.cause === 'DOWN' || reply.cause === 'BUSY')
    throw describeReply(reply, [], limits)
  if (reply.cause === 'ERROR') throw new NodeFailure(`${what} ${reply.message}`, { type: 'InvalidInput' })
  const seconds = (limits.timeoutMs * findTimeFactor(job)) / 1_000
  const needs =
    reply.cause === 'TIMEOUT' ? `takes more than ${seconds} s of processor time` : 'takes too much memory'
  throw new NodeFailure(`${what} ${needs}`, { type: 'FileTooLarge' })
}
