import { availableParallelism } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { shorten, splitCondition, splitTemplate, type Template } from '../workflows/expressions.ts'
import { setOwn } from '../workflows/inputs.ts'
import { type Compiled, compile, evaluateHere, findDirectly, isLight, NOT_DIRECT } from './compiled.ts'
import type { Cause, Job, Reply, Source } from './evaluator.ts'
import { NodeFailure } from './nodes/failure.ts'
import { createTextCache, isTruthy, weigh } from './plain.ts'
import { createPool } from './pool.ts'

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
  close(): Promise<void>
}

/** JSON characters of all results of one call, and of what is sent to a process for it. */
const MAX_RESULT = 8_000_000
const MAX_SENT = 32_000_000
/** As `weigh` counts, which is up to five times the JSON: the exact check follows when an output is stored. */
const MAX_WEIGHT = 8 * MAX_RESULT
/** The bound on work done on this thread: syntax nodes times the weight of what they read. */
const MAX_WORK = 400_000
/** After so many milliseconds of work in one go, others get their turn. */
const SLICE_MS = 8

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
    let weight = 0
    const grow = (source: string, value: unknown) => {
      weight += weigh(value, MAX_WEIGHT)
      if (weight > MAX_WEIGHT) throw describeCause('SIZE', source, limits)
    }
    for (const [at, expression] of all.entries()) {
      await pause()
      const value = findDirectly(expression, bindings)
      if (value !== NOT_DIRECT) {
        grow(expression.source, value)
        values[at] = value
      } else if (isLight(expression, bindings, MAX_WORK)) {
        values[at] = await evaluateHere(expression, bindings)
        grow(expression.source, values[at])
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
    const fill = collect(value, found, 0)
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
    const own = expression.size * weigh(items, MAX_WORK / expression.size)
    if (own <= MAX_WORK && isLight(expression, bindings, (MAX_WORK - own) / items.length)) {
      const kept: unknown[] = []
      const pause = createPause()
      for (const [index, item] of items.entries()) {
        await pause()
        if (isTruthy(await evaluateHere(expression, { ...bindings, item, index }))) kept.push(item)
      }
      return kept
    }
    const reply = await pool.run(keyOf(bindings), (): Job => {
      const text = JSON.stringify(items)
      return {
        roots: writeRoots([expression], bindings, text.length),
        items: text,
        condition: sourceOf(expression),
      }
    })
    if (reply.kind !== 'kept') throw describeReply(reply, [expression], limits)
    return reply.kept.map((at) => items[at])
  }

  return { render, test, filter, close: () => pool.close() }
}

/** Fills the values of the expressions, in the order they were found, into a copy of the config. */
type Fill = (values: unknown[]) => unknown

const MAX_CONFIG_DEPTH = 200

/** Collects the expressions of a config value; undefined where there are none and it stands as it is. */
function collect(value: unknown, found: Compiled[], depth: number): Fill | undefined {
  if (typeof value === 'string') return value.includes('{{') ? collectText(value, found) : undefined
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > MAX_CONFIG_DEPTH) throw failure('the config is nested too deeply')
  const entries = Object.entries(value)
  const fills = entries.map(([, item]) => collect(item, found, depth + 1))
  if (!fills.some(Boolean)) return undefined
  if (Array.isArray(value)) {
    return (values) =>
      value.map((item, i) => {
        const fill = fills[i]
        return fill ? fill(values) : item
      })
  }
  return (values) => {
    const filled: Record<string, unknown> = {}
    for (const [i, [key, item]] of entries.entries()) {
      const fill = fills[i]
      setOwn(filled, key, fill ? fill(values) : item)
    }
    return filled
  }
}

function collectText(text: string, found: Compiled[]): Fill {
  const parts = readCached(text).map((part) =>
    typeof part === 'string' ? part : found.push(compile(part.source)) - 1,
  )
  const [only] = parts
  if (parts.length === 1 && typeof only === 'number') return (values) => values[only] ?? null
  return (values) => parts.map((part) => (typeof part === 'string' ? part : writeText(values[part]))).join('')
}

function writeText(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const templates = createTextCache<Template>(1_000_000)

function readCached(text: string): Template {
  try {
    return templates(text, () => splitTemplate(text))
  } catch (error) {
    throw failure((error as Error).message)
  }
}

function compileCondition(condition: unknown): Compiled | boolean {
  if (typeof condition === 'boolean') return condition
  if (typeof condition !== 'string') throw failure('a condition must be an expression or a boolean')
  try {
    return compile(splitCondition(condition).source)
  } catch (error) {
    throw error instanceof NodeFailure ? error : failure((error as Error).message)
  }
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

/** JSONata runs in microtasks, which starve timers and sockets: lets those in now and then. */
function createPause(): () => Promise<void> | undefined {
  let since = performance.now()
  return () => {
    if (performance.now() - since < SLICE_MS) return undefined
    return setImmediate().then(() => {
      since = performance.now()
    })
  }
}

type Limits = { timeoutMs: number; heapMb: number }

function describeReply(reply: Reply, expressions: Compiled[], limits: Limits): NodeFailure {
  if (reply.kind !== 'error') return failure('the evaluator gave an answer that fits no question')
  const source = expressions.length === 1 ? expressions[0]!.source : expressions[reply.at]?.source
  return describeCause(reply.cause, source, limits, reply.message)
}

function describeCause(cause: Cause, source: string | undefined, limits: Limits, message = ''): NodeFailure {
  const what = source === undefined ? 'an expression of this node' : `expression ${shorten(source)}`
  const seconds = limits.timeoutMs / 1_000
  if (cause === 'TIMEOUT') return limit(`${what} took longer than ${seconds} s`)
  if (cause === 'TOTAL')
    return limit(`the expressions of this node took longer than ${5 * seconds} s together`)
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

function failure(message: string): NodeFailure {
  return new NodeFailure(message, { type: 'ExpressionFailed' })
}
