import { listChildren, readLiteral, readMemberName, type ScriptNode } from './syntax.ts'

/**
 * A plain path or a literal, whose value can be found without evaluating anything. `item`, `first` and `last`
 * are what comes in, or with `node` what that node gave; `root` is a variable of the scope.
 */
export type ScriptPath =
  | { value: string | number | boolean | null }
  | { from: 'item' | 'first' | 'last' | 'same'; node?: string; names: string[] }
  | { root: 'vars' | 'trigger' | 'execution' | 'loopItem'; names: string[] }

type Step = { name: string } | { given: ScriptNode[] }

/** The path that an expression is; undefined for any other. */
export function readScriptPath(tree: ScriptNode): ScriptPath | undefined {
  const value = readValue(tree)
  if (value !== undefined) return { value }
  const steps: Step[] = []
  let base = tree
  for (;;) {
    if (base.type === 'ChainExpression') base = base.expression as ScriptNode
    else if (base.type === 'MemberExpression') {
      const name = readMemberName(base)
      if (name === undefined) return undefined
      steps.unshift({ name })
      base = base.object as ScriptNode
    } else if (base.type === 'CallExpression') {
      steps.unshift({ given: base.arguments as ScriptNode[] })
      base = base.callee as ScriptNode
    } else break
  }
  return base.type === 'Identifier' ? readSteps(String(base.name), steps) : undefined
}

const ROOTS: Record<string, 'vars' | 'trigger' | 'loopItem'> = {
  $vars: 'vars',
  $env: 'vars',
  $trigger: 'trigger',
  $item: 'loopItem',
}

function readSteps(base: string, steps: Step[]): ScriptPath | undefined {
  if (base === '$json' || base === '$data') return withNames({ from: 'item' as const }, steps)
  if (Object.hasOwn(ROOTS, base)) return withNames({ root: ROOTS[base]! }, steps)
  if (base === '$input') return readFrom({}, steps)
  if (base === '$execution' || base === '$workflow') return readExecution(base, steps)
  const [first, second, ...rest] = steps
  if (base === '$' && first && 'given' in first) {
    const node = readLiteral(first.given[0])
    return node && first.given.length === 1 ? readFrom({ node }, steps.slice(1)) : undefined
  }
  if (base === '$node' && first && 'name' in first && isMember(second, 'json'))
    return withNames({ from: 'same' as const, node: first.name }, rest)
  return undefined
}

/** `.item.json.a`, `.first().json.a` and `.last().json.a`. */
function readFrom(head: { node?: string }, steps: Step[]): ScriptPath | undefined {
  const [which, second, third, ...more] = steps
  if (!which || !('name' in which)) return undefined
  if (which.name === 'item') {
    if (!isMember(second, 'json')) return undefined
    return withNames({ from: 'item', ...head }, steps.slice(2))
  }
  if (which.name !== 'first' && which.name !== 'last') return undefined
  if (!second || !('given' in second) || second.given.length > 0 || !isMember(third, 'json')) return undefined
  return withNames({ from: which.name, ...head }, more)
}

/** The names that mean the same there and in Perdure; all others have a meaning of their own. */
function readExecution(base: string, steps: Step[]): ScriptPath | undefined {
  const [first, ...rest] = steps
  if (!first || !('name' in first) || rest.length > 0) return undefined
  const fields: Record<string, string> =
    base === '$workflow'
      ? { id: 'workflowId', name: 'workflowName' }
      : { id: 'id', workflowId: 'workflowId', workflowName: 'workflowName', startedAt: 'startedAt' }
  const name = Object.hasOwn(fields, first.name) ? fields[first.name] : undefined
  return name === undefined ? undefined : { root: 'execution', names: [name] }
}

function withNames<P extends object>(head: P, steps: Step[]): (P & { names: string[] }) | undefined {
  const names: string[] = []
  for (const step of steps) {
    if (!('name' in step)) return undefined
    names.push(step.name)
  }
  return { ...head, names }
}

function isMember(step: Step | undefined, name: string): boolean {
  return step !== undefined && 'name' in step && step.name === name
}

function readValue(tree: ScriptNode): string | number | boolean | null | undefined {
  if (tree.type === 'UnaryExpression' && tree.operator === '-') {
    const value = readValue(tree.argument as ScriptNode)
    return typeof value === 'number' ? -value : undefined
  }
  if (tree.type === 'TemplateLiteral') return readLiteral(tree)
  if (tree.type !== 'Literal' || tree.regex || tree.bigint) return undefined
  return tree.value as string | number | boolean | null
}

/** How many paths of an expression are watched. */
const MAX_WATCHED = 50

/** Functions that are asked with what may be nothing. */
const ASKING = new Set(['$if', '$ifEmpty', '$not', 'not', 'Boolean'])
const ASKING_METHODS = new Set(['isEmpty', 'isNotEmpty', 'hasField', 'toBoolean'])

/**
 * The plain paths that an expression reads whatever happens, and not to find out whether there is something: not
 * behind `?.`, in `? :`, `||`, `&&`, `??`, `!`, `typeof`, `in`, `$if()`, `$ifEmpty()`, in a comparison with nothing, or in a
 * function that may not be called.
 */
export function listWatchedPaths(tree: ScriptNode): ScriptPath[] {
  const paths: ScriptPath[] = []
  // A stack, since a long sum makes the tree too deep to recurse.
  const open = [tree]
  while (open.length > 0 && paths.length < MAX_WATCHED) {
    const node = open.pop()!
    if (isAsking(node)) continue
    const path = readScriptPath(node)
    if (path && !('value' in path)) {
      if (path.names.length > 0) paths.push(path)
    } else if (node.type === 'CallExpression') open.push(...readCall(node))
    else open.push(...listChildren(node))
  }
  return paths
}

/** The nodes that a call reads besides the function itself. */
function readCall(node: ScriptNode): ScriptNode[] {
  const callee = node.callee as ScriptNode
  const given = node.arguments as ScriptNode[]
  return callee.type === 'MemberExpression' ? [...given, callee.object as ScriptNode] : given
}

function isAsking(node: ScriptNode): boolean {
  if (
    /^(ChainExpression|ConditionalExpression|LogicalExpression|AssignmentExpression|UpdateExpression)$/.test(
      node.type,
    )
  )
    return true
  if (/Function|Class/.test(node.type)) return true
  if (node.type === 'UnaryExpression')
    return ['!', 'typeof', 'delete', 'void'].includes(String(node.operator))
  if (node.type === 'BinaryExpression') {
    if (node.operator === 'in') return true
    return (
      /^[!=]==?$/.test(String(node.operator)) &&
      [node.left, node.right].some((side) => isNothing(side as ScriptNode))
    )
  }
  if (node.type !== 'CallExpression') return false
  const callee = node.callee as ScriptNode
  if (callee.type === 'Identifier') return ASKING.has(String(callee.name))
  return callee.type === 'MemberExpression' && ASKING_METHODS.has(readMemberName(callee) ?? '')
}

function isNothing(node: ScriptNode): boolean {
  return (
    (node.type === 'Identifier' && node.name === 'undefined') ||
    (node.type === 'Literal' && node.raw === 'null')
  )
}
