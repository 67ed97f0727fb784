import { availableParallelism } from 'node:os'
import { shorten } from '../workflows/expressions.ts'
import { setOwn } from '../workflows/inputs.ts'
import { type Compiled, evaluateHere, findDirectly, isLight, NOT_DIRECT } from './compiled.ts'
import type { Conversion } from './conversions.ts'
import type { Cause, Job, Reply, Source } from './evaluator.ts'
import { NodeFailure } from './nodes/failure.ts'
import { createPause } from './pace.ts'
import { isTruthy, weigh } from './plain.ts'
import { createPool, limitOf, TOTAL } from './pool.ts'
import { collectExpressions, compileBare, compileCondition, failure } from './templates.ts'

/** What expressions may read, by the name of its variable. `item` and `index` are bound in loops only. */
export type Bindings = {
  input: unknown
  nodes: Record<string, unknown>
  trigger: unknown
  vars: Record<string, unknown>
  execution: Record<string, unknown>
  item?: unknown
  index?: number
}

/**
 * Evaluates what users write. All throw NodeFailure, type ExpressionFailed, or ExpressionLimit for time, memory
 * and size. Values read by an expression may come back as they are, not as copies: do not change them.
 */
export type Evaluator = {
  /**
   * Renders every text in a config value. A text that is one expression keeps the JSON type, nothing as null; in
   * mixed texts nothing is '' and objects are JSON.
   */
  render(value: unknown, bindings: Bindings): Promise<unknown>
  /** A boolean, or a text with or without `{{ }}` whose value counts as in `$boolean`. */
  test(condition: unknown, bindings: Bindings): Promise<boolean>
  /** The items for which the condition holds, with `$item` and `$index` bound. */
  filter(items: unknown[], condition: unknown, bindings: Bindings): Promise<unknown[]>
  /** The value of one expression, with or without `{{ }}`; nothing is null. */
  evaluate(expression: unknown, bindings: Bindings): Promise<unknown>
  /** As evaluate for each item, with `$item` and `$index` bound. */
  map(items: unknown[], expression: unknown, bindings: Bindings): Promise<unknown[]>
  /** Reads or writes a foreign format; what is no such text fails as InvalidInput. */
  convert(conversion: Conversion, bindings: Bindings): Promise<unknown>
  close(): Promise<void>
}

/** JSON characters of all results of one call, and of what is sent to a process for it. */
const MAX_RESULT = 8_000_000
const MAX_SENT = 32_000_000
/** As `weigh` counts, which is up to five times the JSON: the exact check follows when an output is stored. */
const MAX_WEIGHT = 8 * MAX_RESULT
/** The bound on work done on this thread: syntax nodes times the weight of what they read. */
const MAX_WORK = 400_000

