import { CODE_WORK, readCode } from '../javascript/code.ts'
import type { Problem } from '../problem.ts'
import type { Work } from '../turns.ts'
import { eachPart, measureExpression, readMeasured, splitCondition } from './expressions.ts'

const MAX_CONFIG_DEPTH = 100
const MAX_EXPRESSIONS = 1_000

/** Units of work: to find the end of an expression, for each character; to list an object, for each entry. */
const SCAN_WORK = 0.1
const ENTRY_WORK = 0.02

/**
 * The nodes that a config refers to and what is wrong with its expressions, each with its path. `context`: one of
 * them reads names without a variable.
 */
export type References = { nodes: { id: string; path: string }[]; problems: Problem[]; context: boolean }

/** How many units of work are left for parsing expressions. Below 0 no more are read. */
export type Meter = { left: number }

/**
 * Finds every node that a config refers to and what is wrong with its expressions. The strings at the paths
 * (within the config) of `conditions` are read as conditions or as code, all others as templates. Keys are not
 * read.
 */
export function* findReferences(
  value: unknown,
  path: string,
  conditions: { path: string; text: string; code?: true }[] = [],
  meter: Meter = { left: Number.POSITIVE_INFINITY },
): Work<References> {
  const found: References = { nodes: [], problems: [], context: false }
  const bare = new Set(conditions.map((condition) => condition.path))
  const code = new Set(conditions.flatMap((condition) => (condition.code ? [condition.path] : [])))
  let count = 0
  function* visit(item: string | object, key: string, depth: number): Work<void> {
    const at = key === '' || key.startsWith('[') ? path + key : `${path}.${key}`
    if (typeof item === 'string') {
      if (code.has(key)) {
        yield* readCodeInto(found, item, at, meter)
        return
      }
      // Counted before any is parsed.
      if (!bare.has(key)) count += item.split('{{').length - 1
      if (bare.has(key) || count <= MAX_EXPRESSIONS) yield* readText(item, at, bare.has(key), found, meter)
      else {
        const message = `a node must have at most ${MAX_EXPRESSIONS} expressions`
        found.problems.push({ path: at, message })
      }
      return
    }
    if (depth > MAX_CONFIG_DEPTH) {
      found.problems.push({ path: at, message: 'is nested too deeply' })
      return
    }
    const keys = Array.isArray(item) ? undefined : Object.keys(item)
    yield 1 + ENTRY_WORK * (keys ?? (item as unknown[])).length
    for (const name of keys ?? (item as unknown[]).keys()) {
      if (meter.left < 0) return
      const entry: unknown = item[name as keyof typeof item]
      const isPlain = typeof entry === 'string' && bare.size === 0 && !entry.includes('{{')
      if (isPlain || (typeof entry !== 'string' && !isNested(entry))) continue
      yield* visit(entry, typeof name === 'number' ? `${key}[${name}]` : joinPath(key, name), depth + 1)
    }
  }
  if (typeof value === 'string' || isNested(value)) yield* visit(value, '', 0)
  return found
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Reads the expressions of one string, and adds what they refer to and what is wrong with them. */
function* readText(
  text: string,
  path: string,
  isCondition: boolean,
  found: References,
  meter: Meter,
): Work<void> {
  try {
    for (const part of isCondition ? [splitCondition(text)] : eachPart(text)) {
      if (typeof part === 'string') continue
      yield SCAN_WORK * part.source.length
      const units = measureExpression(part.source)
      meter.left -= units
      if (meter.left < 0) throw new Error(TOO_MUCH)
      yield units
      const reads = readMeasured(part.source)
      if (reads.context) found.context = true
      for (const id of reads.nodes) found.nodes.push({ id, path })
      for (const message of reads.problems) found.problems.push({ path, message })
    }
  } catch (error) {
    found.problems.push({ path, message: (error as Error).message })
  }
}

/** Reads a node's code, and adds what it refers to and what is wrong with it. */
function* readCodeInto(found: References, text: string, path: string, meter: Meter): Work<void> {
  const units = CODE_WORK * text.length
  meter.left -= units
  if (meter.left < 0) {
    found.problems.push({ path, message: TOO_MUCH })
    return
  }
  yield units
  const reads = readCode(text)
  for (const id of reads.nodes) found.nodes.push({ id, path })
  for (const message of reads.problems) found.problems.push({ path, message })
}

const TOO_MUCH =
  'has an expression that would take too long to read together with those before it: make the expressions ' +
  'shorter, or move some of them to a sub-workflow'

function joinPath(key: string, name: string): string {
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(name)) return `${key}[${JSON.stringify(name)}]`
  return key === '' ? name : `${key}.${name}`
}
