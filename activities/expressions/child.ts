import jsonata from 'jsonata'
import { LRUCache } from 'lru-cache'
import type { Rules } from '../../workflows/expressions/rules.ts'
import type { FileWork } from '../files/formats/work.ts'
import type { LargeAnswer } from '../http/answer.ts'
import type { ScriptJob } from '../javascript/job.ts'
import { startStopwatch } from '../stopwatch.ts'
import type { FormatConversion } from './formats.ts'
import type {
  EvaluatorFault,
  EvaluatorJob,
  EvaluatorReply,
  ExpressionJob,
  ExpressionSource,
  Misses,
  RowsJob,
} from './job.ts'
import { toPlain } from './plain.ts'
import { LinearRegex } from './regex.ts'
import { bindRules, describeTruth, isTruthy } from './truth.ts'
import { traceExpression } from './watch/misses.ts'

/**
 * The program of an evaluator process: evaluates what users write, one job at a time, without secrets or the
 * rest of the service. The process is killed if a job takes too long; a heap overflow ends only this process.
 */

const [timeoutMs = 1_000, totalMs = 5_000, maxChars = 8_000_000] = process.argv.slice(2).map(Number)
const PROGRESS_MS = 100

/** Compiled expressions are kept, up to this many characters of their sources. */
const KEPT = { maxSize: 200_000, sizeCalculation: (_: unknown, text: string) => text.length }
const expressions = new LRUCache<string, jsonata.Expression>(KEPT)

/** Measures the expression that is being evaluated. */
let stopwatch = startStopwatch(timeoutMs)

const OPTIONS = {
  RegexEngine: LinearRegex as unknown as RegExpConstructor,
  /** JSONata asks for its limit at every step, and compares it with the clock: ours is no such time. */
  get timeout() {
    if (stopwatch.isOver()) throw Object.assign(new Error('out of time'), { code: 'D1012' })
    return Number.POSITIVE_INFINITY
  },
}

function compileSource({ text, rules }: ExpressionSource): jsonata.Expression {
  const key = `${rules} ${text}`
  const known = expressions.get(key)
  if (known) return known
  const expression = compileAnew(text, rules)
  expressions.set(key, expression)
  return expression
}

function compileAnew(text: string, rules: Rules): jsonata.Expression {
  const expression = bindRules(jsonata(text, OPTIONS), rules)
  expression.registerFunction('eval', () => {
    throw new Error('$eval is not available')
  })
  return expression
}

/** An expression that notes the paths that lead nowhere. */
function compileTraced({ text, rules }: ExpressionSource) {
  const expression = compileAnew(text, rules)
  return { expression, trace: traceExpression(expression) }
}

/** Begins to measure a job. The function that it returns begins an evaluation; false if the job is out of time. */
function startSteps(): () => boolean {
  const whole = startStopwatch(totalMs)
  let reportedAt = performance.now()
  return () => {
    if (whole.isOver()) return false
    stopwatch = startStopwatch(timeoutMs)
    const time = performance.now()
    if (time - reportedAt > PROGRESS_MS) {
      reportedAt = time
      reply({ kind: 'progress' })
    }
    return true
  }
}

