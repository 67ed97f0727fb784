import jsonata from 'jsonata'
import { findSimilar } from '../suggest.ts'
import { findCounterpart, findVariableCounterpart } from './methods.ts'
import { scanExpression } from './scan.ts'

/** The literal parts (strings) and the expressions of a template, in order. */
export type Template = (string | { source: string })[]

const MAX_LENGTH = 10_000
const MAX_DEPTH = 100
const MAX_DOUBLING = 8
const MAX_WORK = 19_900
const MAX_STEPS = 200

/** The units of work of the shortest expression. */
const LEAST_WORK = 20

/** Splits a string at its `{{ }}`. Throws an Error that says where one does not end or does not parse. */
export function readTemplate(text: string): Template {
  const template = splitTemplate(text)
  for (const part of template) if (typeof part !== 'string') parseExpression(part.source)
  return template
}

/** As readTemplate, but does not parse the expressions: for callers that compile them anyway. */
export function splitTemplate(text: string): Template {
  return [...eachPart(text)]
}

/** As splitTemplate, one part after the other, so that a caller of many can pause in between. */
export function* eachPart(text: string): Generator<Template[number], void, void> {
  let at = 0
  for (;;) {
    const open = text.indexOf('{{', at)
    if (open < 0) break
    const { end, depth } = scanExpression(text, open + 2, MAX_LENGTH)
    if (end < 0) {
      const where = `the {{ at character ${open + 1}`
      if (depth > MAX_DEPTH) throw new Error(`${where} is nested too deeply`)
      const within = text.length - open > MAX_LENGTH ? ` within ${MAX_LENGTH} characters` : ''
      throw new Error(`${where} has no closing }}${within}`)
    }
    if (open > at) yield text.slice(at, open)
    yield { source: text.slice(open + 2, end).trim() }
    at = end + 2
  }
  if (at < text.length || text === '') yield text.slice(at)
}

/** The expression of a condition, which may be in one pair of `{{ }}` or not. Throws as readTemplate does. */
export function readCondition(text: string): { source: string } {
  const condition = splitCondition(text)
  parseExpression(condition.source)
  return condition
}

/** As readCondition, but does not parse the expression. */
export function splitCondition(text: string): { source: string } {
  const source = text.trim()
  if (!source.startsWith('{{')) return { source }
  const [only, ...rest] = splitTemplate(source)
  if (typeof only !== 'object' || rest.length > 0) {
    throw new Error('a condition must be one expression: put {{ }} around all of it, or leave them out')
  }
  return only
}

/** A node of JSONata's syntax tree; its fields depend on its type. */
export type Syntax = { type: string; value?: unknown; [field: string]: unknown }

/** The syntax tree of one expression. Throws an Error if it does not parse, is too long or too deep. */
export function parseExpression(source: string): Syntax {
  return syntaxOf(prepareExpression(source))
}

/** Compiles an expression with JSONata, with the same checks as parseExpression. */
export function prepareExpression(source: string): jsonata.Expression {
  measureExpression(source)
  return compileSource(source)
}

/** Finds the reads of an expression that has been measured. Throws an Error if it does not parse. */
export function readMeasured(source: string): Reads {
  return findReads(syntaxOf(compileSource(source)))
}

/** The units of work that it takes to parse an expression; throws an Error if they are too many. */
export function measureExpression(source: string): number {
  if (source === '') throw new Error('the expression is empty')
  if (source.length > MAX_LENGTH) throw new Error(`an expression must have at most ${MAX_LENGTH} characters`)
  const { depth, doubling, work, steps } = scanExpression(source, 0)
  if (depth > MAX_DEPTH)
    throw new Error(`${quoteSource(source)} is nested more than ${MAX_DEPTH} levels deep`)
  if (doubling > MAX_DOUBLING) {
    throw new Error(`${quoteSource(source)} nests ?? and ?: more than ${MAX_DOUBLING} levels deep`)
  }
  if (work > MAX_WORK) {
    throw new Error(
      `${quoteSource(source)} is too long for the ?? and ?: in it, which double what is before them`,
    )
  }
  if (steps > MAX_STEPS) throw new Error(`${quoteSource(source)} has a path of more than ${MAX_STEPS} steps`)
  return LEAST_WORK + work
}

function compileSource(source: string): jsonata.Expression {
  try {
    return jsonata(source)
  } catch (error) {
    if (error instanceof RangeError) throw new Error(`${quoteSource(source)} is nested too deeply`)
    const { message, position = 0, token } = error as { message?: string; position?: number; token?: unknown }
    const said = `${message ?? 'Syntax error'} (character ${position} of ${quoteSource(source)})`
    // JSONata counts to the end of the token that it did not expect.
    const length = typeof token === 'string' && source.slice(0, position).endsWith(token) ? token.length : 1
    throw Object.assign(new Error(said), { at: Math.max(0, position - length), length })
  }
}

export function syntaxOf(expression: jsonata.Expression): Syntax {
  return expression.ast() as unknown as Syntax
}

/** Quotes an expression for a message, in `{{ }}` and cut to 80 characters. */
export function quoteSource(source: string): string {
  const line = source.replace(/\s+/g, ' ')
  return `{{ ${line.length > 80 ? `${line.slice(0, 80)}...` : line} }}`
}

/**
 * The reads of an expression: variables of the scope (`roots`), outputs by node id (`nodes`), and whether it reads its
 * context, which is `$input`. `problems` are messages about reads that are not allowed. `args`: it reads `$args`, and
 * has not given it a value itself; `page`: the first of PAGE_VARIABLES that it so reads.
 */
