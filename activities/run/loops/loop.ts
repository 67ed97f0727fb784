import { MAX_OUTPUT_BYTES } from '../../../db/executions/records/written.ts'
import { MAX_ITEMS } from '../../../workflows/graph/compile.ts'
import type { Loop, Result } from '../../../workflows/run/frame.ts'
import type { Envelope } from '../../../workflows/run/plan.ts'
import type { ItemPage } from '../../../workflows/run/records.ts'
import type { ActivityDeps } from '../../deps.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import { packValue, type RunValues } from '../values.ts'

/** The size of a page of items; small, because a page may be opened once for each of its items. */
const PAGE_BYTES = 64_000

/** If there are more pages, they are put into a page of pages, so that a run with many loops keeps little. */
const MAX_PAGES = 4

/** Larger pages and chunks travel as references, because they go along with every attempt. */
const INLINE_BYTES = 1_000

/** Chunks are merged up to this size. */
export const CHUNK_BYTES = 500_000

/** The most bytes that an entry of a chunk takes besides its value. */
const ENTRY_BYTES = 12

/** The items of a FOR_EACH. A value that is not an array is one item; null gives no items. */
export async function renderLoopItems({ config, bindings, evaluator }: NodeContext): Promise<unknown[]> {
  const value = await evaluator.render(config.items, bindings)
  return Array.isArray(value) ? value : value === null || value === undefined ? [] : [value]
}

/** Packs the items of a loop into pages. Throws a NodeFailure (TooManyItems) for more than MAX_ITEMS. */
export async function packLoopItems(
  deps: ActivityDeps,
  executionId: string,
  items: unknown[],
): Promise<ItemPage[]> {
  if (items.length > MAX_ITEMS) {
    const message = `The loop has ${items.length} items; at most ${MAX_ITEMS} are allowed`
    throw new NodeFailure(message, { type: 'TooManyItems' })
  }
  const pages: ItemPage[] = []
  let from = 0
  let bytes = 0
  const close = async (to: number) => {
    pages.push({ from, items: await packValue(deps, executionId, items.slice(from, to), INLINE_BYTES) })
    from = to
    bytes = 0
  }
  for (const [at, item] of items.entries()) {
    bytes += JSON.stringify(item ?? null).length
    if (bytes > PAGE_BYTES) await close(at + 1)
  }
  if (from < items.length) await close(items.length)
  if (pages.length <= MAX_PAGES) return pages
  return [{ from: 0, items: await packValue(deps, executionId, pages, INLINE_BYTES), deep: true }]
}

/**
 * Folds the results of iterations into a chunk: an array of [iteration, value]. The last chunks go into it
 * too unless they are bigger, so that few are left in the end; `merged` counts them. Throws a NodeFailure
 * (OutputTooLarge) if all results of the loop so far are too big for one output.
 */
export async function foldResults(
  deps: ActivityDeps,
  executionId: string,
  values: RunValues,
  loop: Loop,
): Promise<{ output: Envelope; folded: number[]; merged: number }> {
  const { results, chunks } = loop
  demandSize(loop)
  let entries = await readEntries(values, results)
  let bytes = results.reduce((sum, { result }) => sum + sizeOf(result) + ENTRY_BYTES, 0)
  let merged = 0
  for (const chunk of chunks.toReversed()) {
    if (chunk.bytes > bytes || chunk.bytes + bytes > CHUNK_BYTES) break
    entries = entries.concat((await values.open(chunk)) as NumberedResult[])
    bytes += chunk.bytes
    merged++
  }
  const output = await packChunk(deps, executionId, entries)
  return { output, folded: results.map(({ at }) => at), merged }
}

/** The results of all iterations must fit into one output; a loop that has outgrown it fails at once. */
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

/** The results of all iterations of a FOR_EACH, in the order of its items. */
export async function gatherResults(values: RunValues, loop: Loop): Promise<unknown[]> {
  return (await gatherNumbered(values, loop)).map(([, value]) => value)
}

/** As gatherResults, each with the number of its iteration. */
export async function gatherNumbered(values: RunValues, loop: Loop): Promise<NumberedResult[]> {
  demandSize(loop)
  let entries = await readEntries(values, loop.results)
  for (const chunk of loop.chunks) entries = entries.concat((await values.open(chunk)) as NumberedResult[])
  return entries.sort(([a], [b]) => a - b)
}

/** The number of an iteration and its result. */
export type NumberedResult = [at: number, value: unknown]

export function packChunk(
  deps: ActivityDeps,
  executionId: string,
  entries: NumberedResult[],
): Promise<Envelope> {
  return packValue(deps, executionId, entries, INLINE_BYTES)
}

function readEntries(
  values: RunValues,
  results: { at: number; result: Result }[],
): Promise<NumberedResult[]> {
  return Promise.all(
    results.map(async ({ at, result }): Promise<NumberedResult> => [at, await values.readResult(result)]),
  )
}
