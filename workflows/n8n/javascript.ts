import { type AnyNode, type Expression, parseExpressionAt, type SpreadElement } from 'acorn'
import { readChain } from './chains.ts'
import { readBinary, readLogical, readUnary } from './operators.ts'

/** What is known of a value before it is there. A `time` is told in epoch milliseconds. */
export type Hint = 'text' | 'number' | 'boolean' | 'list' | 'object' | 'time' | 'null' | 'unknown'

/** JSONata that means the same. */
export type Code = { text: string; hint: Hint }

/** How one node of the foreign workflow reads the others. Each throws an Error that says why it cannot be read. */
export type Names = {
  /** The item that the node works on. */
  current(): Code
  /** An item of another node's output. */
  other(name: string, which: 'item' | 'first' | 'last' | 'all'): Code
  /** Whether another node has run. */
  ran(name: string): Code
  /** The current item's place. */
  index(): Code
  /** Told that a value depends on the time zone, which is UTC. */
  zoned?(): void
}

export type Step = { key: Expression | string } | { args: (Expression | SpreadElement)[] }

/** What the translation of one expression shares: variables in scope, and how to go on. */
export type Translation = {
  names: Names
  scope: ReadonlyMap<string, Code>
  read(node: Expression | SpreadElement, scope?: ReadonlyMap<string, Code>): Code
  /** A value for use more than once, behind what must stand before it. */
  share(code: Code, use: (code: Code) => Code): Code
}

const MAX_LENGTH = 10_000

/**
 * One JavaScript expression in JSONata. Throws an Error that says what of it has no counterpart. With `bare`, a call
 * of JSON.stringify around all of it is left out.
 */
export function translateScript(source: string, names: Names, bare = false): Code {
  if (source.length > MAX_LENGTH) throw new Error(`has more than ${MAX_LENGTH} characters`)
  let tree: Expression
  try {
    // In brackets nothing can stand behind it; a comment at its end ends with the line.
    tree = parseExpressionAt(`(${source.replace(/;\s*$/, '')}\n)`, 0, { ecmaVersion: 'latest' })
  } catch (error) {
    throw new Error(`is not one JavaScript expression: ${(error as Error).message}`)
  }
  let shared = 0
  const begin = (scope: ReadonlyMap<string, Code>): Translation => ({
    names,
    scope,
    read: (node, inner = scope) => readExpression(node, begin(inner)),
    share(code, use) {
      if (/^\$[\w.]+$/.test(code.text)) return use(code)
      const name = `$s${++shared}`
      const used = use({ ...code, text: name })
      return { ...used, text: `(${name} := ${code.text}; ${used.text})` }
    },
  })
  return settle(begin(new Map()).read((bare && findStringified(tree)) || tree))
}

function findStringified(tree: Expression): Expression | undefined {
  if (tree.type !== 'CallExpression' || tree.callee.type !== 'MemberExpression') return undefined
  const { object, property } = tree.callee
  const named = object.type === 'Identifier' && object.name === 'JSON' && property.type === 'Identifier'
  const [value] = tree.arguments
  if (!named || property.name !== 'stringify' || !value || value.type === 'SpreadElement') return undefined
  return value
}

/** A moment becomes the text that it is outside of calculations. */
export function settle(code: Code): Code {
  return code.hint === 'time' ? { text: `$fromMillis(${code.text})`, hint: 'text' } : code
}

export const quote = (text: string) => JSON.stringify(text)

