/** What waits in turn by key, so that many of one key do not hold up the others. */
export type Lanes<T> = {
  add(key: string, item: T): void
  /** The oldest of the key whose turn it is; undefined where nothing waits. */
  take(): T | undefined
  /** How many keys wait. */
  size(): number
  clear(): void
}

export function createLanes<T>(): Lanes<T> {
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