async function runRows(job: RowsJob, step: () => boolean): Promise<EvaluatorReply> {
  let roots = readRoots(job)
  const items = JSON.parse(job.items) as unknown[]
  const rows: string[] = []
  const traced = job.rows.map((source) => (source.watch === 'always' ? compileTraced(source) : undefined))
  let chars = 0
  for (const [place, item] of items.entries()) {
    const values: string[] = []
    let fault: EvaluatorReply | undefined
    for (const [at, source] of job.rows.entries()) {
      if (!step()) return failJob(at, 'TOTAL')
      const spoils = source.text.includes('{')
      const own = spoils && job.items.includes('[]') ? structuredClone(item) : item
      try {
        const bindings = { ...roots, item: own, index: job.indexes[place] }
        const expression = traced[at]?.expression ?? compileSource(source)
        const value = toPlain(await expression.evaluate(contextOf(source, roots), bindings))
        values.push(value === undefined ? '[]' : `[${JSON.stringify(value)}]`)
      } catch (error) {
        fault = describeThrown(at, error)
        if (fault.kind === 'error' && fault.cause === 'MEMORY') return fault
      }
      if (maySpoilRoots(job, source)) roots = readRoots(job)
      if (fault) break
    }
    const row = fault ? JSON.stringify(fault) : `[${values.join(',')}]`
    chars += row.length
    if (chars > maxChars) return failJob(job.rows.length - 1, 'SIZE')
    rows.push(row)
  }
  const misses = traced.flatMap((one, at) => (one ? [{ at, messages: one.trace.misses() }] : []))
  return { kind: 'rows', text: `[${rows.join(',')}]`, ...(misses.length > 0 ? { misses } : {}) }
}

async function runJob(job: EvaluatorJob): Promise<EvaluatorReply> {
  if ('conversion' in job) return runConversion(job.conversion)
  if ('answer' in job) return readAnswer(job.answer)
  if ('file' in job) return runFileWork(job.file)
  if ('script' in job) return evaluateScript(job)
  const step = startSteps()
  if ('rows' in job) return runRows(job, step)
  let at = 0
  try {
    let roots = readRoots(job)
    const items = 'items' in job ? (JSON.parse(job.items) as unknown[]) : []
    const length = 'items' in job ? items.length : job.sources.length
    const values: (string | null)[] = []
    const kept: number[] = []
    let chars = 0
    const watch = createWatch(job)
    for (; at < length; at++) {
      if (!step()) return failJob(at, 'TOTAL')
      const source = 'items' in job ? job.each : job.sources[at]!
      const bindings = 'items' in job ? { ...roots, item: items[at], index: at } : roots
      const expression = watch.expressionOf(source)
      const value = toPlain(await expression.evaluate(contextOf(source, roots), bindings))
      if (value !== undefined) watch.found()
      else await watch.lookAgain(source, at, { context: contextOf(source, roots), bindings })
      if ('items' in job && job.filter) {
        watch.judge(source, value)
        if (isTruthy(value)) kept.push(at)
      } else {
        const text = value === undefined ? null : JSON.stringify(value)
        chars += text?.length ?? 0
        if (chars > maxChars) return failJob(at, 'SIZE')
        values.push(text)
      }
      if (maySpoilRoots(job, source)) roots = readRoots(job)
    }
    const told = watch.told()
    if (!('items' in job)) return { kind: 'values', values, ...told }
    if (job.filter) return { kind: 'kept', kept, ...told }
    return { kind: 'mapped', text: `[${values.map((text) => text ?? 'null').join(',')}]`, ...told }
  } catch (error) {
    return describeThrown(at, error)
  }
}

/**
 * The number of items without a value for which an expression is evaluated again, to find the paths that lead nowhere.
 */
const MAX_AGAIN = 100

/** Watches the expressions of a job for paths that lead nowhere, if they are to be watched. */
function createWatch(job: ExpressionJob) {
  const traced = new Map<ExpressionSource, ReturnType<typeof compileTraced>>()
  let again = 0
  let someFound = false
  let odd: string | undefined
  const traceOf = (source: ExpressionSource) => {
    const known = traced.get(source) ?? compileTraced(source)
    traced.set(source, known)
    return known
  }
  return {
    expressionOf: (source: ExpressionSource) =>
      source.watch === 'always' ? traceOf(source).expression : compileSource(source),
    found(): void {
      someFound = true
    },
    async lookAgain(
      source: ExpressionSource,
      at: number,
      { context, bindings }: { context: unknown; bindings: Record<string, unknown> },
    ): Promise<void> {
      // For a list, only if the first items all give nothing.
      if (source.watch !== 'nothing' || ('items' in job && (someFound || again !== at || again >= MAX_AGAIN)))
        return
      again++
      // That it gave nothing is its result, whatever becomes of this.
      await traceOf(source)
        .expression.evaluate(context, bindings)
        .catch(() => {})
    },
    judge(source: ExpressionSource, value: unknown): void {
      if (source.watch && odd === undefined) odd = describeTruth(value)
    },
    told(): { misses?: Misses[]; odd?: string } {
      const misses = [...traced].map(([source, { trace }]) => ({
        at: 'items' in job ? 0 : job.sources.indexOf(source),
        messages: 'items' in job && source.watch === 'nothing' && someFound ? [] : trace.misses(),
      }))
      return { ...(misses.length > 0 ? { misses } : {}), ...(odd === undefined ? {} : { odd }) }
    },
  }
}

