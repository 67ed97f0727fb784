import { VALUE_METHODS } from '../../workflows/javascript/names.ts'
import { listChildren, type ScriptNode } from '../../workflows/javascript/syntax.ts'

/**
 * An expression as the sandbox evaluates it: calls of n8n's methods on values go through `$$extend`, as their
 * names are also fields of objects, `$if` evaluates only the branch that it takes, and `$try` what may throw. `source` is the text
 * that the positions in the tree refer to. `methods`, if given, collects the names of n8n's methods in it.
 */
export function rewriteScript(source: string, tree: ScriptNode, methods: Set<string> = new Set()): string {
  const write = (node: ScriptNode): string => {
    if (node.type === 'ChainExpression') return writeChain(node.expression as ScriptNode)
    if (node.type === 'CallExpression') {
      const callee = node.callee as ScriptNode
      const given = node.arguments as ScriptNode[]
      const method = findMethod(callee)
      if (method !== undefined) {
        methods.add(method)
        return `$$extend(${enclose(callee.object as ScriptNode)}, "${method}")(${writeAll(given)})`
      }
      const name = callee.type === 'Identifier' ? callee.name : undefined
      if (name === '$item') return `$$itemAt(${writeAll(given)})`
      if (name === '$try') return `$$try(${given.map((one) => `() => ${enclose(one)}`)})`
      if (name === '$if' && given.every(isPlainArgument)) return writeChoice(given.map(enclose))
    }
    return writeChildren(node)
  }

  /**
   * The node as it is written, with the nodes below it rewritten. The text between those stays, parentheses included.
   */
  function writeChildren(node: ScriptNode): string {
    // The key and the value of `{ first }` are the same text, and a default is only in the value.
    const children = node.shorthand ? [node.value as ScriptNode] : listChildren(node)
    let text = ''
    let at = node.start
    for (const child of children) {
      text += source.slice(at, child.start) + write(child)
      at = child.end
    }
    return text + source.slice(at, node.end)
  }

  // The parentheses around a node are not part of it.
  function enclose(node: ScriptNode): string {
    return `(${write(node)})`
  }

  function writeAll(nodes: ScriptNode[]): string {
    return nodes.map((node) => (node.type === 'SpreadElement' ? write(node) : enclose(node))).join(', ')
  }

  /** `a?.b.first()`: what is behind a `?.` is only evaluated if there is something before it. */
  function writeChain(tree: ScriptNode): string {
    const links: ScriptNode[] = []
    let base = tree
    while (base.type === 'MemberExpression' || base.type === 'CallExpression') {
      links.unshift(base)
      base = (base.type === 'CallExpression' ? base.callee : base.object) as ScriptNode
    }
    if (!links.some((link) => link.type === 'CallExpression' && findMethod(link.callee as ScriptNode)))
      return writeChildren(tree)
    return writeLinks(enclose(base), links, 1)
  }

  function writeLinks(start: string, links: ScriptNode[], depth: number): string {
    let text = start
    for (let i = 0; i < links.length; i++) {
      const link = links[i]!
      const rest = (from: number) => writeLinks(`$$${depth}`, links.slice(from), depth + 1)
      const isCall = link.type === 'CallExpression'
      if (link.optional && !(i === 0 && start === `$$${depth - 1}`)) {
        return `$$optional(${text}, ($$${depth}) => ${rest(i)})`
      }
      const next = links[i + 1]
      const method = isCall ? undefined : findMethod(link)
      if (method !== undefined && next?.type === 'CallExpression') {
        methods.add(method)
        const given = writeAll(next.arguments as ScriptNode[])
        if (!next.optional) {
          text = `$$extend(${text}, "${method}")(${given})`
          i++
          continue
        }
        const call = writeLinks(`$$${depth}(${given})`, links.slice(i + 2), depth + 1)
        return `$$optional($$extend(${text}, "${method}", true), ($$${depth}) => ${call})`
      }
      if (!isCall && next?.type === 'CallExpression' && next.optional) {
        const call = writeLinks(
          `$$${depth}(${writeAll(next.arguments as ScriptNode[])})`,
          links.slice(i + 2),
          depth + 1,
        )
        return `$$optional($$bind(${text}, ${writeKey(link)}), ($$${depth}) => ${call})`
      }
      text += isCall ? `(${writeAll(link.arguments as ScriptNode[])})` : `[${writeKey(link)}]`
    }
    return text
  }

  function writeKey(member: ScriptNode): string {
    const property = member.property as ScriptNode
    return member.computed ? write(property) : JSON.stringify(property.name)
  }

  return write(tree)
}

const writeChoice = ([test, then, other = 'false']: string[]) => `(${test} ? ${then} : ${other})`

/** The name of n8n's method that a callee may be; undefined if it cannot be one. */
function findMethod(callee: ScriptNode): string | undefined {
  if (callee.type !== 'MemberExpression' || callee.computed) return undefined
  const property = callee.property as ScriptNode
  const name = property.type === 'Identifier' ? String(property.name) : ''
  return VALUE_METHODS.has(name) && (callee.object as ScriptNode).type !== 'Super' ? name : undefined
}

function isPlainArgument(node: ScriptNode): boolean {
  return node.type !== 'SpreadElement'
}

/** Names of methods that change what they are called on. */
const CHANGING = new Set(
  `sort reverse push pop shift unshift splice fill copyWithin assign defineProperty
  defineProperties setPrototypeOf call apply bind`.split(/\s+/),
)

/**
 * Whether evaluating one of these may change a value that it reads: then it gets a copy. `nodes` are all nodes
 * of its tree.
 */
export function mayChange(nodes: Iterable<ScriptNode>): boolean {
  for (const node of nodes) {
    if (node.type === 'UpdateExpression' && (node.argument as ScriptNode).type !== 'Identifier') return true
    if (node.type === 'AssignmentExpression' && (node.left as ScriptNode).type !== 'Identifier') return true
    if (node.type === 'UnaryExpression' && node.operator === 'delete') return true
    if (node.type === 'ForInStatement' || node.type === 'ForOfStatement') {
      if (!['VariableDeclaration', 'Identifier'].includes((node.left as ScriptNode).type)) return true
    }
    if (node.type !== 'MemberExpression') continue
    const property = node.property as ScriptNode
    if (!node.computed && CHANGING.has(String(property.name))) return true
  }
  return hasComputedCall(nodes)
}

/** `list["sort"]()` is rare: whatever it calls may change what it is called on. */
function hasComputedCall(nodes: Iterable<ScriptNode>): boolean {
  for (const node of nodes) {
    if (node.type !== 'CallExpression') continue
    const callee = node.callee as ScriptNode
    if (callee.type === 'MemberExpression' && callee.computed) return true
  }
  return false
}
