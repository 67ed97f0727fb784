import { isObject } from '../inputs.ts'
import type { Complain } from './report.ts'

export type SourceNode = {
  name: string
  /** Without its package: httpRequest. */
  type: string
  fullType: string
  version: number
  position: { x: number; y: number } | undefined
  parameters: Record<string, unknown>
  disabled: boolean
  /** All of it, for what is read seldom. */
  raw: Record<string, unknown>
}

/** From an output of a node to an input of another, both counted from 0. */
export type Link = { from: string; output: number; to: string; input: number }

export type SourceWorkflow = {
  name: string | undefined
  nodes: SourceNode[]
  links: Link[]
  settings: Record<string, unknown>
  stickyNotes: number
}

const PACKAGES = /^(n8n-nodes-base|@n8n\/n8n-nodes-langchain|n8n-nodes-langchain)\./

/** Whether this is a workflow of n8n's: an export, a list of one, or what its editor puts on the clipboard. */
export function isDocument(raw: unknown): boolean {
  const document = unwrap(raw)
  return (
    Array.isArray(document?.nodes) && document.nodes.every((node) => typeof Object(node).type === 'string')
  )
}

/** How large a document is, before it is read. For documents only. */
export function measureDocument(raw: unknown): { nodes: number; links: number } {
  const { nodes, connections } = unwrap(raw)!
  let links = 0
  for (const kinds of Object.values(Object(connections))) {
    for (const outputs of Object.values(Object(kinds))) {
      for (const targets of Array.isArray(outputs) ? outputs : [])
        links += Array.isArray(targets) ? targets.length : 1
    }
  }
  return { nodes: (nodes as unknown[]).length, links }
}

function unwrap(raw: unknown): Record<string, unknown> | undefined {
  if (!Array.isArray(raw)) return isObject(raw) ? raw : undefined
  const [only] = raw
  if (raw.length === 1 && Array.isArray(Object(only).nodes)) return only as Record<string, unknown>
  return { nodes: raw, connections: {} }
}

/** The document in one form for all versions of n8n; what cannot be read is reported. For documents only. */
export function readDocument(raw: unknown, complainOf: (node: string | null) => Complain): SourceWorkflow {
  const document = unwrap(raw)!
  const complain = complainOf(null)
  const nodes: SourceNode[] = []
  let stickyNotes = 0
  for (const [at, entry] of (document.nodes as unknown[]).entries()) {
    const raw = entry as Record<string, unknown>
    const fullType = String(raw.type)
    const type = fullType.replace(PACKAGES, '')
    if (type === 'stickyNote') {
      stickyNotes++
      continue
    }
    const name = typeof raw.name === 'string' && raw.name !== '' ? raw.name : `Node ${at + 1}`
    if (nodes.some((node) => node.name === name)) {
      complain('node', `nodes[${at}].name`, `A second node is named "${name}"; it is left out`, raw)
      continue
    }
    const [x, y] = Array.isArray(raw.position) ? raw.position : []
    nodes.push({
      name,
      type,
      fullType,
      version: typeof raw.typeVersion === 'number' ? raw.typeVersion : 1,
      position: Number.isFinite(x) && Number.isFinite(y) ? { x, y } : undefined,
      parameters: isObject(raw.parameters) ? raw.parameters : {},
      disabled: raw.disabled === true,
      raw,
    })
  }
  const links = readLinks(document.connections, new Set(nodes.map((node) => node.name)), complainOf)
  if (isObject(document.staticData) && Object.keys(document.staticData).length > 0) {
    complain('setting', 'staticData', 'Static data is not taken over', document.staticData)
  }
  if (isObject(document.pinData)) {
    for (const [name, data] of Object.entries(document.pinData)) {
      complainOf(name)('pinned', `pinData.${name}`, 'Pinned data is not taken over', data)
    }
  }
  return {
    name: typeof document.name === 'string' ? document.name : undefined,
    nodes,
    links,
    settings: isObject(document.settings) ? document.settings : {},
    stickyNotes,
  }
}

function readLinks(raw: unknown, names: Set<string>, complainOf: (node: string | null) => Complain): Link[] {
  if (!isObject(raw)) return []
  const links: Link[] = []
  for (const [from, kinds] of Object.entries(raw)) {
    if (!isObject(kinds)) continue
    for (const [kind, outputs] of Object.entries(kinds)) {
      for (const [output, targets] of Object.entries(Array.isArray(outputs) ? outputs : [])) {
        for (const [at, target] of (Array.isArray(targets) ? targets : []).entries()) {
          const { node: to, type, index } = Object(target)
          const path = `connections.${from}.${kind}[${output}][${at}]`
          if (kind !== 'main' || (type ?? 'main') !== 'main') {
            complainOf(from)(
              'connection',
              path,
              `A connection of the kind ${kind} has no counterpart`,
              target,
            )
          } else if (!names.has(from) || !names.has(to)) {
            complainOf(from)('connection', path, 'One of its ends is not there', target)
          } else
            links.push({
              from,
              output: Number(output),
              to,
              input: Number.isInteger(index) && index >= 0 ? index : 0,
            })
        }
      }
    }
  }
  return links
}
