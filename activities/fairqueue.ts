/** A queue that serves its keys in turn, so that many items of one key do not hold up the others. */
export type FairQueue<T> = {
  add(key: string, item: T): void
  /** Removes and returns the oldest item of the key whose turn it is; undefined if the queue is empty. */
  take(): T | undefined
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
    take() {
      const [first] = waiting
      if (!first) return undefined
      const [key, items] = first
      const item = items.shift()
      waiting.delete(key)
      if (items.length > 0) waiting.set(key, items)
      return item
    },
    size: () => waiting.size,
    clear: () => waiting.clear(),
  }
}
