import type { CanvasNote } from '../graph/notes.ts'
import { isObject } from '../json.ts'
import { readStickyNotes } from './nodes/stickynotes.ts'
import type { ProblemReporter } from './report.ts'

export type SourceNode = {
  name: string
  /** The type without its package: httpRequest. */
  type: string
  fullType: string
  version: number
  position: { x: number; y: number } | undefined
  parameters: Record<string, unknown>
  disabled: boolean
  /** The node as the document has it, for settings that are rarely read. */
  raw: Record<string, unknown>
}

/** A connection from an output of one node to an input of another one. Both are counted from 0. */
export type SourceLink = { from: string; output: number; to: string; input: number }

/**
 * A connection by which n8n attaches a node to another one; `kind` is its type: `ai_languageModel`. `input` counts those of
 * one kind from 0.
 */
export type SourceAttachment = { from: string; to: string; kind: string; input: number }

/** An n8n workflow, in the same form whatever version of n8n exported it. */
export type SourceWorkflow = {
  id: string | undefined
  name: string | undefined
  nodes: SourceNode[]
  links: SourceLink[]
  /** Nodes that belong to others: the model, the memory or a tool of one that asks a model. */
  attachments: SourceAttachment[]
  settings: Record<string, unknown>
  description: string | null
  notes: CanvasNote[]
}

const PACKAGES = /^(n8n-nodes-base|@n8n\/n8n-nodes-langchain|n8n-nodes-langchain)\./

/** Whether `raw` is an export of n8n, a list of one, or what the editor of n8n puts on the clipboard. */
export function isN8nDocument(raw: unknown): boolean {
  const document = unwrapDocument(raw)
  return (
    Array.isArray(document?.nodes) && document.nodes.every((node) => typeof Object(node).type === 'string')
  )
}

/** How many nodes and connections a document has. Only for documents that pass isN8nDocument. */
export function measureN8nDocument(raw: unknown): { nodes: number; links: number } {
  const { nodes, connections } = unwrapDocument(raw)!
  let links = 0
  for (const kinds of Object.values(Object(connections))) {
    for (const outputs of Object.values(Object(kinds))) {
      for (const targets of Array.isArray(outputs) ? outputs : [])
        links += Array.isArray(targets) ? targets.length : 1
    }
  }
  return { nodes: (nodes as unknown[]).length, links }
}

function unwrapDocument(raw: unknown): Record<string, unknown> | undefined {
  if (!Array.isArray(raw)) return isObject(raw) ? raw : undefined
  const [only] = raw
  if (raw.length === 1 && Array.isArray(Object(only).nodes)) return only as Record<string, unknown>
  // Old editors put a mere list of nodes on the clipboard.
  return { nodes: raw, connections: {} }
}

/** Reports what it cannot read. Only for documents that pass isN8nDocument. */
export function readN8nDocument(
  raw: unknown,
  reporterOf: (node: string | null) => ProblemReporter,
): SourceWorkflow {
  const document = unwrapDocument(raw)!
  const given = document.nodes as Record<string, unknown>[]
  const nodes = readNodes(given, reporterOf(null))
  const attachments: SourceAttachment[] = []
  const names = new Set(nodes.map((node) => node.name))
  const links = readLinks(document.connections, names, reporterOf, attachments)
  reportStoredData(document, reporterOf)
  return {
    id: typeof document.id === 'string' ? document.id : undefined,
    name: typeof document.name === 'string' ? document.name : undefined,
    nodes,
    links,
    attachments,
    settings: isObject(document.settings) ? document.settings : {},
    description: readDescription(document),
    notes: readStickyNotes(
      given.filter((node) => readType(node) === 'stickyNote'),
      reporterOf(null),
    ),
  }
}

const MAX_DESCRIPTION = 5_000

function readDescription({ description }: Record<string, unknown>): string | null {
  const text = typeof description === 'string' ? description.trim() : ''
  return text === '' ? null : text.slice(0, MAX_DESCRIPTION)
}

