import { PAGE_VARIABLES, prepareExpression } from '../../../workflows/expressions/expressions.ts'
import type { Reading } from '../../../workflows/expressions/rules.ts'
import type { ReadPath } from '../../../workflows/expressions/watched.ts'
import type { ConsoleLine } from '../../javascript/job.ts'
import type { Bindings } from '../bindings.ts'
import { type CompiledExpression, evaluateHere } from '../compiled.ts'
import { expressionFailure, quoteExpression } from '../failures.ts'
import type { Misses } from '../job.ts'
import { bindRules, describeTruth } from '../truth.ts'
import { findMiss, traceExpression } from './misses.ts'

/** An expression, and the text of the config that has it. */
export type PlacedExpression = { expression: CompiledExpression; text: string }

/**
 * Watches expressions for paths that lead nowhere. A plain path costs nothing more, and any other expression only the
 * time to follow its paths: it is traced only if one of these is missing, or if it gives nothing.
 */
export type Watch = {
  /** Whether the expression reads a path that is not there; it may still not come to that. With `items`, for all of them. */
  suspects(expression: CompiledExpression, bindings: Bindings, items?: unknown[]): boolean
  /** Tells of a plain path that gave nothing. */
  tellPath(placed: PlacedExpression, bindings: Bindings, items?: unknown[]): void
  /** Tells what was found; if it is strict, throws a NodeFailure. */
  tell(placed: PlacedExpression, messages: string[]): void
  /** As tell, for the expressions of a job. */
  tellAll(placed: PlacedExpression[], misses: Misses[] | undefined): void
  /** Tells of a path in a text that begins with `=` if it leads nowhere; if it is strict, throws a NodeFailure. */
  tellScript(text: string, message: string): void
  /** Tells what a text that begins with `=` has written to the console. */
  tellConsole(lines: ConsoleLine[]): void
  /** Tells of a condition's value that is neither a boolean nor nothing. */
  judge(text: string, value: unknown): void
  note(text: string, message: string): void
}

/** Undefined if nothing is to be watched. */
export function createWatch({ rules, strict, note, log }: Reading): Watch | undefined {
  if (rules < 2 || (!strict && !note)) return undefined
  const watch: Watch = {
    suspects: ({ paths }, bindings, items) =>
      paths.some((path) => findMiss(path, startOf(path, bindings, items)) !== undefined),
    tellPath(placed, bindings, items) {
      const [root, ...steps] = placed.expression.path!
      // A page that has no next one says so by what it lacks.
      if (root !== undefined && PAGE_VARIABLES.has(root)) return
      const path = { root, steps, whole: true }
      const miss = findMiss(path, startOf(path, bindings, items))
      if (miss !== undefined) watch.tell(placed, [miss])
    },
    tell({ expression, text }, messages) {
      if (strict && messages[0] !== undefined)
        throw expressionFailure(`${quoteExpression(expression.source)}: ${messages[0]} (settings.strict)`)
      for (const message of messages) note?.(text, message)
    },
    tellAll(placed, misses = []) {
      for (const { at, messages } of misses) watch.tell(placed[at]!, messages)
    },
    tellScript(text, message) {
      if (strict)
        throw expressionFailure(
          `expression ${text.length > 80 ? `${text.slice(0, 80)}...` : text}: ${message} (settings.strict)`,
        )
      note?.(text, message)
    },
    tellConsole(lines) {
      if (lines.length > 0) log?.(lines)
    },
    judge(text, value) {
      const odd = describeTruth(value)
      if (odd !== undefined) note?.(text, odd)
    },
    note: (text, message) => note?.(text, message),
  }
  return watch
}

/** The value of a path's variable. For all items together, `$item` is the list: one of them must have what is read. */
function startOf({ root }: ReadPath, bindings: Bindings, items: unknown[] | undefined): unknown {
  if (root === undefined || root === '' || root === '$') return bindings.input
  if (items && root === 'item') return items
  if (items && root === 'index') return 0
  return bindings[root as keyof Bindings]
}

/** A copy of an expression that notes its paths that lead nowhere, to be evaluated on this thread. */
export function traceHere(compiled: CompiledExpression) {
  const expression = bindRules(prepareExpression(compiled.source), compiled.rules)
  const trace = traceExpression(expression)
  return {
    evaluate: (bindings: Bindings) => evaluateHere(compiled, bindings, expression),
    misses: trace.misses,
  }
}
