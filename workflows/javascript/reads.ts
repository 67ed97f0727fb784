import type { Reads } from '../expressions/expressions.ts'
import { explainName, rootsOf } from './names.ts'
import {
  describePosition,
  findParents,
  readLiteral,
  readMemberName,
  type ScriptNode,
  type ScriptProblem,
} from './syntax.ts'

/**
 * The reads of a script. `nodes` are names as they are written: a node's id or its name. `listed` are the names whose
 * items are read, `paired` those that are asked for the item that belongs to the current one.
 */
export type ScriptReads = Reads & { listed: Set<string>; paired: Set<string>; found: ScriptProblem[] }

/** The number of problems of one expression that are told: the others are told when these are mended. */
const MAX_PROBLEMS = 20

const NODE_MEMBERS = new Set(['item', 'itemMatching', 'pairedItem', 'first', 'last', 'all', 'isExecuted'])
const PAIRED = new Set(['item', 'itemMatching', 'pairedItem'])
const INPUT_MEMBERS = new Set(['item', 'first', 'last', 'all'])
/** Names that are other things in code. */
const CODE_NAMES = new Set(['$input', '$item'])
const OLD_MEMBERS = new Set(['json', 'data', 'binary', 'runIndex'])
const OF_ITEM = new Set(['$json', '$data', '$binary', '$itemIndex'])
const ITEM_MEMBERS = new Set(['json', 'binary', 'pairedItem', 'data'])

/**
 * Finds what the expression reads and what it must not. Problems are unknown names, nodes that are not named
 * by a literal, and what n8n has and Perdure has not.
 */
export function readScript(source: string, tree: ScriptNode): ScriptReads {
  return readTree(source, tree, true)
}

/** As readScript, for the body of a CODE node, which may have names of its own from anywhere. */
export function readScriptBody(source: string, tree: ScriptNode): ScriptReads {
  return readTree(source, tree, false)
}

function readTree(source: string, tree: ScriptNode, isExpression: boolean): ScriptReads {
  const reads: ScriptReads = {
    roots: new Set(),
    nodes: new Set(),
    context: false,
    problems: [],
    listed: new Set(),
    paired: new Set(),
    found: [],
  }
  const problem = (message: string, at: ScriptNode) => {
    if (reads.found.length < MAX_PROBLEMS) reads.found.push({ message, position: at.start })
  }
  const parents = findParents(tree)
  const declared = findDeclared(parents.keys())
  for (const [node, parent] of parents) {
    if (node.type === 'Identifier' && isReference(node, parent)) {
      const name = String(node.name)
      if (declared.has(name) && (!isExpression || !name.startsWith('$'))) continue
      if (isExpression && name.startsWith('$$')) problem(`unknown variable ${name}`, node)
      else {
        for (const root of rootsOf(name)) reads.roots.add(root)
        const why = isExpression && !declared.has(name) ? explainName(name) : undefined
        if (why) problem(why, node)
        else if (isExpression || !CODE_NAMES.has(name)) readNodes(name, node, parents, reads, problem)
      }
    } else if (isExpression) refuseSyntax(node, parents, problem)
  }
  reads.found.sort((a, b) => a.position - b.position)
  reads.problems = reads.found.map(({ message, position }) =>
    position === 0 && source.length < 40 ? message : `${message} (${describePosition(source, position)})`,
  )
  return reads
}

type Parents = Map<ScriptNode, ScriptNode | undefined>
type AddProblem = (message: string, at: ScriptNode) => void

/** Refuses syntax that n8n does not allow in expressions, or that could never give a value. */
function refuseSyntax(node: ScriptNode, parents: Parents, problem: AddProblem): void {
  if (node.type === 'ImportExpression' || node.type === 'MetaProperty')
    problem('imports are not available', node)
  else if (node.async === true) problem('an expression cannot wait for something', node)
  else if (node.type === 'ThisExpression' && !isInFunction(node, parents))
    problem('this is not available', node)
  else if (node.type === 'MemberExpression' && readMemberName(node) === 'constructor')
    problem('the constructor of a value cannot be read', node.property as ScriptNode)
  else if (node.type === 'CallExpression') refuseCall(node, problem)
}

