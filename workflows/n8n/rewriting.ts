import {
  findParents,
  parseScript,
  readLiteral,
  readMemberName,
  type ScriptNode,
} from '../javascript/syntax.ts'
import { splitScript } from '../javascript/template.ts'
import { getOwn, isObject } from '../json.ts'
import { TURN_UNITS, type Work } from '../turns.ts'
import type { CircleBlock } from './circles.ts'
import type { SourceLink, SourceNode, SourceWorkflow } from './document.ts'
import { type LoopBlock, readBatchSize, readLoopOutputs } from './loops.ts'
import { quoteValue } from './texts.ts'

/** What an expression reads of a node besides its items, and what has the same value here. */
type Replaced = { start: number; end: number; text: string }

type Blocks = { loops: ReadonlyMap<string, LoopBlock>; circles: ReadonlyMap<string, CircleBlock> }

type Reading = {
  /** The characters by which the document may still grow. */
  room: number
  byName: ReadonlyMap<string, SourceNode>
  /** JavaScript for a value that a Loop Over Items node keeps, as the node sees it; undefined if it has none here. */
  readContext(reader: string, loop: string, name: string): string | undefined
}

const READS = /\b(?:params|parameter|context)\b/

/** The units of work of a character that is looked through, and of one that is parsed. */
const LOOK_WORK = 0.01
const PARSE_WORK = 4

/** A longer value is left where it is, and so are all of a text or a document that would grow by more than this. */
const MAX_VALUE = 2_000
const MAX_GROWTH = 10_000
const MAX_ALL_GROWTH = 500_000

/**
 * The workflow with the values of parameters and contexts of nodes in the place of `$('Fetch').params.url`,
 * `$node["Fetch"].parameter["url"]` and `$node["Loop"].context["noItemsLeft"]`: nodes here have other settings, and no
 * context. What is not known before the execution stays, and is refused where it is read.
 */
export function* rewriteExpressions(
  source: SourceWorkflow,
  blocks: Blocks,
  ids: ReadonlyMap<string, string>,
): Work<SourceWorkflow> {
  const byName = new Map(source.nodes.map((node) => [node.name, node]))
  const reading: Reading = { room: MAX_ALL_GROWTH, byName, readContext: createContexts(source, blocks, ids) }
  const nodes: SourceNode[] = []
  for (const node of source.nodes) {
    const text = JSON.stringify(node.parameters)
    yield Math.min(TURN_UNITS, text.length * LOOK_WORK)
    if (!READS.test(text)) nodes.push(node)
    else {
      const parameters = yield* rewriteValue(node.parameters, node.name, reading)
      nodes.push({ ...node, parameters: parameters as Record<string, unknown> })
    }
  }
  return { ...source, nodes }
}

function* rewriteValue(value: unknown, reader: string, reading: Reading): Work<unknown> {
  if (typeof value === 'string') {
    if (!value.startsWith('=') || !READS.test(value)) return value
    yield Math.min(TURN_UNITS, value.length * PARSE_WORK)
    return rewriteText(value, reader, reading)
  }
  if (Array.isArray(value)) {
    const list: unknown[] = []
    for (const entry of value) list.push(yield* rewriteValue(entry, reader, reading))
    return list
  }
  if (!isObject(value)) return value
  const entries: [string, unknown][] = []
  for (const [key, entry] of Object.entries(value))
    entries.push([key, yield* rewriteValue(entry, reader, reading)])
  return Object.fromEntries(entries)
}

function rewriteText(text: string, reader: string, reading: Reading): string {
  const found: Replaced[] = []
  try {
    for (const part of splitScript(text).parts) {
      // Where braces were escaped, places in the expression are not those in the text.
      if (typeof part === 'string' || !text.startsWith(part.source, part.start)) continue
      const parents = findParents(parseScript(part.source))
      for (const node of parents.keys()) {
        const one = replaceRead(node, parents, reader, reading)
        if (one) found.push({ text: one.text, start: one.start + part.start, end: one.end + part.start })
      }
    }
  } catch {
    // Text that is not JavaScript is refused where the graph is checked.
    return text
  }
  const growth = found.reduce((sum, { text: value, start, end }) => sum + value.length - (end - start), 0)
  if (growth > MAX_GROWTH || growth > reading.room) return text
  reading.room -= growth
  let written = text
  for (const { start, end, text: value } of found.sort((a, b) => b.start - a.start))
    written = written.slice(0, start) + value + written.slice(end)
  return written
}

type Parents = Map<ScriptNode, ScriptNode | undefined>