/** A step into an object, as a path. */
export function enter(code: Code, key: string): Code {
  const base = /^[$\w.`)\]]+$/.test(code.text) ? code.text : `(${code.text})`
  const name = /^[A-Za-z_]\w*$/.test(key) && !WORDS.has(key) ? key : `\`${key}\``
  if (key.includes('`')) return { text: `$lookup(${code.text}, ${quote(key)})`, hint: 'unknown' }
  return { text: `${base}.${name}`, hint: 'unknown' }
}

const WORDS = new Set(['and', 'or', 'in', 'true', 'false', 'null', 'function', 'λ'])

function readExpression(node: Expression | SpreadElement, at: Translation): Code {
  switch (node.type) {
    case 'Literal':
      return readLiteral(node.value, node.raw ?? '')
    case 'TemplateLiteral': {
      const parts = node.quasis.flatMap((quasi, i) => [
        ...(quasi.value.cooked ? [quote(quasi.value.cooked)] : []),
        ...(node.expressions[i] ? [settle(at.read(node.expressions[i])).text] : []),
      ])
      if (parts.length === 0) return { text: '""', hint: 'text' }
      return { text: `(${['""', ...parts].join(' & ')})`, hint: 'text' }
    }
    case 'ParenthesizedExpression':
      return at.read(node.expression)
    case 'ChainExpression':
      return at.read(node.expression)
    case 'ArrayExpression': {
      const entries = node.elements.map((entry) => (entry ? at.read(spreadless(entry)) : fail('has holes')))
      return { text: `[${entries.map((entry) => settle(entry).text).join(', ')}]`, hint: 'list' }
    }
    case 'ObjectExpression':
      return readObject(node, at)
    case 'UnaryExpression':
      return readUnary(node.operator, node.argument, at)
    case 'BinaryExpression':
      return readBinary(node.operator, node.left as Expression, node.right, at)
    case 'LogicalExpression':
      return readLogical(node.operator, at.read(node.left), at.read(node.right), at)
    case 'ConditionalExpression': {
      const [yes, no] = [settle(at.read(node.consequent)), settle(at.read(node.alternate))]
      const hint = yes.hint === no.hint ? yes.hint : 'unknown'
      return { text: `(${at.read(node.test).text} ? ${yes.text} : ${no.text})`, hint }
    }
    case 'Identifier':
    case 'MemberExpression':
    case 'CallExpression':
    case 'NewExpression':
      return readChain(node, at)
    default:
      return fail(`uses ${describe(node)}`)
  }
}

function readLiteral(value: unknown, raw: string): Code {
  if (typeof value === 'string') return { text: quote(value), hint: 'text' }
  if (typeof value === 'number' && Number.isFinite(value)) return { text: String(value), hint: 'number' }
  if (typeof value === 'boolean') return { text: String(value), hint: 'boolean' }
  if (value === null && raw === 'null') return { text: 'null', hint: 'null' }
  return fail(`uses ${raw} as a value`)
}

function readObject(node: Expression & { type: 'ObjectExpression' }, at: Translation): Code {
  const parts: string[] = []
  let fields: string[] = []
  const flush = () => {
    if (fields.length > 0) parts.push(`{${fields.join(', ')}}`)
    fields = []
  }
  for (const property of node.properties) {
    if (property.type === 'SpreadElement') {
      flush()
      parts.push(at.read(property.argument).text)
      continue
    }
    if (property.kind !== 'init' || property.method) fail('defines a method')
    const { key } = property
    const plain = !property.computed && key.type === 'Identifier'
    const name = plain ? quote(key.name) : `$string(${at.read(key as Expression).text})`
    fields.push(`${name}: ${settle(at.read(property.value as Expression)).text}`)
  }
  flush()
  if (parts.length === 0) return { text: '{}', hint: 'object' }
  return {
    text: node.properties.some((one) => one.type === 'SpreadElement')
      ? `$merge([${parts.join(', ')}])`
      : parts[0]!,
    hint: 'object',
  }
}

/** A JSONata function of an arrow function's one expression. `wrap` changes what it answers. */
export function readArrow(
  node: Expression | SpreadElement | undefined,
  at: Translation,
  wrap: (text: string) => string = (text) => text,
): { text: string; hint: Hint } {
  if (node?.type !== 'ArrowFunctionExpression' || node.body.type === 'BlockStatement' || node.async) {
    return fail('needs a function that is more than one expression')
  }
  const scope = new Map(at.scope)
  const names = node.params.map((param) => {
    if (param.type !== 'Identifier') return fail('takes a parameter apart')
    const text = `$v_${param.name.replace(/\W/g, '_')}`
    scope.set(param.name, { text, hint: 'unknown' })
    return text
  })
  const body = settle(at.read(node.body, scope))
  return { text: `function(${names.join(', ')}){${wrap(body.text)}}`, hint: body.hint }
}

function spreadless(node: Expression | SpreadElement): Expression {
  return node.type === 'SpreadElement' ? node.argument : node
}

function describe(node: AnyNode): string {
  return node.type.replace(/(Expression|Statement|Literal)$/, '').toLowerCase()
}

export function fail(message: string): never {
  throw new Error(message)
}