function refuseCall(node: ScriptNode, problem: AddProblem): void {
  const callee = node.callee as ScriptNode
  if (callee.type !== 'Identifier') return
  const given = node.arguments as ScriptNode[]
  if (callee.name === '$if' && given.length < 2 && given.every(({ type }) => type !== 'SpreadElement'))
    problem('$if requires at least 2 parameters: test, value_if_true[, and value_if_false]', node)
}

function isInFunction(node: ScriptNode, parents: Parents): boolean {
  for (let at = parents.get(node); at; at = parents.get(at)) {
    if (/^(Function|Class)/.test(at.type)) return true
  }
  return false
}

/** Notes which nodes a name reads, and what it must not read of them. */
function readNodes(
  name: string,
  node: ScriptNode,
  parents: Parents,
  reads: ScriptReads,
  problem: AddProblem,
): void {
  const parent = parents.get(node)
  if (name === '$' || name === '$items') {
    if (parent?.type !== 'CallExpression' || parent.callee !== node) {
      problem(`${name} must be called with the name of a node: ${name}('Fetch')`, node)
      return
    }
    const [first, ...more] = parent.arguments as ScriptNode[]
    const written = readLiteral(first)
    if (!written) {
      problem(`the name of the node must be written out: ${name}('Fetch')`, first ?? node)
      return
    }
    reads.nodes.add(written)
    reads.listed.add(written)
    if (name === '$items') refuseBranch(more, problem)
    else readNodeMember(written, parent, parents, reads, problem)
  } else if (name === '$node' || name === '$nodes') {
    const written =
      parent?.type === 'MemberExpression' && parent.object === node ? readMemberName(parent) : undefined
    if (written === undefined) {
      problem(`the name of the node must be written out: ${name}["Fetch"]`, node)
      return
    }
    reads.nodes.add(written)
    if (name === '$node') {
      reads.listed.add(written)
      refuseOldMember(written, parent!, parents, problem)
    }
  } else if (name === '$item') {
    if (parent?.type === 'CallExpression' && parent.callee === node)
      readItemAt(parent, parents, reads, problem)
  } else if (name === '$input') {
    const member = readNext(node, parents)
    if (member?.name === 'params' || member?.name === 'context')
      problem(`$input.${member.name} is not available`, member.at)
    else if (member?.name !== undefined && !INPUT_MEMBERS.has(member.name))
      problem(
        `$input has no ${member.name}: write $json.${member.name}, or $input.item.json.${member.name}`,
        member.at,
      )
    else if (member?.name === 'item') refuseItemMember('$input.item', member.node, parents, problem)
  }
}

/** Notes what is read of `$item(0)`, which is what an expression sees if it is evaluated for that item. */
function readItemAt(call: ScriptNode, parents: Parents, reads: ScriptReads, problem: AddProblem): void {
  const [, run] = call.arguments as ScriptNode[]
  if (run) refuseBranch([run], problem)
  const member = readNext(call, parents)
  if (member?.name === '$node') {
    const node = readNext(member.node, parents)
    if (node?.name === undefined) {
      problem('the name of the node must be written out: $item(0).$node["Fetch"]', member.at)
      return
    }
    reads.nodes.add(node.name)
    reads.listed.add(node.name)
    refuseOldMember(node.name, node.node, parents, problem)
    for (const root of rootsOf('$node')) reads.roots.add(root)
  } else if (member?.name !== undefined && OF_ITEM.has(member.name))
    for (const root of rootsOf('$json')) reads.roots.add(root)
  else problem('of $item(...) there are $json, $binary, $itemIndex and $node["Fetch"].json', call)
}

/** What can be read of `$node["Fetch"]`. */
function refuseOldMember(written: string, node: ScriptNode, parents: Parents, problem: AddProblem): void {
  const member = readNext(node, parents)
  if (member && !OLD_MEMBERS.has(member.name ?? ''))
    problem(`$node["${written}"].${member.name ?? '[...]'} is not available: there is json`, member.at)
}