export type Reads = {
  roots: Set<string>
  nodes: Set<string>
  context: boolean
  problems: string[]
  args?: boolean
  page?: string
}

/** The variables that expressions see, without `$`. */
export const VARIABLES_IN_SCOPE = new Set(['input', 'nodes', 'trigger', 'vars', 'execution', 'item', 'index'])

/** What the pages of an HTTP request have besides. */
export const PAGE_VARIABLES = new Set(['response', 'pageCount', 'request'])

/**
 * JSONata's own functions, without `$eval`, whose expressions could not be checked when the graph is saved.
 */
export const JSONATA_FUNCTIONS = new Set(
  `abs append assert average base64decode base64encode boolean ceil clone contains count decodeUrl
  decodeUrlComponent distinct each encodeUrl encodeUrlComponent error exists filter floor formatBase
  formatInteger formatNumber fromMillis join keys length lookup lowercase map match max merge millis min not now
  number pad parseInteger power random reduce replace reverse round shuffle sift single sort split spread sqrt
  string substring substringAfter substringBefore sum toMillis trim type uppercase zip`.split(/\s+/),
)

/**
 * Finds what the tree reads. Problems are unknown variables, `$nodes` without a literal id, `$eval`, scope
 * variables that are assigned to, and regexes that our engine does not support.
 */
export function findReads(tree: Syntax): Reads {
  const reads: Reads = { roots: new Set(), nodes: new Set(), context: false, problems: [] }
  const bound = new Set<string>()
  const variables: string[] = []
  const bind = (name: string) => {
    if (VARIABLES_IN_SCOPE.has(name) || name === 'eval')
      reads.problems.push(`$${name} cannot be given another value`)
    bound.add(name)
  }
  // A stack, since a long sum makes the tree too deep to recurse; a set, since `??` makes it share branches.
  const seen = new Set<object>()
  const open: unknown[] = [tree]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next !== 'object' || next === null || seen.has(next)) continue
    seen.add(next)
    if (Array.isArray(next)) {
      open.push(...next)
      continue
    }
    const node = next as Syntax
    for (const name of [node.focus, node.index]) if (typeof name === 'string') bind(name)
    if (node.type === 'path') {
      const [first, second] = node.steps as Syntax[]
      if (isBareNodes(first) && second?.type === 'name') {
        reads.nodes.add(String(second.value))
        reads.roots.add('nodes')
        seen.add(first!)
      }
      if (first?.type === 'name') reads.context = true
    } else if (node.type === 'variable') {
      if (node.value === '' || node.value === '$') reads.context = true
      else variables.push(String(node.value))
    } else if (node.type === 'bind') {
      const name = node.lhs as Syntax
      bind(String(name.value))
      seen.add(name)
    } else if (node.type === 'lambda') {
      for (const name of node.arguments as Syntax[]) {
        bind(String(name.value))
        seen.add(name)
      }
    } else if (node.type === 'wildcard' || node.type === 'descendant' || node.type === 'parent') {
      reads.context = true
    } else if (node.type === 'regex') {
      checkRegex(node.value as RegExp, reads.problems)
    }
    for (const [field, child] of Object.entries(node)) {
      if (typeof child === 'object' && field !== 'ancestor' && field !== 'slot') open.push(child)
    }
  }
  for (const name of new Set(variables)) {
    if (name === 'args') {
      // Expressions of before may have a variable of this name.
      reads.roots.add(name)
      reads.args = !bound.has(name)
    } else if (PAGE_VARIABLES.has(name)) {
      if (bound.has(name)) continue
      reads.roots.add(name)
      reads.page ??= name
    } else if (name === 'nodes')
      reads.problems.push('$nodes needs the id of a node right after it: $nodes.fetch, or $nodes.`fetch-2`')
    else if (VARIABLES_IN_SCOPE.has(name)) reads.roots.add(name)
    else if (name === 'eval') reads.problems.push('$eval is not available')
    else if (!bound.has(name) && !JSONATA_FUNCTIONS.has(name))
      reads.problems.push(`unknown variable $${name}${suggestVariable(name, bound)}`)
  }
  return reads
}

/** The advice for a variable that does not exist, as the end of a message. */
function suggestVariable(name: string, bound: Set<string>): string {
  const counterpart = findVariableCounterpart(name) ?? findCounterpart(name)
  if (counterpart !== undefined) return `; write ${counterpart}`
  const similar = findSimilar(name, [...VARIABLES_IN_SCOPE, ...bound, ...JSONATA_FUNCTIONS])
  return similar === undefined ? '' : `; did you mean $${similar}?`
}

function isBareNodes(step: Syntax | undefined): boolean {
  return (
    step?.type === 'variable' &&
    step.value === 'nodes' &&
    !step.predicate &&
    !step.stages &&
    !step.tuple &&
    !step.group
  )
}

/** Our regex engine takes linear time, and so supports neither lookaround nor backreferences. */
function checkRegex(regex: RegExp, problems: string[]): void {
  const plain = regex.source.replace(/\\[^1-9k]|\[(?:[^\]\\]|\\.)*\]/g, '')
  if (/\(\?(?:[=!]|<[=!])/.test(plain))
    problems.push(`the regex /${regex.source}/ must not look ahead or behind`)
  if (/\\[1-9k]/.test(plain)) problems.push(`the regex /${regex.source}/ must not refer back to a group`)
}
