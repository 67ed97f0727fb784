import { perDatabase } from '../cache.ts'
import { Fault } from '../fault.ts'
import type { Store } from '../scope.ts'

/** How long a request waits in a line, before it is refused as if there were no connection. */
const MAX_WAIT_MS = 10_000

type Line = { open: number; waiting: (() => void)[] }

const linesOf = perDatabase(() => new Map<string, Line>())

/**
 * Does at most so many works of one name at once in this process, the others in the order in which they came. Those who
 * wait for each other in a line have no connection meanwhile, which leaves them to other teams. Throws UNAVAILABLE after
 * ten seconds in the line.
 */
export async function inLine<T>(
  db: Store['db'],
  name: string,
  atOnce: number,
  work: () => Promise<T>,
): Promise<T> {
  const lines = linesOf(db)
  const line = lines.get(name) ?? { open: 0, waiting: [] }
  lines.set(name, line)
  if (line.open < atOnce) line.open++
  else await waitIn(line)
  try {
    return await work()
  } finally {
    const next = line.waiting.shift()
    if (next) next()
    else if (--line.open === 0) lines.delete(name)
  }
}

function waitIn(line: Line): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(() => {
      line.waiting = line.waiting.filter((other) => other !== begin)
      reject(
        new Fault('UNAVAILABLE', 'Too many requests of this team are waiting: try again', { retryAfter: 1 }),
      )
    }, MAX_WAIT_MS)
    line.waiting.push(begin)
  })
}