/** Converts a format. The parsers are loaded only by a process that needs them. */
async function runConversion(conversion: FormatConversion): Promise<EvaluatorReply> {
  try {
    const { convertFormat } = await import('./convert.ts')
    const text = JSON.stringify(await convertFormat(conversion))
    return text.length > maxChars ? failJob(0, 'SIZE') : { kind: 'values', values: [text] }
  } catch (error) {
    return describeThrown(0, error)
  }
}

async function readAnswer(answer: LargeAnswer): Promise<EvaluatorReply> {
  try {
    const { writeAnswer } = await import('../http/answer.ts')
    return { kind: 'answer', answer: writeAnswer(answer) }
  } catch (error) {
    return describeThrown(0, error)
  }
}

/** Reads or writes a file. Its parsers are loaded only by a process that needs them. */
async function runFileWork(work: FileWork): Promise<EvaluatorReply> {
  try {
    const { workOnFile } = await import('../files/formats/run.ts')
    return { kind: 'file', result: await workOnFile(work) }
  } catch (error) {
    return describeThrown(0, error)
  }
}

/** The sandbox is loaded only by a process that needs it. */
async function evaluateScript(job: ScriptJob): Promise<EvaluatorReply> {
  try {
    const { runScript } = await import('../javascript/run.ts')
    return await runScript(job, () => reply({ kind: 'progress' }))
  } catch (error) {
    return describeThrown(-1, error)
  }
}

function readRoots(job: ExpressionJob | RowsJob): Record<string, unknown> {
  return JSON.parse(job.roots)
}

function contextOf(source: ExpressionSource, roots: Record<string, unknown>): unknown {
  return source.context ? roots.input : undefined
}

/** JSONata's object constructor writes into empty arrays, so the next expression needs fresh roots. */
function maySpoilRoots(job: ExpressionJob | RowsJob, source: ExpressionSource): boolean {
  return source.text.includes('{') && job.roots.includes('[]')
}

function failJob(at: number, cause: EvaluatorFault, message = ''): EvaluatorReply {
  return { kind: 'error', at, cause, message }
}

function describeThrown(at: number, error: unknown): EvaluatorReply {
  const { code, message } = (error ?? {}) as { code?: string; message?: string }
  if (code === 'D1012') return failJob(at, 'TIMEOUT')
  if (error instanceof RangeError && /call stack/.test(error.message)) {
    return failJob(at, 'ERROR', 'is nested too deeply')
  }
  if (error instanceof RangeError) return failJob(at, 'MEMORY')
  return failJob(at, 'ERROR', String(message ?? error).slice(0, 500))
}

function reply(message: EvaluatorReply): void {
  // Errors are ignored: if the service is gone, `disconnect` ends this process.
  process.send?.(message, () => {})
}

// Ctrl-C reaches the whole process group, but this process must work on until the service ends it.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
process.on('disconnect', () => process.exit(0))
process.on('message', (job: EvaluatorJob) => void runJob(job).then(reply))
Object.preventExtensions(Object.prototype)
reply({ kind: 'ready' })