function replaceRead(
  node: ScriptNode,
  parents: Parents,
  reader: string,
  { byName, readContext }: Reading,
): Replaced | undefined {
  const name = readNodeName(node)
  const target = name === undefined ? undefined : byName.get(name)
  const kind = climb(node, parents)
  if (!target || !kind) return undefined
  const first = climb(kind.at, parents)
  if (!first) return undefined
  if (kind.name === 'context') {
    const code = readContext(reader, target.name, first.name)
    return code === undefined ? undefined : { start: node.start, end: first.at.end, text: code }
  }
  if (kind.name !== (node.type === 'CallExpression' ? 'params' : 'parameter')) return undefined
  // For a list with a search n8n gives the value that was chosen, and of an expression its text; in the old way, its value.
  let value = unwrap(target.parameters[first.name])
  if (node.type === 'MemberExpression' && typeof value === 'string' && value.startsWith('=')) {
    const code = readExpression(value)
    return code === undefined ? undefined : { start: node.start, end: first.at.end, text: `(${code})` }
  }
  let at = first.at
  while (typeof value === 'object' && value !== null) {
    const next = climb(at, parents)
    if (!next || !Object.hasOwn(value, next.name)) return undefined
    value = (value as Record<string, unknown>)[next.name]
    at = next.at
  }
  const text = writeValue(value)
  return text === undefined ? undefined : { start: node.start, end: at.end, text }
}

/** The name of the node that `$('Fetch')` or `$node["Fetch"]` is. */
function readNodeName(node: ScriptNode): string | undefined {
  if (node.type === 'CallExpression') {
    const [first] = node.arguments as ScriptNode[]
    return isNamed(node.callee, '$') ? readLiteral(first) : undefined
  }
  return node.type === 'MemberExpression' && isNamed(node.object, '$node') ? readMemberName(node) : undefined
}

function isNamed(node: unknown, name: string): boolean {
  const { type, name: own } = node as ScriptNode
  return type === 'Identifier' && own === name
}

/** The member that is read of a node. */
function climb(node: ScriptNode, parents: Parents): { name: string; at: ScriptNode } | undefined {
  const parent = parents.get(node)
  if (parent?.type !== 'MemberExpression' || parent.object !== node) return undefined
  const name = readMemberName(parent)
  return name === undefined ? undefined : { name, at: parent }
}

function unwrap(value: unknown): unknown {
  return isObject(value) && value.__rl === true ? value.value : value
}

/** The expression that a parameter is, if it is one alone. n8n evaluates it for the node that reads it too. */
function readExpression(text: string): string | undefined {
  const { parts, alone } = splitScript(text)
  const [only] = parts
  const isPlain = alone && typeof only === 'object' && only.source.length < MAX_VALUE && !READS.test(text)
  return isPlain ? only.source.trim().replace(/;+$/, '') : undefined
}

function writeValue(value: unknown): string | undefined {
  if (value === undefined || (typeof value === 'string' && value.length > MAX_VALUE)) return undefined
  return quoteValue(value)
}

/** What n8n's Loop Over Items keeps: known in its loop, if no other is between, and when it is done. */
function createContexts(
  { links }: SourceWorkflow,
  { loops, circles }: Blocks,
  ids: ReadonlyMap<string, string>,
): Reading['readContext'] {
  const outward = Map.groupBy(links, ({ from }) => from)
  const behind = new Map<string, Set<string>>()
  const listBehind = ({ node }: LoopBlock) => {
    const { done } = readLoopOutputs(node)
    const ends = (outward.get(node.name) ?? []).filter(({ output }) => output === done)
    const found = behind.get(node.name) ?? findBehind(ends, outward)
    behind.set(node.name, found)
    return found
  }
  return (reader, name, key) => {
    const loop = loops.get(name)
    // A loop asks its own context only whether it begins again: see loops.ts.
    if (!loop || reader === name) return undefined
    const list = JSON.stringify(`${ids.get(name)}__list`)
    const count = `Math.ceil($nodes[${list}].items.length / ${readBatchSize(loop.node)})`
    if (loop.members.has(reader)) {
      const isBetween = [...loops.values(), ...circles.values()].some(
        ({ members }) => members.has(reader) && members.size < loop.members.size,
      )
      const isLast = `($runIndex >= ${count} - 1)`
      const inside = { currentRunIndex: '$runIndex', noItemsLeft: isLast, maxRunIndex: count, done: 'false' }
      return isBetween ? undefined : getOwn(inside, key)
    }
    const after = { currentRunIndex: count, noItemsLeft: 'true', maxRunIndex: count, done: 'true' }
    return listBehind(loop).has(reader) ? getOwn(after, key) : undefined
  }
}

function findBehind(ends: SourceLink[], outward: ReadonlyMap<string, SourceLink[]>): Set<string> {
  const found = new Set(ends.map(({ to }) => to))
  for (const one of found) for (const { to } of outward.get(one) ?? []) found.add(to)
  return found
}
