type Waiting<I, O> = { item: I; resolve: (output: O) => void; reject: (error: unknown) => void }

/**
 * Returns a function that does its work for many callers at once: the first call of a key begins alone, and those that
 * come meanwhile wait for the next batch, which begins after all of them. `work` gets at most `most` items, and returns
 * one output for each, in their order.
 */
export function createBatches<I, O>(
  work: (key: string, items: I[]) => Promise<O[]>,
  most = Number.POSITIVE_INFINITY,
): (key: string, item: I) => Promise<O> {
  const open = new Map<string, Waiting<I, O>[]>()

  async function workAll(key: string): Promise<void> {
    for (let waiting = open.get(key)!; waiting.length > 0; waiting = open.get(key)!) {
      const batch = waiting.slice(0, most)
      open.set(key, waiting.slice(most))
      try {
        const items = batch.map(({ item }) => item)
        const outputs = await work(key, items)
        for (const [i, { resolve }] of batch.entries()) resolve(outputs[i]!)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    open.delete(key)
  }

  return (key, item) =>
    new Promise((resolve, reject) => {
      const waiting = open.get(key)
      if (waiting) waiting.push({ item, resolve, reject })
      else {
        open.set(key, [{ item, resolve, reject }])
        void workAll(key)
      }
    })
}
