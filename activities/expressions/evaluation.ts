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
import { isTruthy } from './truth.ts'
import { type PlacedExpression, traceHere, type Watch } from './watch/watch.ts'
import { weighValue } from './weight.ts'

/** The pool as somebody sees it who is known: jobs have only the workflow that they are for. */
type KnownPool = { run(workflow: string, prepare: () => EvaluatorJob): Promise<EvaluatorReply> }

export type EvaluationDeps = { pool: KnownPool; limits: ExpressionLimits; watch: Watch | undefined }

/** The values of the expressions in order. Light ones are evaluated on this thread, the rest by one job. */
export async function evaluateAll(
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

/** Evaluates a light expression, and tells what it reads in vain. */
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

/** The items for which the expression is true, with `$item` and `$index` bound. */
export async function filterItems(
  deps: EvaluationDeps,
  items: unknown[],
  placed: PlacedExpression,
  bindings: Bindings,
): Promise<unknown[]> {
  const { watch } = deps
  const { expression, text } = placed
  if (items.length === 0) return items
  if (isLightForAll(expression, items, bindings)) {
    const values = await evaluateEach(watch, items, placed, bindings)
    const odd = values.find((value) => value !== undefined && typeof value !== 'boolean')
    watch?.judge(text, odd)
    return items.filter((_, at) => isTruthy(values[at]))
  }
  const reply = await deps.pool.run(findQueueKey(bindings), () =>
    makeEach({ items, filter: true, watch }, expression, bindings),
  )
  if (reply.kind !== 'kept') throw describeReply(reply, [expression], deps.limits)
  watch?.tellAll([placed], reply.misses)
  if (reply.odd !== undefined) watch?.note(text, reply.odd)
  return reply.kept.map((at) => items[at])
}

/** For how many items that all give nothing an expression is evaluated again, to find what it has read in vain. */
const MAX_AGAIN = 100

/** The values of a light expression for each item; undefined where it finds nothing. Tells what it reads in vain. */
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
  { pool, limits, watch }: EvaluationDeps,
  items: unknown[],
  placed: PlacedExpression,
  bindings: Bindings,
): Promise<unknown[]> {
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

type ResultBound = (expression: CompiledExpression, value: unknown) => void

/**
 * Bounds the weight of all results of one call together, as many of them may be the same big value. A weight
 * is up to five times the JSON; the exact check follows when an output is stored.
 */
function createResultBound(limits: ExpressionLimits): ResultBound {
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

function describeSource(
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

function writeRootsOf(expressions: CompiledExpression[], bindings: Bindings, spent = 0): string {
  return writeRoots(
    expressions.map(({ reads }) => reads),
    bindings,
    spent,
  )
}
