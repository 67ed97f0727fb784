import type jsonata from 'jsonata'
import {
  findReads,
  prepareExpression,
  type Reads,
  type Syntax,
  shorten,
  treeOf,
} from '../workflows/expressions.ts'
import { readPath } from '../workflows/paths.ts'
import type { Bindings } from './expressions.ts'
import { NodeFailure } from './nodes/failure.ts'
import { createTextCache, toPlain, weigh } from './plain.ts'

export type Compiled = {
  source: string
  reads: Reads
  /** The variable and names of a plain path such as `$nodes.a.b`. */
  path?: string[]
  /** How many syntax nodes it evaluates, Infinity where that depends on the data: then never on this thread. */
  size: number
  expression: jsonata.Expression
}

const MAX_SIZE = 500
/** Bounds a cache by the length of the texts it is keyed by: what they parse to is in proportion. */
const MAX_CACHED_CHARS = 1_000_000

const cache = createTextCache<Compiled>(MAX_CACHED_CHARS)

/** Reads an expression once and keeps it. Throws NodeFailure where it cannot be used. */
export function compile(source: string): Compiled {
  return cache(source, () => build(source))
}

function build(source: string): Compiled {
  try {
    const expression = prepareExpression(source)
    const tree = treeOf(expression)
    const reads = findReads(tree)
    if (reads.problems[0]) throw new Error(reads.problems[0])
    return {
      source,
      reads,
      path: readPath(tree),
      size: countWork(tree, MAX_SIZE),
      expression,
    }
  } catch (error) {
    throw new NodeFailure(`expression ${shorten(source)}: ${(error as Error).message}`, {
      type: 'ExpressionFailed',
    })
  }
}

/** What findDirectly answers where JSONata itself must look. */
export const NOT_DIRECT = Symbol('not direct')

/**
 * The value of a plain path without JSONata, as it would find it: most expressions are such paths, and the value
 * may be too big to copy. Arrays on the way map and flatten: those are left to JSONata.
 */
export function findDirectly({ path }: Compiled, bindings: Bindings): unknown {
  if (!path) return NOT_DIRECT
  let value: unknown = bindings
  for (const name of path) {
    if (Array.isArray(value)) return NOT_DIRECT
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

const OPERATORS = new Set(['+', '-', '*', '/', '%', '&', '=', '!=', '<', '<=', '>', '>=', 'and', 'or', 'in'])
/** Built-in functions whose time and result are linear in their one argument. */
const LINEAR = new Set(['exists', 'not', 'boolean', 'count', 'length', 'lowercase', 'uppercase', 'number'])

/**
 * Counts the syntax nodes of an expression whose work is at most that count times the data it reads: paths of
 * names and fixed positions, literals, operators, conditions and constructors. Infinity for all others.
 */
export function countWork(tree: Syntax, limit: number): number {
  let count = 0
  const isBounded = (node: Syntax | undefined): boolean => {
    if (!node || ++count > limit) return false
    if (node.group || node.focus || node.index || node.ancestor) return false
    // `[]` marks the array it ends with: on this thread that would be the very value other nodes see.
    if (node.keepArray || node.keepSingletonArray) return false
    if (![...((node.predicate as Syntax[]) ?? []), ...((node.stages as Syntax[]) ?? [])].every(isPosition))
      return false
    switch (node.type) {
      case 'string':
      case 'number':
      case 'value':
      case 'name':
      case 'variable':
        return true
      case 'path': {
        const [first, ...rest] = node.steps as Syntax[]
        return isBounded(first) && rest.every((step) => step.type === 'name' && isBounded(step))
      }
      case 'binary':
        return (
          OPERATORS.has(String(node.value)) && isBounded(node.lhs as Syntax) && isBounded(node.rhs as Syntax)
        )
      case 'unary':
        if (node.value === '-') return isBounded(node.expression as Syntax)
        if (node.value === '[') return (node.expressions as Syntax[]).every(isBounded)
        return node.value === '{' && (node.lhs as [Syntax, Syntax][]).every((pair) => pair.every(isBounded))
      case 'condition':
        return (
          isBounded(node.condition as Syntax) &&
          isBounded(node.then as Syntax) &&
          (node.else === undefined || isBounded(node.else as Syntax))
        )
      case 'block':
        return (node.expressions as Syntax[]).every(isBounded)
      case 'function': {
        const [only, ...more] = node.arguments as Syntax[]
        const name = node.procedure as Syntax
        return (
          name.type === 'variable' && LINEAR.has(String(name.value)) && more.length === 0 && isBounded(only)
        )
      }
      default:
        return false
    }
  }
  return isBounded(tree) ? count : Number.POSITIVE_INFINITY
}

function isPosition(stage: Syntax): boolean {
  return stage.type === 'filter' && (stage.expr as Syntax).type === 'number'
}

/**
 * Whether the work is small enough for this thread: syntax nodes times the weight of what they read. Not with an
 * array as context: JSONata's object constructor writes into one that is empty.
 */
export function isLight(compiled: Compiled, bindings: Bindings, maxWork: number): boolean {
  if (compiled.reads.context && Array.isArray(bindings.input)) return false
  return compiled.size * weighReads(compiled, bindings, maxWork / compiled.size) <= maxWork
}

function weighReads({ reads, source }: Compiled, bindings: Bindings, limit: number): number {
  let weight = 8 + source.length / 8
  if (reads.context) weight += weigh(bindings.input, limit)
  for (const name of reads.roots)
    if (name !== 'nodes') weight += weigh(bindings[name as keyof Bindings], limit)
  for (const id of reads.nodes) weight += weigh(bindings.nodes[id], limit)
  return weight
}

/** Evaluates on this thread. Throws NodeFailure for what JSONata finds wrong. */
export async function evaluateHere(compiled: Compiled, bindings: Bindings): Promise<unknown> {
  try {
    const context = compiled.reads.context ? bindings.input : undefined
    return toPlain(await compiled.expression.evaluate(context, bindings))
  } catch (error) {
    const message =
      error instanceof RangeError ? 'is nested too deeply' : String((error as Error).message ?? error)
    throw new NodeFailure(`expression ${shorten(compiled.source)}: ${message.slice(0, 500)}`, {
      type: 'ExpressionFailed',
    })
  }
}