function readType(node: Record<string, unknown>): string {
  return String(node.type).replace(PACKAGES, '')
}

function readNodes(given: Record<string, unknown>[], report: ProblemReporter): SourceNode[] {
  const nodes = new Map<string, SourceNode>()
  for (const [i, raw] of given.entries()) {
    const type = readType(raw)
    if (type === 'stickyNote') continue
    const name = typeof raw.name === 'string' && raw.name !== '' ? raw.name : `Node ${i + 1}`
    if (nodes.has(name)) {
      const message =
        `This is a second node with the name "${name}". n8n connects nodes by their names, so it was left ` +
        'out: give it another name and import the workflow again.'
      report('node', `nodes[${i}].name`, message, raw)
      continue
    }
    const [x, y] = Array.isArray(raw.position) ? raw.position : []
    nodes.set(name, {
      name,
      type,
      fullType: String(raw.type),
      version: typeof raw.typeVersion === 'number' ? raw.typeVersion : 1,
      position: Number.isFinite(x) && Number.isFinite(y) ? { x, y } : undefined,
      parameters: isObject(raw.parameters) ? raw.parameters : {},
      disabled: raw.disabled === true,
      raw,
    })
  }
  return [...nodes.values()]
}

function readLinks(
  connections: unknown,
  names: ReadonlySet<string>,
  reporterOf: (node: string) => ProblemReporter,
  attachments: SourceAttachment[],
): SourceLink[] {
  if (!isObject(connections)) return []
  return Object.entries(connections).flatMap(([from, kinds]) =>
    listTargets(kinds).flatMap(({ kind, output, at, target }) => {
      const path = `connections.${from}.${kind}[${output}][${at}]`
      const { node: to, type, index } = Object(target)
      const report = reporterOf(from)
      if (kind.startsWith('ai_') && names.has(from) && names.has(to)) {
        attachments.push({ from, to, kind, input: readInput(index) })
        return []
      }
      if (kind !== 'main' || (type ?? 'main') !== 'main') {
        const message =
          `n8n attaches a node to another one by this connection of the type "${kind}". Perdure has only ` +
          'main connections, and left it out: set up on the node itself what it needs.'
        report('connection', path, message, target)
        return []
      }
      if (!names.has(from) || !names.has(to)) {
        const message =
          'This connection begins or ends at a node that is not in the document, so it was left out: ' +
          'connect the nodes again if the workflow needs it.'
        report('connection', path, message, target)
        return []
      }
      return [{ from, output: Number(output), to, input: readInput(index) }]
    }),
  )
}

const readInput = (index: unknown) => (Number.isInteger(index) && Number(index) >= 0 ? Number(index) : 0)

/** The connections from one node, which are {main: [[target]]}, as a flat list. */
function listTargets(kinds: unknown) {
  return Object.entries(isObject(kinds) ? kinds : {}).flatMap(([kind, outputs]) =>
    Object.entries(Array.isArray(outputs) ? outputs : []).flatMap(([output, targets]) =>
      (Array.isArray(targets) ? targets : []).map((target, at) => ({ kind, output, at, target })),
    ),
  )
}

function reportStoredData(
  { staticData, pinData }: Record<string, unknown>,
  reporterOf: (node: string | null) => ProblemReporter,
): void {
  if (isObject(staticData) && Object.keys(staticData).length > 0) {
    const message =
      'n8n keeps this data from one execution to the next. Perdure keeps nothing between executions, and ' +
      'left it out: store it in a service that the workflow calls.'
    reporterOf(null)('setting', 'staticData', message, staticData)
  }
  if (!isObject(pinData)) return
  for (const [name, data] of Object.entries(pinData)) {
    const message =
      'n8n uses this pinned data when the workflow is tried out in its editor, never when it is active. It was not ' +
      'imported: pass it in "pinned" when you execute the workflow by hand.'
    reporterOf(name)('pinned', `pinData.${name}`, message, data)
  }
}
