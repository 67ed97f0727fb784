import type { Rules } from '../../workflows/expressions/rules.ts'
import { evaluateScripts, evaluateScriptsForEach } from '../javascript/evaluate.ts'
import type { CompiledScript } from '../javascript/texts.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { type Bindings, findQueueKey, writeRoots } from './bindings.ts'
import {
  type CompiledExpression,
  evaluateHere,
  findDirectly,
  isLight,
  isLightForAll,
  NOT_DIRECT,
} from './compiled.ts'
import { describeFault, describeReply, type ExpressionLimits, quoteExpression } from './failures.ts'
import type { EvaluatorJob, EvaluatorReply, ExpressionSource } from './job.ts'
import { createPacer } from './pace.ts'
import { type AnyExpression, holds, isScript } from './templates.ts'
import { isTruthy } from './truth.ts'
import { type PlacedExpression, traceHere, type Watch } from './watch/watch.ts'
import { weighValue } from './weight.ts'

/** The pool as one team sees it: jobs only name the workflow that they are for. */
type KnownPool = { run(workflow: string, prepare: () => EvaluatorJob): Promise<EvaluatorReply> }

/** `rules`: those of the graph's version, by which texts are read. */
export type EvaluationDeps = {
  pool: KnownPool
  limits: ExpressionLimits
  rules: Rules
  watch: Watch | undefined
}

/** The values of the expressions in order: those of JSONata and those in JavaScript. */
export async function evaluateAll(
  deps: EvaluationDeps,
  expressions: AnyExpression[],
  bindings: Bindings,
): Promise<unknown[]> {
  const scripts = expressions.filter(isScript)
  const others = expressions.filter((expression) => !isScript(expression)) as PlacedExpression[]
  if (scripts.length === 0) return evaluateJsonata(deps, others, bindings)
  const found = (await evaluateScripts(deps, scripts, bindings)).values()
  const rest = (await evaluateJsonata(deps, others, bindings)).values()
  const bound = createResultBound(deps.limits)
  return expressions.map((expression) => {
    if (!isScript(expression)) return rest.next().value
    const { value } = found.next()
    bound(expression, value)
    return value
  })
}

/** Light expressions are evaluated on this thread, the rest by one job. */
async function evaluateJsonata(
  { pool, limits, watch }: EvaluationDeps,
  placed: PlacedExpression[],
  bindings: Bindings,
): Promise<unknown[]> {
  const values: unknown[] = new Array(placed.length)
  const away: number[] = []
  const pace = createPacer()
  const bound = createResultBound(limits)
  for (const [at, one] of placed.entries()) {
    const { expression } = one
    await pace()
    const value = findDirectly(expression, bindings)
    if (value !== NOT_DIRECT) {
      bound(expression, value)
      values[at] = value
      if (value === undefined) watch?.tellPath(one, bindings)
    } else if (isLight(expression, bindings)) {
      values[at] = await (watch ? evaluateWatched(watch, one, bindings) : evaluateHere(expression, bindings))
      bound(expression, values[at])
    } else away.push(at)
  }
  if (away.length === 0) return values
  const sent = away.map((at) => placed[at]!)
  const heavy = sent.map(({ expression }) => expression)
  const reply = await pool.run(findQueueKey(bindings), () => ({
    roots: writeRootsOf(heavy, bindings),
    sources: heavy.map((expression) => describeSource(expression, watch, bindings)),
  }))
  if (reply.kind !== 'values') throw describeReply(reply, heavy, limits)
  for (const [i, at] of away.entries()) {
    const text = reply.values[i]!
    values[at] = text === null ? undefined : JSON.parse(text)
  }
  watch?.tellAll(sent, reply.misses)
  return values
}

/** Evaluates a light expression, and tells the paths that lead nowhere. */
async function evaluateWatched(watch: Watch, placed: PlacedExpression, bindings: Bindings): Promise<unknown> {
  const { expression } = placed
  const suspect = watch.suspects(expression, bindings)
  const value = suspect ? undefined : await evaluateHere(expression, bindings)
  if (value !== undefined) return value
  const traced = traceHere(expression)
  const found = await traced.evaluate(bindings)
  watch.tell(placed, traced.misses())
  return suspect ? found : undefined
}

/** The indexes of the items for which the expression is true, with `$item` and `$index` bound. */
export async function findHolding(
  deps: EvaluationDeps,
  items: unknown[],
  placed: AnyExpression,
  bindings: Bindings,
): Promise<number[]> {
  if (items.length === 0) return []
  if (isScript(placed)) {
    const values = await mapScript(deps, items, placed, bindings)
    return [...items.keys()].filter((at) => holds(placed, values[at]))
  }
  const { watch } = deps
  const { expression, text } = placed
  if (isLightForAll(expression, items, bindings)) {
    const values = await evaluateEach(watch, items, placed, bindings)
    const odd = values.find((value) => value !== undefined && typeof value !== 'boolean')
    watch?.judge(text, odd)
    return [...items.keys()].filter((at) => isTruthy(values[at]))
  }
  const reply = await deps.pool.run(findQueueKey(bindings), () =>
    makeEach({ items, filter: true, watch }, expression, bindings),
  )
  if (reply.kind !== 'kept') throw describeReply(reply, [expression], deps.limits)
  watch?.tellAll([placed], reply.misses)
  if (reply.odd !== undefined) watch?.note(text, reply.odd)
  return reply.kept
}

