import type { SourceNode } from './document.ts'
import { enter } from './javascript.ts'
import type { Complain } from './report.ts'
import type { Reader } from './values.ts'

/** What flows along a connection: one item, or a list of them; `path` leads there from `$input`. */
export type Flow = { card: 'one' | 'many'; path: string }

/** One of our nodes. The main one of a mapped node has no suffix: it takes the node's id, retry and error settings. */
export type Part = {
  suffix: string
  type: string
  config: Record<string, unknown>
  retry?: Record<string, number>
  timeoutMs?: number
}

/** Our nodes for one of theirs, in a chain, and the handles by which its outputs leave the last one. */
export type Mapped = {
  parts: Part[]
  handles?: (string | null)[]
  /** Outputs that leave by further handles too, by their number: a switch's fallback. */
  more?: { output: number; handle: string }[]
  /** It only holds the place of one that has no counterpart. */
  missing?: true
}

/** What a mapper may ask. */
export type Tools = {
  /** Of the node here. */
  id: string
  complain: Complain
  /** `$json` in it is the item that the node gets; of a list the first. */
  reader: Reader
  /** `$json` in it is `$item`, for nodes that go through a list themselves. */
  each: Reader
  input: Flow
  /** The input as JSONata: the item, or the list. */
  source: string
  /** By input, what comes in by it: JSONata for one item or a list. */
  inputs: { text: string; card: 'one' | 'many' }[][]
  /** Ask for the plain body instead of {status, headers, body}. */
  unwrap: boolean
  /** How many outputs are connected, up to the last one; 0 of the last node. */
  outputs: number
  /** The workflow that stands for one of theirs, by its id there. */
  findWorkflow(id: string): string | undefined
}

/**
 * How one of their node types becomes ours. `takes`: 'item' runs once for each item of a list; 'any' takes a list as
 * a whole and hands it on; 'list' makes a list of a list, 'collect' one item of it.
 */
export type Mapper = {
  takes: 'trigger' | 'item' | 'any' | 'list' | 'collect' | 'merge' | 'loop'
  /** Whether it hands on what it gets, as it is. */
  same?: boolean
  /** What it puts out; without it, as it takes. */
  gives?: (node: SourceNode, asked: { unwrap: boolean; lists: boolean; inputs: Flow[][] }) => Flow
  map: (node: SourceNode, tools: Tools) => Mapped
}

export const ONE: Flow = { card: 'one', path: '' }
export const LIST: Flow = { card: 'many', path: '.items' }

export function part(type: string, config: Record<string, unknown>, suffix = ''): Part {
  return { type, config, suffix }
}

/** A node that takes the place of one that has no counterpart: a run must not go past work that is not done. */
export function placeholder(node: SourceNode, why: string): Mapped {
  const message = `The n8n node "${node.name}" (${node.fullType}) was not imported: ${why}`
  const handles = Array<null>(100).fill(null)
  return {
    missing: true,
    handles,
    parts: [part('STOP_AND_ERROR', { message: message.replaceAll('{{', '{ {').slice(0, 1_000) })],
  }
}

export type NewNode = Record<string, unknown> & { id: string; type: string; config: Record<string, unknown> }

/** One of their nodes, and our nodes for it. */
export type Built = {
  source: SourceNode
  id: string
  mapped: Mapped
  entry: string
  exit: string
  handles: (string | null)[]
}

/** The node that does the work. */
export function mainOf(mapped: Mapped): Part {
  return mapped.parts.find(({ suffix }) => suffix === '') ?? mapped.parts[0]!
}

/** A path of JSONata to a node's output. */
export function outputOf(id: string, path = ''): string {
  return enter({ text: '$nodes', hint: 'object' }, id).text + path
}

/** The node that keeps a loop's item for the loops in it. */
export function itemNode({ id }: { id: string }): string {
  return `${id}__item`
}
