import type { Envelope } from '../workflows/plan.ts'
import { MAX_ITEMS } from '../workflows/plan.ts'
import type { Loop, Result } from '../workflows/state.ts'
import type { Page } from '../workflows/walk.ts'
import { NodeFailure } from './nodes/failure.ts'
import type { NodeContext } from './nodes/node.ts'
import { type ActivityDeps, pack, type Values } from './step.ts'

/** A page of items: small enough to be opened once for each of them. */
const PAGE_ITEMS = 200
const PAGE_BYTES = 64_000
/** Pages and chunks travel as references but for the smallest: they go along with every attempt. */
const INLINE_BYTES = 1_000

/** The items of a FOR_EACH, in pages. A value that is no array is one item, nothing is none. */
export async function readItems(
  deps: ActivityDeps,
  executionId: string,
  { config, bindings, evaluator }: NodeContext,
): Promise<{ count: number; pages: Page[]; items: unknown[] }> {
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
    if (bytes > PAGE_BYTES || at - from >= PAGE_ITEMS - 1) await close(at + 1)
  }
  if (from < items.length) await close(items.length)
  return { count: items.length, pages, items }
}

/** Puts results into a chunk: an array of [iteration, value]. */
export async function foldResults(
  deps: ActivityDeps,
  executionId: string,
  values: Values,
  { results }: Loop,
): Promise<{ output: Envelope; folded: number[] }> {
  const entries = await readEntries(values, results)
  return {
    output: await pack(deps, executionId, entries, INLINE_BYTES),
    folded: results.map(({ at }) => at),
  }
}

/** The results of all iterations of a FOR_EACH in the order of its items. */
export async function gatherResults(values: Values, { chunks, results }: Loop): Promise<unknown[]> {
  values.demandRoom(chunks)
  const entries = await readEntries(values, results)
  for (const chunk of chunks) entries.push(...((await values.open(chunk)) as Entry[]))
  return entries.sort(([a], [b]) => a - b).map(([, value]) => value)
}

type Entry = [at: number, value: unknown]

function readEntries(values: Values, results: { at: number; result: Result }[]): Promise<Entry[]> {
  return Promise.all(
    results.map(async ({ at, result }): Promise<Entry> => [at, await values.readResult(result)]),
  )
}
