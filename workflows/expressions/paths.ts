import {
  measureExpression,
  parseExpression,
  quoteSource,
  type Syntax,
  splitTemplate,
  type Template,
} from './expressions.ts'

/**
 * The variable and the names of a plain path such as `$trigger.body.id`; undefined for any other expression.
 */
export function readPath(tree: Syntax): string[] | undefined {
  const steps = tree.type === 'path' ? (tree.steps as Syntax[]) : [tree]
  const [first, ...rest] = steps
  if (first?.type !== 'variable' || first.value === '' || first.value === '$') return undefined
  const plain = (node: Syntax) => Object.keys(node).every((field) => PLAIN_FIELDS.has(field))
  if (!plain(tree) || !plain(first) || !rest.every((step) => step.type === 'name' && plain(step)))
    return undefined
  return steps.map((step) => String(step.value))
}

/** A path has at most 1,000 characters, which is what a key of a workflow's settings may have. */
const MAX_PATH_WORK = 1_100

const PLAIN_FIELDS = new Set(['type', 'value', 'position', 'steps'])

/**
 * Reads a template whose expressions are plain paths into the execution's input (`$trigger` or `$input`), so
 * that it can be rendered before the execution starts. Returns strings and, for each path, its names. A path
 * alone needs no braces, since as a plain string it would be the same for every execution. Throws an Error
 * that says what is wrong.
 */
export function readPathTemplate(text: string): (string | string[])[] {
  return splitTemplate(/^\s*\$(?!.*\{\{)/.test(text) ? `{{ ${text} }}` : text).map(
    (part: Template[number]) => {
      if (typeof part === 'string') return part
      // Measured first: most that is dear to parse cannot be a path.
      const isDear = measureExpression(part.source) > MAX_PATH_WORK
      const [variable, ...names] = isDear ? [] : (readPath(parseExpression(part.source)) ?? [])
      if (variable === 'trigger' || variable === 'input') return names
      throw new Error(`${quoteSource(part.source)} must be a path such as {{ $trigger.body.customer }}`)
    },
  )
}

/**
 * Renders a path template as nodes render text with expressions: a missing value is '', an object is JSON. A
 * path does not lead into arrays: it finds nothing there.
 */
export function renderPaths(text: string, data: Record<string, unknown>): string {
  return readPathTemplate(text)
    .map((part) => (typeof part === 'string' ? part : write(follow(part, data))))
    .join('')
}

function follow(names: string[], data: unknown): unknown {
  let value = data
  for (const name of names) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name))
      return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

function write(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