export function createEvaluator(
  options: { processes?: number; timeoutMs?: number; heapMb?: number } = {},
): Evaluator {
  const timeoutMs = options.timeoutMs ?? 1_000
  const heapMb = options.heapMb ?? 128
  const processes = options.processes ?? Math.min(4, availableParallelism())
  const pool = createPool({ processes, timeoutMs, heapMb, maxChars: MAX_RESULT })
  const limits = { timeoutMs, heapMb }

  async function evaluateAll(all: Compiled[], bindings: Bindings): Promise<unknown[]> {
    const values: unknown[] = new Array(all.length)
    const away: number[] = []
    const pause = createPause()
    const grow = createScale(limits)
    for (const [at, expression] of all.entries()) {
      await pause()
      const value = findDirectly(expression, bindings)
      if (value !== NOT_DIRECT) {
        grow(expression, value)
        values[at] = value
      } else if (isLight(expression, bindings, MAX_WORK)) {
        values[at] = await evaluateHere(expression, bindings)
        grow(expression, values[at])
      } else away.push(at)
    }
    if (away.length === 0) return values
    const expressions = away.map((at) => all[at]!)
    const reply = await pool.run(keyOf(bindings), () => ({
      roots: writeRoots(expressions, bindings),
      sources: expressions.map(sourceOf),
    }))
    if (reply.kind !== 'values') throw describeReply(reply, expressions, limits)
    for (const [i, at] of away.entries()) {
      const text = reply.values[i]!
      values[at] = text === null ? undefined : JSON.parse(text)
    }
    return values
  }

  async function render(value: unknown, bindings: Bindings): Promise<unknown> {
    const found: Compiled[] = []
    const fill = collectExpressions(value, found)
    if (!fill) return value
    return fill(await evaluateAll(found, bindings))
  }

  async function test(condition: unknown, bindings: Bindings): Promise<boolean> {
    const expression = compileCondition(condition)
    if (typeof expression === 'boolean') return expression
    const [value] = await evaluateAll([expression], bindings)
    return isTruthy(value)
  }

  async function filter(items: unknown[], condition: unknown, bindings: Bindings): Promise<unknown[]> {
    const expression = compileCondition(condition)
    if (typeof expression === 'boolean') return expression ? items : []
    if (items.length === 0) return items
    if (isLightForAll(expression, items, bindings)) {
      const kept: unknown[] = []
      const pause = createPause()
      for (const [index, item] of items.entries()) {
        await pause()
        if (isTruthy(await evaluateHere(expression, { ...bindings, item, index }))) kept.push(item)
      }
      return kept
    }
    const reply = await goOver(items, expression, bindings, true)
    if (reply.kind !== 'kept') throw describeReply(reply, [expression], limits)
    return reply.kept.map((at) => items[at])
  }

  async function evaluate(text: unknown, bindings: Bindings): Promise<unknown> {
    const [value] = await evaluateAll([compileBare(text)], bindings)
    return value ?? null
  }

  async function map(items: unknown[], text: unknown, bindings: Bindings): Promise<unknown[]> {
    const expression = compileBare(text)
    const direct = await mapDirectly(expression, items, bindings, createScale(limits))
    if (direct) return direct
    if (isLightForAll(expression, items, bindings)) {
      const values: unknown[] = []
      const pause = createPause()
      const grow = createScale(limits)
      for (const [index, item] of items.entries()) {
        await pause()
        const value = (await evaluateHere(expression, { ...bindings, item, index })) ?? null
        grow(expression, value)
        values.push(value)
      }
      return values
    }
    const reply = await goOver(items, expression, bindings, false)
    if (reply.kind !== 'mapped') throw describeReply(reply, [expression], limits)
    return JSON.parse(reply.text)
  }

  function goOver(items: unknown[], expression: Compiled, bindings: Bindings, filter: boolean) {
    return pool.run(keyOf(bindings), (): Job => {
      const text = JSON.stringify(items)
      const roots = writeRoots([expression], bindings, text.length)
      return { roots, items: text, each: sourceOf(expression), filter }
    })
  }

  async function convert(conversion: Conversion, bindings: Bindings): Promise<unknown> {
    const reply = await pool.run(keyOf(bindings), () => ({ conversion }))
    if (reply.kind === 'values') return JSON.parse(reply.values[0]!)
    const what = `the ${conversion.kind.toUpperCase()}`
    if (reply.kind !== 'error') throw describeReply(reply, [], limits)
    if (reply.cause === 'ERROR') {
      throw new NodeFailure(`${what} cannot be converted: ${reply.message}`, { type: 'InvalidInput' })
    }
    throw describeCause(
      reply.cause,
      what,
      { ...limits, timeoutMs: timeoutMs * limitOf({ conversion }) },
      reply.message,
    )
  }

  return { render, test, filter, evaluate, map, convert, close: () => pool.close() }
}

/** Bounds the weight of all results of one call: many may be the same big value. */
function createScale(limits: Limits): (expression: Compiled, value: unknown) => void {
  let weight = 0
  return ({ source }, value) => {
    weight += weigh(value, MAX_WEIGHT)
    if (weight > MAX_WEIGHT) throw describeCause('SIZE', quote(source), limits)
  }
}

