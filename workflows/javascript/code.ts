import { parse } from 'acorn'
import { isObject } from '../json.ts'
import { readScriptBody, type ScriptReads } from './reads.ts'
import type { ScriptNode } from './syntax.ts'

/** The most characters of a node's code. */
export const MAX_CODE = 60_000

/** The units of work for reading a character of code. */
export const CODE_WORK = 0.3

const ROOTS = new Set(['input', 'nodes', 'trigger', 'vars', 'execution', 'item', 'index', 'args'])

type Syntax = { type: string; [key: string]: unknown }

/**
 * The reads of a function's body in JavaScript, and its faults, each with its line. Names of nodes must be literals:
 * `$nodes.fetch`, `$nodes?.fetch`, `$nodes["fetch"]`.
 */
export function readCode(text: string): ScriptReads {
  const reads: ScriptReads = {
    roots: new Set(),
    nodes: new Set(),
    context: false,
    problems: [],
    listed: new Set(),
    paired: new Set(),
    found: [],
  }
  let tree: Syntax
  try {
    tree = parse(text, {
      ecmaVersion: 'latest',
      sourceType: 'script',
      allowReturnOutsideFunction: true,
      allowAwaitOutsideFunction: true,
      locations: true,
    }) as unknown as Syntax
  } catch (error) {
    reads.problems.push(describeSyntax(error))
    return reads
  }
  // A stack, since a long sum makes the tree too deep to recurse.
  const open: unknown[] = [tree]
  const named = new Set<unknown>()
  while (open.length > 0) {
    const next = open.pop()
    if (Array.isArray(next)) for (const entry of next) open.push(entry)
    if (!isSyntax(next)) continue
    if (next.type === 'ImportDeclaration' || next.type === 'ImportExpression') {
      reads.problems.push(`line ${lineOf(next)}: there are no modules to import`)
    }
    if (next.type === 'MemberExpression' && isNamed(next.object, '$nodes')) {
      const id = findName(next)
      if (id !== undefined) {
        named.add(next.object)
        reads.nodes.add(id)
      }
    }
    if (next.type === 'Identifier') readName(next, named, reads)
    // A name that is not a variable's is left out.
    const isPlainKey =
      (next.type === 'MemberExpression' || next.type === 'Property') && next.computed !== true
    for (const [key, value] of Object.entries(next)) {
      if (key === 'loc' || (isPlainKey && (key === 'property' || (key === 'key' && next.shorthand !== true))))
        continue
      open.push(value)
    }
  }
  if (isN8nCode(text)) addN8nReads(reads, text, tree)
  return reads
}

const N8N_NAMES =
  /\$(?:json|data|binary|itemIndex|runIndex|node|items|env|workflow|mode|now|today|jmes[pP]ath|if|ifEmpty|min|max|prevNode)\b|\$\s*\(|\$input\s*\.\s*(?:all|first|last|item)\b/

/** Whether code reads what n8n gives to it, besides what it sees anyway: by its text, so it may only seem so. */
export function isN8nCode(text: string): boolean {
  return N8N_NAMES.test(text)
}

/** Adds what `$json`, `$('Fetch')` and the like read. */
function addN8nReads(reads: ScriptReads, text: string, tree: Syntax): void {
  const own = readScriptBody(text, tree as unknown as ScriptNode)
  for (const set of ['roots', 'nodes', 'listed', 'paired'] as const)
    for (const name of own[set]) reads[set].add(name)
  for (const { message, position } of own.found) {
    // That has been said.
    if (message.startsWith('$nodes ')) continue
    reads.problems.push(`line ${text.slice(0, position).split('\n').length}: ${message}`)
  }
}

function readName(next: Syntax, named: Set<unknown>, reads: ScriptReads): void {
  const name = String(next.name)
  if (name.startsWith('$') && ROOTS.has(name.slice(1))) reads.roots.add(name.slice(1))
  if (name !== '$nodes' || named.has(next)) return
  reads.problems.push(
    `line ${lineOf(next)}: $nodes needs the id of a node, as in $nodes.fetch or $nodes["fetch"]`,
  )
}

function isSyntax(value: unknown): value is Syntax {
  return isObject(value) && typeof value.type === 'string'
}

function isNamed(value: unknown, name: string): boolean {
  return isSyntax(value) && value.type === 'Identifier' && value.name === name
}

/** The literal name of a member; undefined if it is computed. */
function findName({ property, computed }: Syntax): string | undefined {
  if (!isSyntax(property)) return undefined
  if (computed !== true) return property.type === 'Identifier' ? String(property.name) : undefined
  return property.type === 'Literal' && typeof property.value === 'string' ? property.value : undefined
}

function lineOf({ loc }: Syntax): number {
  return (loc as { start: { line: number } }).start.line
}

function describeSyntax(error: unknown): string {
  if (!(error instanceof SyntaxError) || /stack space/.test(error.message)) return 'is nested too deeply'
  const { loc } = error as SyntaxError & { loc?: { line: number; column: number } }
  if (error.message.startsWith('Not enough stack space')) return 'is nested too deeply'
  const said = error.message.replace(/ \(\d+:\d+\)$/, '')
  return loc ? `line ${loc.line}, column ${loc.column + 1}: ${said}` : said
}
