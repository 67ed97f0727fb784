/** A queue that serves its keys in turn, so that many items of one key do not hold up the others. */
export type FairQueue<T> = {
  add(key: string, item: T): void
  /**
   * Removes and returns the oldest item of the key whose turn it is. Passes over keys whose oldest item `may` not go
   * now; undefined if no item may go.
   */
  take(may?: (key: string, item: T) => boolean): T | undefined
  /** Removes an item, if it still waits. */
  remove(key: string, item: T): void
  /** The number of keys that have waiting items. */
  size(): number
  clear(): void
}

export function createFairQueue<T>(): FairQueue<T> {
  const waiting = new Map<string, T[]>()
  return {
    add(key, item) {
      const items = waiting.get(key)
      if (items) items.push(item)
      else waiting.set(key, [item])
    },
    take(may = () => true) {
      for (const [key, items] of waiting) {
        if (!may(key, items[0]!)) continue
        const item = items.shift()
        waiting.delete(key)
        if (items.length > 0) waiting.set(key, items)
        return item
      }
      return undefined
    },
    remove(key, item) {
      const left = waiting.get(key)?.filter((other) => other !== item)
      if (left?.length === 0) waiting.delete(key)
      else if (left) waiting.set(key, left)
    },
    size: () => waiting.size,
    clear: () => waiting.clear(),
  }
}
