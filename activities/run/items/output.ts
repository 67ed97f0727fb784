import { listHandles } from '../../../workflows/graph/check.ts'
import { MAX_ITEMS } from '../../../workflows/graph/compile.ts'
import type { GraphNode } from '../../../workflows/graph/graph.ts'
import { hasHandles, type ItemList, isItemList } from '../../../workflows/input.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import { graphNodeId, joinHandles } from '../../../workflows/run/plan.ts'
import type { NodeError } from '../../../workflows/run/records.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { createOutputBound } from '../../nodes/kit/items.ts'
import type { NodeResult } from '../../nodes/kit/node.ts'

/** Node types whose output {items} are several items, and not one with that field. */
const LISTS = new Set([
  ...[
    'FILTER',
    'MAP',
    'AGGREGATE',
    'SORT',
    'LIMIT',
    'DEDUPLICATE',
    'SKIP_SEEN',
    'SPLIT',
    'RENAME_KEYS',
    'JOIN',
  ],
  ...['CSV', 'RANDOM', 'MERGE', 'CODE', 'HTML'],
])

/** What a node that works on items outputs, put together item by item. */
export type ItemOutput = {
  /** Adds what item `at` has become. */
  add(at: number, item: unknown, result: NodeResult): void
  /** Adds an item that has failed, as onError says; for FAIL it must not be called. */
  fail(at: number, item: unknown, error: NodeError): void
  /** Adds what all items together have become. */
  addAll(items: unknown[], result: NodeResult): void
  /** The output, and the handles that have items. */
  finish(): NodeResult
}

export function createItemOutput(node: GraphNode): ItemOutput {
  const handles = listHandles(node) ?? [null]
  const parts = new Map<string | null, ItemList>(handles.map((handle) => [handle, { items: [], from: [] }]))
  const bound = createOutputBound()
  let count = 0

  function put(handle: string | null, item: unknown, from: ItemList['from'][number]): void {
    if (++count > MAX_ITEMS) {
      const message = `The node would output more than ${MAX_ITEMS} items`
      throw new NodeFailure(message, { type: 'TooManyItems' })
    }
    bound(item)
    const part = parts.get(handle) ?? { items: [], from: [] }
    parts.set(handle, part)
    part.items.push(item)
    part.from.push(from)
  }

  return {
    add(at, item, { output = null, handle = null, handles: several }) {
      for (const one of several ?? []) put(one, output, at)
      if (several) return
      const entries = output === item ? [output] : listEntries(node, output)
      for (const entry of entries) put(handle, entry, at)
    },
    fail(at, item, { message, type }) {
      const { errors } = node.itemOptions ?? {}
      const error = errors ? writeError(node, message, type) : { message, type, nodeId: graphNodeId(node.id) }
      // Where no edge can leave by the main handle, it is the last one: false, or default.
      const plain = handles.includes(null) ? null : handles.at(-1)!
      const handle = node.onError === 'BRANCH' ? 'error' : plain
      if (errors && node.type === 'FILTER') return
      if (errors === 'pass') {
        put(plain, item, at)
        return
      }
      const kept = isObject(item) ? item : { value: item ?? null }
      put(handle, handle === null ? { error } : { ...kept, error }, at)
    },
    addAll(items, { output = null, handle = null, places, branches }) {
      for (const [name, part] of Object.entries(branches ?? {}))
        for (const [at, entry] of part.items.entries()) put(name, entry, part.from[at] ?? null)
      if (branches) return
      const entries = listEntries(node, output)
      const from = node.type !== 'SUB_WORKFLOW' && isItemList(output) ? output.from : undefined
      const own = places?.of === items ? places.from : from
      const isEach = node.type === 'SUB_WORKFLOW' && entries.length === items.length
      const all =
        items.length === 1 ? 0 : entries.length === 1 && !Array.isArray(output) ? [...items.keys()] : null
      for (const [at, entry] of entries.entries())
        put(handle, entry, own ? (own[at] ?? null) : isEach ? at : all)
    },
    finish() {
      const [first = null] = handles
      if (node.itemOptions?.alwaysOne && parts.get(first)?.items.length === 0) put(first, {}, null)
      const { items, from } = parts.get(null) ?? {}
      const others: Record<string, ItemList> = {}
      for (const [handle, part] of parts) if (handle !== null) setOwn(others, handle, part)
      const left = [...parts].filter(([, part]) => part.items.length > 0).map(([handle]) => handle)
      const handle = joinHandles(left, handles)
      return {
        output: {
          ...(items ? { items, from } : {}),
          ...(Object.keys(others).length > 0 ? { handles: others } : {}),
        },
        ...(handle === null ? {} : { handle }),
      }
    },
  }
}

/**
 * What the call for one item has come to, if the node may leave by several handles: an output that says by which it
 * leaves, as that of all items does.
 */
export function writeCall(node: GraphNode, result: NodeResult): NodeResult {
  const { output = null, handle = null, handles = [handle] } = result
  if (!leavesByHandles(node)) return result
  const { handles: _, handle: __, ...rest } = result
  const part = { items: [output], from: [0] }
  return { ...rest, output: { handles: Object.fromEntries(handles.map((one) => [one, part])) } }
}

/** The result of a call for one item, as writeCall has written it. */
export function readCall(node: GraphNode, value: unknown): NodeResult {
  if (!leavesByHandles(node) || !hasHandles(value)) return { output: value }
  const handles = Object.keys(value.handles)
  return { output: value.handles[handles[0]!]?.items[0], handle: handles[0]!, handles }
}

/** Whether the node has no main handle: it leaves by handles that its config names. */
function leavesByHandles(node: GraphNode): boolean {
  return listHandles(node)?.includes(null) === false
}

/** An error as text; of a response with an error's status what a client in JavaScript says of it. */
function writeError({ type }: GraphNode, message: string, failure: string): unknown {
  const [, status, body = ''] = /responded with (\d{3})(?:: ([\s\S]*))?$/.exec(message) ?? []
  if (type !== 'HTTP_REQUEST' || status === undefined || failure !== `Http${status}`) return message
  const code = Number(status) >= 500 ? 'ERR_BAD_RESPONSE' : 'ERR_BAD_REQUEST'
  return {
    message: `${status} - ${JSON.stringify(body)}`,
    name: 'AxiosError',
    stack: '',
    code,
    status: Number(status),
  }
}

function listEntries({ type }: GraphNode, output: unknown): unknown[] {
  if (Array.isArray(output)) return output
  const isList =
    LISTS.has(type) || (type === 'SUB_WORKFLOW' && isObject(output) && Array.isArray(output.from))
  return isList && isItemList(output) ? output.items : [output]
}
