import type { SourceNode } from './document.ts'
import type { MappedNode } from './parts.ts'
import type { ProblemReporter } from './report.ts'
import type { NeededCredential } from './signins/needed.ts'

/** How nodes of one n8n type become nodes of ours. Throws an Error that says why it cannot: "it sorts with code". */
export type NodeMapper = (node: SourceNode, tools: MapperTools) => MappedNode

/** What a mapper may read and call while it maps one node. */
export type MapperTools = {
  /** The id of our node. */
  id: string
  report: ProblemReporter
  /** Reports a problem of a node that is attached to it. */
  reportOf(node: SourceNode): ProblemReporter
  /** It is the node whose text is the reply in a chat. */
  repliesInChat: boolean
  /** For each input of the node, an expression for what comes by it. */
  inputs: string[]
  /** The number of outputs, up to the last one that is connected. */
  connectedOutputs: number
  /** All nodes in the order in which n8n executes them. */
  ends: string[]
  /** The id of our workflow that replaces one of n8n's, by its id or its name in n8n. */
  findWorkflow(id: string): string | undefined
  /** The workflow itself: its id in n8n, and its id here if it has a trigger by which it can be called. */
  own: { theirs: string | undefined; ours: string | undefined }
  /** Whether any of the nodes works on files of its items. */
  usesFiles: boolean
  /**
   * The nodes that n8n attaches to it, or to `part`, which is attached to it, by connections of this kind:
   * `ai_languageModel`, `ai_tool`. In the order of its inputs.
   */
  attached(kind: string, part?: SourceNode): SourceNode[]
  /** The id of our credential that replaces one of n8n's, by its id or its name in n8n, or the name of its node. */
  findCredential(key: string): string | undefined
  /** The credentials that nodes of the document need: mappers add to them. */
  needs: NeededCredential[]
}
