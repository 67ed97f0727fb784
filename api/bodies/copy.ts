import { once } from 'node:events'
import { PassThrough } from 'node:stream'

type Chunks = AsyncIterable<Uint8Array>

/**
 * Lets bytes pass as they come, and gives a copy of them to `store`. Where that fails, what passes fails too. `end` is
 * what the copy was stored as; undefined if it was not, because not all has passed.
 */
export function copyStream<T>(
  chunks: Chunks,
  store: (copy: Chunks) => Promise<T>,
): { passed: Chunks; end: () => Promise<T | undefined> } {
  const copy = new PassThrough()
  copy.on('error', () => {})
  const storing = store(copy)
  storing.catch((error) => copy.destroy(error))
  async function* pass() {
    let isWhole = false
    try {
      for await (const chunk of chunks) {
        if (!copy.write(chunk)) await Promise.race([once(copy, 'drain'), storing])
        yield chunk
      }
      copy.end()
      isWhole = true
      await storing
    } finally {
      if (!isWhole) copy.destroy(new Error('The body was not read to its end'))
    }
  }
  const passed = pass()
  const end = async () => {
    // Not waited for: its sender may be slow. Behind the end, neither does anything.
    passed.return().catch(() => {})
    copy.destroy(new Error('The body was not read to its end'))
    return storing.catch(() => undefined)
  }
  return { passed, end }
}
