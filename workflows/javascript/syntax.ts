import { parse } from 'acorn'

/** A node of JavaScript's syntax tree, as ESTree has it; `start` and `end` are positions in the source. */
export type ScriptNode = { type: string; start: number; end: number; [field: string]: unknown }

/** A fault of a script, and its position in the source, from 0. */
export type ScriptProblem = { message: string; position: number }

/** Thrown for a source that is no JavaScript; `position` is where in the source. */
export type ScriptSyntaxError = Error & { position: number }

/** The most characters of one expression; the same as JSONata's. */
export const MAX_SCRIPT = 10_000

/** The units of work of the shortest source. */
const LEAST_WORK = 20

/** The units of work of one character: the longest source fits in one turn. */
const CHAR_WORK = 1.9

const OPTIONS = { ecmaVersion: 'latest', allowHashBang: false } as const

/** The units of work (see turns.ts) that it takes to read an expression. Throws an Error if it is too long. */
export function measureScript(source: string): number {
  if (source.length > MAX_SCRIPT) throw new Error(`an expression must have at most ${MAX_SCRIPT} characters`)
  return LEAST_WORK + CHAR_WORK * source.length
}

/**
 * The syntax tree of the expression in one pair of braces, which is the first statement, as n8n takes it: a
 * leading `{` begins an object. Throws a ScriptSyntaxError.
 */
export function parseScript(source: string): ScriptNode {
  measureScript(source)
  // The parenthesis takes the place of a blank or shifts all positions by one, which readTree takes back.
  const isObject = source.trimStart().startsWith('{')
  const shift = isObject ? 1 : 0
  return guard(source, shift, () => {
    const program = parse(isObject ? `(${source}\n)` : source, { ...OPTIONS, sourceType: 'module' })
    const [first] = program.body as unknown as ScriptNode[]
    if (!first) throw fault('the expression is empty', 0)
    if (first.type !== 'ExpressionStatement')
      throw fault('only an expression can stand in {{ }}', first.start - shift)
    const tree = first.expression as ScriptNode
    if (shift > 0) shiftBack(tree, shift)
    return tree
  })
}

function guard(source: string, shift: number, read: () => ScriptNode): ScriptNode {
  try {
    return read()
  } catch (error) {
    if (error instanceof RangeError) throw fault('the expression is nested too deeply', 0)
    const { message, pos } = error as Error & { pos?: number }
    if (pos === undefined) throw error
    if (/stack space/.test(message)) throw fault('the expression is nested too deeply', 0)
    const position = Math.min(Math.max(0, pos - shift), source.length)
    throw fault(`invalid syntax: ${message.replace(/ \(\d+:\d+\)$/, '')}`, position)
  }
}

function fault(message: string, position: number): ScriptSyntaxError {
  return Object.assign(new Error(message), { position })
}

function shiftBack(tree: ScriptNode, shift: number): void {
  for (const node of findParents(tree).keys()) {
    node.start -= shift
    node.end -= shift
  }
}

/** All nodes of a tree, each with the node right above it, which comes before it. */
export function findParents(tree: ScriptNode): Map<ScriptNode, ScriptNode | undefined> {
  const parents = new Map<ScriptNode, ScriptNode | undefined>([[tree, undefined]])
  // The loop goes on to what is added in it: no recursion, as a long sum is too deep for one.
  for (const node of parents.keys()) eachChild(node, (child) => parents.set(child, node))
  return parents
}

/** The nodes right below a node, in the order of the source. `{ a }` has both a key and a value. */
export function listChildren(node: ScriptNode): ScriptNode[] {
  const children: ScriptNode[] = []
  eachChild(node, (child) => children.push(child))
  return children.sort((a, b) => a.start - b.start)
}

function eachChild(node: ScriptNode, visit: (child: ScriptNode) => void): void {
  for (const field in node) {
    const value = node[field]
    if (typeof value !== 'object' || value === null) continue
    if (!Array.isArray(value)) {
      if (isNode(value)) visit(value)
    } else for (const child of value) if (isNode(child)) visit(child)
  }
}

function isNode(value: unknown): value is ScriptNode {
  return typeof value === 'object' && value !== null && typeof (value as ScriptNode).type === 'string'
}

/** The text of a literal, or of a template without expressions; undefined for any other node. */
export function readLiteral(node: ScriptNode | undefined): string | undefined {
  if (node?.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined
  if (node?.type !== 'TemplateLiteral' || (node.expressions as unknown[]).length > 0) return undefined
  const [only] = node.quasis as { value: { cooked?: string } }[]
  return only?.value.cooked
}

/** The name of the property that a member expression reads, if that is written in it. */
export function readMemberName(node: ScriptNode): string | undefined {
  const property = node.property as ScriptNode
  if (!node.computed) return property.type === 'Identifier' ? String(property.name) : undefined
  if (property.type === 'Literal' && typeof property.value === 'number') return String(property.value)
  return readLiteral(property)
}

/** Where a position is, for messages: "line 2, column 5", or "column 5" in a single line. */
export function describePosition(source: string, position: number): string {
  const before = source.slice(0, position).split('\n')
  const column = `column ${before.at(-1)!.length + 1}`
  return source.includes('\n') ? `line ${before.length}, ${column}` : column
}