/**
 * The number of items without a value for which an expression is evaluated again, to find the paths that lead nowhere.
 */
const MAX_AGAIN = 100

/**
 * The values of a light expression for each item; undefined where it finds nothing. Tells the paths that lead nowhere.
 */
async function evaluateEach(
  watch: Watch | undefined,
  items: unknown[],
  placed: PlacedExpression,
  bindings: Bindings,
  bound: ResultBound = () => {},
): Promise<unknown[]> {
  const { expression } = placed
  const suspect = watch?.suspects(expression, bindings, items)
  const traced = suspect ? traceHere(expression) : undefined
  const values: unknown[] = []
  const pace = createPacer()
  for (const [index, item] of items.entries()) {
    await pace()
    const scope = { ...bindings, item, index }
    const value = await (traced ? traced.evaluate(scope) : evaluateHere(expression, scope))
    bound(expression, value)
    values.push(value)
  }
  if (traced) watch!.tell(placed, traced.misses())
  else if (watch && items.length > 0 && values.every((value) => value === undefined)) {
    const again = traceHere(expression)
    for (const [index, item] of items.slice(0, MAX_AGAIN).entries()) {
      await pace()
      await again.evaluate({ ...bindings, item, index })
    }
    watch.tell(placed, again.misses())
  }
  return values
}

/** The expression's value for each item, with `$item` and `$index` bound; null if it finds nothing. */
export async function mapItems(
  deps: EvaluationDeps,
  items: unknown[],
  placed: AnyExpression,
  bindings: Bindings,
): Promise<unknown[]> {
  if (isScript(placed)) return mapScript(deps, items, placed, bindings)
  const { pool, limits, watch } = deps
  const { expression } = placed
  const direct = await mapDirectly(items, expression, bindings, createResultBound(limits))
  if (direct) {
    watch?.tellPath(placed, bindings, items)
    return direct
  }
  if (isLightForAll(expression, items, bindings)) {
    const values = await evaluateEach(watch, items, placed, bindings, createResultBound(limits))
    return values.map((value) => value ?? null)
  }
  const reply = await pool.run(findQueueKey(bindings), () =>
    makeEach({ items, filter: false, watch }, expression, bindings),
  )
  if (reply.kind !== 'mapped') throw describeReply(reply, [expression], limits)
  watch?.tellAll([placed], reply.misses)
  return JSON.parse(reply.text)
}

/** The script's value for each item, which is what it is about: `$json`. */
async function mapScript(
  deps: EvaluationDeps,
  items: unknown[],
  script: CompiledScript,
  bindings: Bindings,
): Promise<unknown[]> {
  const rows = items.map((item, index) => ({ item, index }))
  const bound = createResultBound(deps.limits)
  const values = await evaluateScriptsForEach(deps, [script], rows, { ...bindings, items })
  return values.map((row) => {
    if (row instanceof NodeFailure) throw row
    bound(script, row[0])
    return row[0] ?? null
  })
}

/** mapItems for plain paths, which most expressions are. Undefined if only JSONata can find all values. */
async function mapDirectly(
  items: unknown[],
  expression: CompiledExpression,
  bindings: Bindings,
  bound: ResultBound,
): Promise<unknown[] | undefined> {
  if (!expression.path) return undefined
  const values: unknown[] = []
  const pace = createPacer()
  const scope: Bindings = { ...bindings }
  for (const [index, item] of items.entries()) {
    await pace()
    const value = findDirectly(expression, Object.assign(scope, { item, index }))
    if (value === NOT_DIRECT) return undefined
    bound(expression, value)
    values.push(value ?? null)
  }
  return values
}

type ResultBound = (expression: { source: string }, value: unknown) => void

/**
 * Bounds the weight of all results of one call together, as many of them may be the same big value. A weight
 * is up to five times the JSON; the exact check follows when an output is stored.
 */
export function createResultBound(limits: ExpressionLimits): ResultBound {
  const most = 8 * limits.maxChars
  let weight = 0
  return ({ source }, value) => {
    weight += weighValue(value, most)
    if (weight > most) throw describeFault('SIZE', quoteExpression(source), limits)
  }
}

function makeEach(
  { items, filter, watch }: { items: unknown[]; filter: boolean; watch: Watch | undefined },
  expression: CompiledExpression,
  bindings: Bindings,
): EvaluatorJob {
  const text = JSON.stringify(items)
  const roots = writeRootsOf([expression], bindings, text.length)
  return { roots, items: text, each: describeSource(expression, watch, bindings, items), filter }
}

export function describeSource(
  expression: CompiledExpression,
  watch: Watch | undefined,
  bindings: Bindings,
  items?: unknown[],
): ExpressionSource {
  const { source, rules, reads } = expression
  const described = { text: source, context: reads.context, rules }
  if (!watch) return described
  return { ...described, watch: watch.suspects(expression, bindings, items) ? 'always' : 'nothing' }
}

export function writeRootsOf(expressions: CompiledExpression[], bindings: Bindings, spent = 0): string {
  return writeRoots(
    expressions.map(({ reads }) => reads),
    bindings,
    spent,
  )
}
