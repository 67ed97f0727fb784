import type jsonata from 'jsonata'
import { LRUCache } from 'lru-cache'
import {
  findReads,
  measureExpression,
  prepareExpression,
  type Reads,
  type Syntax,
  syntaxOf,
} from '../../workflows/expressions/expressions.ts'
import { readPath } from '../../workflows/expressions/paths.ts'
import type { Rules } from '../../workflows/expressions/rules.ts'
import { TURN_UNITS, takeTurn } from '../../workflows/turns.ts'
import type { NodeFailure } from '../nodes/kit/failure.ts'
import type { Bindings } from './bindings.ts'
import { expressionFailure, quoteExpression } from './failures.ts'
import { toPlain } from './plain.ts'
import { bindRules } from './truth.ts'
import { weighValue } from './weight.ts'

export type CompiledExpression = {
  source: string
  rules: Rules
  reads: Reads
  /** For a plain path such as `$nodes.a.b`: its variable and names. */
  path?: string[]
  /** The number of syntax nodes it evaluates; Infinity if that depends on the data: never on this thread. */
  size: number
  expression: jsonata.Expression
}

const MAX_SIZE = 500

/** Bounded by the length of the sources, to which the size of their syntax trees is proportional. */
const cache = new LRUCache<string, CompiledExpression>({
  maxSize: 1_000_000,
  sizeCalculation: ({ source }) => source.length,
})

/** Compiles an expression, once for each source and its rules. Throws a NodeFailure if it is not valid. */
export function compileExpression(source: string, rules: Rules): CompiledExpression {
  const known = cache.get(keyOf(source, rules))
  if (known) return known
  const compiled = readExpression(source, rules)
  cache.set(keyOf(source, rules), compiled)
  return compiled
}

function keyOf(source: string, rules: Rules): string {
  return `${rules} ${source}`
}

/** The units of work that expressions took to compile since a caller has waited for a turn. */
let spent = 0

/**
 * As compileExpression, but lets timers and sockets have their turn before those of this thread take long
 * together. Only the first use of an expression waits.
 */
export async function compileInTurns(source: string, rules: Rules): Promise<CompiledExpression> {
  if (!cache.has(keyOf(source, rules))) {
    const units = measure(source)
    spent += units
    if (spent > TURN_UNITS) {
      spent = units
      await takeTurn()
    }
  }
  return compileExpression(source, rules)
}

function measure(source: string): number {
  try {
    return measureExpression(source)
  } catch (error) {
    throw compileFailure(source, error)
  }
}

function compileFailure(source: string, error: unknown): NodeFailure {
  return expressionFailure(`${quoteExpression(source)}: ${(error as Error).message}`)
}

function readExpression(source: string, rules: Rules): CompiledExpression {
  try {
    const expression = bindRules(prepareExpression(source), rules)
    const tree = syntaxOf(expression)
    const reads = findReads(tree)
    if (reads.problems[0]) throw new Error(reads.problems[0])
    return {
      source,
      rules,
      reads,
      path: readPath(tree),
      size: countWork(tree, MAX_SIZE),
      expression,
    }
  } catch (error) {
    throw compileFailure(source, error)
  }
}

/** Returned by findDirectly if only JSONata can find the value. */
export const NOT_DIRECT = Symbol('not direct')

/**
 * Finds the value of a plain path as JSONata would, but without it: most expressions are plain paths, and
 * their values may be too big to copy. Returns NOT_DIRECT if the path crosses an array, which JSONata maps
 * and flattens.
 */
export function findDirectly({ path }: CompiledExpression, bindings: Bindings): unknown {
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

/** Built-in functions with one argument, whose time and result are linear in its size. */
const LINEAR = new Set(['exists', 'not', 'boolean', 'count', 'length', 'lowercase', 'uppercase', 'number'])

/**
 * Counts the syntax nodes of an expression, if its work is at most that count times the data it reads: paths
 * of names and fixed positions, literals, operators, conditions, constructors and linear functions. Infinity
 * for all others, and above `limit`.
 */
export function countWork(tree: Syntax, limit: number): number {
  let count = 0
  const isBounded = (node: Syntax | undefined): boolean => {
    if (!node || ++count > limit) return false
    if (node.group || node.focus || node.index || node.ancestor) return false
    // `[]` makes JSONata set a flag on the array; on this thread that is the same array that other nodes see.
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

/** The most work for this thread: the number of syntax nodes times the weight of the values they read. */
const MAX_WORK = 400_000

/**
 * Whether the work is small enough for this thread. Never with an array as context, because JSONata's object
 * constructor writes into it if it is empty.
 */
export function isLight(compiled: CompiledExpression, bindings: Bindings, maxWork = MAX_WORK): boolean {
  if (compiled.reads.context && Array.isArray(bindings.input)) return false
  return compiled.size * weighReads(compiled, bindings, maxWork / compiled.size) <= maxWork
}

/** Whether the work for all items together is small enough for this thread; see isLight. */
export function isLightForAll(compiled: CompiledExpression, items: unknown[], bindings: Bindings): boolean {
  const own = compiled.size * weighValue(items, MAX_WORK / compiled.size)
  return own <= MAX_WORK && isLight(compiled, bindings, (MAX_WORK - own) / items.length)
}

function weighReads({ reads, source }: CompiledExpression, bindings: Bindings, limit: number): number {
  let weight = 8 + source.length / 8
  if (reads.context) weight += weighValue(bindings.input, limit)
  for (const name of reads.roots)
    if (name !== 'nodes') weight += weighValue(bindings[name as keyof Bindings], limit)
  for (const id of reads.nodes) weight += weighValue(bindings.nodes[id], limit)
  return weight
}

/** Evaluates an expression on this thread. Throws a NodeFailure if JSONata fails. */
export async function evaluateHere(compiled: CompiledExpression, bindings: Bindings): Promise<unknown> {
  try {
    const context = compiled.reads.context ? bindings.input : undefined
    return toPlain(await compiled.expression.evaluate(context, bindings))
  } catch (error) {
    const message =
      error instanceof RangeError ? 'is nested too deeply' : String((error as Error).message ?? error)
    throw expressionFailure(`${quoteExpression(compiled.source)}: ${message.slice(0, 500)}`)
  }
}
