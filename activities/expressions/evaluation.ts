import type { Language } from '../../workflows/expressions/rules.ts'
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
import { weighValue } from './weight.ts'

/** The pool as somebody sees it who is known: jobs have only the workflow that they are for. */
type KnownPool = { run(workflow: string, prepare: () => EvaluatorJob): Promise<EvaluatorReply> }

export type EvaluationDeps = { pool: KnownPool; limits: ExpressionLimits; language: Language }

/** The values of the expressions in order: those of JSONata and those in JavaScript. */
export async function evaluateAll(
  deps: EvaluationDeps,
  expressions: AnyExpression[],
  bindings: Bindings,
): Promise<unknown[]> {
  const scripts = expressions.filter(isScript)
  if (scripts.length === 0) return evaluateJsonata(deps, expressions as CompiledExpression[], bindings)
  const others = expressions.filter((expression) => !isScript(expression)) as CompiledExpression[]
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
  { pool, limits }: EvaluationDeps,
  expressions: CompiledExpression[],
  bindings: Bindings,
): Promise<unknown[]> {
  const values: unknown[] = new Array(expressions.length)
  const away: number[] = []
  const pace = createPacer()
  const bound = createResultBound(limits)
  for (const [at, expression] of expressions.entries()) {
    await pace()
    const value = findDirectly(expression, bindings)
    if (value !== NOT_DIRECT) {
      bound(expression, value)
      values[at] = value
    } else if (isLight(expression, bindings)) {
      values[at] = await evaluateHere(expression, bindings)
      bound(expression, values[at])
    } else away.push(at)
  }
  if (away.length === 0) return values
  const heavy = away.map((at) => expressions[at]!)
  const reply = await pool.run(findQueueKey(bindings), () => ({
    roots: writeRootsOf(heavy, bindings),
    sources: heavy.map(describeSource),
  }))
  if (reply.kind !== 'values') throw describeReply(reply, heavy, limits)
  for (const [i, at] of away.entries()) {
    const text = reply.values[i]!
    values[at] = text === null ? undefined : JSON.parse(text)
  }
  return values
}

/** The indexes of the items for which the expression is true, with `$item` and `$index` bound. */
export async function findHolding(
  deps: EvaluationDeps,
  items: unknown[],
  expression: AnyExpression,
  bindings: Bindings,
): Promise<number[]> {
  if (items.length === 0) return []
  if (isScript(expression)) {
    const values = await mapScript(deps, items, expression, bindings)
    return [...items.keys()].filter((at) => holds(expression, values[at]))
  }
  if (isLightForAll(expression, items, bindings)) {
    const kept: number[] = []
    const pace = createPacer()
    for (const [index, item] of items.entries()) {
      await pace()
      if (isTruthy(await evaluateHere(expression, { ...bindings, item, index }))) kept.push(index)
    }
    return kept
  }
  const reply = await deps.pool.run(findQueueKey(bindings), () => makeEach(items, expression, bindings, true))
  if (reply.kind !== 'kept') throw describeReply(reply, [expression], deps.limits)
  return reply.kept
}

/** The expression's value for each item, with `$item` and `$index` bound; null if it finds nothing. */
export async function mapItems(
  deps: EvaluationDeps,
  items: unknown[],
  expression: AnyExpression,
  bindings: Bindings,
): Promise<unknown[]> {
  if (isScript(expression)) return mapScript(deps, items, expression, bindings)
  const { pool, limits } = deps
  const direct = await mapDirectly(items, expression, bindings, createResultBound(limits))
  if (direct) return direct
  if (isLightForAll(expression, items, bindings)) {
    const values: unknown[] = []
    const pace = createPacer()
    const bound = createResultBound(limits)
    for (const [index, item] of items.entries()) {
      await pace()
      const value = (await evaluateHere(expression, { ...bindings, item, index })) ?? null
      bound(expression, value)
      values.push(value)
    }
    return values
  }
  const reply = await pool.run(findQueueKey(bindings), () => makeEach(items, expression, bindings, false))
  if (reply.kind !== 'mapped') throw describeReply(reply, [expression], limits)
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
  items: unknown[],
  expression: CompiledExpression,
  bindings: Bindings,
  filter: boolean,
): EvaluatorJob {
  const text = JSON.stringify(items)
  const roots = writeRootsOf([expression], bindings, text.length)
  return { roots, items: text, each: describeSource(expression), filter }
}

export function describeSource({ source, rules, reads }: CompiledExpression): ExpressionSource {
  return { text: source, context: reads.context, rules }
}

export function writeRootsOf(expressions: CompiledExpression[], bindings: Bindings, spent = 0): string {
  return writeRoots(
    expressions.map(({ reads }) => reads),
    bindings,
    spent,
  )
}
