import { isObject, mergeObjects } from './json.ts'
import type { Envelope } from './run/plan.ts'
import type { ItemPage } from './run/records.ts'

/**
 * Makes `$input` from the outputs of the nodes before, given in edge order. No output gives null, and one
 * output is taken as it is. Several objects are merged (later edges win); if any output is not an object, all
 * go into an array.
 */
export function mergeInputs(values: unknown[]): unknown {
  if (values.length === 0) return null
  if (values.length === 1) return values[0]
  return values.every(isObject) ? mergeObjects(values) : values
}

/** The item of a loop at an index of its page. The items of a deep page are in the pages that it holds. */
export async function findItem(
  open: (envelope: Envelope) => Promise<unknown>,
  page: Pick<ItemPage, 'items' | 'deep'>,
  at: number,
): Promise<unknown> {
  const list = (await open(page.items)) as unknown[]
  if (!page.deep) return list[at]
  const inner = (list as ItemPage[]).findLast(({ from }) => from <= at)
  return inner && findItem(open, inner, at - inner.from)
}
