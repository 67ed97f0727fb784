import { isDeepStrictEqual } from 'node:util'
import { hasHandles, isItemList, itemsOf, partOf, valueAlong } from '../../../workflows/input.ts'
import type { Trail } from '../../../workflows/run/frame.ts'

/** An item of a node that another item came from, and its place among the items that left the node with it. */
export type PairedItem = { item: unknown; at: number }

/** Why an item has no pair, in words for the author. */
export type LostPair = { lost: string }

/**
 * The item of the node `targetId` that item `index` of a node came from: found by walking back along the taken
 * edges of its trail, by the `from` of each node in between. `nodes` has their outputs by id. If the target has
 * only one item, it is that one.
 */
export function findPairedItem(
  { nodeId, taken }: Trail,
  nodes: Record<string, unknown>,
  index: number,
  targetId: string,
): PairedItem | LostPair {
  const what = `item ${index} of "${nodeId}" has no pair in "${targetId}"`
  if (!Object.hasOwn(nodes, targetId)) return { lost: `${what}: that node has no output here` }
  const only = findOnly(nodes[targetId])
  if (only) return only
  const found = new Map<unknown, PairedItem>()
  let reason: string | undefined
  const seen = new Set<string>()
  const open: [id: string, at: number][] = [[nodeId, index]]
  while (open.length > 0) {
    const [id, at] = open.pop()!
    const key = `${at} ${id}`
    if (seen.has(key)) continue
    seen.add(key)
    const before = findBefore(taken[id] ?? [], nodes, at)
    if (!before) {
      reason ??= `"${id}" is not behind it, or got the item from a loop`
      continue
    }
    const { source, list, place, value } = before
    if (source === targetId) {
      found.set(`${before.part} ${place}`, { item: list[place], at: place })
      if (found.size > 1) return { lost: `${what}: it came from several of its items` }
      continue
    }
    const from = readFrom(value, place)
    if (typeof from === 'number') open.push([source, from])
    else if (from) for (const one of from) open.push([source, one])
    else {
      const passed = from === undefined ? findPassed(taken[source] ?? [], nodes, list, place) : undefined
      if (passed === undefined)
        reason ??= `"${source}" does not say which of its items each of those that it outputs came from`
      else open.push([source, passed])
    }
  }
  const [pair] = found.values()
  return pair ?? { lost: `${what}: ${reason ?? 'its trail is lost'}` }
}

/** The item of a node that has only one. */
function findOnly(output: unknown): PairedItem | undefined {
  const lists = listParts(output).map(itemsOf)
  const count = lists.reduce((sum, list) => sum + list.length, 0)
  return count === 1 ? { item: lists.find((list) => list.length === 1)![0], at: 0 } : undefined
}

/** The outputs of a node, by each of its handles. */
function listParts(output: unknown): unknown[] {
  if (!hasHandles(output)) return [output]
  return [...(isItemList(output) ? [partOf(output, null)] : []), ...Object.values(output.handles)]
}

type Before = { source: string; part: unknown; value: unknown; list: unknown[]; place: number }

/** Where item `at` of those that came along these edges left the node before. */
function findBefore(
  edges: Trail['taken'][string],
  nodes: Record<string, unknown>,
  at: number,
): Before | undefined {
  let place = at
  for (const edge of edges) {
    const value = valueAlong(edge, nodes[edge.source])
    const list = itemsOf(value)
    if (place < list.length) return { source: edge.source, part: edge.part, value, list, place }
    place -= list.length
  }
  return undefined
}

/** What a node says of the item that it output at `place`: null if it does not know, undefined if it says nothing. */
function readFrom(value: unknown, place: number): number | number[] | null | undefined {
  return isItemList(value) && Array.isArray(value.from) ? (value.from[place] ?? null) : undefined
}

/** The item that came to a node which does not work on items: its only one, or the one that it passed on. */
function findPassed(
  edges: Trail['taken'][string],
  nodes: Record<string, unknown>,
  list: unknown[],
  place: number,
): number | undefined {
  const lists = edges.map((edge) => itemsOf(valueAlong(edge, nodes[edge.source])))
  const count = lists.reduce((sum, { length }) => sum + length, 0)
  if (count === 1) return 0
  if (count !== list.length) return undefined
  let at = place
  for (const came of lists) {
    if (at < came.length) return isDeepStrictEqual(came[at], list[place]) ? place : undefined
    at -= came.length
  }
  return undefined
}
