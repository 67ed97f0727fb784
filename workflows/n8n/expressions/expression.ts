import { type AnyNode, type Expression, parseExpressionAt, type SpreadElement } from 'acorn'
import { readChain } from './chains.ts'
import { booleanCode, type JsonataCode, numberCode, quoteString, stringCode, toPlainValue } from './code.ts'
import { readBinary, readLogical, readUnary } from './operators.ts'
import { failTranslation, type NodeReferences, type Translator } from './translator.ts'

const MAX_LENGTH = 10_000

/**
 * Translates one JavaScript expression into JSONata. Throws an Error whose message completes a sentence about
 * the expression: "it uses typeof". `unwrapJson` drops a call of JSON.stringify around the whole expression.
 */
export function translateExpression(
  source: string,
  references: NodeReferences,
  unwrapJson = false,
): JsonataCode {
  const tree = parse(source)
  const translator = createTranslator(references)
  return toPlainValue(translator.read((unwrapJson && findStringified(tree)) || tree))
}

function parse(source: string): Expression {
  if (source.length > MAX_LENGTH) throw new Error(`has more than ${MAX_LENGTH} characters`)
  try {
    // With the parentheses nothing can follow the expression. The line break ends a comment.
    return parseExpressionAt(`(${source.replace(/;\s*$/, '')}\n)`, 0, { ecmaVersion: 'latest' })
  } catch (error) {
    throw new Error(`is not one JavaScript expression: ${(error as Error).message}`)
  }
}

function createTranslator(references: NodeReferences): Translator {
  let shared = 0
  const withScope = (scope: ReadonlyMap<string, JsonataCode>): Translator => ({
    references,
    scope,
    read: (node, inner = scope) => readExpression(node, withScope(inner)),
    share(code, use) {
      if (/^\$[\w.]+$/.test(code.text)) return use(code)
      const name = `$s${++shared}`
      const used = use({ ...code, text: name })
      return { ...used, text: `(${name} := ${code.text}; ${used.text})` }
    },
  })
  return withScope(new Map())
}

/** The argument of the JSON.stringify call that is the whole expression, if it is one. */
function findStringified(tree: Expression): Expression | undefined {
  if (tree.type !== 'CallExpression' || tree.callee.type !== 'MemberExpression') return undefined
  const { object, property } = tree.callee
  const isJson = object.type === 'Identifier' && object.name === 'JSON' && property.type === 'Identifier'
  const [value] = tree.arguments
  if (!isJson || property.name !== 'stringify' || !value || value.type === 'SpreadElement') return undefined
  return value
}

function readExpression(node: Expression | SpreadElement, translator: Translator): JsonataCode {
  switch (node.type) {
    case 'Literal':
      return readLiteral(node.value, node.raw ?? '')
    case 'TemplateLiteral':
      return readTemplateLiteral(node, translator)
    case 'ParenthesizedExpression':
    case 'ChainExpression':
      return translator.read(node.expression)
    case 'ArrayExpression':
      return readArray(node, translator)
    case 'ObjectExpression':
      return readObject(node, translator)
    case 'UnaryExpression':
      return readUnary(node.operator, node.argument, translator)
    case 'BinaryExpression':
      return readBinary(node.operator, node.left as Expression, node.right, translator)
    case 'LogicalExpression':
      return readLogical(node.operator, translator.read(node.left), translator.read(node.right), translator)
    case 'ConditionalExpression':
      return readConditional(node, translator)
    case 'Identifier':
    case 'MemberExpression':
    case 'CallExpression':
    case 'NewExpression':
      return readChain(node, translator)
    default:
      return failTranslation(`uses the syntax "${describeSyntax(node)}"`)
  }
}

function readLiteral(value: unknown, raw: string): JsonataCode {
  if (typeof value === 'string') return stringCode(quoteString(value))
  if (typeof value === 'number' && Number.isFinite(value)) return numberCode(String(value))
  if (typeof value === 'boolean') return booleanCode(String(value))
  if (value === null && raw === 'null') return { text: 'null', hint: 'null' }
  return failTranslation(`uses ${raw} as a value`)
}

function readTemplateLiteral(
  node: Expression & { type: 'TemplateLiteral' },
  translator: Translator,
): JsonataCode {
  const parts = node.quasis.flatMap((quasi, i) => [
    ...(quasi.value.cooked ? [quoteString(quasi.value.cooked)] : []),
    ...(node.expressions[i] ? [toPlainValue(translator.read(node.expressions[i])).text] : []),
  ])
  return stringCode(parts.length === 0 ? '""' : `(${['""', ...parts].join(' & ')})`)
}

function readArray(node: Expression & { type: 'ArrayExpression' }, translator: Translator): JsonataCode {
  const entries = node.elements.map((entry) => {
    if (!entry) return failTranslation('contains an array with holes')
    // A spread entry needs no mark: JSONata's arrays flatten the lists in them.
    return toPlainValue(translator.read(entry.type === 'SpreadElement' ? entry.argument : entry)).text
  })
  return { text: `[${entries.join(', ')}]`, hint: 'list' }
}

function readObject(node: Expression & { type: 'ObjectExpression' }, translator: Translator): JsonataCode {
  const parts: string[] = []
  let fields: string[] = []
  const closePart = () => {
    if (fields.length > 0) parts.push(`{${fields.join(', ')}}`)
    fields = []
  }
  for (const property of node.properties) {
    if (property.type === 'SpreadElement') {
      closePart()
      parts.push(translator.read(property.argument).text)
      continue
    }
    if (property.kind !== 'init' || property.method) failTranslation('defines a method')
    const { key } = property
    const isPlain = !property.computed && key.type === 'Identifier'
    const name = isPlain ? quoteString(key.name) : `$string(${translator.read(key as Expression).text})`
    fields.push(`${name}: ${toPlainValue(translator.read(property.value as Expression)).text}`)
  }
  closePart()
  if (parts.length === 0) return { text: '{}', hint: 'object' }
  const hasSpread = node.properties.some((property) => property.type === 'SpreadElement')
  return { text: hasSpread ? `$merge([${parts.join(', ')}])` : parts[0]!, hint: 'object' }
}

function readConditional(
  node: Expression & { type: 'ConditionalExpression' },
  translator: Translator,
): JsonataCode {
  const yes = toPlainValue(translator.read(node.consequent))
  const no = toPlainValue(translator.read(node.alternate))
  const hint = yes.hint === no.hint ? yes.hint : 'unknown'
  return { text: `(${translator.read(node.test).text} ? ${yes.text} : ${no.text})`, hint }
}

function describeSyntax(node: AnyNode): string {
  const name = node.type.replace(/(Expression|Statement|Literal)$/, '')
  return name.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()
}
