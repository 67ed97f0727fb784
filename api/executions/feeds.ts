import { setTimeout as sleep } from 'node:timers/promises'
import type { Bus } from '../../db/bus.ts'
import {
  type Cursor,
  readChanges,
  readWholeExecution,
  writeCursor,
} from '../../db/executions/records/changes.ts'
import type { Store } from '../../db/scope.ts'
import { type EventPage, writePage } from './sse.ts'

/** One reader's access to the feed of an execution. */
export type FeedReader = {
  isBehind(cursor: Cursor): boolean
  /** Reads the events after the cursor, at most 500 node records; null if the execution has been deleted. */
  read(cursor: Cursor): Promise<EventPage | null>
  leave(): void
}

type Deps = { store: Store; bus: Bus }
type Feed = ReturnType<typeof createFeed>

const LEAST_PAUSE_MS = 100

/**
 * Feeds of executions for any number of readers. The readers of one execution share one watch, and one query
 * for each change. A reader who joins late, or reconnects, first catches up with the others and then shares
 * their queries.
 */
export function createFeeds(deps: Deps) {
  const feeds = new Map<string, Feed>()

  function open(id: string, executionId: string, hidden: boolean): Feed {
    const feed = createFeed(deps, executionId, hidden)
    feeds.set(id, feed)
    return feed
  }

  function drop(id: string, feed: Feed): void {
    if (feeds.get(id) === feed) feeds.delete(id)
  }

  return {
    /**
     * Joins the feed of an execution, or the one for those from whom its values are `hidden`. `wake` is called whenever
     * there may be something to read.
     */
    async join(executionId: string, hidden: boolean, wake: () => void): Promise<FeedReader> {
      const id = hidden ? `${executionId} hidden` : executionId
      const feed = feeds.get(id) ?? open(id, executionId, hidden)
      feed.wakes.add(wake)
      const leave = () => {
        if (!feed.wakes.delete(wake)) return
        if (feed.wakes.size > 0) return
        drop(id, feed)
        feed.close()
      }
      try {
        await feed.ready
      } catch (error) {
        drop(id, feed)
        leave()
        throw error
      }
      return { isBehind: feed.isBehind, read: feed.read, leave }
    },
  }
}

export type Feeds = ReturnType<typeof createFeeds>

/** The feed of one execution. It watches the bus until it is closed, and calls `wakes` after each change. */
function createFeed({ store, bus }: Deps, executionId: string, hidden: boolean) {
  const wakes = new Set<() => void>()
  let changeCount = 0
  /** The snapshot up to which the foremost readers have read, and `changeCount` when it was read. */
  let head = ''
  let headCount = 0
  /** The read at the head that is under way, and the last one: a reader just behind it shares its page. */
  let step: Promise<EventPage | null> | undefined
  let last: { from: string; page: EventPage } | undefined
  /** Reads behind the head that are under way, by cursor. */
  const reads = new Map<string, Promise<EventPage | null>>()
  let pauseUntil = 0
  let leaveBus: (() => void) | undefined

  async function watch(): Promise<void> {
    leaveBus = await bus.watch(executionId, () => {
      changeCount++
      for (const wake of [...wakes]) wake()
    })
    if (wakes.size === 0) return leaveBus()
    headCount = changeCount
    head = await readWholeExecution(store)
  }

  function read({ from, to, after }: Cursor): Promise<EventPage | null> {
    if (to === undefined && from === head) {
      step ??= advance(from).finally(() => {
        step = undefined
      })
      return step
    }
    if (to === undefined && last?.from === from) return Promise.resolve(last.page)
    return catchUp({ from, to: to ?? head, ...(after ? { after } : {}) })
  }

  function catchUp(cursor: Cursor): Promise<EventPage | null> {
    const key = writeCursor(cursor)
    const known = reads.get(key)
    if (known) return known
    const page = readChanges(store, executionId, cursor, hidden)
      .then((changes) => changes && writePage(changes, cursor))
      .finally(() => reads.delete(key))
    reads.set(key, page)
    return page
  }

  async function advance(from: string): Promise<EventPage | null> {
    const pause = pauseUntil - performance.now()
    if (pause > 0) await sleep(pause)
    const countBefore = changeCount
    const began = performance.now()
    try {
      const changes = await readChanges(store, executionId, { from }, hidden)
      if (!changes) return null
      head = changes.upTo
      headCount = countBefore
      const page = writePage(changes, { from })
      last = { from, page }
      return page
    } finally {
      // An execution that is slow to read is read less often.
      const took = performance.now() - began
      pauseUntil = performance.now() + Math.max(LEAST_PAUSE_MS, 4 * took)
    }
  }

  return {
    wakes,
    /** Resolves once the feed watches the bus; rejects if the database is not reachable. */
    ready: watch(),
    isBehind: ({ from, to }: Cursor) => to !== undefined || from !== head || changeCount > headCount,
    read,
    close: () => leaveBus?.(),
  }
}
