import type { Envelope } from './plan.ts'
import type { Page } from './walk.ts'

/**
 * `$input` from the outputs of the nodes before, in edge order: of one its output; of several objects one object,
 * where the later edge wins; if one is no object, the array of all; of none null.
 */
export function mergeInputs(values: unknown[]): unknown {
  if (values.length === 0) return null
  if (values.length === 1) return values[0]
  return values.every(isObject) ? mergeObjects(values) : values
}

/** The item of a loop at a place of its page; of a page that is deep, of the page in it that has the item. */
export async function findItem(
  open: (envelope: Envelope) => Promise<unknown>,
  page: Pick<Page, 'items' | 'deep'>,
  at: number,
): Promise<unknown> {
  const list = (await open(page.items)) as unknown[]
  if (!page.deep) return list[at]
  const inner = (list as Page[]).findLast(({ from }) => from <= at)
  return inner && findItem(open, inner, at - inner.from)
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** One object of all keys; the later one wins. */
export function mergeObjects(objects: Record<string, unknown>[]): Record<string, unknown> {
  const merged: Record<string, unknown> = {}
  for (const object of objects) {
    for (const key of Object.keys(object)) setOwn(merged, key, object[key])
  }
  return merged
}

/** Sets an own property, also for `__proto__`, which a plain assignment would take for the prototype. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value
  else Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
}
