import { MAX_OUTPUT_BYTES } from '../db/blobs.ts'
import type { Loop, Result } from '../workflows/frame.ts'
import type { Envelope } from '../workflows/plan.ts'
import { MAX_ITEMS } from '../workflows/plan.ts'
import type { Page } from '../workflows/walk.ts'
import { NodeFailure } from './nodes/failure.ts'
import type { NodeContext } from './nodes/node.ts'
import { type ActivityDeps, pack, type Values } from './step.ts'

/** A page of items: small enough to be opened once for each of them. */
const PAGE_BYTES = 64_000
/** More pages than this are a page themselves: of many loops at once a run keeps little. */
const MAX_PAGES = 4
/** Pages and chunks travel as references but for the smallest: they go along with every attempt. */
const INLINE_BYTES = 1_000
/** Chunks are put together up to this size. */
const CHUNK_BYTES = 500_000
/** What an entry of a chunk has beside its value, at the most. */
const ENTRY_BYTES = 12

/** The items of a FOR_EACH, in pages. A value that is no array is one item, nothing is none. */
export async function readItems(
  deps: ActivityDeps,
  executionId: string,
  { config, bindings, evaluator }: NodeContext,
): Promise<{ pages: Page[]; items: unknown[] }> {
  const value = await evaluator.render(config.items, bindings)
  const items = Array.isArray(value) ? value : value === null || value === undefined ? [] : [value]
  if (items.length > MAX_ITEMS) {
    const message = `The loop has ${items.length} items; at most ${MAX_ITEMS} are allowed`
    throw new NodeFailure(message, { type: 'TooManyItems' })
  }
  const pages: Page[] = []
  let from = 0
  let bytes = 0
  const close = async (to: number) => {
    pages.push({ from, items: await pack(deps, executionId, items.slice(from, to), INLINE_BYTES) })
    from = to
    bytes = 0
  }
  for (const [at, item] of items.entries()) {
    bytes += JSON.stringify(item ?? null).length
    if (bytes > PAGE_BYTES) await close(at + 1)
  }
  if (from < items.length) await close(items.length)
  if (pages.length <= MAX_PAGES) return { pages, items }
  return {
    pages: [{ from: 0, items: await pack(deps, executionId, pages, INLINE_BYTES), deep: true }],
    items,
  }
}

/**
 * Puts results into a chunk: an array of [iteration, value]. Chunks before it that are no bigger go into it, so that
 * there are few in the end. Throws NodeFailure where all that the loop has come to is too big already.
 */
export async function foldResults(
  deps: ActivityDeps,
  executionId: string,
  values: Values,
  loop: Loop,
): Promise<{ output: Envelope; folded: number[]; merged: number }> {
  const { results, chunks } = loop
  demandSize(loop)
  let entries = await readEntries(values, results)
  let bytes = results.reduce((sum, { result }) => sum + sizeOf(result) + ENTRY_BYTES, 0)
  let merged = 0
  for (const chunk of chunks.toReversed()) {
    if (chunk.bytes > bytes || chunk.bytes + bytes > CHUNK_BYTES) break
    entries = entries.concat((await values.open(chunk)) as Entry[])
    bytes += chunk.bytes
    merged++
  }
  const output = await pack(deps, executionId, entries, INLINE_BYTES)
  return { output, folded: results.map(({ at }) => at), merged }
}

/** What all iterations come to must fit into one output: a loop that has outgrown it ends at once. */
function demandSize({ results, chunks, next }: Loop): void {
  const fresh = results.reduce((sum, { result }) => sum + sizeOf(result), 0)
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.bytes, fresh)
  if (bytes <= MAX_OUTPUT_BYTES + next * ENTRY_BYTES) return
  const message = `The results of ${next} iterations have more than ${MAX_OUTPUT_BYTES} bytes together`
  throw new NodeFailure(message, { type: 'OutputTooLarge' })
}

function sizeOf(result: Result): number {
  if ('bytes' in result) return result.bytes
  if (!('ends' in result)) return 0
  return Object.values(result.ends).reduce((sum, { bytes }) => sum + bytes, 0)
}

/** The results of all iterations of a FOR_EACH in the order of its items. */
export async function gatherResults(values: Values, loop: Loop): Promise<unknown[]> {
  demandSize(loop)
  let entries = await readEntries(values, loop.results)
  for (const chunk of loop.chunks) entries = entries.concat((await values.open(chunk)) as Entry[])
  return entries.sort(([a], [b]) => a - b).map(([, value]) => value)
}

type Entry = [at: number, value: unknown]

function readEntries(values: Values, results: { at: number; result: Result }[]): Promise<Entry[]> {
  return Promise.all(
    results.map(async ({ at, result }): Promise<Entry> => [at, await values.readResult(result)]),
  )
}