function isLightForAll(expression: Compiled, items: unknown[], bindings: Bindings): boolean {
  const own = expression.size * weigh(items, MAX_WORK / expression.size)
  return own <= MAX_WORK && isLight(expression, bindings, (MAX_WORK - own) / items.length)
}

/** For plain paths, which most are; undefined where JSONata itself must look. */
async function mapDirectly(
  expression: Compiled,
  items: unknown[],
  bindings: Bindings,
  grow: (expression: Compiled, value: unknown) => void,
): Promise<unknown[] | undefined> {
  if (!expression.path) return undefined
  const values: unknown[] = []
  const pause = createPause()
  const scope: Bindings = { ...bindings }
  for (const [index, item] of items.entries()) {
    await pause()
    const value = findDirectly(expression, Object.assign(scope, { item, index }))
    if (value === NOT_DIRECT) return undefined
    grow(expression, value)
    values.push(value ?? null)
  }
  return values
}

function sourceOf({ source, reads }: Compiled): Source {
  return { text: source, context: reads.context }
}

/** The JSON of what the expressions read: of the nodes only those that they name. */
function writeRoots(expressions: Compiled[], bindings: Bindings, spent = 0): string {
  const roots: Record<string, unknown> = {}
  const nodes: Record<string, unknown> = {}
  for (const { reads } of expressions) {
    if (reads.context) roots.input = bindings.input
    for (const name of reads.roots) if (name !== 'nodes') roots[name] = bindings[name as keyof Bindings]
    for (const id of reads.nodes) if (Object.hasOwn(bindings.nodes, id)) setOwn(nodes, id, bindings.nodes[id])
  }
  let weight = 0
  for (const value of [...Object.values(roots), ...Object.values(nodes)]) weight += weigh(value, 8 * MAX_SENT)
  if (weight > 8 * MAX_SENT) throw tooMuch()
  let text: string
  try {
    text = JSON.stringify({ ...roots, nodes })
  } catch {
    throw failure('the values an expression reads are nested too deeply')
  }
  if (text.length + spent > MAX_SENT) throw tooMuch()
  return text
}

function tooMuch(): NodeFailure {
  return limit(`the expressions of one node read at most ${MAX_SENT / 1_000_000} MB`)
}

/** Executions of one workflow share a turn in the queue. */
function keyOf(bindings: Bindings): string {
  return String(bindings.execution.workflowId ?? bindings.execution.id ?? '')
}

type Limits = { timeoutMs: number; heapMb: number }

function describeReply(reply: Reply, expressions: Compiled[], limits: Limits): NodeFailure {
  if (reply.kind !== 'error') return failure('the evaluator gave an answer that fits no question')
  const source = expressions.length === 1 ? expressions[0]!.source : expressions[reply.at]?.source
  return describeCause(reply.cause, quote(source), limits, reply.message)
}

function quote(source: string | undefined): string {
  return source === undefined ? 'an expression of this node' : `expression ${shorten(source)}`
}

function describeCause(cause: Cause, what: string, limits: Limits, message = ''): NodeFailure {
  const seconds = limits.timeoutMs / 1_000
  if (cause === 'TIMEOUT') return limit(`${what} took longer than ${seconds} s`)
  if (cause === 'TOTAL')
    return limit(`the expressions of this node took longer than ${TOTAL * seconds} s together`)
  if (cause === 'MEMORY') return limit(`${what} used too much memory (more than ${limits.heapMb} MB)`)
  if (cause === 'SIZE')
    return limit(`${what} has a result that is too big (more than ${MAX_RESULT / 1_000_000} MB)`)
  if (cause === 'ERROR') return failure(`${what}: ${message}`)
  return new NodeFailure(`expressions cannot be evaluated now: ${message}`, {
    type: EXPRESSIONS_DOWN,
    retryable: true,
  })
}

/** The failure type that says nothing about the expression: no process could be had for it, or we are stopping. */
export const EXPRESSIONS_DOWN = 'ExpressionsUnavailable'

function limit(message: string): NodeFailure {
  return new NodeFailure(message, { type: 'ExpressionLimit' })
}
