import type { Bindings } from '../../expressions/bindings.ts'
import { findQueueKey } from '../../expressions/bindings.ts'
import { evaluateHere, findDirectly, isLightForAll, NOT_DIRECT } from '../../expressions/compiled.ts'
import {
  createResultBound,
  describeSource,
  type EvaluationDeps,
  writeRootsOf,
} from '../../expressions/evaluation.ts'
import { describeFault, describeReply, quoteExpression } from '../../expressions/failures.ts'
import type { RowReply } from '../../expressions/job.ts'
import { createPacer } from '../../expressions/pace.ts'
import {
  type AnyExpression,
  collectExpressions,
  compileBareExpression,
  compileCondition,
  holds,
  isScript,
} from '../../expressions/templates.ts'
import { type PlacedExpression, traceHere, type Watch } from '../../expressions/watch/watch.ts'
import { evaluateScriptsForEach } from '../../javascript/evaluate.ts'
import type { CompiledScript } from '../../javascript/texts.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'

/** An item of a node, and its number. */
export type ItemRow = { item: unknown; index: number }

/** How a value of the config is evaluated: its expressions are filled in, or it is a condition, or one expression. */
export type RowsHow = 'render' | 'test' | 'evaluate'

/**
 * Evaluates a value of a config for each row, with `$item` and `$index` bound: light expressions on this thread,
 * all others of all rows by one job. A row whose expressions fail gives its NodeFailure.
 */
export async function evaluateRows(
  deps: EvaluationDeps,
  how: RowsHow,
  value: unknown,
  rows: ItemRow[],
  bindings: Bindings,
): Promise<unknown[]> {
  const { expressions, finish } = await prepareRows(how, value, deps)
  const table =
    expressions.length === 0 ? rows.map(() => []) : await fillTable(deps, expressions, rows, bindings)
  const pace = createPacer()
  const results: unknown[] = []
  for (const values of table) {
    await pace()
    results.push(values instanceof NodeFailure ? values : catchFailure(() => finish(values)))
  }
  return results
}

async function prepareRows(
  how: RowsHow,
  value: unknown,
  { rules, watch }: EvaluationDeps,
): Promise<{ expressions: AnyExpression[]; finish: (values: unknown[]) => unknown }> {
  if (how === 'render') {
    const { expressions, fill } = await collectExpressions(value, rules)
    return { expressions, finish: fill ?? (() => value) }
  }
  const one =
    how === 'test' ? await compileCondition(value, rules) : await compileBareExpression(value, rules)
  if (typeof one === 'boolean') return { expressions: [], finish: () => one }
  let isTold = false
  const finish = ([found]: unknown[]) => {
    if (how === 'evaluate') return found ?? null
    // The first one tells it for all.
    if (!isTold && found !== undefined && typeof found !== 'boolean' && !isScript(one)) {
      watch?.judge(one.text, found)
      isTold = true
    }
    return holds(one, found)
  }
  return { expressions: [one], finish }
}

function catchFailure(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    if (error instanceof NodeFailure) return error
    throw error
  }
}

/** The values of the expressions for each row, or the row's failure. */
async function fillTable(
  deps: EvaluationDeps,
  expressions: AnyExpression[],
  rows: ItemRow[],
  bindings: Bindings,
): Promise<(unknown[] | NodeFailure)[]> {
  const table = rows.map((): unknown[] | NodeFailure => new Array(expressions.length))
  const heavy: number[] = []
  const scripts: number[] = []
  const items = itemsOf(rows)
  const bound = createResultBound(deps.limits)
  for (const [at, expression] of expressions.entries()) {
    if (isScript(expression)) {
      scripts.push(at)
      continue
    }
    const column =
      (await fillDirectly(deps.watch, expression, rows, bindings)) ??
      (isLightForAll(expression.expression, items, bindings)
        ? await fillHere(deps.watch, expression, rows, bindings)
        : undefined)
    if (!column) {
      heavy.push(at)
      continue
    }
    for (const [place, value] of column.entries()) {
      const row = table[place]!
      if (value instanceof NodeFailure) table[place] = row instanceof NodeFailure ? row : value
      else if (!(row instanceof NodeFailure)) row[at] = value
      bound(expression.expression, value)
    }
  }
  if (heavy.length > 0) await fillAway(deps, expressions, heavy, rows, bindings, table)
  if (scripts.length > 0) await fillScripts(deps, expressions, scripts, rows, bindings, table)
  return table
}

