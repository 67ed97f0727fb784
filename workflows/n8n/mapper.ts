import type { SourceNode } from './document.ts'
import type { ParameterReader } from './parameters.ts'
import type { MappedNode } from './parts.ts'
import type { ProblemReporter } from './report.ts'

/**
 * How nodes of one n8n type become nodes of ours. `takes` says what the node works on each time it runs:
 * - item: one item, so that for a list our node runs in a loop
 * - any: one item or a list as a whole, which it passes on
 * - list: a list, from which it makes a list
 * - collect: a list, from which it makes one item
 * - merge, loop, trigger: Merge nodes, Loop Over Items nodes, and nodes that start an execution
 */
export type NodeMapper = {
  takes: 'trigger' | 'item' | 'any' | 'list' | 'collect' | 'merge' | 'loop'
  /** The node passes its input on unchanged. */
  passesInput?: boolean
  /** What the node outputs, if that does not follow from `takes`. */
  outputFlow?: (node: SourceNode, use: OutputUse) => ItemFlow
  /** Throws an Error that says why the node cannot be imported: "it sorts with code". */
  map: (node: SourceNode, tools: MapperTools) => MappedNode
}

/** What arrives by a connection: one item or a list of items. In JSONata it is at `$input` + `path`. */
export type ItemFlow = { count: 'one' | 'many'; path: string }

export const ONE_ITEM: ItemFlow = { count: 'one', path: '' }
export const ITEM_LIST: ItemFlow = { count: 'many', path: '.items' }

/** How the rest of the workflow uses a node's output. */
export type OutputUse = {
  /** Its readers cannot know which node it is from: it must be a plain item, no {status, headers, body}. */
  plainOutput: boolean
  /** All nodes right after it work on lists. */
  feedsLists: boolean
  /** What arrives at each input. */
  inputs: ItemFlow[][]
}

/** What a mapper may read and call while it maps one node. */
export type MapperTools = {
  /** The id of our node. */
  id: string
  report: ProblemReporter
  /** `$json` is the item that the node works on; of a list, the first one. */
  reader: ParameterReader
  /** `$json` is `$item`, for nodes that go through a list themselves. */
  itemReader: ParameterReader
  input: ItemFlow
  /** The input as JSONata: the item, or the list. */
  inputCode: string
  /** For a Merge node: what arrives at each input, as JSONata. */
  mergeInputs: { text: string; count: 'one' | 'many' }[][]
  plainOutput: boolean
  /** The number of outputs, up to the last one that is connected. */
  connectedOutputs: number
  /** The id of our workflow that replaces one of n8n's, by its id in n8n. */
  findWorkflow(id: string): string | undefined
}
