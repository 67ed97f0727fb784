import { isDatabaseAway } from '../../db/connection.ts'
import {
  type Entry,
  type EntryWriter,
  type SavedExecution,
  writeEntries,
  writeEntry,
} from '../../db/executions/records/save.ts'
import type { Store } from '../../db/scope.ts'

const GROUP_MS = 3
const GROUP_SIZE = 32

/** An entry with more than this is written alone: a group's statement stays as small as any other. */
const MAX_ROWS = 30
const MAX_CHARS = 100_000

type Waiting = {
  entry: Entry
  resolve(saved: SavedExecution | null): void
  reject(error: unknown): void
}

/**
 * Writes the small entries that come while others are being written together, in one commit. One that comes
 * alone never waits. If a group fails, each of it is tried alone, so that a bad one cannot harm the others.
 */
export function createGroupWriter(store: Store): EntryWriter {
  let waiting = new Map<string, Waiting>()
  let writing = 0
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const group = [...waiting.values()]
    waiting = new Map()
    if (group.length > 0) track(group.length === 1 ? writeAlone(group[0]!) : writeGroup(group))
  }

  function track(work: Promise<void>): void {
    writing++
    work.finally(() => {
      writing--
      if (writing === 0) flush()
    })
  }

  async function writeAlone({ entry, resolve, reject }: Waiting): Promise<void> {
    await writeEntry(store, entry).then(resolve, reject)
  }

  async function writeGroup(group: Waiting[]): Promise<void> {
    let saved = new Map<string, SavedExecution>()
    try {
      saved = await writeEntries(
        store,
        group.map(({ entry }) => entry),
      )
    } catch (error) {
      if (isDatabaseAway(error)) {
        for (const { reject } of group) reject(error)
        return
      }
    }
    await Promise.all(
      group.map((one) => {
        const found = saved.get(one.entry.executionId)
        return found ? one.resolve(found) : writeAlone(one)
      }),
    )
  }

  return (entry) =>
    new Promise((resolve, reject) => {
      const one = { entry, resolve, reject }
      if (writing === 0 || !isSmall(entry)) return track(writeAlone(one))
      if (waiting.has(entry.executionId)) flush()
      waiting.set(entry.executionId, one)
      if (waiting.size >= GROUP_SIZE) flush()
      else timer ??= setTimeout(flush, GROUP_MS)
    })
}

function isSmall({ rows }: Entry): boolean {
  if (rows.length > MAX_ROWS) return false
  const chars = rows.reduce((sum, row) => sum + (row.output?.length ?? 0) + (row.loop?.length ?? 0), 0)
  return chars <= MAX_CHARS
}