/** The columns of what is in JavaScript. */
async function fillScripts(
  deps: EvaluationDeps,
  expressions: AnyExpression[],
  scripts: number[],
  rows: ItemRow[],
  bindings: Bindings,
  table: (unknown[] | NodeFailure)[],
): Promise<void> {
  const sources = scripts.map((at) => expressions[at] as CompiledScript)
  const bound = createResultBound(deps.limits)
  for (const [place, found] of (await evaluateScriptsForEach(deps, sources, rows, bindings)).entries()) {
    const row = table[place]!
    if (row instanceof NodeFailure) continue
    if (found instanceof NodeFailure) table[place] = found
    else
      for (const [i, at] of scripts.entries()) {
        bound(sources[i]!, found[i])
        row[at] = found[i]
      }
  }
}

/** The column of a plain path, which most expressions are. Undefined if only JSONata can find all values. */
async function fillDirectly(
  watch: Watch | undefined,
  placed: PlacedExpression,
  rows: ItemRow[],
  bindings: Bindings,
): Promise<unknown[] | undefined> {
  const { expression } = placed
  if (!expression.path) return undefined
  const pace = createPacer()
  const scope: Bindings = { ...bindings }
  const column: unknown[] = []
  for (const row of rows) {
    await pace()
    const value = findDirectly(expression, Object.assign(scope, row))
    if (value === NOT_DIRECT) return undefined
    column.push(value)
  }
  watch?.tellPath(placed, bindings, itemsOf(rows))
  return column
}

/** The column of a light expression. Tells its paths that lead nowhere. */
async function fillHere(
  watch: Watch | undefined,
  placed: PlacedExpression,
  rows: ItemRow[],
  bindings: Bindings,
): Promise<unknown[]> {
  const { expression } = placed
  const traced = watch?.suspects(expression, bindings, itemsOf(rows)) ? traceHere(expression) : undefined
  const pace = createPacer()
  const column: unknown[] = []
  for (const row of rows) {
    await pace()
    const scope = { ...bindings, ...row }
    const value = traced ? traced.evaluate(scope) : evaluateHere(expression, scope)
    column.push(await value.catch(keepFailure))
  }
  if (traced) watch!.tell(placed, traced.misses())
  return column
}

const itemsOf = (rows: ItemRow[]) => rows.map(({ item }) => item)

function keepFailure(error: unknown): NodeFailure {
  if (error instanceof NodeFailure) return error
  throw error
}

async function fillAway(
  { pool, limits, watch }: EvaluationDeps,
  expressions: AnyExpression[],
  heavy: number[],
  rows: ItemRow[],
  bindings: Bindings,
  table: (unknown[] | NodeFailure)[],
): Promise<void> {
  const sent = heavy.map((at) => expressions[at] as PlacedExpression)
  const sources = sent.map(({ expression }) => expression)
  const reply = await pool.run(findQueueKey(bindings), () => {
    const items = JSON.stringify(itemsOf(rows))
    const roots = writeRootsOf(sources, bindings, items.length)
    return {
      roots,
      items,
      indexes: rows.map(({ index }) => index),
      rows: sources.map((source) => describeSource(source, watch, bindings, itemsOf(rows))),
    }
  })
  if (reply.kind !== 'rows') throw describeReply(reply, sources, limits)
  watch?.tellAll(sent, reply.misses)
  const replies = JSON.parse(reply.text) as RowReply[]
  for (const [place, row] of replies.entries()) {
    const values = table[place]!
    if (values instanceof NodeFailure) continue
    if (Array.isArray(row)) for (const [i, [value]] of row.entries()) values[heavy[i]!] = value
    else
      table[place] = describeFault(row.cause, quoteExpression(sources[row.at]?.source), limits, row.message)
  }
}