/** Checks what is read of `$('Fetch')`. */
function readNodeMember(
  written: string,
  call: ScriptNode,
  parents: Parents,
  reads: ScriptReads,
  problem: AddProblem,
): void {
  const member = readNext(call, parents)
  const shown = `$('${written}')`
  if (!member) return
  if (member.name === undefined) {
    reads.paired.add(written)
    return
  }
  if (PAIRED.has(member.name)) reads.paired.add(written)
  if (!NODE_MEMBERS.has(member.name)) {
    const instead = ['params', 'context'].includes(member.name) ? '' : `: write ${shown}.item.json`
    problem(`${shown}.${member.name} is not available${instead}`, member.at)
  } else if (['first', 'last', 'all'].includes(member.name)) {
    const parent = parents.get(member.node)
    if (parent?.type === 'CallExpression' && parent.callee === member.node)
      refuseBranch(parent.arguments as ScriptNode[], problem)
  } else if (member.name === 'item') refuseItemMember(`${shown}.item`, member.node, parents, problem)
}

/** `$('X').item.email` is nothing in n8n; what is meant is `.json.email`. */
function refuseItemMember(shown: string, item: ScriptNode, parents: Parents, problem: AddProblem): void {
  const member = readNext(item, parents)
  if (member?.name !== undefined && !ITEM_MEMBERS.has(member.name))
    problem(`${shown} has no ${member.name}: write ${shown}.json.${member.name}`, member.at)
}

/** The first output and the last run are the ones that there are: `all(0, 0)`. */
function refuseBranch(given: ScriptNode[], problem: AddProblem): void {
  const other = given.find((argument) => {
    const isNothing = argument.type === 'Identifier' && argument.name === 'undefined'
    return !isNothing && !(argument.type === 'Literal' && (argument.value === 0 || argument.value === null))
  })
  if (other) problem('other outputs and runs than the first are not available', other)
}

type Member = { name: string | undefined; node: ScriptNode; at: ScriptNode }

/** The member that is read of a node: of `$input` in `$input.item`, `item`. */
function readNext(node: ScriptNode, parents: Parents): Member | undefined {
  let parent = parents.get(node)
  while (parent?.type === 'ChainExpression') parent = parents.get(parent)
  if (parent?.type !== 'MemberExpression' || parent.object === parent.property) return undefined
  if (unchain(parent.object as ScriptNode) !== node) return undefined
  return { name: readMemberName(parent), node: parent, at: parent.property as ScriptNode }
}

function unchain(node: ScriptNode): ScriptNode {
  return node.type === 'ChainExpression' ? unchain(node.expression as ScriptNode) : node
}

/** Whether an identifier means a variable, and is not the name of a property or a label. */
function isReference(node: ScriptNode, parent: ScriptNode | undefined): boolean {
  switch (parent?.type) {
    case 'MemberExpression':
      return parent.object === node || parent.computed === true
    case 'Property':
    case 'MethodDefinition':
    case 'PropertyDefinition':
      return parent.value === node || parent.computed === true
    case 'LabeledStatement':
    case 'BreakStatement':
    case 'ContinueStatement':
      return false
    default:
      return true
  }
}

/** The names that the source declares anywhere: parameters, variables, functions, classes. */
function findDeclared(nodes: Iterable<ScriptNode>): Set<string> {
  const names = new Set<string>()
  const bind = (pattern: unknown): void => {
    const node = pattern as ScriptNode | null
    if (!node) return
    if (node.type === 'Identifier') names.add(String(node.name))
    else if (node.type === 'AssignmentPattern') bind(node.left)
    else if (node.type === 'RestElement') bind(node.argument)
    else if (node.type === 'ArrayPattern') for (const element of node.elements as unknown[]) bind(element)
    else if (node.type === 'ObjectPattern')
      for (const property of node.properties as ScriptNode[]) bind(property.value ?? property)
  }
  for (const node of nodes) {
    if (Array.isArray(node.params)) for (const param of node.params) bind(param)
    if (node.type.startsWith('Function') || node.type.startsWith('Class')) bind(node.id)
    if (node.type === 'VariableDeclarator') bind(node.id)
    if (node.type === 'CatchClause') bind(node.param)
  }
  return names
}
